"""The controller of applications: each change of one becomes the next revision, a job that does not change."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from paceline.apimachinery.meta import (
    Object,
    annotations_of,
    controller_of,
    is_deleting,
    key_of,
    name_of,
    namespace_of,
    owned_by,
    uid_of,
)
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer, running
from paceline.client.interface import CLAIMS, CONFIG_MAPS, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.app.snapshot import leader_log, look, record_spec
from paceline.controllers.job.pod_logs import JobKey, LastLines
from paceline.effects import Clock, Random
from paceline.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound
from paceline.kinds import registry
from paceline.kinds.apps import expand, job_record, training_app
from paceline.kinds.interactive import tensorboard
from paceline.kinds.kind_types import (
    API_VERSION,
    GROUP,
    OWN_API_VERSION,
    OWN_GROUP,
    SERVICE_API_VERSION,
    SERVICE_GROUP,
    VERSION,
)
from paceline.model import reasons, well_known_labels
from paceline.model.app_status import AppStatus
from paceline.model.log_metrics import metrics_in
from paceline.plan.app.decide import AppPlan, AppSeen, Note, RevisionJob, decide, refused
from paceline.plan.app.manifests import (
    Owner,
    app_board_manifest,
    claim_change,
    claim_manifest,
    cluster_manifest,
    files_manifest,
    owned_job,
    record_manifest,
)

APPS = Collection(group=OWN_GROUP, version=VERSION, plural=training_app.PLURAL)
RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural=job_record.PLURAL)
BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural=tensorboard.PLURAL)
PLURALS = {kind.kind: kind.plural for kind in registry.KINDS}
WORKERS = 2
AGAIN_SECONDS = 30.0


def no_trainer(_name: str) -> Mapping[str, str]:
    """Ship no trainer."""
    return {}


@dataclass(slots=True, kw_only=True)
class Apps:
    """Follows applications, their records and their jobs; jobs are moved on elsewhere."""

    cluster: Cluster
    clock: Clock
    chance: Random
    recorder: Recorder
    # The one namespace that is looked after; all of them when it is empty.
    namespace: str = ""
    # Who follows the jobs, by the plural of their kind.
    jobs: Mapping[str, Informer]
    # Gives the files of a trainer that is shipped with Paceline.
    trainer: Callable[[str], Mapping[str, str]] = no_trainer
    queue: WorkQueue[JobKey] = field(init=False)
    _apps: Informer = field(init=False)
    _records: Informer = field(init=False)
    _boards: Informer = field(init=False)
    _last_lines: LastLines = field(init=False)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="apps")
        here, ours = Select(namespace=self.namespace), Select(namespace=self.namespace, labels=well_known_labels.APP)
        self._apps, self._records, self._boards = (
            Informer(self.cluster, where, select=select, chance=self.chance, on_change=hear)
            for where, select, hear in (
                (APPS, here, self._app_changed),
                (RECORDS, ours, self._owned_changed),
                (BOARDS, ours, self._owned_changed),
            )
        )
        for informer in self.jobs.values():
            informer.cache.listen(self._owned_changed)
        self._last_lines = LastLines(cluster=self.cluster, chance=self.chance, on_read=self.queue.add)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        informers = (self._apps, self._records, self._boards)
        async with running(*informers, shared=self.jobs.values(), synced=synced) as group:
            group.create_task(self._last_lines.run())
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def reconcile(self, key: JobKey) -> None:
        """Look at one application, decide, carry out."""
        app = self._apps.cache.get(key[1:])
        if app is None or is_deleting(app):
            self._last_lines.forget(key)
            return
        try:
            if faults := registry.app_faults(app):
                await self._refuse(app, str(Invalid(faults)))
                return
            view = self._look(key, app)
        except BadRequest as error:
            # Whoever wrote it must mend it; what runs goes on.
            await self.recorder.record(app, reasons.UNREADABLE, message=str(error), is_warning=True)
            return
        plan = decide(view, self.clock.now())
        try:
            await self._carry_out(app, view=view, plan=plan)
        except (Invalid, Forbidden, NotFound) as error:
            # NotFound: the application went while the plan was made, and all of it goes with it; or a kind did.
            await self._refuse(self._apps.cache.get(key[1:]) or app, str(error))
            # What stands in the way may go without a word.
            self.queue.add_after(key, AGAIN_SECONDS)
            return
        self._last_lines.forget(key)
        if plan.read is not None and (log := leader_log(plan.read)) is not None:
            self._last_lines.ask(key, log)

    def _look(self, key: JobKey, app: Object) -> AppSeen:
        uid = uid_of(app)
        jobs = [job for informer in self.jobs.values() for job in informer.owned(uid)]
        boards = {name_of(tensorboard): tensorboard for tensorboard in self._boards.owned(uid)}
        board = boards.get(expand.stem_of_app(name_of(app))) or {}
        view = look(app, self._records.owned(uid), jobs)
        lines = self._last_lines.of(key)
        metrics = {
            job.revision: metrics_in(lines[log.pod])
            for job in view.jobs
            if job.status.phase.is_final and (log := leader_log(job)) is not None and log.pod in lines
        }
        # Nobody is left to be asked.
        mute = [job for job in view.jobs if job.status.phase.is_final and leader_log(job) is None]
        silent: dict[int, Mapping[str, str]] = {job.revision: {} for job in mute}
        url = str((board.get("status") or {}).get("url") or "")
        return replace(view, url=url, metrics={**silent, **metrics})

    async def _carry_out(self, app: Object, *, view: AppSeen, plan: AppPlan) -> None:
        """Write, unmake, make, tell; every step is safe to repeat."""
        written = await self._write(app, plan.status)
        owner = Owner(
            reference=owned_by(app),
            namespace=namespace_of(app),
            stem=expand.stem_of_app(name_of(app)),
            asked_by=view.asked_by,
        )
        for job in plan.pause:
            await self._set_paused(app, job, is_paused=True)
        for job in plan.delete:
            await self._delete(app, job)
        for job in plan.resume:
            await self._set_paused(app, job, is_paused=False)
        if plan.makes_record:
            spec = record_spec(app, plan.status.revision, digest=view.digest)
            manifest = record_manifest(owner, OWN_API_VERSION, spec)
            self._records.observe(await self._make(RECORDS, manifest, app))
        if plan.makes_job:
            await self._begin(app, owner, revision=plan.status.revision)
        if plan.shows is not None:
            await self._show_cluster(owner, plan.shows)
        for note in plan.notes:
            await self._note(app, note)
        for event in plan.events:
            await self.recorder.record(written, event.reason, message=event.message, is_warning=event.is_warning)

    async def _begin(self, app: Object, owner: Owner, *, revision: int) -> None:
        """Make the job of a revision, and before it what it needs."""
        parts = expand.expand_app(app, revision)
        release = expand.release_of(app, revision)
        for name, spec in parts.claims.items():
            current = await self._make(CLAIMS, claim_manifest(owner, name, spec), app)
            if change := claim_change(current, spec):
                message = f"claim {name} is made already, and {change} cannot change; keep persistence.pvc as it was"
                raise Forbidden(f"{message}, or uninstall {name_of(app)} and install it anew: files on volumes stay")
        if parts.trainer:
            await self._make(CONFIG_MAPS, files_manifest(owner, release.trainer, self.trainer(parts.trainer)), app)
        for name, spec in parts.boards.items():
            await self._make_board(app, app_board_manifest(owner, SERVICE_API_VERSION, name, spec))
        record = self._records.cache[namespace_of(app), release.job]
        job = owned_job(owner, API_VERSION, record["spec"])
        informer = self.jobs[PLURALS[str(job["kind"])]]
        informer.observe(await self._make(_where(str(job["kind"])), job, app))

    async def _show_cluster(self, owner: Owner, job: RevisionJob) -> None:
        """Put what members are told of each other where people look for it; once per job, whose ports stay."""
        reference = {"apiVersion": API_VERSION, "kind": job.kind, "name": job.name, "uid": job.uid, "controller": True}
        manifest = cluster_manifest(owner.namespace, owner.stem, job.cluster, owner=reference)
        try:
            await self.cluster.create(CONFIG_MAPS, manifest)
        except AlreadyExists:
            return

    async def _make_board(self, app: Object, manifest: Object) -> None:
        """Make the TensorBoard of an application, or have it show what the newest revision wants."""
        current = await self._make(BOARDS, manifest, app)
        if current["spec"] != manifest["spec"]:
            current = await self.cluster.replace(BOARDS, {**current, "spec": manifest["spec"]})
        self._boards.observe(current)

    async def _make(self, where: Collection, manifest: Object, app: Object) -> Object:
        """Make an object of the application's, or find it made; Invalid when somebody else has the name."""
        try:
            return await self.cluster.create(where, manifest)
        except AlreadyExists:
            current = await self.cluster.get(where, *key_of(manifest))
            if (controller_of(current) or {}).get("uid") == uid_of(app):
                return current
            if is_deleting(current):
                # Of an application that had this name before.
                raise Conflict(f"{manifest['kind']} {name_of(manifest)} is going; looking again") from None
            subject = f"{str(manifest['kind']).lower()} {name_of(manifest)}"
            message = (
                f"{subject} is there and belongs to somebody else; delete it, or give the application another name"
            )
            raise Forbidden(message) from None

    async def _write(self, app: Object, status: AppStatus) -> Object:
        wire = status.to_wire()
        if wire == app.get("status"):
            return app
        written = await self.cluster.replace(APPS, {**app, "status": wire}, subresource="status")
        self._apps.observe(written)
        return written

    async def _set_paused(self, app: Object, job: RevisionJob, *, is_paused: bool) -> None:
        # The person who paused the application is recorded on the job, too.
        asked_by = annotations_of(app).get(well_known_labels.ASKED_BY)
        metadata = {"uid": job.uid, **({"annotations": {well_known_labels.ASKED_BY: asked_by}} if asked_by else {})}
        change = {"metadata": metadata, "spec": {"runMode": {"pause": {"enabled": is_paused}}}}
        plural = PLURALS[job.kind]
        try:
            self.jobs[plural].observe(await self.cluster.patch(_where(job.kind), (namespace_of(app), job.name), change))
        except (NotFound, Conflict):
            # It went, or another has its name: the next look sees which.
            return

    async def _delete(self, app: Object, job: RevisionJob) -> None:
        options = {"propagationPolicy": "Background", "preconditions": {"uid": job.uid}}
        try:
            await self.cluster.delete(_where(job.kind), (namespace_of(app), job.name), options)
        except (NotFound, Conflict):
            return

    async def _note(self, app: Object, note: Note) -> None:
        record = self._records.cache.get((namespace_of(app), note.record))
        if record is None:
            return
        try:
            written = await self.cluster.replace(
                RECORDS, {**record, "status": note.status.to_wire()}, subresource="status"
            )
        except NotFound:
            return
        self._records.observe(written)

    async def _refuse(self, app: Object, message: str) -> None:
        """Write into the status why the application is rejected; the running revision goes on."""
        status = AppStatus.from_wire(app.get("status") or {})
        generation = int(app["metadata"].get("generation", 1))
        new_status = refused(status, message).but(observed_generation=generation)
        if new_status != status:
            try:
                written = await self._write(app, new_status)
            except NotFound:
                return
            await self.recorder.record(written, reasons.REFUSED, message=message, is_warning=True)

    def _app_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        self.queue.add((training_app.PLURAL, *key_of(new or old or {})))

    def _owned_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        owner = controller_of(obj) or {}
        if owner.get("kind") == training_app.KIND.kind:
            self.queue.add((training_app.PLURAL, namespace_of(obj), str(owner["name"])))


def _where(kind: str) -> Collection:
    return Collection(group=GROUP, version=VERSION, plural=PLURALS[kind])
