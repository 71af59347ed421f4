"""The newest state of every object that is followed, in the order of their last changes, and the last deletions."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import orjson

from paceline.apimachinery.meta import Object

# Deletions that are remembered for tabs that come back.
MAX_DELETIONS = 4096
EPOCH_DIGITS = 6


@dataclass(slots=True, kw_only=True)
class JournalEntry:
    """One object: the number of its last change, its resource version, its value, and the length of that as JSON."""

    number: int
    revision: str
    value: Object | bytes
    size: int = 0

    def encoded(self) -> bytes:
        """Return the value as JSON."""
        return self.value if isinstance(self.value, bytes) else orjson.dumps(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What changed between two numbers."""

    values: tuple[bytes, ...]
    deleted: tuple[str, ...]
    # The number up to which this is all.
    number: int
    has_more: bool


class Journal:
    """Changes by number. A tab that names the last number it has gets what changed since, or begins again."""

    def __init__(self, epoch: int) -> None:
        # Another process, or a journal that was begun again, has another one.
        self._epoch = f"{epoch % 10**EPOCH_DIGITS:0{EPOCH_DIGITS}}"
        self._entries: dict[str, JournalEntry] = {}
        self._deleted: OrderedDict[str, int] = OrderedDict()
        # Deletions up to this number are forgotten.
        self._forgotten = 0
        self.number = 0
        # The length of all values as JSON.
        self.size = 0
        # The highest resource version so far.
        self.revision = ""

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, uid: str, revision: str, value: Object | bytes) -> bool:
        """Add or replace an object; return False if that changes nothing."""
        entry = self._entries.get(uid)
        if entry is not None and entry.revision == revision:
            return False
        # Taken out first: the order of the entries is that of their changes.
        self._take_out(uid)
        self._deleted.pop(uid, None)
        self.number += 1
        entry = JournalEntry(number=self.number, revision=revision, value=value)
        entry.size = len(entry.encoded())
        self._entries[uid] = entry
        self.size += entry.size
        self.see(revision)
        return True

    def drop(self, uid: str) -> None:
        """Remove an object."""
        if self._take_out(uid) is None:
            return
        self.number += 1
        self._deleted[uid] = self.number
        if len(self._deleted) > MAX_DELETIONS:
            self._forgotten = self._deleted.popitem(last=False)[1]

    def _take_out(self, uid: str) -> JournalEntry | None:
        entry = self._entries.pop(uid, None)
        self.size -= entry.size if entry else 0
        return entry

    def see(self, revision: str) -> None:
        """Note a resource version of the cluster."""
        if len(revision) > len(self.revision) or (len(revision) == len(self.revision) and revision > self.revision):
            self.revision = revision

    def objects(self) -> tuple[Object, ...]:
        """Return all objects, where whole ones are kept."""
        return tuple(entry.value for entry in self._entries.values() if isinstance(entry.value, dict))

    def token(self, number: int) -> str:
        """Return the revision that a tab shows and names to go on: the resource version, and where this journal is.

        It is written like a decimal number whose whole part is the resource version.
        """
        return f"{self.revision}.{self._epoch}{number}"

    def number_of(self, token: str) -> int | None:
        """Return the number of a token of this journal; None if the tab must begin again."""
        place = token.partition(".")[2]
        digits = place[EPOCH_DIGITS:]
        if not place.startswith(self._epoch) or not digits.isdecimal() or len(digits) > len(str(self.number)):
            return None
        number = int(digits)
        return number if self._forgotten <= number <= self.number else None

    def delta(self, after: int, limit: int) -> Delta:
        """Return the changes after a number, the oldest first, at most `limit` objects."""
        entries: list[JournalEntry] = []
        for entry in self._after(after):
            if len(entries) == limit:
                break
            entries.append(entry)
        has_more = len(entries) == limit and entries[-1].number < self.number
        number = entries[-1].number if has_more else self.number
        return Delta(
            values=tuple(entry.encoded() for entry in entries),
            deleted=self._deleted_between(after, number),
            number=number,
            has_more=has_more,
        )

    def _deleted_between(self, after: int, until: int) -> tuple[str, ...]:
        if not after:
            return ()  # A new subscriber has no rows that could be deleted.
        recent = takewhile(lambda item: item[1] > after, reversed(self._deleted.items()))
        return tuple(uid for uid, number in recent if number <= until)

    def _after(self, number: int) -> Iterator[JournalEntry]:
        if number and self.number - number < len(self._entries) // 2:
            recent = list(takewhile(lambda entry: entry.number > number, reversed(self._entries.values())))
            return reversed(recent)
        return (entry for entry in self._entries.values() if entry.number > number)
