"""Kueue's side of queued jobs: follows Workloads and ResourceFlavors, and writes the Workload of each job."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from paceline.apimachinery.meta import Object, controller_of, key_of, labels_of, namespace_of, owned_by, uid_of
from paceline.client.informer import Informer
from paceline.client.interface import PRIORITY_CLASSES, Change, Cluster, Collection, Select
from paceline.effects import Clock, Random
from paceline.errors import AlreadyExists, Conflict, Forbidden, HostError, NotFound
from paceline.kinds import registry
from paceline.model.gang import JobNaming
from paceline.model.well_known_labels import OWNER_KIND
from paceline.plan.queueing.kueue import (
    GROUP,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    VERSIONS,
    QueueState,
    WorkloadPlan,
    WorkloadPriority,
    WorkloadView,
    decide_workload,
    queue_state,
    workload_manifest,
    workload_name,
)

log = logging.getLogger(__name__)

# How long to wait for the first list of Workloads, and until Kueue is looked for again.
SYNC_SECONDS, AGAIN_SECONDS = 5.0, 30.0
PRIORITIES = "workloadpriorityclasses"


@dataclass(kw_only=True)
class Workloads:
    """The Workloads of our jobs. Nothing of Kueue is read before a job names a queue."""

    cluster: Cluster
    clock: Clock
    chance: Random
    # Only this namespace; all of them if it is empty.
    namespace: str = ""
    # Whether a job waits whose queue does not exist, because the cluster does not have Kueue.
    is_required: bool = True
    # Called with the kind and key of a job whose Workload has changed.
    on_change: Callable[[str, str, str], None]
    # The version of Kueue's API; empty as long as it is not served.
    _version: str = field(init=False, default="")
    _looked_at: float | None = field(init=False, default=None)
    _is_served: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _lock: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _workloads: Informer | None = field(init=False, default=None)
    _flavors: Informer | None = field(init=False, default=None)

    @property
    def is_found(self) -> bool:
        """Whether Kueue's API was found when discovery last asked for it."""
        return bool(self._version)

    async def run(self) -> None:
        """Follow Workloads and flavors until cancelled, from the first queued job on."""
        await self._is_served.wait()
        async with asyncio.TaskGroup() as group:
            for informer in (self._workloads, self._flavors):
                if informer is not None:
                    group.create_task(informer.run())

    async def state_of(self, job: Object) -> QueueState | None:
        """Return the state of a job in its queue; None if it has no queue."""
        queue = labels_of(job).get(QUEUE_LABEL, "")
        if not queue:
            return None
        if not await self._find():
            hint = f"install Kueue, or remove the label {QUEUE_LABEL}"
            message = f"queue {queue}: this cluster does not have Kueue ({GROUP} is not served); {hint}"
            return QueueState(queue=queue, message=message) if self.is_required else None
        workloads, flavors = self._workloads, self._flavors
        if workloads is None or flavors is None or not (workloads.has_synced.is_set() and flavors.has_synced.is_set()):
            message = "the Workloads and ResourceFlavors of Kueue cannot be read; may the controller list them?"
            return QueueState(queue=queue, message=f"queue {queue}: {message}")
        workload = workloads.cache.get((namespace_of(job), workload_name(str(job["kind"]), registry.stem_of(job))))
        if workload is not None and (controller_of(workload) or {}).get("uid") != uid_of(job):
            workload = None
        state = queue_state(queue, workload, {name: flavor for (_, name), flavor in flavors.cache.items()})
        # A job suspended by a person says so, not that it left its queue.
        return replace(state, message="") if registry.is_suspended(job) else state

    async def sync(self, job: Object, naming: JobNaming, view: WorkloadView) -> None:
        """Bring the Workload of a job up to date, after the job's status was written."""
        if self._workloads is None or not self._workloads.has_synced.is_set():
            return
        name = workload_name(str(job["kind"]), naming.stem)
        workload = self._workloads.cache.get((naming.namespace, name))
        if workload is not None and (controller_of(workload) or {}).get("uid") != uid_of(job):
            raise HostError(f"a Workload {name} exists that does not belong to this job; delete it or rename the job")
        view = replace(view, workload=workload)
        plan = decide_workload(view, self.clock.now())
        if plan.creates:
            await self._create(job, naming, view)
        elif workload is not None:
            await self._change(workload, plan)

    async def _create(self, job: Object, naming: JobNaming, view: WorkloadView) -> None:
        priority = await self._priority(job, view)
        manifest = workload_manifest(naming, view, version=self._version, priority=priority, owner=owned_by(job))
        try:
            self._observe(await self.cluster.create(self._where("workloads"), manifest))
        except AlreadyExists:
            # The informer will receive it in a moment, and requeue the job.
            return

    async def _change(self, workload: Object, plan: WorkloadPlan) -> None:
        where, key = self._where("workloads"), key_of(workload)
        try:
            if plan.deletes:
                await self.cluster.delete(where, key, {"preconditions": {"uid": uid_of(workload)}})
            elif plan.is_active is not None:
                self._observe(await self.cluster.patch(where, key, {"spec": {"active": plan.is_active}}))
            elif plan.status is not None:
                changed = {**workload, "status": plan.status}
                self._observe(await self.cluster.replace(where, changed, subresource="status"))
        except NotFound:
            return
        except Conflict:
            if not plan.deletes:
                raise

    async def _priority(self, job: Object, view: WorkloadView) -> WorkloadPriority | None:
        """Return the priority of a job: of its WorkloadPriorityClass, else of its pods' PriorityClass."""
        workload_class = labels_of(job).get(PRIORITY_LABEL, "")
        pod_class = str(view.gang.members[0].template["spec"].get("priorityClassName") or "")
        if not workload_class and not pod_class:
            return None
        where = self._where(PRIORITIES, namespaced=False) if workload_class else PRIORITY_CLASSES
        try:
            value = (await self.cluster.get(where, "", workload_class or pod_class)).get("value")
        except (NotFound, Forbidden) as error:
            kind = "WorkloadPriorityClass" if workload_class else "PriorityClass"
            raise HostError(f"{kind} {workload_class or pod_class} of the job cannot be read: {error}") from error
        return WorkloadPriority(
            name=workload_class or pod_class, value=int(value or 0), is_of_kueue=bool(workload_class)
        )

    async def _find(self) -> bool:
        """Return whether Kueue is served; look for it at most every AGAIN_SECONDS, and wait for the first list."""
        async with self._lock:
            now = self.clock.monotonic()
            if not self._version and (self._looked_at is None or now - self._looked_at >= AGAIN_SECONDS):
                self._looked_at = now
                self._version = await served_version(self.cluster, GROUP, VERSIONS)
                if self._version:
                    self._open()
                    await self._wait_for_lists()
        return bool(self._version)

    def _open(self) -> None:
        mine = Select(namespace=self.namespace, labels=OWNER_KIND)
        self._workloads = Informer(
            self.cluster, self._where("workloads"), select=mine, chance=self.chance, on_change=self._changed
        )
        flavors = self._where("resourceflavors", namespaced=False)
        self._flavors = Informer(self.cluster, flavors, chance=self.chance)
        self._is_served.set()

    async def _wait_for_lists(self) -> None:
        try:
            async with asyncio.timeout(SYNC_SECONDS):
                for informer in (self._workloads, self._flavors):
                    if informer is not None:
                        await informer.has_synced.wait()
        except TimeoutError:
            log.warning("Kueue's objects cannot be listed yet")

    def _changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        workload = new or old or {}
        owner = controller_of(workload)
        if owner is not None:
            self.on_change(str(owner.get("kind")), namespace_of(workload), str(owner.get("name")))

    def _observe(self, workload: Object) -> None:
        if self._workloads is not None:
            self._workloads.observe(workload)

    def _where(self, plural: str, *, namespaced: bool = True) -> Collection:
        return Collection(group=GROUP, version=self._version, plural=plural, namespaced=namespaced)


async def served_version(cluster: Cluster, group: str, versions: tuple[str, ...]) -> str:
    """Return the first of these versions of an API group that the cluster serves; empty if it serves none."""
    try:
        async with aclosing(cluster.stream(f"/apis/{group}", {})) as parts:
            answer: Mapping[str, object] = json.loads(b"".join([part async for part in parts]))
    except NotFound:
        return ""
    listed = answer.get("versions")
    served = {str(entry.get("version")) for entry in listed} if isinstance(listed, list) else set()
    return next((version for version in versions if version in served), "")
