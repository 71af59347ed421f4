"""A connection to one cluster: submit manifests, find jobs, and read and end objects of any kind."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.client.interface import EVENTS, PODS, Change, Select
from paceline.errors import AlreadyExists, BadRequest, Fault, Invalid, NotFound
from paceline.sdk.apps.app import APPS, VERSION, AppRef, find_app
from paceline.sdk.connection import ClusterConnection
from paceline.sdk.discovery import JOB_GROUP, Kind
from paceline.sdk.job import JobRef
from paceline.sdk.logs.event_mux import EventMux
from paceline.sdk.logs.sources import Changed, Listed, apply_news, watching
from paceline.sdk.reader import Reader
from paceline.sdk.rerun import copy_of, next_name
from paceline.sdk.resources.interactive import ServiceRef
from paceline.sdk.submission.manifest_document import Document, checked, with_namespace
from paceline.sdk.submission.submit import Created, Maker


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """One object that is there, or that was deleted, of a kind that is watched."""

    kind: Kind
    object: Object
    is_gone: bool = False


# Reads the objects of a file. An argument, because reading YAML costs a command its quick start.
ReadFile = Callable[[str], tuple[Document, ...]]


def read_no_file(path: str) -> tuple[Document, ...]:
    """Refuse: this session takes objects only."""
    raise BadRequest(f"{path}: this session reads no files; paceline.connect makes one that does")


class Session(Reader):
    """A reader that also submits jobs and hands them out. For one thread; close it after use."""

    def __init__(self, dial: ClusterConnection, namespace: str, *, read: ReadFile = read_no_file) -> None:
        super().__init__(dial, namespace)
        self._read = read

    def submit(self, manifest: str | Path | Mapping[str, Any]) -> JobRef:
        """Create everything a YAML file or a dict describes, and give the one job among it."""
        if isinstance(manifest, Mapping):
            documents: tuple[Document, ...] = (Document(object=checked(dict(manifest), "manifest"), place="manifest"),)
        else:
            documents = self._read(str(manifest))
        jobs = [created.job for created in self.create(documents) if created.job is not None]
        if len(jobs) != 1:
            raise BadRequest(f"{documents[0].place}: {len(jobs)} jobs were created where one was meant")
        return jobs[0]

    def create(self, documents: tuple[Document, ...]) -> tuple[Created, ...]:
        """Create all objects, claims before jobs, or none of them; a claim that exists already is used as it is."""
        placed = tuple(with_namespace(document, self.namespace, is_chosen=False) for document in documents)
        return Maker(cluster=self.cluster, kinds=self.kinds, refer=self.ref).create_all(placed)

    def jobs(self, *, everywhere: bool = False) -> tuple[Object, ...]:
        """Read all jobs of the namespace, or of all namespaces, of every kind."""
        select = Select(namespace="" if everywhere else self.namespace)
        return tuple(job for kind in self.kinds.jobs() for job in self.cluster.list(kind.where, select).items)

    def job(self, name: str) -> JobRef:
        """Find a job by NAME or KIND/NAME; NotFound suggests close names, BadRequest says when two have the name."""
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
            raise BadRequest(f"there are several jobs named {name!r}; say {choices}")
        return self.ref(*matches[0])

    def app(self, word: str) -> AppRef | None:
        """Find an application by NAME or app/NAME; None when there is none."""
        return find_app(self.cluster, self.namespace, word)

    def apps(self, *, everywhere: bool = False) -> tuple[Object, ...]:
        """Read all applications of the namespace, or of all namespaces."""
        return self.cluster.list(APPS, Select(namespace="" if everywhere else self.namespace)).items

    def _job_of_app(self, name: str) -> JobRef | None:
        """Give the job of the current revision of an application."""
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
        """Find a TensorBoard or Notebook by KIND/NAME; None when the word means something else."""
        word, slash, name = name.rpartition("/")
        kind = self.kinds.named(word) if slash else None
        if kind is None or not kind.is_service:
            return None
        # NotFound says that it is not there.
        return self.service_ref(kind, self.cluster.get(kind.where, self.namespace, name))

    def service_ref(self, kind: Kind, service: Object) -> ServiceRef:
        """Give the handle of a TensorBoard or Notebook that was read."""
        return ServiceRef(kind=kind, namespace=namespace_of(service), name=name_of(service), cluster=self.cluster)

    def rerun(self, ref: JobRef, name: str | None = None) -> JobRef:
        """Run a job once more as a new job; AlreadyExists when the name is taken."""
        job = ref.read()
        new = name or next_name(job, {name_of(existing) for existing in self.jobs()})
        try:
            created = self.cluster.create(ref.kind.where, copy_of(job, new))
        except AlreadyExists as error:
            raise AlreadyExists(f"{ref.kind.singular}/{new} exists already") from error
        return self.ref(ref.kind, created)

    def events(self) -> tuple[Object, ...]:
        """Read all events of the namespace."""
        return self.cluster.list(EVENTS, Select(namespace=self.namespace)).items

    def has_pod(self, name: str) -> bool:
        """Tell whether a pod of this name is there."""
        try:
            self.cluster.get(PODS, self.namespace, name)
        except NotFound:
            return False
        return True

    def ref(self, kind: Kind, job: Object) -> JobRef:
        """Give the handle of a job that was read."""
        return JobRef(
            kind=kind,
            namespace=namespace_of(job),
            name=name_of(job),
            uid=uid_of(job),
            cluster=self.cluster,
            dial=self.dial,
        )

    def watch(self, kinds: tuple[Kind, ...], *, name: str = "", everywhere: bool = False) -> Iterator[ObjectEvent]:
        """Give every object that is there, and then every change, for ever."""
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

    def wait_gone(self, kind: Kind, obj: Object, timeout: float | None = None) -> None:
        """Wait until an object that was read is there no more; TimeoutError after `timeout`."""
        select = Select(namespace=namespace_of(obj), fields=f"metadata.name={name_of(obj)}")
        objects = {name_of(obj): obj}
        with EventMux(self.dial) as feed:
            if timeout is not None:
                feed.after(timeout, TimeoutError(f"{kind.singular}/{name_of(obj)} is there after {timeout:g} s"))
            feed.start(watching(kind.where, select), f"watch {name_of(obj)}")
            while uid_of(objects.get(name_of(obj), {})) == uid_of(obj):
                item = feed.take()
                if isinstance(item, Listed | Changed):
                    objects = apply_news(objects, item)

    def _no_job(self, name: str, *, has_kind: bool) -> str:
        if not self.kinds.jobs():
            return "this cluster has no job kinds: Paceline is not installed in it"
        kinds_by_name = {name_of(job): str(job.get("kind", "")) for job in self.jobs()}
        near = nearest(name, kinds_by_name)
        suggestion = f"{kinds_by_name[near].lower()}/{near}" if near and has_kind else near
        hint = f"did you mean {suggestion}?" if near else "`paceline get jobs` lists them"
        return f"there is no job named {name!r} in namespace {self.namespace!r}; {hint}"
