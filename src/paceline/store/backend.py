"""The interface between the store and its durable log."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from contextlib import suppress
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


MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits of one store. The history must be several times as large as a batch."""

    # History for watches: number of revisions, bytes, and approximate age.
    history: int = 10_000
    history_bytes: int = 64 * MIB
    history_seconds: float = 3600.0
    # Maximum size of one commit.
    batch: int = 512
    batch_bytes: int = 8 * MIB
    # Writes that may wait for a commit before further ones are rejected.
    waiting: int = 4096
    # Revisions beyond the history that may stay on disk before they are compacted.
    slack: int = 1000


DEFAULTS = StoreLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The bytes under a key, and the revisions that wrote and created them."""

    key: str
    value: bytes
    revision: int
    created: int


def stored(record: Record) -> Stored:
    """Return what a record stores under its key."""
    return Stored(key=record.key, value=record.value, revision=record.revision, created=record.created)


class Index:
    """The current value of every key."""

    def __init__(self) -> None:
        self._values: dict[str, Stored] = {}
        # The same keys, sorted, so that a prefix is a slice.
        self._keys: list[str] = []

    def get(self, key: str) -> Stored | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def under(self, prefix: str) -> tuple[Stored, ...]:
        """Return all values whose key starts with a prefix, sorted by key."""
        while True:
            start = bisect_left(self._keys, prefix)
            end = bisect_right(self._keys, prefix, lo=start, key=lambda key: key[: len(prefix)])
            # Large objects are checked on a separate thread: a key may be deleted during this read.
            with suppress(KeyError):
                return tuple(map(self._values.__getitem__, self._keys[start:end]))

    def load(self, records: Iterable[Record]) -> None:
        """Replace the content by the newest record of every key."""
        self._values = {record.key: stored(record) for record in records}
        self._keys = sorted(self._values)

    def apply(self, record: Record) -> None:
        """Apply a record."""
        if record.op is Op.DELETE:
            del self._values[record.key]
            del self._keys[bisect_left(self._keys, record.key)]
            return
        if record.op is Op.CREATE:
            insort(self._keys, record.key)
        self._values[record.key] = stored(record)
