"""The sandbox of one container as options of bubblewrap, and the same container without a sandbox."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from paceline.effects import Files, ProcessHandle
from paceline.node.host_info import CannotStart, Host, User
from paceline.node.images import Environment
from paceline.node.runtime import confinement, subreaper
from paceline.node.runtime.confinement import ALL, CONFINED, SET_USER, Confinement
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.runtime.exec_types import ExecRequest
from paceline.node.runtime.shim import SUBREAPER_KILL
from paceline.node.volumes.volumes import VolumeMount

# Folders of the host's /etc that every container sees read-only, where they exist.
SHARED_ETC = ("alternatives", "crypto-policies", "fonts", "pki", "ssl")
# The same for files and folders that are copied if they are small: mounts take longest in the set-up of a sandbox.
COPIED_FOLDERS = ("ca-certificates", "ld.so.conf.d")
COPIED_ETC = (
    *COPIED_FOLDERS,
    *("ld.so.cache", "ld.so.conf", "localtime", "mime.types", "nsswitch.conf", "protocols", "services", "timezone"),
)
RESOLVER = "/etc/resolv.conf"
# An argument of bubblewrap, or an entry that the shim expands: a file (`place`, and `text` or `source`), a subPath of a
# volume (`root`, `subPath`), which it opens by handle, or a path in a volume (`inside`), which it checks.
Option = str | dict[str, str]
MESSAGE = "/dev/termination-log"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - in the sandbox, like the two below
TMP, VAR_TMP = "/tmp", "/var/tmp"  # noqa: S108


@dataclass(frozen=True, slots=True, kw_only=True)
class MountParent:
    """A read-only host folder that lacks a mount point: replaced by a tmpfs with binds of its entries."""

    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerConfig:
    """Everything that the sandbox of one container is made from, as in CRI's ContainerConfig."""

    hostname: str
    environment: Environment
    env: tuple[tuple[str, str], ...]
    command: tuple[str, ...]
    mounts: tuple[VolumeMount, ...]
    # The pod's hosts file, and the file of the termination message.
    hosts: Path
    message: Path
    message_path: str = MESSAGE
    working_dir: str = ""
    user: User | None = None
    mount_parents: tuple[MountParent, ...] = ()
    is_read_only: bool = False
    # The resolv.conf, where it is not the host's.
    resolver: str = ""
    # The shim's intent for the container's cgroups, and the folders of these to bind: (folder, place).
    cgroup: dict[str, Any] | None = None
    views: tuple[tuple[str, str], ...] = ()
    # Capabilities of root in the container; they have no effect when the agent is not root.
    capabilities: tuple[str, ...] = ()
    # Device nodes of the host, besides those of every sandbox.
    devices: tuple[str, ...] = ()
    confinement: Confinement = CONFINED


def mount_parents_of(
    targets: Iterable[str], read_only: Iterable[str], files: Files, *, private: Iterable[str] = ()
) -> tuple[MountParent, ...]:
    """Return the read-only folders in which mount points are missing.

    Only folders that the sandbox shows anyway: otherwise a path with `..`, a link, or a path into a private folder
    would show the host's folder there.
    """
    closed, hidden = tuple(read_only), tuple(private)
    parents: dict[str, MountParent] = {}
    for target in targets:
        path = PurePosixPath(target)
        if not any(path.is_relative_to(folder) for folder in closed) or files.exists(Path(path)):
            continue
        ancestor = next(folder for folder in path.parents if files.exists(Path(folder)))
        # A link is resolved, as in the sandbox.
        real = files.resolve(Path(ancestor))
        shown = [place for place in (files.resolve(Path(folder)) for folder in closed) if real.is_relative_to(place)]
        if not shown or any(_is_hidden(real, shown, folder) for folder in hidden):
            continue
        parents[str(real)] = MountParent(folder=str(real), names=files.names(real))
    return tuple(parents[folder] for folder in sorted(parents))


def _is_hidden(path: Path, shown: Iterable[Path], private: str) -> bool:
    """Return whether a path is in a private folder, and in none of its subfolders that are shown all the same."""
    return path.is_relative_to(private) and not any(place.is_relative_to(private) for place in shown)


def passwd_text(user: User) -> str:
    """Return a passwd file with the container's user."""
    entry = "" if user.uid == 0 else f"user:x:{user.uid}:{user.gid}:user:{TMP}:/bin/sh\n"
    return f"root:x:0:0:root:/root:/bin/sh\n{entry}nobody:x:65534:65534:nobody:/:/bin/false\n"


def group_text(user: User) -> str:
    """Return a group file with the container's group."""
    entry = "" if user.gid == 0 else f"user:x:{user.gid}:\n"
    return f"root:x:0:\n{entry}nogroup:x:65534:\n"


def options(config: ContainerConfig, host: Host) -> tuple[Option, ...]:
    """Return the options of bubblewrap. Later mounts cover earlier ones, so those of the user come last."""
    return (
        *_root(host),
        *_etc(config, host),
        *_memory(),
        *_masks(config, host, below="/proc"),
        *_filter(config, host),
        *_environment(config.environment.folders, host),
        *_sys(config, host),
        *_mount_parents(config, host),
        *_devices(config),
        *_mounts(config),
        *_read_only(config),
        *_isolation(config, host),
        "--clearenv",
        *_env(config, host),
    )


def command(config: ContainerConfig, host: Host) -> tuple[str, ...]:
    """Return the command in the sandbox; setpriv changes to the container's user."""
    user = config.user
    if user is None:
        return config.command
    groups = ("--groups", ",".join(map(str, user.groups))) if user.groups else ("--clear-groups",)
    bounds = ",".join(("-all", *(f"+{name.removeprefix('CAP_').lower()}" for name in config.capabilities)))
    arguments = ("--reuid", str(user.uid), "--regid", str(user.gid), *groups, "--bounding-set", bounds, "--")
    return (host.setpriv, *arguments, *config.command)


def _root(host: Host) -> Iterator[str]:
    """Yield the host's programs and libraries. The root is a tmpfs, so that a mount point can be at any path."""
    yield from ("--tmpfs", "/")
    for name, target in host.links:
        yield from ("--symlink", target, name)
    for folder in host.folders:
        yield from ("--ro-bind", folder, folder)
    for folder in ("/etc", "/root", "/run", "/var"):
        yield from ("--dir", folder)


def _sys(config: ContainerConfig, host: Host) -> Iterator[Option]:
    """Yield /sys, with the container's cgroups where programs look up their limits.

    After the other folders of the host: bubblewrap reads the table of mounts for every bind, and this one adds up to
    twenty lines to it.
    """
    yield from ("--ro-bind-try", "/sys", "/sys")
    for folder, place in config.views:
        yield from ("--ro-bind", folder, place)
    yield from _masks(config, host, below="/sys")


@lru_cache(maxsize=64)
def _environment(folders: tuple[str, ...], host: Host) -> tuple[str, ...]:
    """Return the environment's folders, after /tmp, because they may be in it. Most containers have the same ones."""
    unseen = (
        folder for folder in folders if not any(PurePosixPath(folder).is_relative_to(shown) for shown in host.folders)
    )
    binds = (option for folder in unseen for option in (*_parents(folder), "--ro-bind", folder, folder))
    return (*binds, *_covers((*host.folders, *folders), folders, host))


def _covers(shown: Iterable[str], environment: tuple[str, ...], host: Host) -> Iterator[str]:
    """Cover the private folders in the shown ones, and show the environment's folders in these again."""
    covered = confinement.private_in(shown, host)
    for folder in covered:
        yield from ("--tmpfs", folder)
    for folder in environment:
        if any(PurePosixPath(folder).is_relative_to(place) for place in covered):
            yield from (*_parents(folder), "--ro-bind", folder, folder)


def closed_folders(environment: Environment, host: Host) -> tuple[str, ...]:
    """Return the folders that a container sees but cannot write to."""
    return (*host.folders, *environment.folders, *(f"/etc/{name}" for name in (*SHARED_ETC, *COPIED_FOLDERS)))


def _mount_parents(config: ContainerConfig, host: Host) -> Iterator[str]:
    for parent in config.mount_parents:
        yield from ("--tmpfs", parent.folder)
        paths = [f"{parent.folder}/{name}" for name in parent.names]
        for path in paths:
            yield from ("--ro-bind-try", path, path)
        yield from _covers(paths, config.environment.folders, host)


def _read_only(config: ContainerConfig) -> Iterator[str]:
    """Make everything but the mounts read-only, if requested; shared memory is not part of the root."""
    if config.is_read_only:
        targets = {mount.target for mount in config.mounts}
        for folder in (TMP, "/"):
            if folder not in targets:
                yield from ("--remount-ro", folder)


def _parents(path: str) -> Iterator[str]:
    """Create the folders above a path: other users may not enter those that bubblewrap creates implicitly."""
    for folder in reversed(PurePosixPath(path).parents[:-1]):
        yield from ("--dir", str(folder))


def _etc(config: ContainerConfig, host: Host) -> Iterator[Option]:
    for name in SHARED_ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in COPIED_ETC:
        yield {"place": f"/etc/{name}", "source": f"/etc/{name}"}
    user = config.user or User(uid=host.uid, gid=host.gid)
    generated = {"group": group_text(user), "hostname": f"{config.hostname}\n", "passwd": passwd_text(user)}
    for name, text in generated.items():
        yield {"place": f"/etc/{name}", "text": text}
    # These change while the container runs.
    yield from ("--ro-bind", str(config.hosts), "/etc/hosts")
    yield from ("--ro-bind-try", config.resolver or RESOLVER, RESOLVER)


def _memory() -> Iterator[str]:
    """Yield the in-memory file systems.

    Shared memory has the kernel's limit of half of the memory, not the 64 MiB of container runtimes, which data loaders
    of trainings fill at once and then die with SIGBUS. An emptyDir of medium Memory at its path sets another size.
    """
    yield from ("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", SHARED_MEMORY)
    yield from ("--perms", "1777", "--tmpfs", TMP, "--perms", "1777", "--dir", VAR_TMP)


def _masks(config: ContainerConfig, host: Host, *, below: str) -> Iterator[str]:
    if config.confinement.has_masks:
        yield from confinement.masks(host, below)


def _filter(config: ContainerConfig, host: Host) -> Iterator[Option]:
    if text := confinement.filter_of(config.confinement, config.capabilities, host):
        yield {"filter": text}


def _devices(config: ContainerConfig) -> Iterator[str]:
    for path in config.devices:
        yield from (*_parents(path), "--dev-bind", path, path)


def _mounts(config: ContainerConfig) -> Iterator[Option]:
    yield from ("--bind", str(config.message), config.message_path)
    for mount in config.mounts:
        yield from _check_path(mount.target, config)
        if mount.source is None:
            size = () if mount.volume.size is None else ("--size", str(mount.volume.size))
            yield from (*_parents(mount.target), "--perms", "1777", *size, "--tmpfs", mount.target)
        else:
            bind = "--ro-bind" if mount.read_only else "--bind"
            yield from _parents(mount.target)
            if mount.sub_path:
                yield {"bind": bind, "place": mount.target, **_subpath(mount)}
            else:
                yield from (bind, str(mount.source), mount.target)
    if config.working_dir:
        yield from _check_path(config.working_dir, config)
        yield from ("--dir", config.working_dir, "--chdir", config.working_dir)
    else:
        yield from ("--chdir", "/")


def _check_path(place: str, config: ContainerConfig) -> Iterator[Option]:
    """Make the shim check a path inside of a volume, where containers may have put links."""
    path = PurePosixPath(place)
    enclosing = [mount for mount in config.mounts if mount.target != place and path.is_relative_to(mount.target)]
    nearest = max(enclosing, key=lambda mount: len(PurePosixPath(mount.target).parts), default=None)
    # A volume in memory is empty when the sandbox is created.
    if nearest is not None and nearest.source is not None:
        yield {"inside": str(path.relative_to(nearest.target)), "place": place, **_subpath(nearest)}


def _subpath(mount: VolumeMount) -> dict[str, str]:
    return {"root": str(mount.volume.source), "subPath": mount.sub_path, "volume": mount.name}


def _isolation(config: ContainerConfig, host: Host) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", config.hostname)
    # A new session: a program that signals its process group must not reach the shim.
    yield from ("--die-with-parent", "--new-session")
    if host.is_root:
        yield from ("--cap-drop", "ALL")
        for capability in _bwrap_capabilities(config):
            yield from ("--cap-add", capability)


def _bwrap_capabilities(config: ContainerConfig) -> tuple[str, ...]:
    """Return the container's capabilities and those that it takes to become its user."""
    return tuple(dict.fromkeys((*config.capabilities, *(SET_USER if config.user is not None else ()))))


def process_of(config: ContainerConfig, host: Host) -> dict[str, Any]:
    """Return the limits that the shim sets before it starts bubblewrap."""
    capabilities = _bwrap_capabilities(config)
    return {
        "oomScore": config.confinement.oom_score,
        # No process of the container can ever have others.
        "capabilities": None if ALL in capabilities or not host.is_root else capabilities,
        # Where there are no cgroups to limit them.
        "processes": host.pids_limit if host.cgroups is None and not host.is_root else None,
    }


def variables(config: ContainerConfig, host: Host) -> dict[str, str]:
    """Return all variables of a container: common ones, those of its environment, its own."""
    uid = config.user.uid if config.user else host.uid
    common = {
        "PATH": ":".join(config.environment.path),
        "HOME": "/root" if uid == 0 else TMP,
        "LANG": "C.UTF-8",
        "HOSTNAME": config.hostname,
    }
    return common | dict(config.environment.env) | dict(config.env)


def _env(config: ContainerConfig, host: Host) -> Iterator[str]:
    for name, value in variables(config, host).items():
        yield from ("--setenv", name, value)


def exec_request(
    config: ContainerConfig, host: Host, *, shim: ProcessHandle, argv: tuple[str, ...], has_terminal: bool
) -> ExecRequest:
    """Return the request for a command with the container's environment, working directory and user."""
    env = variables(config, host)
    if has_terminal:
        env = {"TERM": "xterm", **env}
    return ExecRequest(
        shim=shim,
        argv=argv,
        env=tuple(env.items()),
        folder=config.working_dir or "/",
        user=config.user,
        has_terminal=has_terminal,
        filter=confinement.filter_of(config.confinement, config.capabilities, host),
        oom_score=config.confinement.oom_score,
    )


NO_SANDBOX = (
    "the cluster was started with --no-sandbox; to use a sandbox: `paceline down`, then `paceline up --sandbox`"
)
# Every pod has this mount, and few need it.
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/"


def unsandboxed_intent(config: ContainerConfig, host: Host) -> dict[str, Any]:
    """Return what the shim starts instead of bubblewrap; CannotStart when the container needs a sandbox."""
    if problems := "; ".join(_sandbox_needs(config)):
        raise CannotStart(CONFIG_ERROR, f"{problems}: {NO_SANDBOX}")
    return {
        "launcher": ["-I", "-S", subreaper.__file__],
        "argv": [host.python, "--", *command(config, host)],
        "options": ("--chdir", config.working_dir or "/", *_env(config, host)),
        "endSignal": SUBREAPER_KILL,
    }


def _sandbox_needs(config: ContainerConfig) -> Iterator[str]:
    for mount in config.mounts:
        if not _is_in_place(mount):
            mode = "read-only at" if mount.read_only else "at"
            yield f"volume {mount.name!r} cannot be mounted {mode} {mount.target} without a sandbox"
    if config.is_read_only:
        yield "readOnlyRootFilesystem needs a sandbox"


def _is_in_place(mount: VolumeMount) -> bool:
    """Return whether a volume is at its mount path without a mount: a host folder with the same path."""
    if mount.target.startswith(SERVICE_ACCOUNT):
        return True
    if mount.source is None:
        return mount.target == SHARED_MEMORY
    return str(mount.source) == mount.target and not mount.read_only
