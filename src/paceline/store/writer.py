"""Group commit: everything that waits becomes one durable step, and only then is it seen."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from paceline.errors import (
    Busy,
    Conflict,
    Exists,
    Malformed,
    Missing,
    PacelineError,
    Unavailable,
)
from paceline.store.feed import TICKS, Feed
from paceline.store.limits import Limits
from paceline.store.log import Log, NoRoom, Op, Record
from paceline.store.state import State, Stored, stored
from paceline.world import Blocking

# Makes the bytes to keep, given the revision that will write them.
Render = Callable[[int], bytes]

STOPPED = "the store has stopped; try again when it is back"
UNCERTAIN = "whether this write was stored is not known; read it before writing again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that waits, and the future of the one who waits for it."""

    op: Op
    key: str
    render: Render
    expected: int | None
    # Makes room or ends something: goes through on a full disk for as long as the reserve lasts.
    is_urgent: bool
    done: asyncio.Future[Stored]

    def answer(self, outcome: Stored | PacelineError) -> None:
        """Tell the one who waits, unless they left."""
        if self.done.done():
            return
        if isinstance(outcome, PacelineError):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


@dataclass(slots=True, kw_only=True)
class Batch:
    """The records of one commit, and the answers that hold once it is durable."""

    records: list[Record] = field(default_factory=list)
    answers: list[tuple[Write, Stored | PacelineError]] = field(default_factory=list)
    bytes: int = 0

    def full(self, limits: Limits) -> bool:
        """Tell whether the commit should leave without taking more."""
        return len(self.records) >= limits.batch or self.bytes >= limits.batch_bytes

    def add(self, write: Write, record: Record) -> Stored | None:
        """Take a record in and give what the next write of its key meets."""
        outcome = stored(record)
        self.records.append(record)
        self.answers.append((write, outcome))
        self.bytes += len(record.value)
        return None if record.op is Op.DELETE else outcome

    def answer(self) -> None:
        """Give every write its answer."""
        for write, outcome in self.answers:
            write.answer(outcome)

    def fail(self, error: PacelineError) -> None:
        """Tell every write that the commit failed."""
        for write, _ in self.answers:
            write.answer(again(error))


def again(error: PacelineError, addition: str = "") -> PacelineError:
    """Say an error of the log once more: each hearer raises an exception of their own."""
    kind = Unavailable if isinstance(error, Unavailable) else Busy
    return kind(f"{error}; {addition}" if addition else str(error))


def refusal(write: Write, found: Stored | None) -> PacelineError | None:
    """Check a write's guard against what it would meet."""
    if write.op is Op.CREATE:
        return Exists(f"{write.key} is there already") if found else None
    if found is None:
        return Missing(f"{write.key} is not there")
    if write.expected not in (None, found.revision):
        return Conflict(f"{write.key} is at revision {found.revision}, not {write.expected}; read it again")
    return None


class Writer:
    """The one that appends to the log, a batch at a time, and shows what became durable."""

    def __init__(self, log: Log, blocking: Blocking, *, state: State, feed: Feed, limits: Limits) -> None:
        self._log = log
        self._blocking = blocking
        self._state = state
        self._feed = feed
        self._limits = limits
        self._waiting: deque[Write] = deque()
        self._wake = asyncio.Event()
        self._batch = Batch()
        # Set when no write can succeed any more: the store stopped, or its disk cannot be trusted.
        self._closed: PacelineError | None = None
        # The second of these reasons, and who waits for it.
        self.failure: Unavailable | None = None
        self._has_failed = asyncio.Event()
        # Set while the log may hold more than was shown.
        self._unsure = False
        # Set while the disk is full and the reserve given up: what the disk said.
        self._short: NoRoom | None = None
        self._is_fresh = False
        self._compacted = 0
        self._cleared_bytes = 0

    def begin(self, compacted: int) -> None:
        """Take over after loading, told how far the log's history is gone."""
        self._compacted = compacted
        self._cleared_bytes = self._feed.dropped

    async def write(
        self, op: Op, key: str, *, render: Render, expected: int | None = None, urgent: bool = False
    ) -> Stored:
        """Queue a write and wait until it is durable or refused."""
        if self._closed is not None:
            raise again(self._closed)
        if len(self._waiting) >= self._limits.waiting:
            raise Busy(f"{len(self._waiting)} writes wait for the disk; try again in a moment")
        _check_key(key)
        done: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append(Write(op=op, key=key, render=render, expected=expected, is_urgent=urgent, done=done))
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Commit what waits, batch after batch, until cancelled."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.history_seconds / TICKS):
                        await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    await self._turn()
                self._feed.age(clock())
        finally:
            self.stop()

    def stop(self) -> None:
        """Refuse everything from now on."""
        self._batch.fail(Busy(f"{STOPPED}; {UNCERTAIN}"))
        self._close(Busy(STOPPED))

    async def _turn(self) -> None:
        if self._unsure:
            try:
                await self._settle()
            except PacelineError as error:
                self._turn_away(error)
                return
        if self._short:
            await self._economise(self._short)
        self._gather()
        if self._batch.records:
            await self._commit()
            await self._clear_away()
        # Whoever was just answered may have more: let them queue it before the next batch leaves.
        await asyncio.sleep(0)

    def _gather(self) -> None:
        self._batch = batch = Batch()
        ahead: dict[str, Stored | None] = {}
        while self._waiting and not batch.full(self._limits):
            write = self._waiting[0]
            if not write.done.done():
                found = ahead[write.key] if write.key in ahead else self._state.get(write.key)
                outcome = self._record(write, found, self._feed.revision + len(batch.records) + 1)
                if isinstance(outcome, Record):
                    ahead[write.key] = batch.add(write, outcome)
                elif write.key in ahead:
                    # Refused because of a write before it: true only once that one is durable.
                    batch.answers.append((write, outcome))
                else:
                    write.answer(outcome)
            self._waiting.popleft()

    def _record(self, write: Write, found: Stored | None, revision: int) -> Record | PacelineError:
        error = refusal(write, found)
        if error is not None:
            return error
        try:
            value = write.render(revision)
        except PacelineError as refused:
            return refused
        created, previous = (found.created, found.value) if found else (revision, None)
        return Record(revision=revision, key=write.key, op=write.op, value=value, created=created, previous=previous)

    async def _commit(self) -> None:
        batch = self._batch
        self._unsure = True
        try:
            await self._blocking.run(partial(self._log.append, tuple(batch.records)))
        except Unavailable as error:
            batch.fail(again(error, UNCERTAIN))
            self._close(error)
        except PacelineError as error:
            await self._doubt(batch, error)
        else:
            self._show(batch.records)
            batch.answer()

    async def _doubt(self, batch: Batch, error: PacelineError) -> None:
        """Find out whether a batch whose commit failed is in the log all the same."""
        try:
            await self._settle()
        except PacelineError:
            batch.fail(again(error, UNCERTAIN))
            return
        if self._feed.revision >= batch.records[-1].revision:
            batch.answer()
        elif isinstance(error, NoRoom) and await self._relieved(error):
            # Once more, but only what is urgent.
            self._waiting.extendleft(write for write, _ in reversed(batch.answers))
        else:
            batch.fail(error)

    async def _relieved(self, error: NoRoom) -> bool:
        if self._short is not None or not await self._blocking.run(self._log.relieve):
            return False
        self._short, self._is_fresh = error, True
        return True

    async def _economise(self, error: NoRoom) -> None:
        """On a full disk let only urgent writes wait on, until there is room for the reserve again."""
        # Not at once: what the reserve was given up for has to come first.
        if not self._is_fresh and await self._blocking.run(self._log.restock):
            self._short = None
            return
        self._is_fresh = False
        urgent = [write for write in self._waiting if write.is_urgent]
        for write in self._waiting:
            if not write.is_urgent:
                write.answer(again(error))
        self._waiting.clear()
        self._waiting.extend(urgent)

    async def _settle(self) -> None:
        revision = self._feed.revision
        self._show(await self._blocking.run(lambda: tuple(self._log.since(revision))))

    def _show(self, records: Sequence[Record]) -> None:
        for record in records:
            self._state.apply(record)
        self._feed.publish(records)
        self._unsure = False

    async def _clear_away(self) -> None:
        """Let the log forget what the feed no longer tells, some at a time."""
        floor, dropped = self._feed.floor, self._feed.dropped
        few = floor - self._compacted < self._limits.slack
        small = dropped - self._cleared_bytes < self._limits.history_bytes
        if self._closed or (few and small):
            return
        try:
            await self._blocking.run(partial(self._log.compact, floor))
        except Unavailable as error:
            self._close(error)
        except PacelineError:
            # Nothing is lost by keeping more than needed; the next batch tries again.
            return
        else:
            self._compacted, self._cleared_bytes = floor, dropped

    async def failed(self) -> Unavailable:
        """Wait until the disk cannot be trusted any more, and return why."""
        await self._has_failed.wait()
        return self.failure or Unavailable(STOPPED)

    def _close(self, error: PacelineError) -> None:
        self._closed = error
        if isinstance(error, Unavailable):
            self.failure = error
            self._has_failed.set()
        self._turn_away(error)

    def _turn_away(self, error: PacelineError) -> None:
        while self._waiting:
            self._waiting.popleft().answer(again(error))


def _check_key(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise Malformed(f"the key {key!r} is not text that UTF-8 can write") from None
