"""The one decision: given what we see, what should happen next to a job?"""

from dataclasses import dataclass, replace
from datetime import datetime

from paceline.apimachinery.timestamps import to_wire
from paceline.model.gang import Gang
from paceline.model.job_status import Condition, Failure, JobStatus, Phase, ReplicaPhase
from paceline.plan.job.attempts import Try, comes_alone, gang_size, older_pods, tries_of
from paceline.plan.job.cleanup import clean_up, unfinished
from paceline.plan.job.completion_rules import holding, is_hopeless, say, say_success
from paceline.plan.job.deadline import (
    EXCEEDED,
    NOT_STARTED,
    STALLED,
    deadline_of,
    say_not_started,
    start_by,
    with_deadlines,
)
from paceline.plan.job.elastic import is_new_meeting, is_resized, is_too_small, is_up, with_releases, with_size
from paceline.plan.job.git_revision import NOT_FOUND, RevisionNotFound, resolve
from paceline.plan.job.plan import EventDraft, NewPod, Plan
from paceline.plan.job.pods.output_finalization import defer_completion, finalize_output
from paceline.plan.job.preempted import PREEMPTED, evict_preempted, is_preempted, requeue
from paceline.plan.job.recreate_unstarted import say_remade, unstarted_pods, with_new_attempts
from paceline.plan.job.report.conditions import (
    NONE,
    REPLICA_FAILURE,
    RUNNING,
    SUSPENDED,
    ended,
    is_true,
    put,
    under_way,
)
from paceline.plan.job.report.events import RESTARTING, created_events, lost_replica_events, transition_events
from paceline.plan.job.report.failure_logs import with_last_lines
from paceline.plan.job.report.oom import REASON as OUT_OF_MEMORY
from paceline.plan.job.report.oom import advice, is_killed_again
from paceline.plan.job.report.pending_reason import Waiting, failure_of, say_failure, why_waiting
from paceline.plan.job.report.replica_statuses import with_tasks
from paceline.plan.job.report.shm_hint import shared_memory_advice
from paceline.plan.job.restart_policy import (
    RestartVerdict,
    backoff_until,
    evaluate,
    failed_first,
    restart_all,
    restarted,
    restarts_whole_gang,
    why_not_again,
)
from paceline.plan.job.scaled_down import record_scaled_down
from paceline.plan.job.stall import say_stalled, silence
from paceline.plan.job.suspend import begin_again, is_restart_wanted, is_wished, pause, resume, stay, suspend, unsuspend
from paceline.plan.job.ttl import expire
from paceline.plan.job.view import JobView, PodSeen


def decide(view: JobView, now: datetime) -> Plan:
    """Choose the next step for one job."""
    view = with_releases(record_scaled_down(view))
    gone = unstarted_pods(view)
    view = with_new_attempts(view, gone)
    plan = finalize_output(view, now) if view.status.ending else defer_completion(view, _next(view, now), now)
    plan = with_last_lines(view, with_size(view, plan))
    return plan if plan.status.phase.is_final else _with(plan, earlier=say_remade(gone))


def _next(view: JobView, now: datetime) -> Plan:
    """Ask the rules in turn: each may assume that every one above it did not apply."""
    replicas = tries_of(view)
    status = view.status.but(observed_generation=view.generation)
    if status.phase.is_final:
        cleaned = clean_up(view, replicas, with_tasks(status, replicas), now)
        return expire(view, evict_preempted(view, cleaned), now)
    if plan := _while_suspended(view, status, replicas, now):
        return plan
    verdict = evaluate(view, replicas)
    if rule := holding(view.gang.success, verdict.done):
        remark = f"; {view.gang.success_note}" if view.gang.success_note else ""
        return _succeed(view, replicas, now, f"{say_success(rule)}{remark}")
    if is_preempted(replicas):
        return _with(requeue(view, status, replicas), earlier=created_events(view, replicas))
    if loss := _lost(view, verdict) or _late(view, status, replicas, now):
        return _fail(view, replicas, now, loss)
    if plan := _apply_user_request(view, status, replicas, now):
        return _with(plan, earlier=created_events(view, replicas))
    if again := _restart_or_stall(view, replicas, verdict, now):
        return again
    resolution = resolve(view, status, now)
    if isinstance(resolution, RevisionNotFound):
        return _fail(view, replicas, now, _FailureCause(reason=NOT_FOUND, message=resolution.message))
    if resolution is not None:
        return with_deadlines(view, resolution)
    return _with(_reconcile_replicas(view, replicas, now), later=lost_replica_events(view, verdict))


def _while_suspended(view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> Plan | None:
    """Leave a job alone that is paused or suspended, until it is wanted back."""
    if status.phase is Phase.PAUSED:
        return stay(view, status, replicas, now) if view.is_paused else resume(view, status, now)
    if is_true(status, SUSPENDED):
        return stay(view, status, replicas, now) if view.is_suspended else unsuspend(view, status, now)
    return None


def _apply_user_request(view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> Plan | None:
    """Do what people ask of a job under way: to give its pods back, or to begin anew."""
    if view.is_paused:
        return pause(view, status, replicas, now)
    if view.is_suspended:
        return suspend(view, status, replicas, now)
    if is_restart_wanted(view):
        return begin_again(view, status, "somebody asked for a restart; next try of all members")
    if is_resized(view):
        message = f"the job has {len(view.gang.members)} members now, which start together; next try of all members"
        return begin_again(view, status, message)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailureCause:
    """Why a job cannot succeed any more, and the try that is to blame, if one is."""

    reason: str
    message: str
    cause: Try | None = None


def _lost(view: JobView, verdict: RestartVerdict) -> _FailureCause | None:
    if not verdict.lost:
        return None
    first = verdict.failed[0]
    # Of several rules that hold, the one about the first failure tells most.
    rules = tuple(sorted(view.gang.failure, key=lambda rule: first.place not in rule))
    if rule := holding(rules, verdict.lost):
        cause = next(replica for replica in verdict.failed if replica.place in rule)
        explanation = f"failure rule {say(rule)} holds"
    elif is_hopeless(view.gang.success, verdict.lost):
        cause, explanation = first, "no success rule can hold any more"
    elif is_too_small(view.gang, verdict.lost):
        remaining = len(view.gang.members) - len(verdict.lost)
        cause, explanation = first, f"{remaining} replicas are left of at least {view.gang.least}"
    else:
        return None
    message = f"{explanation}: {say_failure(_failure(view, cause))}"
    is_memory = is_killed_again(view.gang, view.status, cause)
    return _FailureCause(reason=OUT_OF_MEMORY if is_memory else Phase.FAILED.value, message=message, cause=cause)


def _late(view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> _FailureCause | None:
    deadline, beginning = deadline_of(view.gang, status), start_by(view, status)
    if deadline is not None and now >= deadline:
        message = f"the job was not done {view.gang.active_deadline_seconds} seconds after its start"
        return _FailureCause(reason=EXCEEDED, message=message)
    # A job that runs when the deadline passes met it, even if `runningTime` is not recorded yet. Paused and suspended
    # jobs are exempt.
    is_waiting = not view.is_paused and not view.is_suspended and not is_up(view.gang, replicas)
    if beginning is not None and now >= beginning and is_waiting:
        return _FailureCause(reason=NOT_STARTED, message=say_not_started(view.gang, replicas))
    return None


def _failure(view: JobView, cause: Try) -> Failure:
    return failure_of(cause, advice(view.gang, view.status, cause) or shared_memory_advice(view.gang, cause))


def _succeed(view: JobView, replicas: tuple[Try, ...], now: datetime, message: str) -> Plan:
    status = _started(_observed(view, replicas), replicas, now)
    status = ended(status, Phase.SUCCEEDED, now, reason=Phase.SUCCEEDED.value, message=message)
    status = status.but(phase=Phase.SUCCEEDED, completion_time=now, start_after=None, failure=None, preempted="")
    event = EventDraft(reason="Succeeded", message=message)
    return _with(clean_up(view, replicas, status, now), earlier=created_events(view, replicas), later=(event,))


def _fail(view: JobView, replicas: tuple[Try, ...], now: datetime, loss: _FailureCause) -> Plan:
    status = _started(_observed(view, replicas), replicas, now)
    status = _with_failures(view, status, replicas, now, cause=loss.cause)
    status = under_way(status, now, made=_made(replicas), members=len(replicas))
    status = ended(status, Phase.FAILED, now, reason=loss.reason, message=loss.message)
    status = status.but(phase=Phase.FAILED, completion_time=now, start_after=None, preempted="")
    event = EventDraft(reason=loss.reason, message=loss.message, is_warning=True)
    return _with(clean_up(view, replicas, status, now), earlier=created_events(view, replicas), later=(event,))


def _restart_or_stall(view: JobView, replicas: tuple[Try, ...], verdict: RestartVerdict, now: datetime) -> Plan | None:
    """Try those members again that ended and should not have, or all of them when nobody says anything any more."""
    if verdict.again:
        return _restart(view, replicas, verdict, now=now)
    since = silence(view, replicas, now).since
    return None if since is None else _restart_stalled(view, replicas, since, now)


def _restart(view: JobView, replicas: tuple[Try, ...], verdict: RestartVerdict, *, now: datetime) -> Plan:
    """Count first, unmake next, make later: nothing is created in the pass that counts."""
    cause = next((replica for replica in verdict.again if replica.has_failed), None)
    status = _started(_observed(view, replicas), replicas, now)
    status = _with_failures(view, status, replicas, now, cause=cause)
    status = restarted(status, view.gang, verdict.again, now)
    is_whole = restarts_whole_gang(view.gang, verdict.again)
    names = "all members" if is_whole else ", ".join(str(replica.place) for replica in verdict.again)
    reason = say_failure(failure_of(cause)) if cause else "restartPolicy is Always"
    message = f"{reason}; next try of {names} {_say_count(view.gang, status)}"
    event = EventDraft(reason=RESTARTING, message=message, is_warning=cause is not None)
    return _begin_next(view, replicas, status, event, now=now)


def _restart_stalled(view: JobView, replicas: tuple[Try, ...], since: datetime, now: datetime) -> Plan:
    """Try all members again of which none writes anything; nobody knows which of them hangs."""
    explanation = say_stalled(view.gang, since)
    if refusal := why_not_again(view):
        return _fail(view, replicas, now, _FailureCause(reason=STALLED, message=f"{explanation}; {refusal}"))
    status = restart_all(_started(_observed(view, replicas), replicas, now), view.gang, now)
    event = EventDraft(
        reason=STALLED,
        message=f"{explanation}; next try of all members {_say_count(view.gang, status)}",
        is_warning=True,
    )
    return _begin_next(view, replicas, status, event, now=now)


def _say_count(gang: Gang, status: JobStatus) -> str:
    most = "" if gang.backoff_limit is None else f" of at most {gang.backoff_limit}"
    return f"(restart {status.backoff_count}{most})"


def _begin_next(
    view: JobView, replicas: tuple[Try, ...], status: JobStatus, event: EventDraft, *, now: datetime
) -> Plan:
    """Unmake what has to go before the tries that a status has counted."""
    is_whole = status.attempt > view.status.attempt
    if is_whole and status.phase is Phase.RUNNING:
        status = status.but(phase=Phase.PENDING)
    next_tries = tries_of(view, status)
    status = _set_running_conditions(view.gang, with_tasks(status, next_tries), now, replicas=next_tries)
    plan = Plan(status=status, delete=unfinished(view.pods) if is_whole else (), wake_at=status.start_after)
    return _with(plan, earlier=created_events(view, replicas), later=(event,))


def _reconcile_replicas(view: JobView, replicas: tuple[Try, ...], now: datetime) -> Plan:
    """Make what is missing, once what is old has gone, and say how far the job is."""
    old = tuple(pod for pod in older_pods(view, replicas) if not pod.phase.is_final)
    # Somebody who asks for a restart waits no longer for the one that comes anyway.
    not_before = None if is_wished(view) else backoff_until(view.status, now)
    create = () if not_before else _missing(view, replicas, old)
    status = _observed(view, replicas).but(start_after=not_before)
    status = _with_failures(view, _started(status, replicas, now), replicas, now, cause=None)
    status = _set_running_conditions(view.gang, status, now, replicas=replicas, old=old)
    quiet = silence(view, replicas, now)
    wake_at = min((moment for moment in (status.start_after, quiet.look_at) if moment is not None), default=None)
    plan = Plan(status=status, delete=unfinished(old), create=create, wake_at=wake_at, listen=quiet.ask)
    return _with(
        with_deadlines(view, plan), earlier=created_events(view, replicas), later=transition_events(view.status, status)
    )


def _missing(view: JobView, replicas: tuple[Try, ...], old: tuple[PodSeen, ...]) -> tuple[NewPod, ...]:
    # Old and new ranks must never share a rendezvous, nor two tries one place: the old ones go first.
    if old and is_new_meeting(view.gang, replicas):
        return ()
    taken = {pod.place for pod in old}
    size, is_alone = gang_size(view.gang, replicas), comes_alone(view.gang, replicas)
    return tuple(
        NewPod(
            place=replica.place,
            attempt=replica.attempt,
            gang_size=1 if is_alone and view.gang.watches(replica.place) else size,
        )
        for replica in replicas
        if replica.phase is ReplicaPhase.CREATING and replica.place not in taken
    )


def _observed(view: JobView, replicas: tuple[Try, ...]) -> JobStatus:
    # A wish for a restart is granted by a first start too.
    status = view.status.but(observed_generation=view.generation, waiting="", restart_granted=view.restart_wish)
    if view.gang.commit:
        status = status.but(source={"commit": view.gang.commit})
    return with_tasks(status, replicas)


def _started(status: JobStatus, replicas: tuple[Try, ...], now: datetime) -> JobStatus:
    has_started = any(replica.has_started for replica in replicas)
    return status.but(start_time=now) if has_started and status.start_time is None else status


def _with_failures(
    view: JobView, status: JobStatus, replicas: tuple[Try, ...], now: datetime, *, cause: Try | None
) -> JobStatus:
    """Record the failed replica: the cause, else the recorded one, else the first; cleared once all run."""
    failed = failed_first(replicas)
    if not failed:
        is_well = all(replica.has_started for replica in replicas)
        if is_well or status.condition(REPLICA_FAILURE) is None:
            return put(status, Condition(type=REPLICA_FAILURE, status=False, reason=NONE, since=now))
        return status
    failure = status.failure
    is_named = failure is not None and failure.pod in {replica.name for replica in failed}
    to_blame = cause if cause is not None else None if is_named else failed[0]
    if failure is None or (to_blame is not None and failure.pod != to_blame.name):
        failure = _failure(view, to_blame or failed[0])
    message = say_failure(failure)
    condition = Condition(type=REPLICA_FAILURE, status=True, reason="ErrorInPod", message=message, since=now)
    return put(status, condition).but(failure=failure)


def _made(replicas: tuple[Try, ...]) -> int:
    return sum(replica.phase is not ReplicaPhase.CREATING for replica in replicas)


def _set_running_conditions(
    gang: Gang, status: JobStatus, now: datetime, *, replicas: tuple[Try, ...], old: tuple[PodSeen, ...] = ()
) -> JobStatus:
    """Set phase, waiting and the conditions of a job that is under way."""
    status = under_way(status, now, made=_made(replicas), members=len(replicas))
    if is_up(gang, replicas):
        status = status.but(phase=Phase.RUNNING, running_time=status.running_time or now)
    if all(replica.has_started for replica in replicas):
        failed = sum(replica.has_failed for replica in replicas)
        message = f"{len(replicas) - failed} of {len(replicas)} pods run" if failed else "all pods run"
        status = status.but(preempted="")
        return put(status, Condition(type=RUNNING, status=True, reason=NONE, message=message, since=now))
    waiting = _why(status, replicas, old)
    is_running = status.phase is Phase.RUNNING
    reason = waiting.reason if waiting else NONE
    message = waiting.text if waiting else "pods are starting"
    return put(status, Condition(type=RUNNING, status=is_running, reason=reason, message=message, since=now)).but(
        phase=status.phase if is_running or status.phase is Phase.RESUMING else Phase.PENDING,
        waiting=waiting.text if waiting else "",
    )


def _why(status: JobStatus, replicas: tuple[Try, ...], old: tuple[PodSeen, ...]) -> Waiting | None:
    if status.start_after is not None:
        cause = f" after {say_failure(status.failure)}" if status.failure else ""
        text = f"restart {status.backoff_count} comes at {to_wire(status.start_after)}{cause}"
        return Waiting(reason=RESTARTING, text=text)
    if old:
        pods = "1 pod of an older try has" if len(old) == 1 else f"{len(old)} pods of an older try have"
        return _after(status, Waiting(reason=RESTARTING, text=f"{pods} not ended yet"))
    return _after(status, why_waiting(replicas))


def _after(status: JobStatus, waiting: Waiting | None) -> Waiting | None:
    """Put the preemption message of a preempted job first."""
    if not status.preempted:
        return waiting
    explanation = f"; {waiting.text}" if waiting else ""
    return Waiting(reason=waiting.reason if waiting else PREEMPTED, text=f"{status.preempted}{explanation}")


def _with(plan: Plan, *, earlier: tuple[EventDraft, ...] = (), later: tuple[EventDraft, ...] = ()) -> Plan:
    return replace(plan, tell=(*earlier, *plan.tell, *later))
