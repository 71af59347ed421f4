"""Reads pod logs outside of the reconcile loop: last lines of failed pods, and when containers last wrote a line."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import ClassVar

from paceline.apimachinery.timestamps import from_wire
from paceline.client.interface import PODS, Cluster
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Clock, Random
from paceline.errors import PacelineError
from paceline.plan.job.plan import LogRef
from paceline.plan.job.snapshot import LogActivity

log = logging.getLogger(__name__)

# (plural, namespace, name) of a job.
JobKey = tuple[str, str, str]

LINES = 20
# The longest line that a status has room for, and how much of a log is read for it at most.
LINE_CHARACTERS = 300
KEPT_BYTES, MOST_BYTES = 1 << 15, 1 << 20
TAIL = {"tailLines": str(LINES), "limitBytes": str(MOST_BYTES)}
# One line, of which only the time is needed.
LAST = {"tailLines": "1", "timestamps": "true", "limitBytes": "64"}
TIMEOUT_SECONDS, RETRY_SECONDS = 5.0, 1.0
READERS = 2


@dataclass(kw_only=True)
class LogReader:
    """Reads the ends of logs, two at a time, so that a slow node delays only this reader."""

    # What is read of a log.
    query: ClassVar[Mapping[str, str]]
    # Whether to try again: a node that has just restarted may answer the second time.
    retries: ClassVar[bool] = False

    cluster: Cluster
    chance: Random
    # Called when there is an answer for a job, also when nothing can be read.
    on_read: Callable[[JobKey], None]
    _queue: WorkQueue[tuple[JobKey, LogRef]] = field(init=False)
    _requests: set[tuple[JobKey, LogRef]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Set up the queue; nothing runs before `run`."""
        self._queue = WorkQueue(self.chance)

    async def run(self) -> None:
        """Read until cancelled."""
        await run(self._queue, self._read, workers=READERS)

    def request(self, job: JobKey, log_ref: LogRef) -> None:
        """Read a log soon, unless that is already requested."""
        if (job, log_ref) not in self._requests:
            self._requests.add((job, log_ref))
            self._queue.add((job, log_ref))

    def keep(self, job: JobKey, log_ref: LogRef, end: bytes | None) -> None:
        """Keep the end of a log; None when it cannot be read."""
        raise NotImplementedError

    async def _read(self, request: tuple[JobKey, LogRef]) -> None:
        job, log_ref = request
        end = None
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                end = await self._end_of_log(job[1], log_ref)
        except (PacelineError, TimeoutError) as error:
            details = {"pod": log_ref.pod, "error": str(error) or "the node did not answer"}
            log.info("cannot read a pod's log", extra=details)
        self._requests.discard(request)
        self.keep(job, log_ref, end)
        self.on_read(job)

    async def _end_of_log(self, namespace: str, log_ref: LogRef) -> bytes:
        path, parameters = PODS.path(namespace, log_ref.pod, "log"), {"container": log_ref.container, **self.query}
        while True:
            end = b""
            try:
                async with aclosing(self.cluster.stream(path, parameters)) as chunks:
                    async for chunk in chunks:
                        end = (end + chunk)[-KEPT_BYTES:]
            except PacelineError as error:
                if not self.retries or not error.retry:
                    raise
            else:
                return end
            await asyncio.sleep(RETRY_SECONDS)


@dataclass(kw_only=True)
class LastLines(LogReader):
    """Reads the last lines of failed pods, and keeps them until they are in the job's status."""

    query = TAIL
    retries = True
    # At most one answer per job.
    _lines: dict[JobKey, Mapping[str, tuple[str, ...]]] = field(init=False, default_factory=dict)

    def of(self, job: JobKey) -> Mapping[str, tuple[str, ...]]:
        """Return the lines of a job that are not in its status yet, by pod."""
        return self._lines.get(job, {})

    def ask(self, job: JobKey, log_ref: LogRef) -> None:
        """Read a log soon, unless its lines are here already."""
        if log_ref.pod not in self.of(job):
            self.request(job, log_ref)

    def forget(self, job: JobKey, lines: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Drop the lines of a job; with `lines`, only if these are still the current ones."""
        if lines is None or self._lines.get(job) is lines:
            self._lines.pop(job, None)

    def keep(self, job: JobKey, log_ref: LogRef, end: bytes | None) -> None:
        """Keep the last lines of a pod."""
        self._lines[job] = {log_ref.pod: last_lines(end or b"")}


@dataclass(kw_only=True)
class LogActivityReader(LogReader):
    """Reads when containers last wrote a line, for jobs with a stall timeout, and keeps the answers while they run."""

    query = LAST
    clock: Clock
    # The last answer for each container of a job.
    _activities: dict[JobKey, dict[LogRef, LogActivity]] = field(init=False, default_factory=dict)

    def of(self, job: JobKey) -> Mapping[LogRef, LogActivity]:
        """Return the activity of a job's containers."""
        return self._activities.get(job, {})

    def ask(self, job: JobKey, log_refs: Iterable[LogRef]) -> None:
        """Read the logs of containers soon."""
        for log_ref in log_refs:
            self.request(job, log_ref)

    def forget(self, job: JobKey) -> None:
        """Drop the activity of a job."""
        self._activities.pop(job, None)

    def keep(self, job: JobKey, log_ref: LogRef, end: bytes | None) -> None:
        """Keep when a container last wrote a line."""
        last, is_known = None, end is not None
        try:
            last = from_wire(end.split(b" ", 1)[0].decode("ascii")) if end else None
        except ValueError:
            is_known = False
        activities, now = self._activities.setdefault(job, {}), self.clock.now()
        previous = activities.get(log_ref)
        is_same = previous is not None and previous.is_known and is_known and previous.last == last
        since = previous.since if previous is not None and is_same else now
        activities[log_ref] = LogActivity(read_at=now, since=since, last=last, is_known=is_known)


def last_lines(end: bytes) -> tuple[str, ...]:
    """Return the last lines of a log as a terminal shows them, short enough for a status."""
    lines = end.decode(errors="replace").removesuffix("\n").split("\n") if end else []
    # Keep only the last state of a progress bar that overwrites its line.
    shown = [line.rstrip("\r").rpartition("\r")[2] for line in lines[-LINES:]]
    return tuple(line if len(line) <= LINE_CHARACTERS else line[: LINE_CHARACTERS - 1] + "…" for line in shown)
