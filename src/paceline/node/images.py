"""Map image names to environments: without a container runtime, an image name only selects the installed programs."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from paceline.apimachinery.meta import Object
from paceline.effects import Files
from paceline.node.host_info import CannotStart, Host

NOT_PULLED, CREATING = "ErrImagePull", "ContainerCreating"
# The package index could not be checked for newer packages.
NOT_RENEWED = "NotRenewed"
# Values of `imagePullPolicy`; the third is IfNotPresent.
ALWAYS, NEVER = "Always", "Never"
HOST = "host"
# Paceline itself, for its own steps in pods.
OWN = "paceline"
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Image patterns by the environment that has their programs. The names other than `host` and `paceline` are those of the
# requirement sets in `environments/`.
PROMISES = {
    # First: a notebook with PyTorch in its name is a notebook.
    "jupyter": ("*-notebook*", "jupyterlab", "t9kpublic/jupyter*"),
    "pytorch": ("pytorch/pytorch*", "pytorch", "*/nvidia/pytorch", "t9kpublic/pytorch*", "t9kpublic/torch*"),
    "tensorflow": (
        "tensorflow/tensorflow*",
        "tensorflow",
        "*/nvidia/tensorflow",
        "t9kpublic/tensorflow*",
        # The trainer of the tutorial on training with Helm.
        "*/tensorflow-samples/tf-mnist*",
    ),
    "tensorboard": ("tensorboard", "t9kpublic/tensorboard*", "*/tensorflow-samples/tensorboard*"),
    "xgboost": ("xgboost", "dmlc/xgboost*", "t9kpublic/xgboost*"),
    "deepspeed": ("deepspeed/deepspeed*", "deepspeed", "t9kpublic/deepspeed*"),
    "colossalai": ("hpcaitech/colossalai*", "colossalai", "t9kpublic/colossalai*"),
    "mpi": ("mpi4py", "mpioperator/*", "t9kpublic/mpi*"),
    OWN: ("paceline/podtools",),
    HOST: (
        *("alpine", "bash", "busybox", "centos", "debian", "fedora"),
        *("python", "redhat/ubi*", "rockylinux", "ubuntu"),
    ),
}
SHIPPED = tuple((pattern, environment) for environment, patterns in PROMISES.items() for pattern in patterns)
BACK_OFF, NEVER_PULLED, INVALID = "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"
# HOST:PORT/FOLDER/NAME:TAG@DIGEST, of which only the name is required.
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?"
_REFERENCE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@[a-z0-9+._-]+:[0-9a-f]{{32,}})?")
# Prefixes of an image's name that may be omitted.
DEFAULT_REGISTRY = ("docker.io/library/", "docker.io/", "index.docker.io/library/", "library/")

# (pattern, environment): `host`, the folder of a virtual environment, or the requirement set to build one from.
Row = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The programs of a container: read-only folders, and the variables that point to them."""

    name: str
    path: tuple[str, ...]
    folders: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    # A warning for users of the environment.
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvironment:
    """A built environment."""

    folder: Path
    # A warning for users of the environment.
    note: str = ""


class EnvironmentProvider(Protocol):
    """Returns built environments, and builds missing ones in the background (`environments/builder.py`)."""

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Return a built environment; CannotStart reports the progress of the build, or why there is none."""
        ...

    def listen(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever a build has ended."""
        ...


def choose(image: str, rows: Iterable[Row]) -> str | None:
    """Return the environment of an image: the user's rows first, then the shipped ones."""
    names = _spellings(image)
    for pattern, environment in (*rows, *SHIPPED):
        if any(_matches(name, pattern) for name in names):
            return environment
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The image table of a node, and the environments that it names."""

    # The user's rows, which precede the shipped ones.
    rows: tuple[Row, ...]
    environments: EnvironmentProvider
    host: Host
    files: Files

    def environment_of(self, container: Object) -> Environment:
        """Return the environment of a container's image; CannotStart says how to get one."""
        try:
            return self._open(str(container.get("image") or ""), policy=str(container.get("imagePullPolicy") or ""))
        except CannotStart as error:
            raise never_pulled(container, error) from error

    def _open(self, image: str, *, policy: str) -> Environment:
        name = choose(image, self.rows)
        if name is None and not _REFERENCE.fullmatch(image):
            problem = f'couldn\'t parse image name "{image}": invalid reference format'
            raise CannotStart(INVALID, f'Failed to apply default image tag "{image}": {problem}')
        if name is None:
            problem = f"image {image!r} is mapped to no environment; start the cluster with"
            raise CannotStart(NOT_PULLED, f"{problem}: paceline up --image '{image}=host' ({OTHERS} instead of host)")
        if name == HOST:
            folders = _with_targets(self.host.prefixes, self.files)
            return Environment(name=HOST, path=(self.host.python_bin, *SYSTEM_PATH), folders=folders)
        if name == OWN:
            path = (self.host.python_bin, *self.host.tools, *SYSTEM_PATH)
            folders = (*self.host.prefixes, *self.host.own_folders, *self.host.tools)
            return Environment(name=OWN, path=path, folders=_with_targets(folders, self.files))
        if name.startswith("/") and self.files.sort(Path(name)) != "file":
            return _virtual_environment(image, Path(name), self.files)
        try:
            built = self.environments.open(name, policy=policy)
        except CannotStart as error:
            if error.reason != CREATING:
                raise
            raise CannotStart(CREATING, f'{PULLING} "{image}": {error}') from error
        return replace(_virtual_environment(image, built.folder, self.files), note=built.note)


OTHERS = (
    f"or {', '.join(name for name in PROMISES if name not in (HOST, OWN))}, a requirements file, a virtual environment"
)
# How the message about a running build begins; the progress follows the image.
PULLING = "Pulling image"


def never_pulled(container: Object, error: CannotStart) -> CannotStart:
    """Return a kubelet's error for a missing image if the container's pull policy is Never, else the error itself."""
    if container.get("imagePullPolicy") != NEVER or error.reason == INVALID:
        return error
    image = str(container.get("image") or "")
    return CannotStart(NEVER_PULLED, f'Container image "{image}" is not present with pull policy of Never: {error}')


def backed_off(container: Object, error: CannotStart) -> CannotStart:
    """Return a kubelet's error between two attempts to pull an image."""
    image = str(container.get("image") or "")
    return CannotStart(BACK_OFF, f'Back-off pulling image "{image}": {NOT_PULLED}: {error}')


def _virtual_environment(image: str, folder: Path, files: Files) -> Environment:
    if not files.exists(folder / "bin"):
        problem = f"image {image!r} is mapped to {folder}, which has no bin folder"
        raise CannotStart(NOT_PULLED, f"{problem}; create a virtual environment there: uv venv {folder}")
    folders = _with_targets((str(folder), *_base_prefix(folder, files)), files)
    return Environment(
        name=str(folder),
        path=(str(folder / "bin"), *SYSTEM_PATH),
        folders=folders,
        env=(("VIRTUAL_ENV", str(folder)),),
    )


def _base_prefix(folder: Path, files: Files) -> tuple[str, ...]:
    """Return where the interpreter of a virtual environment is installed."""
    try:
        lines = files.read(folder / "pyvenv.cfg").decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    settings = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    home = settings.get("home", "")
    return (str(Path(home).parent),) if home else ()


def _with_targets(folders: Iterable[str], files: Files) -> tuple[str, ...]:
    """Add the targets of links: an interpreter looks for its library relative to its real path."""
    places = ((folder, str(files.resolve(Path(folder)))) for folder in folders)
    return tuple(dict.fromkeys(place for pair in places for place in pair))


def _spellings(image: str) -> tuple[str, ...]:
    short = next((image.removeprefix(head) for head in DEFAULT_REGISTRY if image.startswith(head)), image)
    return (image, short)


def _matches(image: str, pattern: str) -> bool:
    """Match like a shell; a pattern without a tag matches every tag."""
    if fnmatchcase(image, pattern):
        return True
    if ":" in pattern.rpartition("/")[2] or "@" in pattern:
        return False
    repository = image.partition("@")[0]
    folder, slash, last = repository.rpartition("/")
    return fnmatchcase(folder + slash + last.partition(":")[0], pattern)
