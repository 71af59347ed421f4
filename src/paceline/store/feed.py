"""The feed of what changed: the history that is kept, and everyone who follows it."""

import asyncio
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Self

from paceline.errors import Busy, Expired
from paceline.store.limits import Limits
from paceline.store.log import Op, Record
from paceline.store.state import Stored

# How often within the time that history is kept its age is looked at.
TICKS = 4


class Ahead(Busy):
    """The revision asked for has not happened yet."""


class Watch:
    """The records after a revision whose keys begin with a prefix, in order, for one reader.

    Leave it with `close()` or use it in a `with` block. Waiting for a record may be cancelled and
    tried again; nothing is lost. A reader that falls behind the kept history is told Expired.
    """

    def __init__(self, feed: "Feed", prefix: str, unread: deque[Record]) -> None:
        self.prefix = prefix
        self._feed = feed
        # Bounded by the history: a watch that still has to read what left it is cut off.
        self._unread = unread
        self._wake = asyncio.Event()
        self._ended_at: int | None = None
        self._cut = False

    @property
    def position(self) -> int:
        """The revision up to which the reader has been given everything."""
        if self._ended_at is not None:
            return self._ended_at
        return self._unread[0].revision - 1 if self._unread else self._feed.revision

    @property
    def oldest(self) -> int | None:
        """The revision that the reader is given next, if one waits."""
        return self._unread[0].revision if self._unread else None

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more will come: it was closed, or the reader was too slow."""
        return self._ended_at is not None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if not await self._news():
            raise StopAsyncIteration
        return self._unread.popleft()

    async def take(self, most_bytes: int = sys.maxsize) -> tuple[Record, ...]:
        """Wait until there is something to read and give it, or the first so many bytes of it and at least one record.

        Gives nothing once the watch has ended or was nudged.
        """
        if not self._unread and self._ended_at is None:
            self._wake.clear()
            await self._wake.wait()
        if self._ended_at is not None:
            await self._news()
        taken: list[Record] = []
        size = 0
        while self._unread and size < most_bytes:
            taken.append(self._unread.popleft())
            size += len(taken[-1].value)
        return tuple(taken)

    async def _news(self) -> bool:
        while not self._unread:
            if self._cut:
                raise Expired(
                    f"the watch was too slow: what follows revision {self.position} is not kept any more; list again"
                )
            if self._ended_at is not None:
                return False
            self._wake.clear()
            await self._wake.wait()
        return True

    def nudge(self) -> None:
        """Let whoever waits for something to take look at the clock."""
        self._wake.set()

    def close(self) -> None:
        """Stop following; a second time is fine."""
        if self._ended_at is None:
            self._ended_at = self.position
            self._unread.clear()
            self._wake.set()
            self._feed.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def push(self, record: Record) -> None:
        """Add a record for the reader; for the feed only."""
        self._unread.append(record)
        self._wake.set()

    def cut(self) -> None:
        """Give up on the reader; for the feed only."""
        self._cut = True
        self.close()


class Feed:
    """The kept history and the watches on it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._history: deque[Record] = deque()
        self._bytes = 0
        self.revision = 0
        # Up to here nothing is kept.
        self.floor = 0
        # Bytes that left the history since the beginning.
        self.dropped = 0
        # By prefix, so that a record costs its readers only. Dicts, because their order is certain.
        self._watches: dict[str, dict[Watch, None]] = {}
        self._lengths: tuple[int, ...] = ()
        # How far it was at some moments; a handful of them.
        self._moments: deque[tuple[float, int]] = deque()
        # Those who had something to read when it was last looked at.
        self._behind: dict[Watch, None] = {}

    def load(self, records: Iterable[Record], *, floor: int, revision: int) -> None:
        """Begin with the history that the log kept after `floor`, up to its last revision."""
        self.floor = floor
        self.publish(_with_previous(records))
        self.revision = revision

    def publish(self, records: Iterable[Record]) -> None:
        """Tell everyone about records that are durable, and let go of what is too old."""
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
        """Let go of what is too old, told the time; to be called now and then."""
        moments, most = self._moments, self._limits.history_seconds
        if not moments or now - moments[-1][0] >= most / TICKS:
            moments.append((now, self.revision))
        passed = self.floor
        while moments and now - moments[0][0] >= most:
            passed = moments.popleft()[1]
        while self._history and self._history[0].revision <= passed:
            self._drop()
        self.floor = max(self.floor, passed)
        self._cut_off()

    def watch(self, prefix: str, since: int) -> Watch:
        """Follow a prefix after a revision."""
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
        """Give the items of a prefix as they were at a revision, from what they are now."""
        self._check(revision)
        found = {stored.key: stored for stored in items}
        for record in self._after(prefix, revision):
            if record.op is Op.CREATE:
                found.pop(record.key)
            elif record.previous is None:
                raise Expired(f"what {record.key} was before revision {record.revision} is not known; list again")
            else:
                # Which revision wrote it is not known here, and whoever lists finds it in the bytes.
                before = Stored(key=record.key, value=record.previous, revision=0, created=record.created)
                found[record.key] = before
        return tuple(found[key] for key in sorted(found))

    def _check(self, revision: int) -> None:
        if revision < self.floor:
            raise Expired(f"too old resource version: {revision} ({self.floor})")
        if revision > self.revision:
            raise Ahead(f"revision {revision} has not happened yet; the last one is {self.revision}")

    def _after(self, prefix: str, revision: int) -> Iterator[Record]:
        """Give the kept records of a prefix after a revision, the newest first."""
        for record in reversed(self._history):
            if record.revision <= revision:
                return
            if record.key.startswith(prefix):
                yield record

    def leave(self, watch: Watch) -> None:
        """Forget a watch that has ended."""
        same = self._watches[watch.prefix]
        del same[watch]
        if not same:
            del self._watches[watch.prefix]
            self._measure()
        self._behind.pop(watch, None)

    def close(self) -> None:
        """End every watch."""
        for watch in [watch for same in self._watches.values() for watch in same]:
            watch.close()

    def _followers(self, key: str) -> Iterator[Watch]:
        for length in self._lengths:
            if length > len(key):
                return
            yield from self._watches.get(key[:length], ())

    def _measure(self) -> None:
        self._lengths = tuple(sorted({len(prefix) for prefix in self._watches}))

    def _trim(self) -> bool:
        before = self.floor
        while len(self._history) > self._limits.history or self._bytes > self._limits.history_bytes:
            self._drop()
        return self.floor != before

    def _drop(self) -> None:
        gone = self._history.popleft()
        self._bytes -= len(gone.value)
        self.dropped += len(gone.value)
        self.floor = gone.revision

    def _cut_off(self) -> None:
        # What a watch has yet to read is always part of the history, so slow readers cost no memory.
        for watch in tuple(self._behind):
            if watch.oldest is None:
                del self._behind[watch]
            elif watch.oldest <= self.floor:
                watch.cut()


def _with_previous(records: Iterable[Record]) -> Iterator[Record]:
    """Give each record with what its key held before, as far as the records themselves tell."""
    held: dict[str, bytes] = {}
    for record in records:
        previous = held.get(record.key) if record.op is not Op.CREATE else None
        held[record.key] = record.value
        yield record if previous is None else _following(record, previous)


def _following(record: Record, previous: bytes) -> Record:
    """Give a record with what was before it; by hand, as a start does it for the whole history."""
    return Record(
        revision=record.revision,
        key=record.key,
        op=record.op,
        value=record.value,
        created=record.created,
        previous=previous,
    )
