"""One application of a cluster, as a handle: read it, change it, stop it, run it once more, and read what was."""

from dataclasses import dataclass

from paceline.apimachinery.meta import Object, controller_of, name_of, namespace_of, uid_of
from paceline.client.interface import Collection, Select
from paceline.client.sync import DirectCluster
from paceline.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from paceline.model.app_status import AppStatus, RecordStatus
from paceline.sdk.discovery import Kind

OWN_GROUP, VERSION = "paceline.dev", "v1beta1"
APPS = Collection(group=OWN_GROUP, version=VERSION, plural="trainingapps")
RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural="jobrecords")
KIND = Kind(where=APPS, kind="TrainingApp", singular="trainingapp", short_names=("app", "apps"))
# How often a change is written anew because the controller was quicker.
CHANGE_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision that was written down."""

    number: int
    record: Object
    status: RecordStatus

    @property
    def job(self) -> str:
        """Name its job, which may be gone."""
        return str(self.record["spec"]["job"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class AppRef:
    """One application of a cluster."""

    namespace: str
    name: str
    uid: str
    cluster: DirectCluster

    def __str__(self) -> str:
        return f"app/{self.name}"

    def read(self) -> Object:
        """Read the application as it is now; NotFound when it is gone."""
        return self.cluster.get(APPS, self.namespace, self.name)

    def status(self) -> AppStatus:
        """Give where it is."""
        return status_of(self.read())

    def revisions(self) -> tuple[Revision, ...]:
        """Read all revisions that were written down, the oldest first."""
        records = self.cluster.list(RECORDS, Select(namespace=self.namespace)).items
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
        """Find one revision; NotFound says which there are."""
        revisions = self.revisions()
        for revision in revisions:
            if revision.number == number:
                return revision
        numbers = ", ".join(str(revision.number) for revision in revisions) or "none"
        raise NotFound(f"{self} has no revision {number}; there are: {numbers}")

    def change(self, app: Object) -> Object:
        """Write the spec of an application over the one it was read as; Conflict when somebody else changed that.

        Its controller writes to it, too: where only the rest has moved on meanwhile, the spec is written again.
        """
        for _ in range(CHANGE_TRIES):
            try:
                return self.cluster.replace(APPS, app)
            except Conflict:
                now = self.read()
                if now["metadata"].get("generation") != app["metadata"].get("generation"):
                    raise
                app = {**now, "spec": app["spec"]}
        raise Conflict(f"{self} is written to again and again; try again in a moment")

    def stop(self) -> None:
        """End the training and keep everything; it goes on after `resume`."""
        if (phase := self.status().phase).is_final:
            raise MethodNotAllowed(f"{self} has ended ({phase.value}); only a training that has not can be stopped")
        self._patch({"suspend": True})

    def resume(self) -> None:
        """Let a stopped training go on."""
        self._patch({"suspend": False})

    def rerun(self) -> int:
        """Run the same once more, as the next revision; give its number."""
        app = self.read()
        spec = {**app["spec"], "rerun": int(app["spec"].get("rerun") or 0) + 1, "suspend": False}
        self.change({**app, "spec": spec})
        return status_of(app).revision + 1

    def delete(self) -> None:
        """Ask for the application to go, and with it all that is its own; files on volumes stay."""
        options = {"propagationPolicy": "Background", "preconditions": {"uid": self.uid}}
        self.cluster.delete(APPS, (self.namespace, self.name), options)

    @property
    def board(self) -> str:
        """Name the TensorBoard over all revisions, by the path at which it is opened."""
        return self.status().url.rstrip("/").rpartition("/")[2]

    def _patch(self, spec: Object) -> None:
        self.cluster.patch(APPS, (self.namespace, self.name), {"spec": spec})


def find_app(cluster: DirectCluster, namespace: str, word: str) -> AppRef | None:
    """Find an application by NAME, or by app/NAME; None when there is none or the word means something else."""
    kind, slash, name = word.rpartition("/")
    if slash and kind.lower() not in (*KIND.names, "trainingapp"):
        return None
    try:
        return ref_of(cluster, cluster.get(APPS, namespace, name))
    except NotFound:
        return None


def ref_of(cluster: DirectCluster, app: Object) -> AppRef:
    """Give the handle of an application that was read."""
    return AppRef(namespace=namespace_of(app), name=name_of(app), uid=uid_of(app), cluster=cluster)


def status_of(app: Object) -> AppStatus:
    """Give the application's status; of one that nobody can read, that it is so."""
    try:
        return AppStatus.from_wire(app.get("status") or {})
    except BadRequest as error:
        return AppStatus(waiting=str(error))
