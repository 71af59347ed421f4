"""What processes use, as /proc tells: one pass over all of them, whatever number of containers there is."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from paceline.effects import Executor, ProcessHandle
from paceline.host.asgi_server import LISTENING
from paceline.node.server.stats import IOCounters, Measurement, Usage

KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process: whose child it is, when it began, and the processor's ticks it and its waited-for children had."""

    parent: int
    began: int
    ticks: int


def measure(shims: frozenset[ProcessHandle]) -> Measurement:
    """Measure what runs below each of these shims, and the machine."""
    table, up = processes(), _up_seconds()
    children = children_of(table)
    containers = {
        shim: _use(list(descendants(shim.pid, children)), table, up)
        for shim in shims
        if shim.pid in table and table[shim.pid].began == shim.start_ticks
    }
    return Measurement(containers=containers, node=_node(up))


def processes() -> dict[int, Process]:
    """Read every process of the machine."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - in a hurry: there may be thousands
        if name.isdigit() and (fields := _stat(name)):
            found[int(name)] = Process(
                parent=int(fields[1]), began=int(fields[19]), ticks=sum(int(each) for each in fields[11:15])
            )
    return found


def children_of(table: Mapping[int, Process]) -> Mapping[int, list[int]]:
    """Turn the list of processes around."""
    children = defaultdict(list)
    for pid, process in table.items():
        children[process.parent].append(pid)
    return children


def descendants(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    """Give a process and everything below it."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, ())


def _use(pids: list[int], table: Mapping[int, Process], up: float) -> Usage:
    second = os.sysconf("SC_CLK_TCK")
    return Usage(
        cpu_seconds=sum(table[pid].ticks for pid in pids) / second,
        # Without the shim, which is ours.
        memory_bytes=_memory(pids[1:]),
        age_seconds=up - table[pids[0]].began / second,
        disk=_disk(pids),
        network=_network(pids),
    )


def _disk(pids: Iterable[int]) -> IOCounters | None:
    """Add up what processes had read from disks and written to them; who has ended counts for its parent."""
    found = [moved for pid in pids if (moved := _io(pid))]
    if not found:
        return None
    return IOCounters(received=sum(read for read, _ in found), sent=sum(written for _, written in found))


def _io(pid: int) -> tuple[int, int] | None:
    # The last three of its lines: read_bytes, write_bytes, cancelled_write_bytes.
    lines = _read(f"/proc/{pid}/io").splitlines()[-3:]
    if len(lines) < 3:
        return None
    read, written, cancelled = (int(line.rpartition(b" ")[2]) for line in lines)
    # What was taken back before it reached a disk was not written.
    return read, written - cancelled


def _network(pids: Iterable[int]) -> IOCounters | None:
    """Read the interface of the network that a container's processes are in; None when it is the machine's."""
    try:
        ours = os.readlink("/proc/self/ns/net")  # noqa: PTH115 - no path, but a name
    except OSError:
        return None
    for pid in pids:
        try:
            if os.readlink(f"/proc/{pid}/ns/net") == ours:  # noqa: PTH115 - no path, but a name
                continue
        except OSError:
            continue
        for line in _read(f"/proc/{pid}/net/dev").splitlines()[2:]:
            name, _, counts = line.partition(b":")
            if name.strip() != b"lo":
                count = counts.split()
                return IOCounters(name=name.strip().decode(), received=int(count[0]), sent=int(count[8]))
    return None


def _memory(pids: Iterable[int]) -> int:
    own, shared = 0, 0
    for pid in pids:
        if not (fields := _read(f"/proc/{pid}/statm").split()):
            continue
        own += int(fields[1]) - int(fields[2])
        shared = max(shared, int(fields[2]))
    return (own + shared) * os.sysconf("SC_PAGE_SIZE")


def _node(up: float) -> Usage:
    # user, nice, system, idle, iowait, irq, softirq, steal: all but the fourth and fifth are work.
    with Path("/proc/stat").open() as stat:
        ticks = [int(each) for each in stat.readline().split()[1:9]]
    work = sum(ticks) - ticks[3] - ticks[4]
    with Path("/proc/meminfo").open() as lines:
        memory = {name: int(rest.split()[0]) * KIB for name, _, rest in (line.partition(":") for line in lines)}
    return Usage(
        cpu_seconds=work / os.sysconf("SC_CLK_TCK"),
        memory_bytes=memory["MemTotal"] - memory.get("MemAvailable", memory["MemFree"]),
        age_seconds=up,
    )


def _up_seconds() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _stat(name: str) -> list[bytes]:
    # The name, in parentheses, may hold anything.
    return _read(f"/proc/{name}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """Read a file of /proc, in a hurry: there may be thousands; nothing when the process is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""
    finally:
        os.close(fd)


TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# Bytes of an address stand in the machine's order within each word of this size.
WORD = 4


class ListeningSockets:
    """Looks up listening sockets and whose they are."""

    def __init__(self, blocking: Executor) -> None:
        self._blocking = blocking

    async def listens(self, shims: tuple[ProcessHandle, ...], address: str, port: int) -> bool:
        """Tell whether a process below one of these shims listens at the address, or at all addresses."""
        return await self._blocking.run(partial(are_listening, shims, address, port))


def are_listening(shims: tuple[ProcessHandle, ...], address: str, port: int) -> bool:
    """Find the socket that a connection would reach, then look for it among the processes' files.

    Several may share the place (SO_REUSEPORT), and any of them may get the connection: all have to be theirs.
    """
    sockets = sockets_at(address, port)
    if not sockets:
        return False
    table = processes()
    children = children_of(table)
    alive = [shim.pid for shim in shims if shim.pid in table and table[shim.pid].began == shim.start_ticks]
    missing = set(sockets)
    for root in alive:
        for pid in descendants(root, children):
            missing -= _held(pid, sockets)
            if not missing:
                return True
    return False


def sockets_at(address: str, port: int, tables: Iterable[str] = TABLES) -> frozenset[str]:
    """Find the sockets that a connection to this address and port would reach: the nearest match wins."""
    by_address: dict[str, set[str]] = {}
    for table in tables:
        for row in _rows(table):
            local, number = row[1].rsplit(":", 1)
            if row[3] == LISTENING and int(number, 16) == port:
                by_address.setdefault(_address(local), set()).add(f"socket:[{row[9]}]")
    for nearest in (address, "0.0.0.0", "::"):  # noqa: S104 - compared, not listened at
        if nearest in by_address:
            return frozenset(by_address[nearest])
    return frozenset()


def _held(pid: int, sockets: frozenset[str]) -> set[str]:
    """Give those of the sockets that a process has open."""
    folder, found = f"/proc/{pid}/fd", set()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - a process may have thousands
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
    return found & sockets


def _rows(table: str) -> list[list[str]]:
    try:
        return [row.split() for row in Path(table).read_text().splitlines()[1:]]
    except OSError:
        return []


def _address(text: str) -> str:
    words = [bytes.fromhex(text[at : at + 2 * WORD])[::-1] for at in range(0, len(text), 2 * WORD)]
    found = ip_address(b"".join(words))
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
