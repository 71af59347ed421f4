"""What people can do with an object: whether it is possible now, why not, and the request that does it."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, revision_of, uid_of
from paceline.apimachinery.timestamps import to_wire_micro
from paceline.errors import BadRequest, MethodNotAllowed
from paceline.model import well_known_labels
from paceline.model.interactive import ServicePhase
from paceline.model.job_status import Phase
from paceline.presentation.apps import app_summary
from paceline.presentation.job_copy import copy_of, debug_copy_of, next_name
from paceline.presentation.job_summary import phase_of


class Action(StrEnum):
    """The actions of all kinds."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    RESTART = "restart"
    RERUN = "rerun"
    SCALE = "scale"
    DEBUG = "debug"
    SUSPEND = "suspend"
    DELETE = "delete"
    UNINSTALL = "uninstall"


class Write(StrEnum):
    """The request that an action makes."""

    PATCH = "patch"
    CREATE = "create"
    DELETE = "delete"


class RefusalCode(StrEnum):
    """Why an action is not possible now."""

    DELETING = "BeingDeleted"
    ENDED = "Ended"
    PAUSED = "AlreadyPaused"
    NOT_PAUSED = "NotPaused"
    NOT_ELASTIC = "NotElastic"
    OUT_OF_BOUNDS = "OutOfBounds"
    SAME_SIZE = "SameSize"
    DEBUGGED = "AlreadyInDebugMode"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRefusal:
    """Why an action is not possible now, for programs and for people."""

    code: RefusalCode
    # The rest of a sentence that starts with the name of the object.
    message: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # The request is harmless and changes nothing: a command may repeat it, a button is disabled.
    is_harmless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPlan:
    """One action on one object: the request that does it, and why it is not possible now."""

    action: Action
    write: Write
    # The merge patch, the manifest of the new object, or the delete options.
    body: Object
    refusal: ActionRefusal | None = None

    @property
    def is_possible(self) -> bool:
        """Return True if the action would have an effect now."""
        return self.refusal is None

    def require(self, subject: str) -> Object:
        """Return the body of the request; raise MethodNotAllowed unless it is allowed or harmless."""
        if self.refusal is not None and not self.refusal.is_harmless:
            raise MethodNotAllowed(f"{subject} {self.refusal.message}")
        return self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person chooses for an action, and what it depends on besides the object."""

    now: datetime
    replicas: int | None = None
    # The name of a copy; if empty, the next free one.
    name: str = ""
    taken: Container[str] = ()


def pause_job(job: Object) -> ActionPlan:
    """Delete the pods of a job and keep the job."""
    return _set_paused(job, Action.PAUSE, is_paused=True)


def stop_job(job: Object) -> ActionPlan:
    """Do what a pause does; the caller waits until the processes have exited."""
    return _set_paused(job, Action.STOP, is_paused=True)


def resume_job(job: Object) -> ActionPlan:
    """Let a paused job run again."""
    return _set_paused(job, Action.RESUME, is_paused=False)


def _set_paused(job: Object, action: Action, *, is_paused: bool) -> ActionPlan:
    plan = ActionPlan(action=action, write=Write.PATCH, body={"spec": {"runMode": {"pause": {"enabled": is_paused}}}})
    if refusal := _ended(job, "only an unfinished job can be paused or resumed") or _deleting(job):
        return replace(plan, refusal=refusal)
    if is_paused is not is_pausing(job):
        return plan
    code = RefusalCode.PAUSED if is_paused else RefusalCode.NOT_PAUSED
    message = "is already paused" if is_paused else "is not paused"
    return replace(plan, refusal=ActionRefusal(code=code, message=message, is_harmless=True))


def is_pausing(job: Object) -> bool:
    """Return True if a job is paused by its spec, whether or not its pods have ended."""
    pause = ((job.get("spec") or {}).get("runMode") or {}).get("pause") or {}
    # Spelled `enable` until 2023.
    return bool(pause.get("enabled", pause.get("enable")))


def restart_job(job: Object) -> ActionPlan:
    """Restart all processes of a job, even if it is paused."""
    # The resource version makes each request unique, and a repeated request idempotent.
    body: Object = {"metadata": {"annotations": {well_known_labels.RESTART: f"after-{revision_of(job)}"}}}
    if phase_of(job) is Phase.PAUSED or is_pausing(job):
        body["spec"] = {"runMode": {"pause": {"enabled": False}}}
    name = job["metadata"]["name"]
    refusal = _ended(job, f"to run it again as a new job: paceline rerun {name}") or _deleting(job)
    return ActionPlan(action=Action.RESTART, write=Write.PATCH, body=body, refusal=refusal)


def scale_job(job: Object, replicas: int | None) -> ActionPlan:
    """Change the number of replicas of an elastic job; without a number, say only whether it can be scaled."""
    body: Object = {"spec": {"elastic": {"expectedReplicas": replicas}}}
    plan = ActionPlan(action=Action.SCALE, write=Write.PATCH, body=body)
    elastic = (job.get("spec") or {}).get("elastic") or {}
    if refusal := _ended(job, "only an unfinished job can be scaled") or _deleting(job):
        return replace(plan, refusal=refusal)
    if not elastic.get("enabled"):
        message = "is not elastic, so its number of replicas is fixed; set spec.elastic.enabled and run it again"
        return replace(plan, refusal=ActionRefusal(code=RefusalCode.NOT_ELASTIC, message=message))
    return plan if replicas is None else replace(plan, refusal=_size_refusal(elastic, replicas))


def _size_refusal(elastic: Mapping[str, Any], replicas: int) -> ActionRefusal | None:
    """Return why a job cannot have this size; the API server has the last word."""
    lowest, highest = int(elastic.get("minReplicas") or 1), elastic.get("maxReplicas")
    bounds = {"minReplicas": lowest, "maxReplicas": highest}
    if replicas < lowest or (highest is not None and replicas > int(highest)):
        message = f"must have between {lowest} and {highest} replicas" if highest else f"needs {lowest} replicas"
        return ActionRefusal(code=RefusalCode.OUT_OF_BOUNDS, message=message, parameters=bounds, is_harmless=True)
    if elastic.get("expectedReplicas") == replicas:
        message = f"has {replicas} replicas already"
        return ActionRefusal(code=RefusalCode.SAME_SIZE, message=message, parameters=bounds, is_harmless=True)
    return None


def rerun_job(job: Object, name: str) -> ActionPlan:
    """Run a job again as a new job, whether or not it has ended."""
    return ActionPlan(action=Action.RERUN, write=Write.CREATE, body=copy_of(job, name))


def debug_job(job: Object, name: str) -> ActionPlan:
    """Create a copy of a job whose pods run, but whose program does not start, to look around in them."""
    plan = ActionPlan(action=Action.DEBUG, write=Write.CREATE, body=debug_copy_of(job, name))
    debug = ((job.get("spec") or {}).get("runMode") or {}).get("debug") or {}
    if not debug.get("enabled", debug.get("enable")):
        return plan
    return replace(plan, refusal=ActionRefusal(code=RefusalCode.DEBUGGED, message="is in debug mode already"))


def delete_object(obj: Object, action: Action = Action.DELETE) -> ActionPlan:
    """Delete this very object, and what it owns after it."""
    body = {"propagationPolicy": "Background", "preconditions": {"uid": uid_of(obj)}}
    refusal = _deleting(obj)
    return ActionPlan(action=action, write=Write.DELETE, body=body, refusal=refusal)


def suspend_service(service: Object) -> ActionPlan:
    """Delete the pod of a TensorBoard or notebook and keep the object."""
    plan = ActionPlan(
        action=Action.SUSPEND, write=Write.PATCH, body={"spec": {"suspend": True}}, refusal=_deleting(service)
    )
    if plan.refusal is not None or not (service.get("spec") or {}).get("suspend"):
        return plan
    message = "is already suspended"
    return replace(plan, refusal=ActionRefusal(code=RefusalCode.PAUSED, message=message, is_harmless=True))


def resume_service(service: Object, now: datetime) -> ActionPlan:
    """Resume a TensorBoard or notebook, whether it was suspended by a person or because it was idle."""
    status = app_summary.service_status_of(service)
    # Use the cluster's clock, because ours may differ: any time since the suspension will do.
    opened = to_wire_micro(status.suspended_at or now)
    body = {"spec": {"suspend": False}, "metadata": {"annotations": {well_known_labels.OPENED_AT: opened}}}
    plan = ActionPlan(action=Action.RESUME, write=Write.PATCH, body=body, refusal=_deleting(service))
    is_suspended = status.phase is ServicePhase.PAUSED or bool((service.get("spec") or {}).get("suspend"))
    if plan.refusal is not None or is_suspended:
        return plan
    return replace(
        plan, refusal=ActionRefusal(code=RefusalCode.NOT_PAUSED, message="is not suspended", is_harmless=True)
    )


def stop_app(app: Object) -> ActionPlan:
    """Suspend the training of an application."""
    plan = ActionPlan(action=Action.STOP, write=Write.PATCH, body={"spec": {"suspend": True}})
    phase = app_summary.status_of(app).phase
    if phase.is_final:
        return replace(plan, refusal=_refusal_of_ended(phase, "only an unfinished training can be stopped"))
    if is_deleting(app):
        return replace(plan, refusal=_deleting(app))
    if not app["spec"].get("suspend"):
        return plan
    return replace(plan, refusal=ActionRefusal(code=RefusalCode.PAUSED, message="is already stopped", is_harmless=True))


def resume_app(app: Object) -> ActionPlan:
    """Resume the training of an application."""
    plan = ActionPlan(
        action=Action.RESUME, write=Write.PATCH, body={"spec": {"suspend": False}}, refusal=_deleting(app)
    )
    if plan.refusal is not None or app["spec"].get("suspend"):
        return plan
    return replace(plan, refusal=ActionRefusal(code=RefusalCode.NOT_PAUSED, message="is not stopped", is_harmless=True))


def rerun_app(app: Object) -> ActionPlan:
    """Run the same spec again as the next revision."""
    body = {"spec": {"rerun": int(app["spec"].get("rerun") or 0) + 1, "suspend": False}}
    return ActionPlan(action=Action.RERUN, write=Write.PATCH, body=body, refusal=_deleting(app))


def _ended(job: Object, advice: str) -> ActionRefusal | None:
    phase = phase_of(job)
    return _refusal_of_ended(phase, advice) if phase.is_final else None


def _refusal_of_ended(phase: StrEnum, advice: str) -> ActionRefusal:
    message = f"has ended ({phase.value}); {advice}"
    return ActionRefusal(code=RefusalCode.ENDED, message=message, parameters={"phase": phase.value})


def _deleting(obj: Object) -> ActionRefusal | None:
    if not is_deleting(obj):
        return None
    return ActionRefusal(code=RefusalCode.DELETING, message="is being deleted", is_harmless=True)


Planner = Callable[[Object, Choices], ActionPlan]
JOB_ACTIONS: Mapping[Action, Planner] = {
    Action.PAUSE: lambda job, _: pause_job(job),
    Action.RESUME: lambda job, _: resume_job(job),
    Action.STOP: lambda job, _: stop_job(job),
    Action.RESTART: lambda job, _: restart_job(job),
    Action.RERUN: lambda job, choices: rerun_job(job, choices.name or next_name(job, choices.taken)),
    Action.SCALE: lambda job, choices: scale_job(job, choices.replicas),
    Action.DEBUG: lambda job, choices: debug_job(job, choices.name or next_name(job, choices.taken, suffix="debug")),
    Action.DELETE: lambda job, _: delete_object(job),
}
SERVICE_ACTIONS: Mapping[Action, Planner] = {
    Action.SUSPEND: lambda service, _: suspend_service(service),
    Action.RESUME: lambda service, choices: resume_service(service, choices.now),
    Action.DELETE: lambda service, _: delete_object(service),
}
APP_ACTIONS: Mapping[Action, Planner] = {
    Action.STOP: lambda app, _: stop_app(app),
    Action.RESUME: lambda app, _: resume_app(app),
    Action.RERUN: lambda app, _: rerun_app(app),
    Action.UNINSTALL: lambda app, _: delete_object(app, Action.UNINSTALL),
}
OTHER_KINDS: Mapping[str, Mapping[Action, Planner]] = {
    "TensorBoard": SERVICE_ACTIONS,
    "Notebook": SERVICE_ACTIONS,
    "TrainingApp": APP_ACTIONS,
}


def actions_of(kind: str) -> Mapping[Action, Planner]:
    """Return the actions of a kind; those of jobs for every kind that is neither a service nor an application."""
    return OTHER_KINDS.get(kind, JOB_ACTIONS)


def plan_action(action: str, obj: Object, choices: Choices) -> ActionPlan:
    """Return the plan of an action on an object; raise BadRequest if its kind does not have the action."""
    planners = actions_of(str(obj.get("kind")))
    if action not in planners:
        raise BadRequest(f"{obj.get('kind')} has no action {action!r}; there are: {', '.join(planners)}")
    return planners[Action(action)](obj, choices)


def refusal_of(plan: ActionPlan) -> Object | None:
    """Return why an action is not possible now, as JSON; None if it is."""
    refusal = plan.refusal
    if refusal is None:
        return None
    return {"code": refusal.code.value, "message": refusal.message, **refusal.parameters}


def asked_by(plan: ActionPlan, name: str) -> ActionPlan:
    """Return the plan with the name of the person in its request; a deletion has no place for it."""
    if not name or plan.write is Write.DELETE:
        return plan
    metadata = plan.body.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), well_known_labels.ASKED_BY: name}
    return replace(plan, body={**plan.body, "metadata": {**metadata, "annotations": annotations}})
