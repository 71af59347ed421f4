"""The job controller: one loop for all job kinds, since an expanded job is independent of its kind."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from paceline.apimachinery.meta import Object, controller_of, is_deleting, key_of, namespace_of, uid_of
from paceline.apimachinery.pods import claims_of
from paceline.apimachinery.untrusted import counts, untrusted
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Handler, Informer
from paceline.client.interface import CLAIMS, NODES, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.job.apply_plan import Actuator, Applied, apply_plan
from paceline.controllers.job.metrics import JobMetrics
from paceline.controllers.job.pod_logs import JobKey, LastLines, LogActivityReader
from paceline.controllers.job.snapshot import (
    UNBOUND,
    LogsRead,
    Reading,
    Readings,
    disruption_of,
    has_gang_scheduler,
    look,
    node_snapshot,
    unbound_claim,
)
from paceline.controllers.job.workloads import Workloads
from paceline.controllers.refusals import AGAIN, Refusals
from paceline.effects import Clock, Random
from paceline.errors import BadRequest, Forbidden, Invalid, NotFound, PacelineError
from paceline.kinds import registry
from paceline.kinds.kind_types import GROUP, VERSION, JobKind, no_ports
from paceline.model import reasons
from paceline.model.gang import PodTools
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.conditions import hindered, refused
from paceline.plan.job.decide import decide
from paceline.plan.job.manifests import allocate_ports
from paceline.plan.job.plan import Plan
from paceline.plan.job.snapshot import Disruption, JobSnapshot, NodeSnapshot, is_overdue
from paceline.plan.queueing.kueue import WorkloadView
from paceline.plan.queueing.pod_groups import group_kind, grouped

log = logging.getLogger(__name__)

PORTS = range(23_500, 31_500)
WORKERS = 8
# Pods of a gang start and end at nearly the same time, so their changes are collected for this long. Started pods are
# only reported, ended ones need a reaction.
START_TOGETHER_SECONDS = 0.25
END_TOGETHER_SECONDS = 0.05
UNDER_WAY = ("Pending", "Running")
FINAL = tuple(phase.value for phase in Phase if phase.is_final)


def collection_of(kind: JobKind) -> Collection:
    """Return the collection of a job kind."""
    return Collection(group=GROUP, version=VERSION, plural=kind.plural)


@dataclass(slots=True, kw_only=True)
class Jobs:
    """Watches all jobs and their pods, and applies one plan per job at a time."""

    cluster: Cluster
    clock: Clock
    chance: Random
    recorder: Recorder
    # Pods of the same namespaces; shared with other controllers, and run by the caller.
    pods: Informer
    # The namespace whose jobs are reconciled; all if empty.
    namespace: str = ""
    # Whether nodes may be lost: then the node of a pod that does not end is read.
    reads_nodes: bool = False
    # Whether the cluster's scheduler starts all pods of a job, or none.
    schedules_gangs: bool = True
    # Whether members share one network, so that every job needs its own ports (hostNetwork, no privilege).
    shares_network: bool
    # The range of these ports, except those that other programs listen on.
    ports: range = PORTS
    in_use: Callable[[], frozenset[int]] = frozenset
    # What members need to start processes in each other; see `Actuator.program`.
    program: Callable[[], Mapping[str, str]] = dict
    # Whether a job waits whose queue or scheduler the cluster does not have.
    requires_queue: bool = False
    # The version of Kubernetes' own PodGroups in this cluster; empty if it has none.
    native_groups: str = ""
    # The image of our own containers in the pods of jobs.
    tools: PodTools = field(default_factory=PodTools)
    queue: WorkQueue[JobKey] = field(init=False)
    metrics: JobMetrics = field(init=False, default_factory=JobMetrics)
    _plurals: dict[tuple[str, str], str] = field(init=False)
    _jobs: dict[str, Informer] = field(init=False)
    _last_lines: LastLines = field(init=False)
    _log_activity: LogActivityReader = field(init=False)
    _workloads: Workloads = field(init=False)
    _readings: Readings = field(init=False)
    # Jobs that may hold ports; those that do not any more are removed when ports are allocated.
    _holders: set[JobKey] = field(init=False, default_factory=set)
    # Ports that were allocated and may not be written yet, at most one set per job.
    _promised: dict[JobKey, Mapping[str, int]] = field(init=False, default_factory=dict)
    # Why the cluster rejected an object of a job: a quota, a policy, an invalid template.
    _refusals: Refusals[JobKey] = field(init=False, default_factory=Refusals)
    # Why pods that are gone were taken away, by uid, until the job's status records it.
    _departed: dict[JobKey, dict[str, Disruption]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="jobs")
        self._readings = Readings(self.tools)
        self._plurals = {(f"{GROUP}/{VERSION}", kind.kind): kind.plural for kind in registry.KINDS}
        self._jobs = {
            kind.plural: self._informer(collection_of(kind), self._job_changed(kind.plural)) for kind in registry.KINDS
        }
        for kind in registry.KINDS:
            self._jobs[kind.plural].cache.listen(self.metrics.follow(kind.kind))
        self.pods.cache.listen(self._pod_changed)
        self._last_lines = LastLines(cluster=self.cluster, chance=self.chance, on_read=self.queue.add)
        self._log_activity = LogActivityReader(
            cluster=self.cluster, chance=self.chance, clock=self.clock, on_read=self.queue.add
        )
        self._workloads = Workloads(
            cluster=self.cluster,
            clock=self.clock,
            chance=self.chance,
            namespace=self.namespace,
            is_required=self.requires_queue,
            on_change=self._workload_changed,
        )

    def _informer(self, where: Collection, on_change: Handler) -> Informer:
        select = Select(namespace=self.namespace)
        return Informer(self.cluster, where, select=select, chance=self.chance, on_change=on_change)

    @property
    def informers(self) -> Mapping[str, Informer]:
        """Return the informers of jobs by the plural of their kind, for other controllers."""
        return self._jobs

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._jobs.values():
                group.create_task(informer.run())
            for informer in (*self._jobs.values(), self.pods):
                await informer.has_synced.wait()
            group.create_task(self._last_lines.run())
            group.create_task(self._log_activity.run())
            group.create_task(self._workloads.run())
            synced.set()
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def reconcile(self, key: JobKey) -> None:
        """Decide about one job, apply the plan, and schedule the next reconciliation."""
        plural, namespace, name = key
        job = self._jobs[plural].cache.get((namespace, name))
        if job is None or is_deleting(job):
            self._forget(key)
            return
        kind = registry.kind_of(job)
        view = await self._look(key, kind, job) if kind is not None else None
        if kind is None or view is None:
            return
        # One moment for all: what was not tried because it is not due must not count as accepted.
        now = self.clock.now()
        plan = self._decide(key, view, now)
        refusal = self._refusals.of(key, view.generation)
        is_due = refusal is None or now >= refusal.until
        try:
            hands = self._actuator(is_prepared=refusal is not None and refusal.is_prepared)
            applied = await apply_plan(hands, collection_of(kind), job, view=view, plan=plan)
            if is_due:
                await self._sync_workload(key, applied, view, plan)
        except NotFound:
            # The job was deleted meanwhile; its pods are deleted with it.
            return
        except PacelineError as error:
            if error.retry:
                raise
            await self._hinder(key, job, error, view=view)
            return
        self._observe(plural, applied)
        if applied.refusal is not None:
            await self._hinder(key, job, applied.refusal, view=view, is_prepared=True)
        elif refusal is not None and is_due:
            # Accepted this time; the next status no longer shows the rejection.
            self._refusals.forget(key)
            self.queue.add(key)
        self._ask_logs(key, view, plan)
        self._forget_departed(key, plan)
        if plan.wake_at is not None:
            pause = (plan.wake_at - self.clock.now()).total_seconds()
            self.queue.add_after(key, max(pause, 0.0))

    def _actuator(self, *, is_prepared: bool) -> Actuator:
        return Actuator(
            cluster=self.cluster,
            recorder=self.recorder,
            program=self.program,
            is_prepared=is_prepared,
            native_groups=self.native_groups,
            requires_groups=self.requires_queue,
        )

    def _starts_singly(self, job: Object, view: JobSnapshot) -> bool:
        """Return whether no scheduler guarantees that all pods of the job start, or none."""
        if self.schedules_gangs or has_gang_scheduler(job, view.gang):
            return False
        return group_kind(view.gang, view.naming, self.native_groups) is None

    def _forget(self, key: JobKey) -> None:
        """Drop everything that is remembered of a job that is gone."""
        self._last_lines.forget(key)
        self._log_activity.forget(key)
        self._readings.forget(key)
        self._promised.pop(key, None)
        self._refusals.forget(key)
        self._departed.pop(key, None)

    def _observe(self, plural: str, applied: Applied) -> None:
        """Put what was written into the caches, so that the next reconciliation sees it."""
        self._jobs[plural].observe(applied.job)
        for pod in applied.created:
            self.pods.observe(pod)

    async def _sync_workload(self, key: JobKey, applied: Applied, view: JobSnapshot, plan: Plan) -> None:
        """Bring Kueue's Workload of a queued job up to date, and look again for Kueue where there is none."""
        if view.queueing is None:
            return
        job = applied.job
        workload_view = WorkloadView(
            queue=view.queueing.queue,
            gang=view.gang,
            status=plan.status,
            workload=None,
            is_on_hold=view.is_paused or registry.is_suspended(job),
            # The Workload may be evicted since the view was made: pods of this very pass hold its quota, too.
            has_live_pods=bool(applied.created) or self._has_live_pods(job),
        )
        await self._workloads.sync(job, view.naming, workload_view)
        if not self._workloads.is_found and not plan.status.phase.is_final:
            # A change of a Workload wakes its job; nothing tells when Kueue is installed.
            self.queue.add_after(key, AGAIN.total_seconds())

    def _ask_logs(self, key: JobKey, view: JobSnapshot, plan: Plan) -> None:
        """Request the logs that the next decision needs, and drop what this one used."""
        self._last_lines.forget(key, view.last_lines)
        if plan.read_log is not None:
            self._last_lines.ask(key, plan.read_log)
        self._log_activity.ask(key, plan.check_logs)
        if plan.status.phase is not Phase.RUNNING:
            self._log_activity.forget(key)

    async def _look(self, key: JobKey, kind: JobKind, job: Object) -> JobSnapshot | None:
        """Return a snapshot of a job; None if it is invalid or unreadable, which is reported."""
        try:
            reading = self._readings.of(key, job)
            ported = self._with_ports(key, kind, job, reading=reading)
            logs = LogsRead(last_lines=self._last_lines.of(key), activity=self._log_activity.of(key))
            queueing = await self._workloads.state_of(job)
            pods = self.pods.owned(uid_of(job))
            view = look(ported, reading, pods, logs=logs, queueing=queueing)
            view = replace(view, gang=grouped(view.gang, view.naming, self.native_groups))
            departed = dict(self._departed.get(key, {}))
            view = replace(view, departed=departed, starts_singly=self._starts_singly(job, view))
            return await self._with_claims(await self._with_nodes(view), pods) if self.reads_nodes else view
        except Invalid as error:
            await self._refuse(collection_of(kind), job, error)
        except BadRequest as error:
            await self._say_unreadable(job, error)
        return None

    async def _with_nodes(self, view: JobSnapshot) -> JobSnapshot:
        """Return the snapshot with the nodes of pods that should have ended long ago; usually there are none."""
        now = self.clock.now()
        names = {pod.node for pod in view.ending_pods if pod.node and is_overdue(pod, now)}
        return replace(view, nodes={name: await self._node(name) for name in sorted(names)})

    async def _with_claims(self, view: JobSnapshot, pods: tuple[Object, ...]) -> JobSnapshot:
        """Return the snapshot with the claims for which the first pending pod waits: the scheduler does not name them.

        Our own scheduler does, on a cluster that does not lose nodes.
        """
        first = next((pod for pod in view.pods if UNBOUND in pod.message), None)
        if first is None:
            return view
        (manifest,) = (pod for pod in pods if uid_of(pod) == first.uid)
        claims = [await self._unbound_claim(namespace_of(manifest), claim.name) for claim in claims_of(manifest)]
        message = "; ".join([first.message.rstrip("."), *filter(None, claims)])
        explained = replace(first, message=message)
        return replace(view, pods=tuple(explained if pod is first else pod for pod in view.pods))

    async def _unbound_claim(self, namespace: str, name: str) -> str:
        try:
            return unbound_claim(await self.cluster.get(CLAIMS, namespace, name))
        except (NotFound, Forbidden):
            return ""

    async def _node(self, name: str) -> NodeSnapshot:
        try:
            return node_snapshot(await self.cluster.get(NODES, "", name))
        except NotFound:
            return NodeSnapshot(is_gone=True)
        except Forbidden:
            return NodeSnapshot(is_known=False)

    def _forget_departed(self, key: JobKey, plan: Plan) -> None:
        """Drop the disruptions of pods that the status does not refer to any more."""
        uids = {record.uid for record in plan.status.replicas}
        if departed := {uid: disruption for uid, disruption in self._departed.pop(key, {}).items() if uid in uids}:
            self._departed[key] = departed

    async def _say_unreadable(self, job: Object, error: BadRequest) -> None:
        """Record an event about a malformed field, which its author must correct; running pods continue."""
        await self.recorder.record(job, reasons.UNREADABLE, message=str(error), is_warning=True)

    def _decide(self, key: JobKey, view: JobSnapshot, now: datetime) -> Plan:
        """Return the plan; its status shows what the cluster rejected of the last one, which is tried again later."""
        plan = decide(view, now)
        refusal = self._refusals.of(key, view.generation)
        is_queued = view.queueing is not None and not view.queueing.is_admitted and not plan.status.phase.is_final
        if refusal is None or not (plan.create or plan.auxiliary_pods or is_queued):
            return plan
        plan = replace(plan, status=hindered(plan.status, refusal.message, now))
        if now >= refusal.until:
            return plan
        return replace(plan, create=(), auxiliary_pods=()).waking(refusal.until)

    async def _hinder(
        self, key: JobKey, job: Object, error: PacelineError, *, view: JobSnapshot, is_prepared: bool = False
    ) -> None:
        """Remember what the cluster rejected, and record it if it is new; the next status shows it."""
        message, now = str(error), self.clock.now()
        is_new = self._refusals.add(key, message, generation=view.generation, now=now, is_prepared=is_prepared)
        if is_new:
            log.warning("the cluster rejects an object of a job", extra={"key": key, "error": message})
            await self.recorder.record(job, reasons.REFUSED, message=message, is_warning=True)
        self.queue.add(key)

    def _with_ports(self, key: JobKey, kind: JobKind, job: Object, *, reading: Reading) -> Object:
        """Return the job with its ports set; the next status records them before a pod is created."""
        ports = _written(job)
        usual = {} if kind.ports is no_ports else reading.usual_ports
        missing = tuple(name for name in usual if name not in ports)
        if not missing:
            self._promised.pop(key, None)
            return job
        # Allocated ports stay, and only an elastic job may need more of them.
        if ports and "elastic" not in job["spec"]:
            raise BadRequest(f"status is malformed: status.ports lacks {', '.join(missing)}")
        # Keep the allocation if the write failed, since it may have succeeded nevertheless.
        if not self._promised.get(key, {}).keys() >= set(missing):
            if self.shares_network or registry.is_on_host(job):
                taken = self._taken() | self.in_use()
                chosen = allocate_ports(missing, taken, start=self.ports.start, size=len(self.ports))
            else:
                chosen = {name: usual[name] for name in missing}
            self._promised[key] = chosen
        chosen = {name: self._promised[key][name] for name in missing}
        return {**job, "status": {**(job.get("status") or {}), "ports": {**ports, **chosen}}}

    def _taken(self) -> frozenset[int]:
        """Return the ports of all jobs that may still have processes."""
        taken: set[int] = set()
        for key in tuple(self._holders):
            plural, *name = key
            job = self._jobs[plural].cache.get((name[0], name[1]))
            status = (job or {}).get("status") or {}
            if job is None or (status.get("phase") in FINAL and not self._has_live_pods(job)):
                # A job that starts again is added again.
                self._holders.discard(key)
            else:
                taken.update(_ports(status))
        return frozenset(taken.union(*(chosen.values() for chosen in self._promised.values())))

    def _has_live_pods(self, job: Object) -> bool:
        pods = self.pods.owned(uid_of(job))
        return any((pod.get("status") or {}).get("phase") in UNDER_WAY for pod in pods)

    async def _refuse(self, where: Collection, job: Object, error: Invalid) -> None:
        """Write into the status why the job is invalid; its author must change it."""
        try:
            status = JobStatus.from_wire(job.get("status") or {})
        except BadRequest as unread:
            await self._say_unreadable(job, unread)
            return
        generation = int(job["metadata"].get("generation", 1))
        new_status = refused(status, str(error), self.clock.now()).but(observed_generation=generation)
        if new_status == status:
            return
        written = await self.cluster.replace(where, {**job, "status": new_status.to_wire()}, subresource="status")
        self._jobs[where.plural].observe(written)
        await self.recorder.record(written, reasons.INVALID, message=str(error), is_warning=True)

    def _job_changed(self, plural: str) -> Handler:
        def changed(_change: Change, old: Object | None, new: Object | None) -> None:
            key = (plural, *key_of(new or old or {}))
            if new is not None and (new.get("status") or {}).get("ports"):
                self._holders.add(key)
            if old is not None and new is not None and _is_progress(old, new):
                self.queue.add_after(key, START_TOGETHER_SECONDS)
            else:
                self.queue.add(key)

        return changed

    def _workload_changed(self, kind: str, namespace: str, name: str) -> None:
        plural = self._plurals.get((f"{GROUP}/{VERSION}", kind))
        if plural is not None:
            self.queue.add((plural, namespace, name))

    def _pod_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        owner = controller_of(pod)
        if owner is None:
            return
        plural = self._plurals.get((str(owner.get("apiVersion")), str(owner.get("kind"))))
        if plural is not None:
            key = (plural, key_of(pod)[0], str(owner["name"]))
            if new is not None:
                self._holders.add(key)
            elif disruption := disruption_of(pod):
                self._departed.setdefault(key, {})[uid_of(pod)] = disruption
            is_under_way = new is not None and (new.get("status") or {}).get("phase") in UNDER_WAY
            self.queue.add_after(key, START_TOGETHER_SECONDS if is_under_way else END_TOGETHER_SECONDS)


@untrusted
def _written(job: Object) -> Mapping[str, int]:
    """Return the ports in the status of a job; raise BadRequest if they are malformed."""
    return counts((job.get("status") or {}).get("ports"))


def _ports(status: Object) -> Iterable[int]:
    """Return the ports of a job, ignoring malformed ones."""
    ports = status.get("ports")
    return (port for port in ports.values() if isinstance(port, int)) if isinstance(ports, dict) else ()


def _is_progress(old: Object, new: Object) -> bool:
    """Return whether only the status of a job has changed, and not its phase; most often we wrote it."""
    old_metadata, new_metadata = old["metadata"], new["metadata"]
    names = ("uid", "generation", "annotations", "deletionTimestamp")
    if "generation" not in new_metadata or any(old_metadata.get(name) != new_metadata.get(name) for name in names):
        return False
    return bool((old.get("status") or {}).get("phase") == (new.get("status") or {}).get("phase"))
