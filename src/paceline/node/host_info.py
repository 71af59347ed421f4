"""What is known of the machine before a pod comes: found once, at assembly, and passed on as a value."""

from dataclasses import dataclass
from pathlib import Path

from paceline.node.runtime.cgroup_limits import Cgroups


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device that is given to one container at a time."""

    number: int
    # By which programs know it, where that is not its number.
    name: str = ""
    # Its own device nodes.
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """All devices of one sort, by the name under which pods ask for them."""

    resource: str
    devices: tuple[Device, ...]
    # Device nodes that everybody sees who has one of them.
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine as the agent and its sandboxes see it."""

    # The node's name: the machine's hostname as a DNS label.
    name: str
    is_root: bool
    uid: int
    gid: int
    cpus: int
    memory_bytes: int
    # Of the disk that pods' scratch folders and logs lie on; none: it is not counted.
    disk_bytes: int = 0
    # What the machine says of itself in the node's info: operating system, kernel, architecture, Python.
    facts: tuple[tuple[str, str], ...] = ()
    # Top folders that are only links into /usr: (name, target), as ("/bin", "usr/bin").
    links: tuple[tuple[str, str], ...] = ()
    # Folders that every sandbox sees, read-only: programs and their libraries.
    folders: tuple[str, ...] = ("/usr",)
    # The interpreter that runs Paceline: its folder of programs, its prefix and the one it was made from.
    python: str = "/usr/bin/python3"
    python_bin: str = "/usr/bin"
    prefixes: tuple[str, ...] = ()
    # Where Paceline itself lies, and the programs that it brings along into pods.
    own_folders: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    setpriv: str = "/usr/bin/setpriv"
    # Where limits can be set; None when this user may not.
    cgroups: Cgroups | None = None
    # How many processes and threads a container may have; None: as many as there can be.
    pids_limit: int | None = None
    # What of /proc and /sys is read-only to containers, and what is not to be seen there.
    read_only_paths: tuple[str, ...] = ()
    masked_files: tuple[str, ...] = ()
    masked_folders: tuple[str, ...] = ()
    # Whether the kernel filters system calls.
    has_seccomp: bool = False
    # Folders that hold keys and other people's data: never shown to a container, wherever they lie.
    private_folders: tuple[str, ...] = ()
    # What containers may have to themselves.
    supplies: tuple[Supply, ...] = ()
    # Whether the agent may mount what the kernel can.
    may_mount: bool = False
    # False where people chose to run containers without one.
    has_sandbox: bool = True
    # How bubblewrap is installed here.
    install_sandbox: str = "apt-get install bubblewrap"


ADDRESS = "127.0.0.1"
# Beside a pod's volumes in memory: a file that says whose folder they belong to.
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
    """Where the agent keeps things; of the names that people choose, only a container's, once checked, is in a path."""

    root: Path

    @property
    def pods(self) -> Path:
        """Where every pod has a folder, named by its uid."""
        return self.root / "pods"

    @property
    def history(self) -> Path:
        """Where the logs of pods lie that are gone."""
        return self.root / "history"

    @property
    def hosts(self) -> Path:
        """Where the hosts files lie, and the addresses that are remembered."""
        return self.root / "hosts"

    def pod(self, uid: str) -> Path:
        """Give a pod's own folder."""
        return self.root.joinpath("pods", uid)

    def etc(self, uid: str) -> Path:
        """Give the folder of the files that a pod sees in /etc."""
        return self.root.joinpath("pods", uid, "etc")

    def volume(self, uid: str, index: int) -> Path:
        """Give the folder of a pod's own volume."""
        return self.root.joinpath("pods", uid, "volumes", str(index))

    @property
    def mounts(self) -> Path:
        """Where things are mounted for pods: away from folders that are removed with all that is in them."""
        return self.root / "mounts"

    def mounted(self, uid: str, index: int) -> Path:
        """Give the folder at which a pod's volume is mounted."""
        return self.root.joinpath("mounts", uid, str(index))

    @property
    def claims(self) -> Path:
        """Where the folders of claims lie: beside the agent's own, as the control process has it."""
        return self.root.parent / "volumes"

    def memory(self, uid: str, index: int) -> Path:
        """Give the folder of a pod's volume in memory; it lies with the machine's own, and goes with the pod."""
        return self.memories(uid) / str(index)

    def memories(self, uid: str) -> Path:
        """Give the folder of all of a pod's volumes in memory."""
        return Path("/dev/shm") / f"paceline-{uid}"  # noqa: S108 - a uid, in a folder of its owner's

    def containers(self, uid: str) -> Path:
        """Give the folder in which every container of a pod has one."""
        return self.root.joinpath("pods", uid, "containers")

    def container(self, uid: str, container: str) -> Path:
        """Give the folder that holds all tries of a container."""
        return self.root.joinpath("pods", uid, "containers", container)

    def attempt(self, uid: str, container: str, restarts: int) -> Path:
        """Give the folder of one try of a container; the shim works in it."""
        return self.root.joinpath("pods", uid, "containers", container, str(restarts))
