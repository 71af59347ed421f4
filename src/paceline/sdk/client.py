"""A session with one cluster: submit manifests, look up jobs, and read and delete objects of any kind."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.scheme import no_faults
from paceline.client.interface import CLAIMS, EVENTS, PODS, VOLUMES, Change, Select
from paceline.errors import AlreadyExists, BadRequest, Fault, Invalid, NotFound, PacelineError
from paceline.presentation.actions import asked_by, rerun_job
from paceline.presentation.job_copy import next_name
from paceline.sdk import actions
from paceline.sdk.apps.app import APPS, VERSION, AppRef, find_app
from paceline.sdk.connection import ClusterConnection
from paceline.sdk.discovery import JOB_GROUP, ResourceKind
from paceline.sdk.history import job_records
from paceline.sdk.interactive import ServiceRef
from paceline.sdk.job import JobRef
from paceline.sdk.logs.event_mux import EventMux
from paceline.sdk.logs.sources import Changed, Listed, apply_change, watching
from paceline.sdk.reader import ObjectEvent, Reader
from paceline.sdk.submission.submit import Created, Document, FindFaults, ObjectCreator, checked, with_namespace

# Reads the objects of a file. It is an argument because importing the YAML reader slows down the start of commands.
ReadFile = Callable[[str], tuple[Document, ...]]


def read_no_file(path: str) -> tuple[Document, ...]:
    """Raise BadRequest: this session accepts objects only."""
    raise BadRequest(f"{path}: this session cannot read files; use paceline.connect")


class Session(Reader):
    """A reader that also submits jobs. Not thread-safe; close it after use."""

    def __init__(
        self,
        dial: ClusterConnection,
        namespace: str,
        *,
        read: ReadFile = read_no_file,
        find_claim_faults: FindFaults = no_faults,
    ) -> None:
        super().__init__(dial, namespace)
        self._read = read
        self._find_claim_faults = find_claim_faults

    def submit(self, manifest: str | Path | Mapping[str, Any]) -> JobRef:
        """Create all objects of a YAML file or dict and return the one job among them."""
        if isinstance(manifest, Mapping):
            documents: tuple[Document, ...] = (Document(object=checked(dict(manifest), "manifest"), place="manifest"),)
        else:
            documents = self._read(str(manifest))
        jobs = [created.job for created in self.create(documents) if created.job is not None]
        if len(jobs) != 1:
            raise BadRequest(f"{documents[0].place}: {len(jobs)} jobs were created, but one was expected")
        return jobs[0]

    def create(self, documents: tuple[Document, ...]) -> tuple[Created, ...]:
        """Create all objects, claims before jobs, or none of them; existing claims are reused."""
        return self._maker.create_all(self._placed(documents))

    def check_claims(self, documents: tuple[Document, ...]) -> None:
        """Raise Invalid if an object uses a claim that neither exists nor is among the objects."""
        self._maker.check_claims(self._placed(documents))

    def check(self, documents: tuple[Document, ...]) -> tuple[PacelineError, ...]:
        """Return why the cluster would reject the objects, without creating any of them."""
        return tuple(self._maker.check_all(self._placed(documents)))

    @property
    def _maker(self) -> ObjectCreator:
        return ObjectCreator(
            cluster=self.cluster, kinds=self.kinds, refer=self.ref, find_claim_faults=self._find_claim_faults
        )

    def _placed(self, documents: tuple[Document, ...]) -> tuple[Document, ...]:
        return tuple(with_namespace(document, self.namespace, is_chosen=False) for document in documents)

    def jobs(self, *, everywhere: bool = False) -> tuple[Object, ...]:
        """Return the jobs of all kinds in the namespace, or in all namespaces."""
        select = Select(namespace="" if everywhere else self.namespace)
        return tuple(job for kind in self.kinds.jobs() for job in self.cluster.list(kind.where, select).items)

    def job(self, name: str) -> JobRef:
        """Return the job of NAME or KIND/NAME; NotFound suggests a similar one, BadRequest reports ambiguous names."""
        word, slash, bare_name = name.rpartition("/")
        kinds, name = ((self.kinds.named(word),), bare_name) if slash else (self.kinds.jobs(), name)
        if slash and not kinds[0].is_job:
            raise Invalid((Fault("kind", word, f"{kinds[0].kind} is not a kind of job"),))
        matches = []
        for kind in kinds:
            try:
                matches.append((kind, self.cluster.get(kind.where, self.namespace, name)))
            except NotFound:
                continue
        if not matches and not slash and (current := self._job_of_app(name)) is not None:
            return current
        if not matches:
            raise NotFound(self._no_job(name, has_kind=bool(slash)))
        if len(matches) > 1:
            choices = " or ".join(f"{kind.singular}/{name}" for kind, _ in matches)
            raise BadRequest(f"there are several jobs named {name!r}; specify {choices}")
        return self.ref(*matches[0])

    def app(self, word: str) -> AppRef | None:
        """Return the application of NAME or app/NAME, or None."""
        return find_app(self.cluster, self.namespace, word)

    def apps(self, *, everywhere: bool = False) -> tuple[Object, ...]:
        """Return the applications in the namespace, or in all namespaces."""
        return self.cluster.list(APPS, Select(namespace="" if everywhere else self.namespace)).items

    def _job_of_app(self, name: str) -> JobRef | None:
        """Return the job of an application's current revision."""
        app = self.app(name)
        job = None if app is None else app.status().job
        if job is None:
            return None
        kind = self.kinds.of(f"{JOB_GROUP}/{VERSION}", job[0])
        try:
            return self.ref(kind, self.cluster.get(kind.where, self.namespace, job[1]))
        except NotFound:
            return None

    def service(self, name: str) -> ServiceRef | None:
        """Return the TensorBoard or notebook of KIND/NAME; None if the kind is another."""
        word, slash, name = name.rpartition("/")
        kind = self.kinds.named(word) if slash else None
        if kind is None or not kind.is_service:
            return None
        # Raises NotFound if it does not exist.
        return self.service_ref(kind, self.cluster.get(kind.where, self.namespace, name))

    def service_ref(self, kind: ResourceKind, service: Object) -> ServiceRef:
        """Return the handle of a TensorBoard or notebook object."""
        return ServiceRef(kind=kind, namespace=namespace_of(service), name=name_of(service), cluster=self.cluster)

    def rerun(self, ref: JobRef, name: str | None = None) -> JobRef:
        """Run a job again as a new job; raise AlreadyExists if the name is taken."""
        job = ref.read()
        new = name or next_name(job, {name_of(existing) for existing in self.jobs()})
        try:
            plan = asked_by(rerun_job(job, new), actions.caller_name(self.cluster))
            created = self.cluster.create(ref.kind.where, plan.body)
        except AlreadyExists as error:
            raise AlreadyExists(f"{ref.kind.singular}/{new} already exists") from error
        return self.ref(ref.kind, created)

    def history(self, job: str = "") -> tuple[Object, ...]:
        """Return the records of all jobs, or of those of a name, the latest first; deleted jobs have theirs, too."""
        return job_records(self.cluster, self.namespace, job)

    def events(self) -> tuple[Object, ...]:
        """Return all events in the namespace."""
        return self.cluster.list(EVENTS, Select(namespace=self.namespace)).items

    def claim_folder(self, claim: str) -> str:
        """Return the folder behind a claim; empty if it is not a folder of this machine."""
        volume = (self.cluster.get(CLAIMS, self.namespace, claim).get("spec") or {}).get("volumeName")
        if not volume:
            return ""
        spec = self.cluster.get(VOLUMES, "", volume).get("spec") or {}
        return str((spec.get("hostPath") or {}).get("path") or "")

    def has_pod(self, name: str) -> bool:
        """Return True if a pod of this name exists."""
        try:
            self.cluster.get(PODS, self.namespace, name)
        except NotFound:
            return False
        return True

    def ref(self, kind: ResourceKind, job: Object) -> JobRef:
        """Return the handle of a job object."""
        return JobRef(
            kind=kind,
            namespace=namespace_of(job),
            name=name_of(job),
            uid=uid_of(job),
            cluster=self.cluster,
            dial=self.dial,
        )

    def watch(
        self, kinds: tuple[ResourceKind, ...], *, name: str = "", everywhere: bool = False
    ) -> Iterator[ObjectEvent]:
        """Yield every existing object, then every change, without end."""
        by_place = {kind.where: kind for kind in kinds}
        with EventMux(self.dial) as feed:
            for kind in kinds:
                selected = self.select(kind, everywhere=everywhere, name=name)
                feed.start(watching(kind.where, selected), f"watch {kind.where.plural}")
            while True:
                match feed.take():
                    case Listed() as listed:
                        for obj in listed.items:
                            yield ObjectEvent(kind=by_place[listed.where], object=obj)
                    case Changed() as changed:
                        yield ObjectEvent(
                            kind=by_place[changed.where],
                            object=changed.happened.object,
                            is_gone=changed.happened.change is Change.DELETED,
                        )

    def wait_gone(self, kind: ResourceKind, obj: Object, timeout: float | None = None) -> None:
        """Wait until this object is deleted; raise TimeoutError after `timeout`."""
        select = Select(namespace=namespace_of(obj), fields=f"metadata.name={name_of(obj)}")
        objects = {name_of(obj): obj}
        with EventMux(self.dial) as feed:
            if timeout is not None:
                feed.after(
                    timeout, TimeoutError(f"{kind.singular}/{name_of(obj)} was not deleted within {timeout:g} s")
                )
            feed.start(watching(kind.where, select), f"watch {name_of(obj)}")
            while uid_of(objects.get(name_of(obj), {})) == uid_of(obj):
                item = feed.take()
                if isinstance(item, Listed | Changed):
                    objects = apply_change(objects, item)

    def _no_job(self, name: str, *, has_kind: bool) -> str:
        if not self.kinds.jobs():
            return "this cluster has no job kinds: Paceline is not installed in it"
        kinds_by_name = {name_of(job): str(job.get("kind", "")) for job in self.jobs()}
        near = nearest(name, kinds_by_name)
        suggestion = f"{kinds_by_name[near].lower()}/{near}" if near and has_kind else near
        hint = f"did you mean {suggestion}?" if near else "to list all jobs: paceline get"
        return f"there is no job named {name!r} in namespace {self.namespace!r}; {hint}"
