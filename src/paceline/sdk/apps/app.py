"""A handle to one application: read, change, stop, resume, rerun and delete it, and read its revisions."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from paceline.apimachinery.json_patch import merge
from paceline.apimachinery.meta import Object, controller_of, name_of, namespace_of, uid_of
from paceline.client.interface import CLAIMS, CONFIG_MAPS, PODS, SERVICES, Collection, Select
from paceline.client.sync import DirectCluster
from paceline.errors import Conflict, NotFound
from paceline.model import well_known_labels
from paceline.model.app_status import AppStatus, RecordStatus
from paceline.model.interactive import page_path
from paceline.presentation.actions import ActionPlan, delete_object, rerun_app, resume_app, stop_app
from paceline.presentation.apps.app_change import noted
from paceline.presentation.apps.app_summary import status_of
from paceline.sdk import actions
from paceline.sdk.discovery import SERVICE_GROUP, ResourceKind
from paceline.sdk.job import JobRef

OWN_GROUP, VERSION = "paceline.dev", "v1beta1"
APPS = Collection(group=OWN_GROUP, version=VERSION, plural="trainingapps")
RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural="jobrecords")
KIND = ResourceKind(where=APPS, kind="TrainingApp", singular="trainingapp", short_names=("app", "apps"))
# Number of tries when the controller updates the application at the same time.
CHANGE_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One recorded revision."""

    number: int
    record: Object
    status: RecordStatus

    @property
    def job(self) -> str:
        """Return the name of its job, which may be deleted."""
        return str(self.record["spec"]["job"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRef:
    """A handle to one application."""

    namespace: str
    name: str
    uid: str
    cluster: DirectCluster

    def __str__(self) -> str:
        return f"app/{self.name}"

    def read(self) -> Object:
        """Return the current application; raise NotFound if it was deleted."""
        return self.cluster.get(APPS, self.namespace, self.name)

    def status(self) -> AppStatus:
        """Return its status."""
        return status_of(self.read())

    def revisions(self) -> tuple[Revision, ...]:
        """Return all recorded revisions, oldest first."""
        records = self.cluster.list(RECORDS, Select(namespace=self.namespace, labels=well_known_labels.APP)).items
        owned = [record for record in records if (controller_of(record) or {}).get("uid") == self.uid]
        read = (
            Revision(
                number=int(record["spec"]["revision"]),
                record=record,
                status=RecordStatus.from_wire(record.get("status") or {}),
            )
            for record in owned
        )
        return tuple(sorted(read, key=lambda revision: revision.number))

    def revision(self, number: int) -> Revision:
        """Return one revision; NotFound lists those that exist."""
        revisions = self.revisions()
        for revision in revisions:
            if revision.number == number:
                return revision
        numbers = ", ".join(str(revision.number) for revision in revisions) or "none"
        raise NotFound(f"{self} has no revision {number}; there are: {numbers}")

    def change(self, app: Object) -> Object:
        """Replace the spec of an application; raise Conflict if somebody else changed the spec meanwhile.

        The controller updates the object, too: if only the status has changed meanwhile, retry with the same spec.
        """
        caller = actions.caller_name(self.cluster)
        for _ in range(CHANGE_TRIES):
            try:
                return self.cluster.replace(APPS, noted(app, caller))
            except Conflict:
                now = self.read()
                if now["metadata"].get("generation") != app["metadata"].get("generation"):
                    raise
                app = {**now, "spec": app["spec"]}
        raise Conflict(f"{self} is being changed by another client; try again in a moment")

    def stop(self) -> None:
        """Suspend the training; `resume` continues it."""
        self._act(stop_app(self.read()))

    def resume(self) -> None:
        """Resume a suspended training."""
        self._act(resume_app(self.read()))

    def rerun(self) -> int:
        """Run the same spec again as the next revision and return its number."""
        app = self.read()
        self.change(merge(app, rerun_app(app).body))
        return status_of(app).revision + 1

    def delete(self) -> None:
        """Delete the application and everything it owns; files on volumes are kept."""
        plan = delete_object({"metadata": {"uid": self.uid}})
        actions.delete(self.cluster, APPS, (self.namespace, self.name), plan)

    @property
    def board(self) -> str:
        """Return the name of the TensorBoard of all revisions, taken from its URL."""
        return page_path(self.status().url).rstrip("/").rpartition("/")[2]

    def _act(self, plan: ActionPlan) -> None:
        actions.patch(self.cluster, APPS, (self.namespace, self.name), plan, subject=str(self))


def find_app(cluster: DirectCluster, namespace: str, word: str) -> AppRef | None:
    """Return the application of NAME or app/NAME; None if there is none or the kind is another."""
    kind, slash, name = word.rpartition("/")
    if slash and kind.lower() not in (*KIND.names, "trainingapp"):
        return None
    try:
        return ref_of(cluster, cluster.get(APPS, namespace, name))
    except NotFound:
        return None


def ref_of(cluster: DirectCluster, app: Object) -> AppRef:
    """Return the handle of an application object."""
    return AppRef(namespace=namespace_of(app), name=name_of(app), uid=uid_of(app), cluster=cluster)


BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural="tensorboards")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppResources:
    """The resources of an application except its job, with the pods of all of them."""

    config_maps: tuple[Object, ...]
    claims: tuple[Object, ...]
    services: tuple[Object, ...]
    boards: tuple[Object, ...]
    pods: tuple[Object, ...]


def resources_of_app(cluster: DirectCluster, app: AppRef, job: JobRef | None) -> AppResources:
    """Return all resources that an application owns, directly or through its job and TensorBoard."""
    here = Select(namespace=app.namespace)

    def read(where: Collection, owners: Container[str]) -> tuple[Object, ...]:
        return tuple(owned(cluster.list(where, here).items, owners))

    owners = {app.uid} if job is None else {app.uid, job.uid}
    boards = read(BOARDS, owners)
    behind = {*owners, *map(uid_of, boards)}
    return AppResources(
        config_maps=read(CONFIG_MAPS, owners),
        claims=read(CLAIMS, owners),
        services=read(SERVICES, behind),
        boards=boards,
        pods=read(PODS, behind),
    )


def owned(objects: Iterable[Object], owners: Container[str]) -> Iterable[Object]:
    """Return the objects whose controller is one of the owners."""
    return (obj for obj in objects if (controller_of(obj) or {}).get("uid") in owners)
