"""Image names become environments: without a container runtime, an image says only what a program expects to find."""

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
# Newer packages were to be looked for, and could not be.
NOT_RENEWED = "NotRenewed"
# Words of `imagePullPolicy`; the third is IfNotPresent.
ALWAYS, NEVER = "Always", "Never"
HOST = "host"
# Paceline itself, for what it does inside of pods.
OWN = "paceline"
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Images by the environment that has what they promise; those of `host` promise no more than the machine has anyway.
# The other names are those of the requirements in `environments/`.
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
    OWN: ("paceline/porter",),
    HOST: (
        *("alpine", "bash", "busybox", "centos", "debian", "fedora"),
        *("python", "redhat/ubi*", "rockylinux", "ubuntu"),
    ),
}
SHIPPED = tuple((pattern, environment) for environment, patterns in PROMISES.items() for pattern in patterns)
BACK_OFF, NEVER_PULLED, INVALID = "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"
# HOST:PORT/FOLDER/NAME:TAG@DIGEST, of which only the name is needed.
_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?"
_REFERENCE = re.compile(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@[a-z0-9+._-]+:[0-9a-f]{{32,}})?")
# What people may leave out in front of an image's name.
DEFAULT_REGISTRY = ("docker.io/library/", "docker.io/", "index.docker.io/library/", "library/")

# (pattern, environment): `host`, the folder of a virtual environment, or what an environment is built from.
Row = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The programs a container finds: folders to see, read-only, and the variables that lead to them."""

    name: str
    path: tuple[str, ...]
    folders: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    # What whoever starts in it ought to know.
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvironment:
    """A built environment."""

    folder: Path
    # What whoever starts in it ought to know.
    note: str = ""


class EnvironmentProvider(Protocol):
    """Finds built environments, and has missing ones built beside the agent's work."""

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Give a built environment; CannotStart says how far its building is, or why there is none."""
        ...

    def listen(self, on_change: Callable[[], None]) -> None:
        """Have a call made whenever a build has ended, well or not."""
        ...


class StaticEnvironments:
    """Builds nothing: for machines on which environments are made by hand."""

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Say so."""
        raise CannotStart(NOT_PULLED, f"environment {name} would have to be built, and nothing is built on this node")

    def listen(self, on_change: Callable[[], None]) -> None:
        """Nothing ever changes."""


def choose(image: str, rows: Iterable[Row]) -> str | None:
    """Find the environment of an image: the user's rows first, then the shipped ones."""
    names = _spellings(image)
    for pattern, environment in (*rows, *SHIPPED):
        if any(_matches(name, pattern) for name in names):
            return environment
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The image table of a machine, and who builds what it names."""

    # The user's rows; the shipped ones come after them.
    rows: tuple[Row, ...]
    environments: EnvironmentProvider
    host: Host
    files: Files

    def environment_of(self, container: Object) -> Environment:
        """Open the environment of a container's image, or say what would give it one."""
        try:
            return self._open(str(container.get("image") or ""), policy=str(container.get("imagePullPolicy") or ""))
        except CannotStart as error:
            raise never_pulled(container, error) from error

    def _open(self, image: str, *, policy: str) -> Environment:
        name = choose(image, self.rows)
        if name is None and not _REFERENCE.fullmatch(image):
            said = f'couldn\'t parse image name "{image}": invalid reference format'
            raise CannotStart(INVALID, f'Failed to apply default image tag "{image}": {said}')
        if name is None:
            said = f"image {image!r} is mapped to no environment; start the cluster with"
            raise CannotStart(NOT_PULLED, f"{said}: paceline up --image '{image}=host' ({OTHERS} instead of host)")
        if name == HOST:
            folders = _with_real_places(self.host.prefixes, self.files)
            return Environment(name=HOST, path=(self.host.python_bin, *SYSTEM_PATH), folders=folders)
        if name == OWN:
            own = (*self.host.prefixes, *self.host.own_folders)
            path = (self.host.python_bin, *self.host.tools, *SYSTEM_PATH)
            return Environment(name=OWN, path=path, folders=_with_real_places((*own, *self.host.tools), self.files))
        if name.startswith("/") and self.files.sort(Path(name)) != "file":
            return _virtual_environment(image, Path(name), self.files)
        try:
            found = self.environments.open(name, policy=policy)
        except CannotStart as error:
            if error.reason != CREATING:
                raise
            raise CannotStart(CREATING, f'{PULLING} "{image}": {error}') from error
        return replace(_virtual_environment(image, found.folder, self.files), note=found.note)


OTHERS = (
    f"or {', '.join(name for name in PROMISES if name not in (HOST, OWN))}, a requirements file, a virtual environment"
)
# How a wait for a build begins; what follows the image tells how far it is.
PULLING = "Pulling image"


def never_pulled(container: Object, error: CannotStart) -> CannotStart:
    """Say that an image has no environment to a container that wants no other than is there."""
    if container.get("imagePullPolicy") != NEVER or error.reason == INVALID:
        return error
    image = str(container.get("image") or "")
    return CannotStart(NEVER_PULLED, f'Container image "{image}" is not present with pull policy of Never: {error}')


def backed_off(container: Object, error: CannotStart) -> CannotStart:
    """Say that an image still has no environment, as a kubelet does between two tries to pull it."""
    image = str(container.get("image") or "")
    return CannotStart(BACK_OFF, f'Back-off pulling image "{image}": {NOT_PULLED}: {error}')


def _virtual_environment(image: str, folder: Path, files: Files) -> Environment:
    if not files.exists(folder / "bin"):
        said = f"image {image!r} is mapped to {folder}, which has no bin folder"
        raise CannotStart(NOT_PULLED, f"{said}; make a virtual environment there: uv venv {folder}")
    folders = _with_real_places((str(folder), *_base_prefix(folder, files)), files)
    return Environment(
        name=str(folder),
        path=(str(folder / "bin"), *SYSTEM_PATH),
        folders=folders,
        env=(("VIRTUAL_ENV", str(folder)),),
    )


def _base_prefix(folder: Path, files: Files) -> tuple[str, ...]:
    """Find where the interpreter of a virtual environment was installed."""
    try:
        lines = files.read(folder / "pyvenv.cfg").decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    settings = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    home = settings.get("home", "")
    return (str(Path(home).parent),) if home else ()


def _with_real_places(folders: Iterable[str], files: Files) -> tuple[str, ...]:
    """Add where links lead to: an interpreter looks for its library from its real place."""
    places = ((folder, str(files.resolve(Path(folder)))) for folder in folders)
    return tuple(dict.fromkeys(place for pair in places for place in pair))


def _spellings(image: str) -> tuple[str, ...]:
    short = next((image.removeprefix(head) for head in DEFAULT_REGISTRY if image.startswith(head)), image)
    return (image, short)


def _matches(image: str, pattern: str) -> bool:
    """Compare as a shell would; a pattern without a tag stands for every tag."""
    if fnmatchcase(image, pattern):
        return True
    if ":" in pattern.rpartition("/")[2] or "@" in pattern:
        return False
    repository = image.partition("@")[0]
    folder, slash, last = repository.rpartition("/")
    return fnmatchcase(folder + slash + last.partition(":")[0], pattern)
