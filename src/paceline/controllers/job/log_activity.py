"""Find out when containers wrote their last lines, beside the loop, for jobs that may not be silent for long."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paceline.apimachinery.timestamps import from_wire
from paceline.client.interface import Cluster
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.job.failure_logs import JobKey, log_end
from paceline.effects import Clock, Random
from paceline.errors import PacelineError
from paceline.plan.job.plan import LogRef
from paceline.plan.job.snapshot import LogActivity

log = logging.getLogger(__name__)

# One line, of which only the time is wanted.
LAST = {"tailLines": "1", "timestamps": "true", "limitBytes": "64"}
PATIENCE_SECONDS = 5.0
READERS = 2


@dataclass(slots=True, kw_only=True)
class Listening:
    """Asks for jobs that wish it, and remembers the answers while they run."""

    cluster: Cluster
    chance: Random
    clock: Clock
    # Called when there is an answer for a job, be it that nobody knows.
    on_heard: Callable[[JobKey], None]
    _queue: WorkQueue[tuple[JobKey, LogRef]] = field(init=False)
    # What is being asked or waits for it: asking twice is asking once.
    _requests: set[tuple[JobKey, LogRef]] = field(init=False, default_factory=set)
    # The last answer of each container of a job; forgotten when the job runs no more.
    _heard: dict[JobKey, dict[LogRef, LogActivity]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the queue; nothing runs before `run`."""
        self._queue = WorkQueue(self.chance)

    async def run(self) -> None:
        """Ask until cancelled."""
        await run(self._queue, self._listen, workers=READERS)

    def of(self, job: JobKey) -> Mapping[LogRef, LogActivity]:
        """Return what was heard of a job's containers."""
        return self._heard.get(job, {})

    def ask(self, job: JobKey, log_refs: Iterable[LogRef]) -> None:
        """Have containers asked soon."""
        for log_ref in log_refs:
            if (job, log_ref) not in self._requests:
                self._requests.add((job, log_ref))
                self._queue.add((job, log_ref))

    def forget(self, job: JobKey) -> None:
        """Drop what was heard of a job."""
        self._heard.pop(job, None)

    async def _listen(self, request: tuple[JobKey, LogRef]) -> None:
        job, log_ref = request
        last, is_known = None, False
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                last, is_known = _moment(await log_end(self.cluster, job[1], log_ref, LAST)), True
        except (PacelineError, TimeoutError, ValueError) as error:
            log.info("not heard", extra={"pod": log_ref.pod, "error": str(error) or "the node did not answer"})
        self._requests.discard(request)
        activities, now = self._heard.setdefault(job, {}), self.clock.now()
        previous = activities.get(log_ref)
        is_same = previous is not None and previous.is_known and is_known and previous.last == last
        since = previous.since if previous is not None and is_same else now
        activities[log_ref] = LogActivity(read_at=now, since=since, last=last, is_known=is_known)
        self.on_heard(job)


def _moment(end: bytes) -> datetime | None:
    """Read when the last line of a log was written; None when there is none."""
    return from_wire(end.split(b" ", 1)[0].decode("ascii")) if end else None
