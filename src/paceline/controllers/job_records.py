"""The controller of records: every job leaves one, with its spec, its outcome and its last events.

There is no finalizer: deleting a job never waits. At its start, this controller completes what it missed while it was
not running: records without an outcome whose jobs are gone.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, key_of, namespace_of, uid_of
from paceline.client.informer import Handler, Informer
from paceline.client.interface import EVENTS, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.job.pod_logs import JobKey, LastLines
from paceline.effects import Clock, Random
from paceline.errors import AlreadyExists, Conflict, Expired, Forbidden, Invalid, NotFound, PacelineError
from paceline.kinds.apps import job_record
from paceline.kinds.kind_types import OWN_API_VERSION, OWN_GROUP, VERSION
from paceline.model import well_known_labels
from paceline.model.log_metrics import metrics_in
from paceline.model.retention import RecordPolicy
from paceline.plan.job.plan import LogRef
from paceline.plan.job_records import (
    FINAL,
    KnownRecord,
    completed,
    known,
    leader_log,
    lost_outcome,
    outcome_of,
    pod_uids,
    record_manifest,
    slim_event,
    to_remove,
)

log = logging.getLogger(__name__)

RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural=job_record.PLURAL)
WORKERS = 2
# Records and events are read in pages of this size, so that not all are in memory at once.
PAGE = 200
# Jobs often end together, and their last events come after the status: one reading serves all of them.
SETTLE_SECONDS = 2.0
PRUNE_SECONDS = 600.0
# How long to wait before all records are read again.
AGAIN_SECONDS = 1.0


@dataclass(slots=True, kw_only=True)
class JobRecords:
    """Follows jobs, and writes a JobRecord for each: its spec, its outcome and its last events."""

    cluster: Cluster
    clock: Clock
    chance: Random
    # The managed namespace; all namespaces if it is empty.
    namespace: str = ""
    # The informers of jobs, by the plural of their kind.
    jobs: Mapping[str, Informer]
    policy: RecordPolicy = field(default_factory=RecordPolicy)
    queue: WorkQueue[JobKey] = field(init=False)
    # All records, by the uid of their jobs: the few facts that decisions need.
    _records: dict[str, KnownRecord] = field(init=False, default_factory=dict)
    # The last state of jobs that were deleted, until it is written down; at most one for each key.
    _gone: dict[JobKey, Object] = field(init=False, default_factory=dict)
    _last_lines: LastLines = field(init=False)
    # When the events of a namespace were last read, and what they were: by the uid of what they are about.
    _events: dict[str, tuple[float, Mapping[str, list[Object]]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the queue; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        for plural, informer in self.jobs.items():
            informer.cache.listen(self._job_changed(plural))
        self._last_lines = LastLines(cluster=self.cluster, chance=self.chance, on_read=self.queue.add)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once all records are known."""
        async with asyncio.TaskGroup() as group:
            for informer in self.jobs.values():
                await informer.has_synced.wait()
            synced.set()
            await self._survey_until_done()
            group.create_task(self._last_lines.run())
            group.create_task(self._prune_often())
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def _survey_until_done(self) -> None:
        while True:
            try:
                await self._survey()
            except PacelineError as error:
                # The cluster does not answer, or the list became too old while it was read.
                log.info("records of jobs cannot be read yet", extra={"error": str(error)})
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return

    async def _survey(self) -> None:
        """Read all records, and complete those whose jobs were deleted while no controller ran."""
        await self._read_records()
        alive = {uid_of(job) for informer in self.jobs.values() for job in informer.cache.values()}
        for record in tuple(self._records.values()):
            if not record.is_complete and record.job_uid not in alive:
                events = (await self._events_of(record.namespace)).get(record.job_uid, [])
                await self._complete(record, lost_outcome(events, self.clock.now()))

    async def _read_records(self) -> None:
        select = Select(namespace=self.namespace, labels=well_known_labels.JOB_UID)
        page = await self.cluster.page(RECORDS, select, limit=PAGE)
        self._learn(page.items)
        while page.next:
            page = await self.cluster.page(RECORDS, select, limit=PAGE, after=page.next)
            self._learn(page.items)

    def _learn(self, records: Iterable[Object]) -> None:
        for record in map(known, records):
            self._records[record.job_uid] = record

    async def reconcile(self, key: JobKey) -> None:
        """Write the record of a job, and its outcome."""
        plural, namespace, name = key
        gone = self._gone.get(key)
        if gone is not None:
            await self._end(key, gone, is_gone=True)
            self._gone.pop(key, None)
            self._last_lines.forget(key)
        job = self.jobs[plural].cache.get((namespace, name))
        status = {} if job is None else job.get("status") or {}
        if job is None or not status.get("phase"):
            return
        await self._begin(job)
        if status["phase"] in FINAL and self._is_settled(key, job):
            await self._end(key, job, is_gone=False)

    async def _begin(self, job: Object) -> None:
        if uid_of(job) in self._records:
            return
        manifest = record_manifest(OWN_API_VERSION, job)
        try:
            written = await self.cluster.create(RECORDS, manifest)
        except AlreadyExists:
            written = await self.cluster.get(RECORDS, *key_of(manifest))
        except (NotFound, Forbidden, Invalid):
            # The namespace is terminating, or a policy rejects the record; the job runs without one.
            return
        self._records[uid_of(job)] = known(written)

    def _is_settled(self, key: JobKey, job: Object) -> bool:
        """Return whether everything that the outcome contains is available; request the log if it is not."""
        record = self._records.get(uid_of(job))
        if record is None or record.is_complete:
            return False
        failure = (job.get("status") or {}).get("failure") or {}
        if failure and "lastLines" not in failure:
            # The job's controller reads them; if it never does, the outcome is written when the job is deleted.
            return False
        log = leader_log(job)
        if log is not None and log[0] not in self._last_lines.of(key):
            self._last_lines.ask(key, LogRef(pod=log[0], container=log[1]))
            return False
        return True

    async def _end(self, key: JobKey, job: Object, *, is_gone: bool) -> None:
        """Write the outcome of a job into its record, once."""
        if (job.get("status") or {}).get("phase"):
            await self._begin(job)
        record = self._records.get(uid_of(job))
        if record is None or record.is_complete:
            return
        by_uid = await self._events_of(namespace_of(job))
        events = [event for uid in (uid_of(job), *pod_uids(job)) for event in by_uid.get(uid, ())]
        lines = [line for pod in self._last_lines.of(key).values() for line in pod]
        now = self.clock.now() if is_gone else None
        await self._complete(record, outcome_of(job, events, metrics_in(lines), gone_at=now))
        self._last_lines.forget(key)

    async def _complete(self, record: KnownRecord, outcome: Object) -> None:
        try:
            await self.cluster.patch(
                RECORDS, (record.namespace, record.name), {"status": outcome}, subresource="status"
            )
        except (NotFound, Conflict):
            # The record was deleted meanwhile.
            self._records.pop(record.job_uid, None)
            return
        self._records[record.job_uid] = completed(record)

    async def _events_of(self, namespace: str) -> Mapping[str, list[Object]]:
        """Return the events of a namespace by the uid of what they are about; not read more often than they settle."""
        now = self.clock.monotonic()
        read_at, events = self._events.get(namespace, (-SETTLE_SECONDS, {}))
        if now - read_at < SETTLE_SECONDS:
            return events
        self._events = {name: entry for name, entry in self._events.items() if now - entry[0] < SETTLE_SECONDS}
        by_uid: dict[str, list[Object]] = {}
        page = await self.cluster.page(EVENTS, Select(namespace=namespace), limit=PAGE)
        self._gather(page.items, by_uid)
        while page.next:
            try:
                page = await self.cluster.page(EVENTS, Select(namespace=namespace), limit=PAGE, after=page.next)
            except Expired:
                break
            self._gather(page.items, by_uid)
        self._events[namespace] = (now, by_uid)
        return by_uid

    def _gather(self, events: Iterable[Object], by_uid: dict[str, list[Object]]) -> None:
        for event in map(slim_event, events):
            by_uid.setdefault(str(event["uid"]), []).append(event)

    async def _prune_often(self) -> None:
        while True:
            try:
                await self.prune()
            except PacelineError as error:
                log.warning("old records of jobs not removed", extra={"error": str(error)})
            await asyncio.sleep(PRUNE_SECONDS)

    async def prune(self) -> None:
        """Delete the records that the policy does not keep."""
        for record in to_remove(self._records.values(), self.policy, self.clock.now()):
            with suppress(NotFound):
                await self.cluster.delete(RECORDS, (record.namespace, record.name))
            self._records.pop(record.job_uid, None)

    def _job_changed(self, plural: str) -> Handler:
        def changed(change: Change, old: Object | None, new: Object | None) -> None:
            key = (plural, *key_of(new or old or {}))
            if change is Change.DELETED and old is not None:
                self._gone[key] = old
                self.queue.add(key)
            elif new is not None and self._is_worth_a_look(new):
                phase = (new.get("status") or {}).get("phase")
                self.queue.add_after(key, SETTLE_SECONDS if phase in FINAL else 0.0)

        return changed

    def _is_worth_a_look(self, job: Object) -> bool:
        """Return whether a change of a job may lead to a write: most do not."""
        phase, record = (job.get("status") or {}).get("phase"), self._records.get(uid_of(job))
        if not phase:
            return False
        return record is None or (phase in FINAL and not record.is_complete)
