"""What is there now, in memory and in the order of keys."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from paceline.store.log import Op, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The bytes under a key, and the revisions that wrote and created them."""

    key: str
    value: bytes
    revision: int
    created: int


def stored(record: Record) -> Stored:
    """Give what a record leaves under its key."""
    return Stored(key=record.key, value=record.value, revision=record.revision, created=record.created)


class State:
    """The current value of every key."""

    def __init__(self) -> None:
        self._found: dict[str, Stored] = {}
        # The same keys, sorted: a prefix is a slice.
        self._keys: list[str] = []

    def get(self, key: str) -> Stored | None:
        """Give what is under a key."""
        return self._found.get(key)

    def under(self, prefix: str) -> tuple[Stored, ...]:
        """Give everything whose key begins with a prefix, in the order of keys."""
        while True:
            start = bisect_left(self._keys, prefix)
            end = bisect_right(self._keys, prefix, lo=start, key=lambda key: key[: len(prefix)])
            # The check of a large object reads on a thread of its own: a key may go while it looks.
            with suppress(KeyError):
                return tuple(map(self._found.__getitem__, self._keys[start:end]))

    def load(self, records: Iterable[Record]) -> None:
        """Begin with the newest record of every key."""
        self._found = {record.key: stored(record) for record in records}
        self._keys = sorted(self._found)

    def apply(self, record: Record) -> None:
        """Do what a record says."""
        if record.op is Op.DELETE:
            del self._found[record.key]
            del self._keys[bisect_left(self._keys, record.key)]
            return
        if record.op is Op.CREATE:
            insort(self._keys, record.key)
        self._found[record.key] = stored(record)
