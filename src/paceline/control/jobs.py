"""The job controller: one loop for every job kind, because a kind is gone once it is expanded."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paceline.client.cache import Handler
from paceline.client.cluster import PODS, Change, Cluster, Collection
from paceline.client.events import Recorder
from paceline.client.informer import Informer
from paceline.client.queue import WorkQueue, run
from paceline.control.carry_out import Hands, carry_out
from paceline.control.last_lines import JobKey, LastLines
from paceline.control.look import look
from paceline.errors import Invalid, Missing
from paceline.kinds import catalog
from paceline.kinds.kind import GROUP, VERSION, JobKind, no_ports
from paceline.objects.meta import Object, controller_of, is_deleting, key_of, uid_of
from paceline.objects.status import JobStatus
from paceline.plan.conditions import refused
from paceline.plan.decide import decide
from paceline.plan.ports import hand_out
from paceline.world import Chance, Clock

log = logging.getLogger(__name__)

PORTS = range(23_500, 31_500)
WORKERS = 8


def collection_of(kind: JobKind) -> Collection:
    """Say where the jobs of a kind lie."""
    return Collection(group=GROUP, version=VERSION, plural=kind.plural)


@dataclass(slots=True, kw_only=True)
class Jobs:
    """Follows all jobs and their pods, and moves each job on by one plan at a time."""

    cluster: Cluster
    clock: Clock
    chance: Chance
    recorder: Recorder
    # Whether members share one network, so that every job needs ports of its own (design: hostNetwork, no privilege).
    shares_network: bool
    # Which ports are handed out then, except those that other programs listen on.
    ports: range = PORTS
    in_use: Callable[[], frozenset[int]] = frozenset
    # What members need who start processes in each other; see `Hands.program`.
    program: Callable[[], Mapping[str, str]] = dict
    queue: WorkQueue[JobKey] = field(init=False)
    _plurals: dict[tuple[str, str], str] = field(init=False)
    _jobs: dict[str, Informer] = field(init=False)
    _pods: Informer = field(init=False)
    _last_lines: LastLines = field(init=False)
    _handing_out: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._plurals = {(f"{GROUP}/{VERSION}", kind.kind): kind.plural for kind in catalog.KINDS}
        self._jobs = {
            kind.plural: Informer(
                self.cluster, collection_of(kind), chance=self.chance, on_change=self._job_changed(kind.plural)
            )
            for kind in catalog.KINDS
        }
        self._pods = Informer(self.cluster, PODS, chance=self.chance, on_change=self._pod_changed)
        self._last_lines = LastLines(cluster=self.cluster, chance=self.chance, on_found=self.queue.add)

    @property
    def informers(self) -> Mapping[str, Informer]:
        """Give what follows the jobs, by the plural of their kind, for whoever looks at jobs too."""
        return self._jobs

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with asyncio.TaskGroup() as group:
            for informer in (*self._jobs.values(), self._pods):
                group.create_task(informer.run())
            for informer in (*self._jobs.values(), self._pods):
                await informer.has_synced.wait()
            group.create_task(self._last_lines.run())
            synced.set()
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def reconcile(self, key: JobKey) -> None:
        """Look at one job, decide, carry out, and say when to look again."""
        plural, namespace, name = key
        job = self._jobs[plural].cache.get((namespace, name))
        if job is None or is_deleting(job):
            self._last_lines.forget(key)
            return
        kind = catalog.kind_of(job)
        if kind is None:
            return
        where = collection_of(kind)
        hands = Hands(cluster=self.cluster, recorder=self.recorder, program=self.program)
        try:
            job = await self._with_ports(where, kind, job)
            seen = look(job, self._pods.owned(uid_of(job)), self._last_lines.of(key))
        except Invalid as error:
            await self._refuse(where, job, error)
            return
        plan = decide(seen, self.clock.now())
        try:
            done = await carry_out(hands, where, job, seen=seen, plan=plan)
        except Missing:
            # The job went while the plan was made; its pods go with it.
            return
        self._jobs[plural].observe(done.job)
        for pod in done.made:
            self._pods.observe(pod)
        self._last_lines.forget(key)
        if plan.read is not None:
            self._last_lines.ask(key, plan.read)
        if plan.wake_at is not None:
            pause = (plan.wake_at - self.clock.now()).total_seconds()
            self.queue.add_after(key, max(pause, 0.0))

    async def _with_ports(self, where: Collection, kind: JobKind, job: Object) -> Object:
        """Choose the job's ports before any member is made, and write them down first."""
        status = JobStatus.from_wire(job.get("status") or {})
        # Once chosen, ports stay, and only an elastic job may come to need more of them.
        if kind.ports is no_ports or (status.ports and "elastic" not in job["spec"]):
            return job
        usual = catalog.ports_of(job)
        missing = tuple(name for name in usual if name not in status.ports)
        if not missing:
            return job
        # One at a time: the next choice must see this one.
        async with self._handing_out:
            if self.shares_network or catalog.is_on_host(job):
                taken = self._taken() | self.in_use()
                chosen = hand_out(missing, taken, start=self.ports.start, size=len(self.ports))
            else:
                chosen = {name: usual[name] for name in missing}
            ports = {**status.ports, **chosen}
            written = await self.cluster.replace(
                where, {**job, "status": status.but(ports=ports).to_wire()}, subresource="status"
            )
            self._jobs[where.plural].observe(written)
        return written

    def _taken(self) -> frozenset[int]:
        """Collect the ports of all jobs that may still have processes."""
        taken: set[int] = set()
        for informer in self._jobs.values():
            for job in informer.cache.values():
                status = job.get("status") or {}
                if not JobStatus.from_wire(status).phase.is_final or self._has_live_pods(job):
                    taken.update((status.get("ports") or {}).values())
        return frozenset(taken)

    def _has_live_pods(self, job: Object) -> bool:
        pods = self._pods.owned(uid_of(job))
        return any((pod.get("status") or {}).get("phase") in ("Pending", "Running") for pod in pods)

    async def _refuse(self, where: Collection, job: Object, error: Invalid) -> None:
        """Say on the job itself what is wrong with it; its author must change it."""
        status = JobStatus.from_wire(job.get("status") or {})
        seen = int(job["metadata"].get("generation", 1))
        after = refused(status, str(error), self.clock.now()).but(observed_generation=seen)
        if after == status:
            return
        written = await self.cluster.replace(where, {**job, "status": after.to_wire()}, subresource="status")
        self._jobs[where.plural].observe(written)
        await self.recorder.record(written, "Invalid", message=str(error), is_warning=True)

    def _job_changed(self, plural: str) -> Handler:
        def changed(_change: Change, old: Object | None, new: Object | None) -> None:
            self.queue.add((plural, *key_of(new or old or {})))

        return changed

    def _pod_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        owner = controller_of(pod)
        if owner is None:
            return
        plural = self._plurals.get((str(owner.get("apiVersion")), str(owner.get("kind"))))
        if plural is not None:
            self.queue.add((plural, key_of(pod)[0], str(owner["name"])))
