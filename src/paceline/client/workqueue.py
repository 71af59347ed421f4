"""A queue of keys to reconcile, with retries and back-off."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from paceline.client.metrics import CONFLICT, ERROR, SUCCESS, QueueMetrics
from paceline.effects import Random
from paceline.errors import Conflict, PacelineError

_MAX_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses that double with every failure up to a bound, each shortened by up to a half at random."""

    first_seconds: float
    most_seconds: float

    def pause(self, failures: int, chance: Random) -> float:
        """Return the pause after the so-many-th failure in a row, counted from 1."""
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        ceiling = min(self.first_seconds * (1 << doublings), self.most_seconds)
        return ceiling * (1 + chance.fraction()) / 2


log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)

RETRY = Backoff(first_seconds=0.5, most_seconds=60.0)
# After a conflict the cache usually has the new object a moment later.
RETRY_CONFLICT = Backoff(first_seconds=0.01, most_seconds=10.0)


class WorkQueue(Generic[K]):
    """Keys to reconcile. A key waits at most once, runs at most once at a time and has at most one timer.

    Nothing in it can grow beyond the number of keys, so it needs no other bound.
    """

    def __init__(self, chance: Random, *, name: str = "") -> None:
        self._chance = chance
        self.metrics = QueueMetrics(name, self.__len__)
        # Urgent keys first, otherwise in the order of arrival.
        self._ready: asyncio.PriorityQueue[tuple[bool, int, K]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()
        self._waiting: dict[K, bool] = {}
        self._running: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        # Since when a key is ready to be reconciled.
        self._since: dict[K, float] = {}

    def add(self, key: K, *, is_urgent: bool = False) -> None:
        """Have a key reconciled soon, an urgent one before others; if it runs just now, once more after that."""
        if key in self._waiting:
            return
        self._waiting[key] = is_urgent
        self.metrics.added()
        if key not in self._running:
            self._make_ready(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Reconcile a key later; of several requests the earliest counts."""
        loop = asyncio.get_running_loop()
        moment = loop.time() + seconds
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= moment:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(moment, self._ring, key)

    async def take(self) -> K:
        """Return the next key; the caller must call `done` afterwards."""
        _, _, key = await self._ready.get()
        del self._waiting[key]
        self._running.add(key)
        now = asyncio.get_running_loop().time()
        # A key that was added before the loop ran has not waited for a worker.
        self.metrics.waited(now - self._since.pop(key, now))
        return key

    def done(self, key: K) -> None:
        """Mark the reconcile of a key as done, whether it succeeded or failed."""
        self._running.remove(key)
        if key in self._waiting:
            self._make_ready(key)

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def failed(self, key: K, error: PacelineError) -> None:
        """Retry a key if its error allows it: at once after a first conflict, otherwise after a pause."""
        if not error.retry:
            self.succeeded(key)
            return
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        if not isinstance(error, Conflict):
            self.add_after(key, RETRY.pause(failures, self._chance))
        elif failures == 1:
            self.add(key)
        else:
            self.add_after(key, RETRY_CONFLICT.pause(failures - 1, self._chance))

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def __len__(self) -> int:
        """Count the keys that wait to be reconciled now."""
        return len(self._waiting)

    def _make_ready(self, key: K) -> None:
        with contextlib.suppress(RuntimeError):
            self._since[key] = asyncio.get_running_loop().time()
        self._ready.put_nowait((not self._waiting[key], next(self._numbers), key))

    def _ring(self, key: K) -> None:
        del self._timers[key]
        self.add(key)


async def all_of(*calls: Awaitable[Any]) -> list[Any]:
    """Return the results of calls that run at the same time, or raise the first error, once all of them have ended."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


async def run(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]], *, workers: int) -> None:
    """Reconcile until cancelled; a bug in one worker ends them all and is raised here."""
    try:
        async with asyncio.TaskGroup() as group:
            for index in range(workers):
                group.create_task(_work(queue, reconcile), name=f"reconcile-{index}")
    finally:
        queue.stop()


async def _work(queue: WorkQueue[K], reconcile: Callable[[K], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        key = await queue.take()
        began, result = loop.time(), ERROR
        try:
            await reconcile(key)
        except Conflict as error:
            # Another client was faster; the next reconcile sees its write.
            log.debug("reconcile met a conflict", extra={"key": key, "error": str(error)})
            result = CONFLICT
            queue.failed(key, error)
        except PacelineError as error:
            details = {"key": key, "reason": error.reason, "error": str(error)}
            log.warning("reconcile failed", extra=details)
            queue.failed(key, error)
        else:
            result = SUCCESS
            queue.succeeded(key)
        finally:
            queue.done(key)
            queue.metrics.ended(result, loop.time() - began)
