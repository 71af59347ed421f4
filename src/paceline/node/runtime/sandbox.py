"""The sandbox of one container, as options of bubblewrap: what it sees, who it is, and what it runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from paceline.effects import Files
from paceline.node.host_info import CannotStart, Host
from paceline.node.images import Environment
from paceline.node.runtime import confinement, subreaper
from paceline.node.runtime.confinement import BECOMING, CONFINED, EVERYTHING, Confinement, User
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.runtime.shim import PLAIN_END
from paceline.node.volumes.volumes import VolumeMount

# Read-only from the machine, where they exist: certificates, names, time zone, libraries' paths.
SHARED_ETC = ("alternatives", "ca-certificates", "crypto-policies", "fonts", "ld.so.conf.d", "pki", "ssl")
# The same for single files, which are copied if they are small: of all that a sandbox is made of, mounts take longest.
COPIED_ETC = (
    *("ld.so.cache", "ld.so.conf", "localtime", "mime.types", "nsswitch.conf", "protocols", "services", "timezone"),
)
RESOLVER = "/etc/resolv.conf"
# A word for bubblewrap, or a file that the shim gives it: its `place`, and its `text` or its `source`; or a part of a
# volume (`root`, `subPath`), which the shim opens by handle; or a place in a volume (`inside`), which it looks at.
Word = str | dict[str, str]
MESSAGE = "/dev/termination-log"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - in the sandbox, as the two below
SCRATCH, LASTING_SCRATCH = "/tmp", "/var/tmp"  # noqa: S108


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A folder of the machine that mounts need a place in: its own entries are shown one by one, around them."""

    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything that the sandbox of one container is made from."""

    hostname: str
    environment: Environment
    env: tuple[tuple[str, str], ...]
    command: tuple[str, ...]
    mounts: tuple[VolumeMount, ...]
    # The pod's hosts file, and the file for the container's last words.
    hosts: Path
    message: Path
    message_path: str = MESSAGE
    working_dir: str = ""
    user: User | None = None
    openings: tuple[Opening, ...] = ()
    is_read_only: bool = False
    # The list of name servers, where it is not the machine's own.
    resolver: str = ""
    # Folders of the machine that are seen at the place of others: (folder, place).
    views: tuple[tuple[str, str], ...] = ()
    # What root may do in the container, in the kernel's words; where the agent is no root, nobody may anything.
    capabilities: tuple[str, ...] = ()
    # Device nodes of the machine that the container sees, beside those that every sandbox has.
    devices: tuple[str, ...] = ()
    # What of the default confinement it has.
    confinement: Confinement = CONFINED


def openings_of(
    targets: Iterable[str], read_only: Iterable[str], files: Files, *, private: Iterable[str] = ()
) -> tuple[Opening, ...]:
    """Find the folders in which places for mounts are missing, and which cannot be written to.

    Nothing is opened that the sandbox does not show anyway: a path with `..`, a link, or a path into a private folder
    would otherwise show the machine's own folder there.
    """
    closed, hidden = tuple(read_only), tuple(private)
    found: dict[str, Opening] = {}
    for target in targets:
        path = PurePosixPath(target)
        if not any(path.is_relative_to(each) for each in closed) or files.exists(Path(path)):
            continue
        above = next(each for each in path.parents if files.exists(Path(each)))
        # A link is opened where it leads to: that is what the sandbox shows too.
        real = files.resolve(Path(above))
        shown = [place for place in (files.resolve(Path(each)) for each in closed) if real.is_relative_to(place)]
        if not shown or any(_is_hidden(real, shown, folder) for folder in hidden):
            continue
        folder = str(real)
        found[folder] = Opening(folder=folder, names=files.names(Path(folder)))
    return tuple(found[folder] for folder in sorted(found))


def _is_hidden(path: Path, shown: Iterable[Path], private: str) -> bool:
    """Tell whether a path lies in a private folder, and in none of the folders in that which are shown all the same."""
    return path.is_relative_to(private) and not any(place.is_relative_to(private) for place in shown)


def passwd_text(user: User) -> str:
    """Write a passwd file in which the container finds itself."""
    own = "" if user.uid == 0 else f"user:x:{user.uid}:{user.gid}:user:{SCRATCH}:/bin/sh\n"
    return f"root:x:0:0:root:/root:/bin/sh\n{own}nobody:x:65534:65534:nobody:/:/bin/false\n"


def group_text(user: User) -> str:
    """Write a group file in which the container finds itself."""
    own = "" if user.gid == 0 else f"user:x:{user.gid}:\n"
    return f"root:x:0:\n{own}nogroup:x:65534:\n"


def options(launch: Launch, host: Host) -> tuple[Word, ...]:
    """Spell the sandbox. Later options lie over earlier ones, so the user's mounts come last."""
    return tuple(
        word
        for part in (
            _machine(host),
            _views(launch),
            _etc(launch, host),
            _memory(),
            _masks(launch, host),
            _environment(launch, host),
            _openings(launch, host),
            _devices(launch),
            _mounts(launch),
            _closing(launch),
            _isolation(launch, host),
            _env(launch, host),
        )
        for word in part
    )


def command(launch: Launch, host: Host) -> tuple[str, ...]:
    """Spell what is executed in the sandbox, as the user it is to run as."""
    user = launch.user
    if user is None:
        return launch.command
    groups = ("--groups", ",".join(map(str, user.groups))) if user.groups else ("--clear-groups",)
    kept = ",".join(("-all", *(f"+{each.removeprefix('CAP_').lower()}" for each in launch.capabilities)))
    become = ("--reuid", str(user.uid), "--regid", str(user.gid), *groups, "--bounding-set", kept, "--")
    return (host.setpriv, *become, *launch.command)


def _machine(host: Host) -> Iterator[str]:
    """Programs and libraries. The root is empty memory, so that a mount can be made at any path."""
    yield from ("--tmpfs", "/")
    for name, target in host.links:
        yield from ("--symlink", target, name)
    for folder in host.folders:
        yield from ("--ro-bind", folder, folder)
    yield from ("--ro-bind-try", "/sys", "/sys")
    for folder in ("/etc", "/root", "/run", "/var"):
        yield from ("--dir", folder)


def _views(launch: Launch) -> Iterator[str]:
    """A container's own limits, where programs look for them."""
    for folder, place in launch.views:
        yield from ("--ro-bind", folder, place)


def _environment(launch: Launch, host: Host) -> Iterator[str]:
    """The environment's folders, after the scratch memory: they may lie anywhere, below /tmp too."""
    for folder in launch.environment.folders:
        if not any(PurePosixPath(folder).is_relative_to(seen) for seen in host.folders):
            yield from (*_parents(folder), "--ro-bind", folder, folder)
    yield from _covers((*host.folders, *launch.environment.folders), launch, host)


def _covers(shown: Iterable[str], launch: Launch, host: Host) -> Iterator[str]:
    """Cover the private folders in what is shown, and show the environment's own folders there again."""
    covered = confinement.private_in(shown, host)
    for folder in covered:
        yield from ("--tmpfs", folder)
    for folder in launch.environment.folders:
        if any(PurePosixPath(folder).is_relative_to(place) for place in covered):
            yield from (*_parents(folder), "--ro-bind", folder, folder)


def closed_folders(environment: Environment, host: Host) -> tuple[str, ...]:
    """Name the folders that a container sees and cannot write to."""
    return (*host.folders, *environment.folders, *(f"/etc/{name}" for name in SHARED_ETC))


def _openings(launch: Launch, host: Host) -> Iterator[str]:
    for opening in launch.openings:
        yield from ("--tmpfs", opening.folder)
        paths = [f"{opening.folder}/{name}" for name in opening.names]
        for path in paths:
            yield from ("--ro-bind-try", path, path)
        yield from _covers(paths, launch, host)


def _closing(launch: Launch) -> Iterator[str]:
    """Let nothing be written beside the mounts, if so asked for; shared memory is no part of the root."""
    if launch.is_read_only:
        targets = {mount.target for mount in launch.mounts}
        for folder in (SCRATCH, "/"):
            if folder not in targets:
                yield from ("--remount-ro", folder)


def _parents(path: str) -> Iterator[str]:
    """Make the folders above a place: those that bubblewrap makes by itself may be closed to other users."""
    for folder in reversed(PurePosixPath(path).parents[:-1]):
        yield from ("--dir", str(folder))


def _etc(launch: Launch, host: Host) -> Iterator[Word]:
    for name in SHARED_ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in COPIED_ETC:
        yield {"place": f"/etc/{name}", "source": f"/etc/{name}"}
    user = launch.user or User(uid=host.uid, gid=host.gid)
    own = {"group": group_text(user), "hostname": f"{launch.hostname}\n", "passwd": passwd_text(user)}
    for name, text in own.items():
        yield {"place": f"/etc/{name}", "text": text}
    # These change while the container runs.
    yield from ("--ro-bind", str(launch.hosts), "/etc/hosts")
    yield from ("--ro-bind-try", launch.resolver or RESOLVER, RESOLVER)


def _memory() -> Iterator[str]:
    """Memory that behaves as folders.

    Shared memory may grow to half of the machine's, as the kernel has it, and not to the 64 MiB of container runtimes:
    loaders of training data fill that at once and die of signal 7. An emptyDir of medium Memory at its place sizes it.
    """
    yield from ("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", SHARED_MEMORY)
    yield from ("--perms", "1777", "--tmpfs", SCRATCH, "--perms", "1777", "--dir", LASTING_SCRATCH)


def _masks(launch: Launch, host: Host) -> Iterator[Word]:
    if launch.confinement.has_masks:
        yield from confinement.masks(host)
    if text := confinement.filter_of(launch.confinement, launch.capabilities, host):
        yield {"filter": text}


def _devices(launch: Launch) -> Iterator[str]:
    for path in launch.devices:
        yield from (*_parents(path), "--dev-bind", path, path)


def _mounts(launch: Launch) -> Iterator[Word]:
    yield from ("--bind", str(launch.message), launch.message_path)
    for mount in launch.mounts:
        yield from _way(mount.target, launch)
        if mount.source is None:
            size = () if mount.volume.size is None else ("--size", str(mount.volume.size))
            yield from (*_parents(mount.target), "--perms", "1777", *size, "--tmpfs", mount.target)
        else:
            how = "--ro-bind" if mount.read_only else "--bind"
            yield from _parents(mount.target)
            if mount.sub_path:
                where = {"root": str(mount.volume.source), "subPath": mount.sub_path, "volume": mount.name}
                yield {"bind": how, "place": mount.target, **where}
            else:
                yield from (how, str(mount.source), mount.target)
    if launch.working_dir:
        yield from _way(launch.working_dir, launch)
        yield from ("--dir", launch.working_dir, "--chdir", launch.working_dir)
    else:
        yield from ("--chdir", "/")


def _way(place: str, launch: Launch) -> Iterator[Word]:
    """Have the shim look at the way to a place in a volume: containers may have put links there."""
    path = PurePosixPath(place)
    around = [mount for mount in launch.mounts if mount.target != place and path.is_relative_to(mount.target)]
    nearest = max(around, key=lambda mount: len(PurePosixPath(mount.target).parts), default=None)
    # Memory is empty when the sandbox is made.
    if nearest is not None and nearest.source is not None:
        where = {"root": str(nearest.volume.source), "subPath": nearest.sub_path, "volume": nearest.name}
        yield {"inside": str(path.relative_to(nearest.target)), "place": place, **where}


def _isolation(launch: Launch, host: Host) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", launch.hostname)
    # A session of its own: a program that signals its whole process group must not reach its keeper.
    yield from ("--die-with-parent", "--new-session")
    if host.is_root:
        yield from ("--cap-drop", "ALL")
        becoming = BECOMING if launch.user is not None else ()
        for each in dict.fromkeys((*launch.capabilities, *becoming)):
            yield from ("--cap-add", each)


def process_of(launch: Launch, host: Host) -> dict[str, Any]:
    """Say what the shim does to its child before that becomes bubblewrap."""
    becoming = BECOMING if launch.user is not None else ()
    kept = tuple(dict.fromkeys((*launch.capabilities, *becoming)))
    return {
        "oomScore": launch.confinement.oom_score,
        # Beyond these nobody in the container can ever have any.
        "capabilities": None if EVERYTHING in kept or not host.is_root else kept,
        # Where there are no control groups to count them by.
        "processes": host.pids_limit if host.cgroups is None and not host.is_root else None,
    }


def variables(launch: Launch, host: Host) -> dict[str, str]:
    """Give the whole environment of a container: what every one has, its image's, its own."""
    uid = launch.user.uid if launch.user else host.uid
    image = {
        "PATH": ":".join(launch.environment.path),
        "HOME": "/root" if uid == 0 else SCRATCH,
        "LANG": "C.UTF-8",
        "HOSTNAME": launch.hostname,
    }
    return image | dict(launch.environment.env) | dict(launch.env)


def _env(launch: Launch, host: Host) -> Iterator[str]:
    yield "--clearenv"
    for name, value in variables(launch, host).items():
        yield from ("--setenv", name, value)


WHY = "the cluster was started with --no-sandbox; `paceline down`, then `paceline up --sandbox`, would have it"
# What is given to every pod, and missed by few.
UNASKED = "/var/run/secrets/kubernetes.io/"


def unsandboxed_intent(launch: Launch, host: Host) -> dict[str, Any]:
    """Say what the shim starts in place of bubblewrap; CannotStart when the container needs one."""
    if said := "; ".join(_lacking(launch)):
        raise CannotStart(CONFIG_ERROR, f"{said}: {WHY}")
    return {
        "launcher": ["-I", "-S", subreaper.__file__],
        "argv": [host.python, "--", *command(launch, host)],
        "options": tuple(_unsandboxed_options(launch, host)),
        "endSignal": PLAIN_END,
    }


def _unsandboxed_options(launch: Launch, host: Host) -> Iterator[str]:
    yield from ("--chdir", launch.working_dir or "/")
    for name, value in variables(launch, host).items():
        yield from ("--setenv", name, value)


def _lacking(launch: Launch) -> Iterator[str]:
    for mount in launch.mounts:
        if not _is_there(mount):
            how = "read-only at" if mount.read_only else "at"
            yield f"volume {mount.name!r} cannot be mounted {how} {mount.target} without a sandbox"
    if launch.is_read_only:
        yield "readOnlyRootFilesystem cannot be had without a sandbox"


def _is_there(mount: VolumeMount) -> bool:
    """Tell whether a program finds a volume at its place anyway: a folder of the machine under its own name."""
    if mount.target.startswith(UNASKED):
        return True
    if mount.source is None:
        return mount.target == SHARED_MEMORY
    return str(mount.source) == mount.target and not mount.read_only
