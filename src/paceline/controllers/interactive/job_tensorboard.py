"""The controller that gives jobs the TensorBoards they ask for."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.apimachinery.meta import (
    Object,
    controller_of,
    is_deleting,
    key_of,
    name_of,
    namespace_of,
    owned_by,
    revision_of,
    uid_of,
)
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Handler, Informer, running
from paceline.client.interface import Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.job.pod_logs import JobKey
from paceline.controllers.refusals import AGAIN, Refusals
from paceline.effects import Clock, Random
from paceline.errors import AlreadyExists, Forbidden, Invalid, NotFound
from paceline.kinds import registry
from paceline.kinds.interactive import tensorboard
from paceline.kinds.kind_types import GROUP, SERVICE_API_VERSION, SERVICE_GROUP, VERSION
from paceline.model import reasons
from paceline.model.interactive import ServiceStatus
from paceline.model.job_status import JobStatus
from paceline.plan.interactive.job_tensorboard import BoardSeen, board_manifest, decide, refused

BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural=tensorboard.PLURAL)
WORKERS = 2


@dataclass(slots=True, kw_only=True)
class JobTensorBoards:
    """Follows the jobs that may have a TensorBoard, and all TensorBoards; jobs are moved on elsewhere."""

    cluster: Cluster
    clock: Clock
    chance: Random
    recorder: Recorder
    # The one namespace that is looked after; all of them when it is empty.
    namespace: str = ""
    # Who follows the jobs, by the plural of their kind.
    jobs: Mapping[str, Informer]
    queue: WorkQueue[JobKey] = field(init=False)
    _plurals: dict[str, str] = field(init=False)
    _boards: Informer = field(init=False)
    # Why the cluster rejected the TensorBoard of a job.
    _refusals: Refusals[JobKey] = field(init=False, default_factory=Refusals)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="job-tensorboards")
        self._plurals = {kind.kind: kind.plural for kind in registry.KINDS if registry.may_have_tensorboard(kind)}
        for plural in self._plurals.values():
            self.jobs[plural].cache.listen(self._job_changed(plural))
        self._boards = Informer(
            self.cluster,
            BOARDS,
            select=Select(namespace=self.namespace),
            chance=self.chance,
            on_change=self._board_changed,
        )

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        jobs = [self.jobs[plural] for plural in self._plurals.values()]
        async with running(self._boards, shared=jobs, synced=synced):
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def reconcile(self, key: JobKey) -> None:
        """Make the TensorBoard of one job, and say on the job how it is."""
        plural, namespace, name = key
        job = self.jobs[plural].cache.get((namespace, name))
        spec = None if job is None or is_deleting(job) else _asked(job)
        if job is None or spec is None:
            self._refusals.forget(key)
            return
        view = self._look(job)
        plan = decide(view)
        fault = await self._try_make(key, job, board_manifest(view, spec, owner=owned_by(job))) if plan.makes else ""
        status = dict(refused(view, fault) if fault else plan.status)
        if (job.get("status") or {}).get("tensorboard") == status:
            return
        try:
            await self._write(plural, job, status)
        except NotFound:
            # The job has gone, and its TensorBoard goes with it.
            return
        if fault:
            await self.recorder.record(job, reasons.TENSORBOARD_REFUSED, message=fault, is_warning=True)

    def _look(self, job: Object) -> BoardSeen:
        board = next(iter(self._boards.owned(uid_of(job))), None)
        return BoardSeen(
            name=registry.stem_of(job),
            namespace=namespace_of(job),
            api_version=SERVICE_API_VERSION,
            is_over=JobStatus.from_wire(job.get("status") or {}).phase.is_final,
            uid=uid_of(board) if board else "",
            status=ServiceStatus.from_wire((board or {}).get("status") or {}),
        )

    async def _write(self, plural: str, job: Object, status: Object) -> None:
        where = Collection(group=GROUP, version=VERSION, plural=plural)
        # The rest of the status is another controller's; the revision keeps both from undoing each other's work.
        patch = {"metadata": {"resourceVersion": revision_of(job)}, "status": {"tensorboard": status}}
        self.jobs[plural].observe(await self.cluster.patch(where, key_of(job), patch, subresource="status"))

    async def _try_make(self, key: JobKey, job: Object, manifest: Object) -> str:
        """Make a TensorBoard, again only after a while; give the reason why it cannot be made, if there is one."""
        now, generation = self.clock.now(), int(job["metadata"].get("generation", 1))
        refusal = self._refusals.of(key, generation)
        if refusal is not None and now < refusal.until:
            return refusal.message
        fault = await self._make(manifest)
        if not fault:
            self._refusals.forget(key)
            return ""
        self._refusals.add(key, fault, generation=generation, now=now)
        self.queue.add_after(key, AGAIN.total_seconds())
        current = self._refusals.of(key, generation)
        return current.message if current is not None else fault

    async def _make(self, manifest: Object) -> str:
        """Make a TensorBoard; give the reason why it cannot be made, if there is one."""
        try:
            self._boards.observe(await self.cluster.create(BOARDS, manifest))
        except AlreadyExists:
            # Made a moment ago: it is looked at when it is heard of.
            return ""
        except (Invalid, Forbidden) as error:
            return f"TensorBoard {name_of(manifest)} cannot be made: {error}"
        return ""

    def _job_changed(self, plural: str) -> Handler:
        def changed(_change: Change, old: Object | None, new: Object | None) -> None:
            self.queue.add((plural, *key_of(new or old or {})))

        return changed

    def _board_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        board = new or old or {}
        owner = controller_of(board) or {}
        plural = self._plurals.get(str(owner.get("kind")))
        if plural is not None:
            self.queue.add((plural, namespace_of(board), str(owner["name"])))


def _asked(job: Object) -> Object | None:
    """Return the TensorBoard that a job asks for; none for a job that is refused."""
    # Most ask for none, and looking for faults takes longer than that.
    spec = registry.tensorboard_of(job)
    return None if spec is None or registry.faults(job) else spec
