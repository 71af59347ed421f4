"""Group commit: all queued writes become one durable batch, and are visible only after that."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from paceline.effects import Executor
from paceline.errors import AlreadyExists, BadRequest, Conflict, HostError, NotFound, PacelineError, ServiceUnavailable
from paceline.store.backend import DiskFull, Index, Log, Op, Record, Stored, StoreLimits, stored
from paceline.store.watch_hub import TICKS, WatchHub

# Returns the bytes to store, given the revision of the write.
Render = Callable[[int], bytes]

STOPPED = "the store has stopped; try again when it is running"
UNCERTAIN = "this write may or may not have been stored; read the object before writing it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrite:
    """A queued write, and the future of its result."""

    op: Op
    key: str
    render: Render
    expected: int | None
    # Frees space or is part of a deletion: allowed on a full disk for as long as the reserve lasts.
    is_urgent: bool
    done: asyncio.Future[Stored]

    def answer(self, outcome: Stored | PacelineError) -> None:
        """Set the result, unless the caller has stopped waiting."""
        if self.done.done():
            return
        if isinstance(outcome, PacelineError):
            self.done.set_exception(outcome)
        else:
            self.done.set_result(outcome)


@dataclass(slots=True, kw_only=True)
class Batch:
    """The records of one commit, and the results that are valid once it is durable."""

    records: list[Record] = field(default_factory=list)
    answers: list[tuple[PendingWrite, Stored | PacelineError]] = field(default_factory=list)
    bytes: int = 0

    def full(self, limits: StoreLimits) -> bool:
        """Return whether the batch should be committed without adding more."""
        return len(self.records) >= limits.batch or self.bytes >= limits.batch_bytes

    def add(self, write: PendingWrite, record: Record) -> Stored | None:
        """Add a record, and return the value that the next write of its key finds."""
        outcome = stored(record)
        self.records.append(record)
        self.answers.append((write, outcome))
        self.bytes += len(record.value)
        return None if record.op is Op.DELETE else outcome

    def answer(self) -> None:
        """Set the result of every write."""
        for write, outcome in self.answers:
            write.answer(outcome)

    def fail(self, error: PacelineError) -> None:
        """Fail every write."""
        for write, _ in self.answers:
            write.answer(copy_error(error))


def copy_error(error: PacelineError, addition: str = "") -> PacelineError:
    """Return a copy of an error of the log: every caller needs its own exception to raise."""
    kind = HostError if isinstance(error, HostError) else ServiceUnavailable
    return kind(f"{error}; {addition}" if addition else str(error))


def precondition_error(write: PendingWrite, existing: Stored | None) -> PacelineError | None:
    """Return the error of a write whose precondition does not hold; None if it holds."""
    if write.op is Op.CREATE:
        return AlreadyExists(f"{write.key} already exists") if existing else None
    if existing is None:
        return NotFound(f"{write.key} does not exist")
    if write.expected not in (None, existing.revision):
        return Conflict(f"{write.key} is at revision {existing.revision}, not {write.expected}; read it again")
    return None


class Writer:
    """Appends batches to the log, and publishes them when they are durable."""

    def __init__(self, log: Log, blocking: Executor, *, state: Index, feed: WatchHub, limits: StoreLimits) -> None:
        self._log = log
        self._blocking = blocking
        self._state = state
        self._feed = feed
        self._limits = limits
        self._waiting: deque[PendingWrite] = deque()
        self._wake = asyncio.Event()
        self._batch = Batch()
        # Set when no more writes can succeed: the store has stopped, or its disk cannot be trusted.
        self._closed: PacelineError | None = None
        # The error of a disk that cannot be trusted, and the event that it sets.
        self.failure: HostError | None = None
        self._has_failed = asyncio.Event()
        # Set while the log may contain records that are not published.
        self._unsure = False
        # Set while the disk is full and the reserve is released: the error of the disk.
        self._short: DiskFull | None = None
        self._is_fresh = False
        self._compacted = 0
        self._cleared_bytes = 0

    def begin(self, compacted: int) -> None:
        """Start after loading; the log's history is compacted up to this revision."""
        self._compacted = compacted
        self._cleared_bytes = self._feed.dropped

    async def write(
        self, op: Op, key: str, *, render: Render, expected: int | None = None, urgent: bool = False
    ) -> Stored:
        """Queue a write, and return when it is durable; raise if it is rejected."""
        if self._closed is not None:
            raise copy_error(self._closed)
        if len(self._waiting) >= self._limits.waiting:
            raise ServiceUnavailable(f"{len(self._waiting)} writes are waiting for the disk; try again in a moment")
        _check_key(key)
        done: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append(
            PendingWrite(op=op, key=key, render=render, expected=expected, is_urgent=urgent, done=done)
        )
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Commit queued writes, batch by batch, until cancelled."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.history_seconds / TICKS):
                        await self._wake.wait()
                self._wake.clear()
                while self._waiting:
                    await self._process_batch()
                self._feed.age(clock())
        finally:
            self.stop()

    def stop(self) -> None:
        """Reject all writes from now on."""
        self._batch.fail(ServiceUnavailable(f"{STOPPED}; {UNCERTAIN}"))
        self._close(ServiceUnavailable(STOPPED))

    async def _process_batch(self) -> None:
        if self._unsure:
            try:
                await self._resync()
            except PacelineError as error:
                self._reject_pending(error)
                return
        if self._short:
            await self._keep_only_urgent(self._short)
        self._gather()
        if self._batch.records:
            await self._commit()
            await self._compact()
        # Let callers that just got a result queue their next write before the next batch.
        await asyncio.sleep(0)

    def _gather(self) -> None:
        self._batch = batch = Batch()
        pending: dict[str, Stored | None] = {}
        while self._waiting and not batch.full(self._limits):
            write = self._waiting[0]
            if not write.done.done():
                existing = pending[write.key] if write.key in pending else self._state.get(write.key)
                outcome = self._record(write, existing, self._feed.revision + len(batch.records) + 1)
                if isinstance(outcome, Record):
                    pending[write.key] = batch.add(write, outcome)
                elif write.key in pending:
                    # Rejected because of an earlier write of the batch: valid only once that one is durable.
                    batch.answers.append((write, outcome))
                else:
                    write.answer(outcome)
            self._waiting.popleft()

    def _record(self, write: PendingWrite, existing: Stored | None, revision: int) -> Record | PacelineError:
        error = precondition_error(write, existing)
        if error is not None:
            return error
        try:
            value = write.render(revision)
        except PacelineError as rejection:
            return rejection
        created, previous = (existing.created, existing.value) if existing else (revision, None)
        return Record(revision=revision, key=write.key, op=write.op, value=value, created=created, previous=previous)

    async def _commit(self) -> None:
        batch = self._batch
        self._unsure = True
        try:
            await self._blocking.run(partial(self._log.append, tuple(batch.records)))
        except HostError as error:
            batch.fail(copy_error(error, UNCERTAIN))
            self._close(error)
        except PacelineError as error:
            await self._resolve_ambiguous(batch, error)
        else:
            self._show(batch.records)
            batch.answer()

    async def _resolve_ambiguous(self, batch: Batch, error: PacelineError) -> None:
        """Find out whether a batch whose commit failed is in the log nevertheless, and set its results."""
        try:
            await self._resync()
        except PacelineError:
            batch.fail(copy_error(error, UNCERTAIN))
            return
        if self._feed.revision >= batch.records[-1].revision:
            batch.answer()
        elif isinstance(error, DiskFull) and await self._release_reserve(error):
            # Try again, but only the urgent writes.
            self._waiting.extendleft(write for write, _ in reversed(batch.answers))
        else:
            batch.fail(error)

    async def _release_reserve(self, error: DiskFull) -> bool:
        if self._short is not None or not await self._blocking.run(self._log.release_reserve):
            return False
        self._short, self._is_fresh = error, True
        return True

    async def _keep_only_urgent(self, error: DiskFull) -> None:
        """On a full disk keep only urgent writes in the queue, until there is space for the reserve again."""
        # Not immediately: the writes that the reserve was released for come first.
        if not self._is_fresh and await self._blocking.run(self._log.restore_reserve):
            self._short = None
            return
        self._is_fresh = False
        urgent = [write for write in self._waiting if write.is_urgent]
        for write in self._waiting:
            if not write.is_urgent:
                write.answer(copy_error(error))
        self._waiting.clear()
        self._waiting.extend(urgent)

    async def _resync(self) -> None:
        revision = self._feed.revision
        self._show(await self._blocking.run(lambda: tuple(self._log.since(revision))))

    def _show(self, records: Sequence[Record]) -> None:
        for record in records:
            self._state.apply(record)
        self._feed.publish(records)
        self._unsure = False

    async def _compact(self) -> None:
        """Compact the log up to the start of the history, some revisions at a time."""
        floor, dropped = self._feed.floor, self._feed.dropped
        is_short = floor - self._compacted < self._limits.slack
        is_small = dropped - self._cleared_bytes < self._limits.history_bytes
        if self._closed or (is_short and is_small):
            return
        try:
            await self._blocking.run(partial(self._log.compact, floor))
        except HostError as error:
            self._close(error)
        except PacelineError:
            # Keeping more than needed does no harm; the next batch tries again.
            return
        else:
            self._compacted, self._cleared_bytes = floor, dropped

    async def failed(self) -> HostError:
        """Wait until the disk can no longer be trusted, and return the error."""
        await self._has_failed.wait()
        return self.failure or HostError(STOPPED)

    def _close(self, error: PacelineError) -> None:
        self._closed = error
        if isinstance(error, HostError):
            self.failure = error
            self._has_failed.set()
        self._reject_pending(error)

    def _reject_pending(self, error: PacelineError) -> None:
        while self._waiting:
            self._waiting.popleft().answer(copy_error(error))


def _check_key(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"the key {key!r} cannot be encoded as UTF-8") from None
