"""Resolves arguments such as `digits`, `pj/digits` or `pods web-0 web-1` to objects."""

from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.errors import Invalid, NotFound
from paceline.sdk.apps.app import KIND as APP
from paceline.sdk.apps.app import AppRef
from paceline.sdk.client import Session
from paceline.sdk.discovery import ResourceKind
from paceline.sdk.job import JobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundObject:
    """An object that an argument names."""

    kind: ResourceKind
    object: Object


def find(session: Session, arguments: tuple[str, ...]) -> list[FoundObject]:
    """Return every named object; raise NotFound or Invalid for the one that does not exist."""
    kind = _kind_first(session, arguments)
    if kind is not None:
        return [_read(session, kind, name) for name in arguments[1:]]
    return [find_one(session, argument) for argument in arguments]


def find_one(session: Session, word: str) -> FoundObject:
    """Return the object of one argument: a job or application by NAME, anything by KIND/NAME."""
    kind, slash, name = word.partition("/")
    if slash:
        return _read(session, session.kinds.named(kind), name)
    if (app := _app_alone(session, word)) is not None:
        return FoundObject(kind=APP, object=app.read())
    ref = session.job(word)
    return FoundObject(kind=ref.kind, object=ref.read())


def _app_alone(session: Session, word: str) -> AppRef | None:
    """Return an application if no job has the same name."""
    app = session.app(word)
    if app is None:
        return None
    try:
        return app if session.job(word).name != word else None
    except NotFound:
        return app


def _kind_first(session: Session, arguments: tuple[str, ...]) -> ResourceKind | None:
    """Return the kind if the first of several arguments is one, as in `pods a b`."""
    if len(arguments) < 2 or any("/" in argument for argument in arguments):
        return None
    try:
        return session.kinds.named(arguments[0])
    except Invalid:
        return None


def _read(session: Session, kind: ResourceKind, name: str) -> FoundObject:
    namespace = session.namespace if kind.where.namespaced else ""
    return FoundObject(kind=kind, object=session.cluster.get(kind.where, namespace, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrApp:
    """A job, or an application with its current job, for commands that stop and start them."""

    app: AppRef | None = None
    # None if the application has no job yet.
    job: JobRef | None = None

    def __str__(self) -> str:
        return str(self.app or self.job)


def find_job_or_app(session: Session, word: str) -> JobOrApp:
    """Return the job or application of this name; raise NotFound if there is neither."""
    if (app := _app_alone(session, word)) is None:
        return JobOrApp(job=session.job(word))
    try:
        return JobOrApp(app=app, job=session.job(app.name))
    except NotFound:
        return JobOrApp(app=app)


PODS = ("pod", "pods", "po")


def job_or_pod(session: Session, word: str) -> JobRef | str:
    """Return the job of this name, or the name of a pod; pod/NAME is always a pod."""
    kind, slash, name = word.partition("/")
    if slash and kind in PODS:
        return name
    try:
        return session.job(word)
    except NotFound:
        if slash or not session.has_pod(word):
            raise
        return word


BACKGROUND = {"propagationPolicy": "Background"}


def remove(session: Session, kind: ResourceKind, obj: Object) -> None:
    """Delete this object, guarded by its uid so that a newer object of the same name is kept."""
    metadata = obj["metadata"]
    options = {**BACKGROUND, "preconditions": {"uid": uid_of(obj)}}
    session.cluster.delete(kind.where, (str(metadata.get("namespace") or ""), str(metadata["name"])), options)


def remove_and_wait(session: Session, kind: ResourceKind, metadata: dict[str, Any]) -> None:
    """Delete an object if it exists, and return when its name is free."""
    name = str(metadata.get("name") or "")
    namespace = str(metadata.get("namespace") or session.namespace)
    if not name:
        return
    try:
        existing = session.cluster.get(kind.where, namespace, name)
        remove(session, kind, existing)
    except NotFound:
        return
    session.wait_gone(kind, existing)
