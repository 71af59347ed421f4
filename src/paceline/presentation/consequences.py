"""What follows from an action, as codes with parameters that every language can put into words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paceline.apimachinery.meta import Object, controller_of, name_of, uid_of
from paceline.apimachinery.pods import DEFAULT_GRACE_SECONDS, grace_seconds_of
from paceline.errors import Invalid
from paceline.kinds import registry
from paceline.model.gang import RestartScope
from paceline.presentation.actions import Action, ActionPlan, refusal_of
from paceline.presentation.apps import app_summary
from paceline.presentation.apps.app_change import AppChange
from paceline.presentation.job_summary import claims_of, replica_specs, replicas_of, status_of

# States of replicas that have a process, or will have one.
ALIVE = ("running", "pending", "creating")


class ConsequenceCode(StrEnum):
    """What follows from an action."""

    REPLICAS_STOP = "ReplicasStop"
    NOTHING_RUNS = "NothingRuns"
    JOB_STAYS = "JobStays"
    JOB_GOES = "JobGoes"
    NEW_ATTEMPT = "NewAttempt"
    RESTART_NOT_COUNTED = "RestartNotCounted"
    NEW_JOB = "NewJob"
    ORIGINAL_STAYS = "OriginalStays"
    PROGRAM_NOT_STARTED = "ProgramNotStarted"
    SIZE_CHANGES = "SizeChanges"
    ALL_RESTART = "AllRestart"
    FILES_STAY = "FilesStay"
    TENSORBOARD_GOES = "TensorBoardGoes"
    APPLICATION_NOTES = "ApplicationNotes"
    POD_STOPS = "PodStops"
    POD_STARTS = "PodStarts"
    OBJECT_GOES = "ObjectGoes"
    TRAINING_STOPS = "TrainingStops"
    TRAINING_RESUMES = "TrainingResumes"
    NEW_REVISION = "NewRevision"
    CHANGED_REVISION = "ChangedRevision"
    WAITS_FOR_RESUME = "WaitsForResume"
    REVISIONS_STAY = "RevisionsStay"
    APPLICATION_GOES = "ApplicationGoes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """One thing that follows from an action."""

    code: ConsequenceCode
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def to_wire(self) -> Object:
        """Return it as JSON."""
        return {"code": self.code.value, **self.parameters}


def consequences_of(plan: ActionPlan, obj: Object) -> tuple[Consequence, ...]:
    """Return what follows from a plan for an object, the most important first."""
    kind = str(obj.get("kind"))
    if kind == "TrainingApp":
        return tuple(_of_app(plan, obj))
    if kind in ("TensorBoard", "Notebook"):
        return tuple(_of_service(plan, obj))
    return tuple(_of_job(plan, obj))


def _of_job(plan: ActionPlan, job: Object) -> Iterator[Consequence]:
    match plan.action:
        case Action.PAUSE | Action.STOP:
            yield _stop(job)
            yield Consequence(code=ConsequenceCode.JOB_STAYS)
            yield from _files(job)
        case Action.RESUME:
            yield _new_attempt(job)
        case Action.RESTART:
            yield _stop(job)
            yield _new_attempt(job)
            yield _restarts(job)
        case Action.RERUN | Action.DEBUG:
            yield from _copy(plan, job)
        case Action.SCALE:
            yield from _resize(plan, job)
        case _:
            yield from _deletion(job)


def _stop(job: Object) -> Consequence:
    """Return how many replicas stop, and how long each may take before it is killed."""
    aggregate = status_of(job).aggregate
    replicas = sum(int(aggregate.get(state) or 0) for state in ALIVE)
    if not replicas:
        return Consequence(code=ConsequenceCode.NOTHING_RUNS)
    return Consequence(
        code=ConsequenceCode.REPLICAS_STOP, parameters={"replicas": replicas, "graceSeconds": grace_seconds(job)}
    )


def grace_seconds(job: Object) -> int:
    """Return the longest grace period of a job's replicas."""
    periods = (grace_seconds_of(replica.get("template") or {}) for replica in replica_specs(job))
    return max(periods, default=DEFAULT_GRACE_SECONDS)


def _new_attempt(job: Object) -> Consequence:
    return Consequence(code=ConsequenceCode.NEW_ATTEMPT, parameters={"attempt": status_of(job).attempt + 1})


def _restarts(job: Object) -> Consequence:
    """Return how many restarts after failures are left; the action does not use one up."""
    gang = registry.gang_of(job)
    limit = gang.backoff_limit if gang else None
    restarts_left = None if limit is None else max(limit - status_of(job).backoff_count, 0)
    return Consequence(
        code=ConsequenceCode.RESTART_NOT_COUNTED, parameters={"restartsLeft": restarts_left, "limit": limit}
    )


def _copy(plan: ActionPlan, job: Object) -> Iterator[Consequence]:
    yield Consequence(code=ConsequenceCode.NEW_JOB, parameters={"name": name_of(plan.body)})
    if plan.action is Action.DEBUG:
        yield Consequence(code=ConsequenceCode.PROGRAM_NOT_STARTED)
    yield Consequence(code=ConsequenceCode.ORIGINAL_STAYS, parameters={"name": name_of(job)})


def _resize(plan: ActionPlan, job: Object) -> Iterator[Consequence]:
    _, current = replicas_of(job)
    replicas = plan.body["spec"]["elastic"]["expectedReplicas"]
    elastic = job["spec"].get("elastic") or {}
    bounds = {"minReplicas": elastic.get("minReplicas") or 1, "maxReplicas": elastic.get("maxReplicas")}
    parameters = {"from": current, "to": replicas, **bounds}
    yield Consequence(code=ConsequenceCode.SIZE_CHANGES, parameters=parameters)
    gang = registry.gang_of(job)
    if gang is not None and gang.scope is RestartScope.GANG:
        yield Consequence(code=ConsequenceCode.ALL_RESTART)


def _deletion(job: Object) -> Iterator[Consequence]:
    yield _stop(job)
    yield Consequence(code=ConsequenceCode.JOB_GOES)
    if board := (status_of(job).tensorboard.get("dependent") or {}).get("name"):
        yield Consequence(code=ConsequenceCode.TENSORBOARD_GOES, parameters={"name": board})
    owner = controller_of(job) or {}
    if owner.get("kind") == "TrainingApp":
        yield Consequence(code=ConsequenceCode.APPLICATION_NOTES, parameters={"name": str(owner.get("name"))})
    yield from _files(job)


def _files(job: Object) -> Iterator[Consequence]:
    """Yield the claims whose files stay."""
    if claims := list(dict.fromkeys(claim for claim, _ in claims_of(job))):
        yield Consequence(code=ConsequenceCode.FILES_STAY, parameters={"claims": claims})


def _of_service(plan: ActionPlan, service: Object) -> Iterator[Consequence]:
    pod = app_summary.service_status_of(service).pod
    if plan.action is Action.RESUME:
        yield Consequence(code=ConsequenceCode.POD_STARTS)
        return
    yield Consequence(code=ConsequenceCode.POD_STOPS if pod else ConsequenceCode.NOTHING_RUNS)
    if plan.action is Action.DELETE:
        yield Consequence(code=ConsequenceCode.OBJECT_GOES)
    if claims := _claims_of_service(service):
        yield Consequence(code=ConsequenceCode.FILES_STAY, parameters={"claims": list(claims)})


def _claims_of_service(service: Object) -> tuple[str, ...]:
    try:
        kind, spec = registry.read_service(service)
        return tuple(dict.fromkeys(name for _, name in kind.claims(spec, "spec")))
    except Invalid:
        return ()


def _of_app(plan: ActionPlan, app: Object) -> Iterator[Consequence]:
    status = app_summary.status_of(app)
    job = status.job[1] if status.job else ""
    is_running = bool(job) and not status.phase.is_final
    match plan.action:
        case Action.STOP:
            yield Consequence(code=ConsequenceCode.TRAINING_STOPS, parameters={"job": job})
        case Action.RESUME:
            yield Consequence(code=ConsequenceCode.TRAINING_RESUMES, parameters={"job": job})
        case Action.RERUN:
            parameters = {"revision": status.revision + 1, "stops": job if is_running else ""}
            yield Consequence(code=ConsequenceCode.NEW_REVISION, parameters=parameters)
        case _:
            parameters = {"revisions": status.revision, "stops": job if is_running else ""}
            yield Consequence(code=ConsequenceCode.APPLICATION_GOES, parameters=parameters)


def consequences_of_change(change: AppChange) -> tuple[Consequence, ...]:
    """Return what follows from an upgrade or a rollback of an application, the most important first."""
    parameters = {"revision": change.revision, "job": change.job_name, "stops": change.stops}
    waits = (Consequence(code=ConsequenceCode.WAITS_FOR_RESUME),) if change.is_suspended else ()
    return (
        Consequence(code=ConsequenceCode.CHANGED_REVISION, parameters=parameters),
        *waits,
        Consequence(code=ConsequenceCode.REVISIONS_STAY),
    )


def preview(plan: ActionPlan, obj: Object) -> Object:
    """Return all that a page says about an action before it is done, as JSON."""
    return {
        "action": plan.action.value,
        "uid": uid_of(obj),
        "possible": plan.is_possible,
        "reason": refusal_of(plan),
        "consequences": [consequence.to_wire() for consequence in consequences_of(plan, obj)],
        "write": plan.write.value,
        "body": plan.body,
    }
