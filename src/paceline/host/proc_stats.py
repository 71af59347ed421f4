"""Read /proc: what processes and the machine use, and which processes listen on which sockets.

One pass over all processes serves all containers, however many there are.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from paceline.effects import ProcessHandle
from paceline.host.listening_sockets import TCP_TABLES, listening_sockets
from paceline.node.server.stats import IOCounters, Measurement, Usage

KIB = 1024
# Addresses in these tables have the machine's byte order within each word of this size.
WORD_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process: its parent, its start time, and the CPU ticks of it and its waited-for children."""

    parent: int
    began: int
    ticks: int


def measure(shims: frozenset[ProcessHandle]) -> Measurement:
    """Measure what runs below each of these shims, and the machine."""
    table, uptime = processes(), float(Path("/proc/uptime").read_text().split()[0])
    children = children_of(table)
    containers = {
        shim: _usage(list(descendants(shim.pid, children)), table, uptime) for shim in shims if _is_alive(shim, table)
    }
    return Measurement(containers=containers, node=_node(uptime))


def _is_alive(shim: ProcessHandle, table: Mapping[int, Process]) -> bool:
    return shim.pid in table and table[shim.pid].began == shim.start_ticks


def processes() -> dict[int, Process]:
    table = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - speed: there may be thousands
        if name.isdigit() and (fields := _stat(name)):
            ticks = sum(int(field) for field in fields[11:15])
            table[int(name)] = Process(parent=int(fields[1]), began=int(fields[19]), ticks=ticks)
    return table


def children_of(table: Mapping[int, Process]) -> Mapping[int, list[int]]:
    children = defaultdict(list)
    for pid, process in table.items():
        children[process.parent].append(pid)
    return children


def descendants(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, ())


def _usage(pids: list[int], table: Mapping[int, Process], uptime: float) -> Usage:
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    return Usage(
        cpu_seconds=sum(table[pid].ticks for pid in pids) / ticks_per_second,
        # Without the shim, which is not part of the container.
        memory_bytes=_memory(pids[1:]),
        age_seconds=uptime - table[pids[0]].began / ticks_per_second,
        disk=_disk(pids),
        network=_network(pids),
    )


def _disk(pids: Iterable[int]) -> IOCounters | None:
    """Return the disk I/O of processes; that of ended ones counts for their parents."""
    counters = [counter for pid in pids if (counter := _io(pid))]
    if not counters:
        return None
    return IOCounters(received=sum(read for read, _ in counters), sent=sum(written for _, written in counters))


def _io(pid: int) -> tuple[int, int] | None:
    # The last three lines: read_bytes, write_bytes, cancelled_write_bytes.
    lines = _read(f"/proc/{pid}/io").splitlines()[-3:]
    if len(lines) < 3:
        return None
    read, written, cancelled = (int(line.rpartition(b" ")[2]) for line in lines)
    # Cancelled writes never reached a disk.
    return read, written - cancelled


def _network(pids: Iterable[int]) -> IOCounters | None:
    """Return the network I/O of a container's processes; None if they are on the machine's network."""
    try:
        ours = os.readlink("/proc/self/ns/net")  # noqa: PTH115 - not a path but an identity
    except OSError:
        return None
    for pid in pids:
        try:
            if os.readlink(f"/proc/{pid}/ns/net") == ours:  # noqa: PTH115 - not a path but an identity
                continue
        except OSError:
            continue
        for line in _read(f"/proc/{pid}/net/dev").splitlines()[2:]:
            name, _, text = line.partition(b":")
            if name.strip() != b"lo":
                counters = text.split()
                return IOCounters(name=name.strip().decode(), received=int(counters[0]), sent=int(counters[8]))
    return None


def _memory(pids: Iterable[int]) -> int:
    private, shared = 0, 0
    for pid in pids:
        if not (fields := _read(f"/proc/{pid}/statm").split()):
            continue
        private += int(fields[1]) - int(fields[2])
        shared = max(shared, int(fields[2]))
    return (private + shared) * os.sysconf("SC_PAGE_SIZE")


def _node(uptime: float) -> Usage:
    # user, nice, system, idle, iowait, irq, softirq, steal: all but idle and iowait count as used.
    with Path("/proc/stat").open() as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    used = sum(ticks) - ticks[3] - ticks[4]
    with Path("/proc/meminfo").open() as lines:
        memory = {name: int(value.split()[0]) * KIB for name, _, value in (line.partition(":") for line in lines)}
    return Usage(
        cpu_seconds=used / os.sysconf("SC_CLK_TCK"),
        memory_bytes=memory["MemTotal"] - memory.get("MemAvailable", memory["MemFree"]),
        age_seconds=uptime,
    )


def _stat(name: str) -> list[bytes]:
    # The name of the program, in parentheses, may contain anything.
    return _read(f"/proc/{name}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """Read a small file of /proc fast; empty if the process has ended."""
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


def are_listening(shims: tuple[ProcessHandle, ...], address: str, port: int) -> bool:
    """Return whether all sockets that a connection could reach belong to processes below these shims.

    Several sockets may share a port (SO_REUSEPORT), and any of them may get the connection.
    """
    sockets = sockets_at(address, port)
    if not sockets:
        return False
    table = processes()
    children = children_of(table)
    missing = set(sockets)
    for shim in shims:
        if not _is_alive(shim, table):
            continue
        for pid in descendants(shim.pid, children):
            missing -= _open_sockets(pid, sockets)
            if not missing:
                return True
    return False


def sockets_at(address: str, port: int, tables: Iterable[str] = TCP_TABLES) -> frozenset[str]:
    """Return the sockets that a connection to this address and port would reach: the most specific address wins."""
    by_address: dict[str, set[str]] = {}
    for sock in listening_sockets(tables):
        if sock.port == port:
            by_address.setdefault(_address(sock.address), set()).add(f"socket:[{sock.inode}]")
    for candidate in (address, "0.0.0.0", "::"):  # noqa: S104 - compared, not listened at
        if candidate in by_address:
            return frozenset(by_address[candidate])
    return frozenset()


def _open_sockets(pid: int, sockets: frozenset[str]) -> set[str]:
    """Return those of the sockets that a process has open."""
    folder, targets = f"/proc/{pid}/fd", set()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 - a process may have thousands
            with contextlib.suppress(OSError):
                targets.add(os.readlink(f"{folder}/{name}"))  # noqa: PTH115
    return targets & sockets


def _address(text: str) -> str:
    digits = 2 * WORD_BYTES
    chunks = (bytes.fromhex(text[start : start + digits])[::-1] for start in range(0, len(text), digits))
    address = ip_address(b"".join(chunks))
    return str(getattr(address, "ipv4_mapped", None) or address)
