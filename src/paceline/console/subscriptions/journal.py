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
    """The changes between two numbers."""

    values: tuple[bytes, ...]
    deleted: tuple[str, ...]
    # The number of the last change that is included.
    number: int
    has_more: bool


class Journal:
    """Changes by number. A tab that names the last number it has gets the changes since then, or starts over."""

    def __init__(self, epoch: int) -> None:
        # Different in every process and every journal, so that numbers of another journal are not accepted.
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
        # Removed first, so that it becomes the last entry: entries are in the order of their changes.
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
        """Return all objects of a journal that keeps whole objects."""
        return tuple(entry.value for entry in self._entries.values() if isinstance(entry.value, dict))

    def token(self, number: int) -> str:
        """Return the revision that a tab shows and resumes from: the resource version, and the number in this journal.

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

    def delta(self, last_number: int, limit: int) -> Delta:
        """Return the changes after the last number that a tab has, the oldest first, at most `limit` objects."""
        entries: list[JournalEntry] = []
        for entry in self._after(last_number):
            if len(entries) == limit:
                break
            entries.append(entry)
        has_more = len(entries) == limit and entries[-1].number < self.number
        number = entries[-1].number if has_more else self.number
        return Delta(
            values=tuple(entry.encoded() for entry in entries),
            deleted=self._deleted_between(last_number, number),
            number=number,
            has_more=has_more,
        )

    def _deleted_between(self, last_number: int, newest: int) -> tuple[str, ...]:
        if not last_number:
            return ()  # A new subscriber has no rows that could be deleted.
        recent = takewhile(lambda item: item[1] > last_number, reversed(self._deleted.items()))
        return tuple(uid for uid, number in recent if number <= newest)

    def _after(self, number: int) -> Iterator[JournalEntry]:
        if number and self.number - number < len(self._entries) // 2:
            recent = list(takewhile(lambda entry: entry.number > number, reversed(self._entries.values())))
            return reversed(recent)
        return (entry for entry in self._entries.values() if entry.number > number)
