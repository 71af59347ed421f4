"""What a store needs from the disk, and the types that cross that border."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from paceline.errors import Busy, Unavailable


class Op(StrEnum):
    """What a revision did to its key."""

    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One revision: the log of these is the truth, everything else is made from it."""

    revision: int
    key: str
    op: Op
    # The new bytes; for a deletion the last ones, so that watchers learn what went.
    value: bytes
    # The revision at which the key was created.
    created: int
    # What the key held before, for watchers that care who left; not kept in the log, None when it is not known.
    previous: bytes | None = field(default=None, compare=False, repr=False)


class NoRoom(Busy):
    """The disk takes no more; a small batch may still find room in the reserve."""


class Damaged(Unavailable):
    """The file is not as it was written."""


class Log(Protocol):
    """A durable, append-only log of revisions with the current state beside it. All calls block."""

    def open(self) -> int:
        """Take sole hold of the log and give its last revision; Unavailable says who holds it or what is broken."""
        ...

    def current(self) -> Iterable[Record]:
        """Give the newest record of every key that is there, in the order of their revisions."""
        ...

    def since(self, revision: int) -> Iterable[Record]:
        """Give the kept records after a revision, in order."""
        ...

    def compacted(self) -> int:
        """Tell the revision up to which history is gone."""
        ...

    def trail(self, revision: int) -> str:
        """Give a hash of everything up to a revision; empty when it is not known."""
        ...

    def append(self, batch: tuple[Record, ...]) -> None:
        """Make all records durable in one step, or none; when this returns they survive a power cut."""
        ...

    def compact(self, revision: int) -> None:
        """Forget history up to a revision; the current state stays."""
        ...

    def relieve(self) -> bool:
        """Give up the reserve after NoRoom, for what must be written all the same; False when there is none."""
        ...

    def restock(self) -> bool:
        """Take the reserve again if it was given up; False while there is too little room for it."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...
