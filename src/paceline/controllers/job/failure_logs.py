"""Read what failed pods wrote last, beside the loop: a slow node holds up nobody but its reader."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from paceline.client.interface import PODS, Cluster
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Random
from paceline.errors import PacelineError
from paceline.plan.job.plan import LogRef

log = logging.getLogger(__name__)

# (plural, namespace, name): which job of which kind.
JobKey = tuple[str, str, str]

LINES = 20
# What a status has room for, and what a reader takes in at most to find it.
LINE_CHARACTERS = 300
KEPT_BYTES, MOST_BYTES = 1 << 15, 1 << 20
# A node that has just come back may answer the second time.
PATIENCE_SECONDS, AGAIN_SECONDS = 5.0, 1.0
READERS = 2


@dataclass(slots=True, kw_only=True)
class LastLines:
    """Reads logs for jobs that wish it, and remembers what was found until it is in the job's status."""

    cluster: Cluster
    chance: Random
    # Called when there is an answer for a job, be it that there is nothing to be had.
    on_found: Callable[[JobKey], None]
    _queue: WorkQueue[tuple[JobKey, LogRef]] = field(init=False)
    # What is being read or waits for it: asking twice is asking once.
    _requests: set[tuple[JobKey, LogRef]] = field(init=False, default_factory=set)
    # At most one answer per job; forgotten with the job, or once it is written down.
    _lines: dict[JobKey, Mapping[str, tuple[str, ...]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the queue; nothing runs before `run`."""
        self._queue = WorkQueue(self.chance)

    async def run(self) -> None:
        """Read until cancelled."""
        await run(self._queue, self._read, workers=READERS)

    def of(self, job: JobKey) -> Mapping[str, tuple[str, ...]]:
        """Return what was found for a job and is not written down yet, by pod."""
        return self._lines.get(job, {})

    def ask(self, job: JobKey, log_ref: LogRef) -> None:
        """Have a log read soon, unless it was meanwhile."""
        if (job, log_ref) not in self._requests and log_ref.pod not in self.of(job):
            self._requests.add((job, log_ref))
            self._queue.add((job, log_ref))

    def forget(self, job: JobKey, lines: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Drop what was found for a job; with `lines`, only if these are still the ones held."""
        if lines is None or self._lines.get(job) is lines:
            self._lines.pop(job, None)

    async def _read(self, request: tuple[JobKey, LogRef]) -> None:
        job, log_ref = request
        tail = b""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                tail = await self._patiently(job[1], log_ref)
        except (PacelineError, TimeoutError) as error:
            log.info("no last lines", extra={"pod": log_ref.pod, "error": str(error) or "the node did not answer"})
        self._requests.discard(request)
        self._lines[job] = {log_ref.pod: last_lines(tail)}
        self.on_found(job)

    async def _patiently(self, namespace: str, log_ref: LogRef) -> bytes:
        """Read the end of a log, again after a pause if the answer is that one should."""
        while True:
            try:
                return await self._tail(namespace, log_ref)
            except PacelineError as error:
                if not error.retry:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    async def _tail(self, namespace: str, log_ref: LogRef) -> bytes:
        query = {"tailLines": str(LINES), "limitBytes": str(MOST_BYTES)}
        return await log_end(self.cluster, namespace, log_ref, query)


async def log_end(cluster: Cluster, namespace: str, log_ref: LogRef, query: Mapping[str, str]) -> bytes:
    """Read the end of a container's log as it is now, as much of it as anybody needs."""
    tail = b""
    path, parameters = PODS.path(namespace, log_ref.pod, "log"), {"container": log_ref.container, **query}
    async with aclosing(cluster.stream(path, parameters)) as chunks:
        async for chunk in chunks:
            tail = (tail + chunk)[-KEPT_BYTES:]
    return tail


def last_lines(tail: bytes) -> tuple[str, ...]:
    """Return the last lines of a log as a terminal would show them, short enough to be kept in a status."""
    lines = tail.decode(errors="replace").removesuffix("\n").split("\n") if tail else []
    # Of a progress bar that redraws itself, only the last state is seen.
    shown = [line.rstrip("\r").rpartition("\r")[2] for line in lines[-LINES:]]
    return tuple(line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…" for line in shown)
