"""What the agent gets as values at its start: facts about its machine, and the layout of its folders."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from paceline.node.runtime.cgroup_limits import Cgroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device, which is allocated to one container at a time."""

    number: int
    # Its name for programs, where that is not its number.
    name: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePool:
    """All devices of one extended resource."""

    resource: str
    devices: tuple[Device, ...]
    # Device nodes that all containers with one of them share.
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """The user of a container; None in its place is the agent's own."""

    uid: int
    gid: int
    # Supplementary groups: fsGroup and supplementalGroups.
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """This machine, as the agent and its sandboxes use it."""

    # The node's name: the machine's hostname as a DNS label.
    name: str
    is_root: bool
    uid: int
    gid: int
    cpus: int
    memory_bytes: int
    # Capacity of the disk of scratch folders and logs; 0 if it is not reported.
    disk_bytes: int = 0
    # Entries of `nodeInfo`: operating system, kernel, architecture, Python.
    facts: tuple[tuple[str, str], ...] = ()
    # Top-level links into /usr as (name, target): ("/bin", "usr/bin").
    links: tuple[tuple[str, str], ...] = ()
    # Folders that every sandbox sees read-only: programs and their libraries.
    folders: tuple[str, ...] = ("/usr",)
    # The interpreter that runs Paceline: its bin folder, its prefix and its base prefix.
    python: str = "/usr/bin/python3"
    python_bin: str = "/usr/bin"
    prefixes: tuple[str, ...] = ()
    # The folders of Paceline itself, and of the programs that it brings into pods.
    own_folders: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    setpriv: str = "/usr/bin/setpriv"
    # None when this user may not create cgroups.
    cgroups: Cgroups | None = None
    # Limit of processes and threads of a container; None for no limit.
    pids_limit: int | None = None
    # Paths in /proc and /sys that are read-only or masked in containers.
    read_only_paths: tuple[str, ...] = ()
    masked_files: tuple[str, ...] = ()
    masked_folders: tuple[str, ...] = ()
    has_seccomp: bool = False
    # Folders with keys and other users' data, which no container may see.
    private_folders: tuple[str, ...] = ()
    device_pools: tuple[DevicePool, ...] = ()
    may_mount: bool = False
    # False when the user chose to run containers without one.
    has_sandbox: bool = True
    # The command that installs bubblewrap here.
    install_sandbox: str = "apt-get install bubblewrap"


ADDRESS = "127.0.0.1"
# A file beside a pod's volumes in memory, with the folder of the cluster that owns them.
MEMORY_OWNER = ".home"


class CannotStart(Exception):
    """A container cannot be started now; it is retried. The reason is a kubelet's, the message says what would help."""

    def __init__(self, reason: str, message: str, *, messages: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.reason = reason
        # One message for each event on the pod, when the whole pod cannot start.
        self.messages = messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The layout of the agent's folder. Of all names that users choose, only validated container names are in paths."""

    root: Path

    @property
    def pods(self) -> Path:
        """The folders of pods, named by uid."""
        return self.root / "pods"

    @property
    def history(self) -> Path:
        """The logs of deleted pods."""
        return self.root / "history"

    @property
    def hosts(self) -> Path:
        """The hosts files, and the addresses of pods."""
        return self.root / "hosts"

    def pod(self, uid: str) -> Path:
        """Return the folder of a pod."""
        return self.root.joinpath("pods", uid)

    def etc(self, uid: str) -> Path:
        """Return the folder of the files that a pod sees in /etc."""
        return self.root.joinpath("pods", uid, "etc")

    def volume(self, uid: str, index: int) -> Path:
        """Return the folder of a pod's volume."""
        return self.root.joinpath("pods", uid, "volumes", str(index))

    @property
    def mounts(self) -> Path:
        """The mounts of pods, outside of the folders that are removed recursively."""
        return self.root / "mounts"

    def mounted(self, uid: str, index: int) -> Path:
        """Return the mount point of a pod's volume."""
        return self.root.joinpath("mounts", uid, str(index))

    @property
    def claims(self) -> Path:
        """The folders of claims, beside the agent's own, where the control plane expects them."""
        return self.root.parent / "volumes"

    def memory(self, uid: str, index: int) -> Path:
        """Return the folder of a pod's volume in memory."""
        return self.memories(uid) / str(index)

    def memories(self, uid: str) -> Path:
        """Return the folder of all volumes in memory of a pod."""
        return Path("/dev/shm") / f"paceline-{uid}"  # noqa: S108 - a uid, in a folder of its owner's

    @property
    def node_usage(self) -> Path:
        """The folder with what the node used over time."""
        return self.root / "usage"

    def usage(self, uid: str) -> Path:
        """Return the folder with what a pod's containers used over time."""
        return self.root.joinpath("pods", uid, "usage")

    def containers(self, uid: str) -> Path:
        """Return the folder with the folders of a pod's containers."""
        return self.root.joinpath("pods", uid, "containers")

    def container(self, uid: str, container: str) -> Path:
        """Return the folder with all attempts of a container."""
        return joined(self.root, "pods", uid, "containers", container)

    def attempt(self, uid: str, container: str, restarts: int) -> Path:
        """Return the folder of one attempt of a container, in which its shim works."""
        return joined(self.root, "pods", uid, "containers", container, str(restarts))


@lru_cache(maxsize=10_000)
def joined(root: Path, *names: str) -> Path:
    """Return a path below a folder. The same few are read again and again, and pathlib is slow at making them."""
    return root.joinpath(*names)
