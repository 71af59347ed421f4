"""The interface between the store and its durable log."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from paceline.errors import HostError, ServiceUnavailable


class Op(StrEnum):
    """The operation of a revision on its key."""

    CREATE = "create"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One revision. The log of all records is the source of truth; everything else is derived from it."""

    revision: int
    key: str
    op: Op
    # The new bytes; for a deletion the last ones, so that watchers see what was deleted.
    value: bytes
    # The revision at which the key was created.
    created: int
    # The previous bytes, for watches with a selector that no longer matches. Not stored in the log; None if unknown.
    previous: bytes | None = field(default=None, compare=False, repr=False)


class DiskFull(ServiceUnavailable):
    """The disk is full; a small batch may still fit into the reserve."""


class Damaged(HostError):
    """The content of the file has changed since it was written."""


class Log(Protocol):
    """A durable, append-only log of revisions, with the current state. All calls block."""

    def open(self) -> int:
        """Lock the log and return its last revision; raise HostError if it is in use or damaged."""
        ...

    def current(self) -> Iterable[Record]:
        """Return the newest record of every existing key, ordered by revision."""
        ...

    def since(self, revision: int) -> Iterable[Record]:
        """Return the stored records after a revision, in order."""
        ...

    def compacted(self) -> int:
        """Return the revision up to which the history is compacted."""
        ...

    def trail(self, revision: int) -> str:
        """Return a hash of the log up to a revision; empty if it is unknown."""
        ...

    def append(self, batch: tuple[Record, ...]) -> None:
        """Store all records or none; when this returns, they survive a power cut."""
        ...

    def compact(self, revision: int) -> None:
        """Delete the history up to a revision; the current state stays."""
        ...

    def release_reserve(self) -> bool:
        """Release the reserve after DiskFull, for urgent writes; return False if there is none."""
        ...

    def restore_reserve(self) -> bool:
        """Allocate the reserve again if it was released; return False while there is too little space."""
        ...

    def close(self) -> None:
        """Close and unlock the log."""
        ...
