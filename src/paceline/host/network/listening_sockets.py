"""Who listens where on this machine, as the kernel's tables tell."""

import contextlib
import os
from collections.abc import Iterable
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from paceline.effects import Executor, ProcessHandle
from paceline.host.asgi_server import LISTENING
from paceline.host.proc_stats import below, children_in, processes

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# Bytes of an address stand in the machine's order within each word of this size.
WORD = 4


class Listeners:
    """Looks up listening sockets and whose they are."""

    def __init__(self, blocking: Executor) -> None:
        self._blocking = blocking

    async def listens(self, shims: tuple[ProcessHandle, ...], address: str, port: int) -> bool:
        """Tell whether a process below one of these shims listens at the address, or at all addresses."""
        return await self._blocking.run(partial(is_theirs, shims, address, port))


def is_theirs(shims: tuple[ProcessHandle, ...], address: str, port: int) -> bool:
    """Find the socket that a connection would reach, then look for it among the processes' files.

    Several may share the place (SO_REUSEPORT), and any of them may get the connection: all have to be theirs.
    """
    sockets = sockets_at(address, port)
    if not sockets:
        return False
    table = processes()
    children = children_in(table)
    alive = [shim.pid for shim in shims if shim.pid in table and table[shim.pid].began == shim.start_ticks]
    missing = set(sockets)
    for root in alive:
        for pid in below(root, children):
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
