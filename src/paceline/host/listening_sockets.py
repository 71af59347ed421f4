"""The kernel's tables of listening TCP sockets."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

TCP_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
# The state of a listening socket in these tables.
LISTENING = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListeningSocket:
    """One row; the address as it is written in the table."""

    address: str
    port: int
    user: int
    inode: str


def listening_ports() -> frozenset[int]:
    return frozenset(sock.port for sock in listening_sockets(TCP_TABLES))


def owners_of(port: int) -> frozenset[int]:
    """Return the users whose processes listen on a port."""
    return frozenset(sock.user for sock in listening_sockets(TCP_TABLES) if sock.port == port)


def listening_sockets(tables: Iterable[str]) -> Iterator[ListeningSocket]:
    """Yield every listening socket."""
    for table in tables:
        with contextlib.suppress(OSError):
            for row in map(str.split, Path(table).read_text().splitlines()[1:]):
                if row[3] == LISTENING:
                    address, port = row[1].rsplit(":", 1)
                    yield ListeningSocket(address=address, port=int(port, 16), user=int(row[7]), inode=row[9])
