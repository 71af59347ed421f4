"""The recent history of changes, and the watches on it."""

import asyncio
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Self

from paceline.errors import Expired, ServiceUnavailable
from paceline.store.backend import Op, Record, Stored, StoreLimits

# How often the age of the history is checked within its maximum age.
TICKS = 4


class Ahead(ServiceUnavailable):
    """The requested revision is in the future."""


class Watch:
    """The records after a revision whose keys start with a prefix, in order, for one reader.

    End it with `close()`, or use it in a `with` block. Waiting for a record may be cancelled and
    repeated without losing one. A reader that is slower than the history gets Expired.
    """

    def __init__(self, feed: "WatchHub", prefix: str, unread: deque[Record]) -> None:
        self.prefix = prefix
        self._feed = feed
        # Bounded by the history: a watch with unread records that left the history is ended.
        self._unread = unread
        self._wake = asyncio.Event()
        self._ended_at: int | None = None
        self._cut = False

    @property
    def position(self) -> int:
        """The revision up to which the reader has received all records."""
        if self._ended_at is not None:
            return self._ended_at
        return self._unread[0].revision - 1 if self._unread else self._feed.revision

    @property
    def oldest(self) -> int | None:
        """The revision of the next unread record, if there is one."""
        return self._unread[0].revision if self._unread else None

    @property
    def is_over(self) -> bool:
        """Whether the watch has ended: it was closed, or the reader was too slow."""
        return self._ended_at is not None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if not await self._wait():
            raise StopAsyncIteration
        return self._unread.popleft()

    async def take(self, most_bytes: int = sys.maxsize) -> tuple[Record, ...]:
        """Wait for unread records and return them, at least one and no more after `most_bytes` of values.

        Returns none if the watch has ended or was nudged.
        """
        if not self._unread and self._ended_at is None:
            self._wake.clear()
            await self._wake.wait()
        if self._ended_at is not None:
            await self._wait()
        records: list[Record] = []
        size = 0
        while self._unread and size < most_bytes:
            records.append(self._unread.popleft())
            size += len(records[-1].value)
        return tuple(records)

    async def _wait(self) -> bool:
        while not self._unread:
            if self._cut:
                raise Expired(
                    f"the watch was too slow: changes after revision {self.position} are no longer kept; list again"
                )
            if self._ended_at is not None:
                return False
            self._wake.clear()
            await self._wake.wait()
        return True

    def nudge(self) -> None:
        """Wake up a waiting `take`, so that its caller can check the time."""
        self._wake.set()

    def close(self) -> None:
        """End the watch; closing it again has no effect."""
        if self._ended_at is None:
            self._ended_at = self.position
            self._unread.clear()
            self._wake.set()
            self._feed.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def push(self, record: Record) -> None:
        """Add a record for the reader. Only the feed calls this."""
        self._unread.append(record)
        self._wake.set()

    def cut(self) -> None:
        """End the watch because its reader is too slow. Only the feed calls this."""
        self._cut = True
        self.close()


class WatchHub:
    """The recent history and the watches on it."""

    def __init__(self, limits: StoreLimits) -> None:
        self._limits = limits
        self._history: deque[Record] = deque()
        self._bytes = 0
        self.revision = 0
        # Records up to this revision are no longer in the history.
        self.floor = 0
        # Bytes that have been removed from the history since the start.
        self.dropped = 0
        # By prefix, so that a record is only offered to its readers. Dicts, because their order is deterministic.
        self._watches: dict[str, dict[Watch, None]] = {}
        self._lengths: tuple[int, ...] = ()
        # A few pairs of time and revision, to find the records that are too old.
        self._moments: deque[tuple[float, int]] = deque()
        # Watches that may have unread records.
        self._behind: dict[Watch, None] = {}

    def load(self, records: Iterable[Record], *, floor: int, revision: int) -> None:
        """Start with the history of the log after `floor`, up to its last revision."""
        self.floor = floor
        self.publish(_with_previous(records))
        self.revision = revision

    def publish(self, records: Iterable[Record]) -> None:
        """Deliver durable records to the watches, and drop old records."""
        for record in records:
            self._history.append(record)
            self._bytes += len(record.value)
            self.revision = record.revision
            for watch in self._followers(record.key):
                watch.push(record)
                self._behind[watch] = None
        if self._trim():
            self._cut_off()

    def age(self, now: float) -> None:
        """Drop records that are too old at this time; to be called periodically."""
        moments, max_age = self._moments, self._limits.history_seconds
        if not moments or now - moments[-1][0] >= max_age / TICKS:
            moments.append((now, self.revision))
        passed = self.floor
        while moments and now - moments[0][0] >= max_age:
            passed = moments.popleft()[1]
        while self._history and self._history[0].revision <= passed:
            self._drop()
        self.floor = max(self.floor, passed)
        self._cut_off()

    def watch(self, prefix: str, since: int) -> Watch:
        """Return a watch on a prefix after a revision."""
        self._check(since)
        unread: deque[Record] = deque()
        unread.extendleft(self._after(prefix, since))
        watch = Watch(self, prefix, unread)
        if prefix not in self._watches:
            self._watches[prefix] = {}
            self._measure()
        self._watches[prefix][watch] = None
        self._behind[watch] = None
        return watch

    def undo(self, prefix: str, revision: int, items: tuple[Stored, ...]) -> tuple[Stored, ...]:
        """Return the items of a prefix as they were at a revision, by undoing the changes since then."""
        self._check(revision)
        items_by_key = {stored.key: stored for stored in items}
        for record in self._after(prefix, revision):
            if record.op is Op.CREATE:
                items_by_key.pop(record.key)
            elif record.previous is None:
                raise Expired(
                    f"the value of {record.key} before revision {record.revision} is not available; list again"
                )
            else:
                # The revision of the previous write is unknown here; the caller finds it in the bytes.
                previous = Stored(key=record.key, value=record.previous, revision=0, created=record.created)
                items_by_key[record.key] = previous
        return tuple(items_by_key[key] for key in sorted(items_by_key))

    def _check(self, revision: int) -> None:
        if revision < self.floor:
            raise Expired(f"too old resource version: {revision} ({self.floor})")
        if revision > self.revision:
            raise Ahead(f"revision {revision} is in the future; the last one is {self.revision}")

    def _after(self, prefix: str, revision: int) -> Iterator[Record]:
        """Yield the records of a prefix after a revision, newest first."""
        for record in reversed(self._history):
            if record.revision <= revision:
                return
            if record.key.startswith(prefix):
                yield record

    def leave(self, watch: Watch) -> None:
        """Remove a watch that has ended."""
        watches = self._watches[watch.prefix]
        del watches[watch]
        if not watches:
            del self._watches[watch.prefix]
            self._measure()
        self._behind.pop(watch, None)

    def close(self) -> None:
        """End every watch."""
        for watch in [watch for watches in self._watches.values() for watch in watches]:
            watch.close()

    def _followers(self, key: str) -> Iterator[Watch]:
        for length in self._lengths:
            if length > len(key):
                return
            yield from self._watches.get(key[:length], ())

    def _measure(self) -> None:
        self._lengths = tuple(sorted({len(prefix) for prefix in self._watches}))

    def _trim(self) -> bool:
        old_floor = self.floor
        while len(self._history) > self._limits.history or self._bytes > self._limits.history_bytes:
            self._drop()
        return self.floor != old_floor

    def _drop(self) -> None:
        record = self._history.popleft()
        self._bytes -= len(record.value)
        self.dropped += len(record.value)
        self.floor = record.revision

    def _cut_off(self) -> None:
        # Unread records are always part of the history, so slow readers need no extra memory.
        for watch in tuple(self._behind):
            if watch.oldest is None:
                del self._behind[watch]
            elif watch.oldest <= self.floor:
                watch.cut()


def _with_previous(records: Iterable[Record]) -> Iterator[Record]:
    """Yield each record with the previous value of its key, as far as the records contain it."""
    values: dict[str, bytes] = {}
    for record in records:
        previous = values.get(record.key) if record.op is not Op.CREATE else None
        values[record.key] = record.value
        yield record if previous is None else _following(record, previous)


def _following(record: Record, previous: bytes) -> Record:
    """Return a record with a previous value; faster than `replace`, because a start does this for the whole history."""
    return Record(
        revision=record.revision,
        key=record.key,
        op=record.op,
        value=record.value,
        created=record.created,
        previous=previous,
    )
