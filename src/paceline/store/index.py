"""The current objects, in memory and sorted by key."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from paceline.store.backend import Op, Record


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
