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


def decide(seen: JobView, now: datetime) -> Plan:
    """Choose the next step for one job."""
    seen = with_releases(record_scaled_down(seen))
    gone = unstarted_pods(seen)
    seen = with_new_attempts(seen, gone)
    plan = finalize_output(seen, now) if seen.status.ending else defer_completion(seen, _next(seen, now), now)
    plan = with_last_lines(seen, with_size(seen, plan))
    return plan if plan.status.phase.is_final else _with(plan, before=say_remade(gone))


def _next(seen: JobView, now: datetime) -> Plan:
    """Ask the rules in turn: each may assume that every one above it did not apply."""
    tries = tries_of(seen)
    status = seen.status.but(observed_generation=seen.generation)
    if status.phase.is_final:
        cleaned = clean_up(seen, tries, with_tasks(status, tries), now)
        return expire(seen, evict_preempted(seen, cleaned), now)
    if held := _while_suspended(seen, status, tries, now):
        return held
    verdict = evaluate(seen, tries)
    if rule := holding(seen.gang.success, verdict.done):
        remark = f"; {seen.gang.success_note}" if seen.gang.success_note else ""
        return _succeed(seen, tries, now, f"{say_success(rule)}{remark}")
    if is_preempted(tries):
        return _with(requeue(seen, status, tries), before=created_events(seen, tries))
    if loss := _lost(seen, verdict) or _late(seen, status, tries, now):
        return _fail(seen, tries, now, loss)
    if held := _apply_user_request(seen, status, tries, now):
        return _with(held, before=created_events(seen, tries))
    if again := _restart_or_stall(seen, tries, verdict, now):
        return again
    found = resolve(seen, status, now)
    if isinstance(found, RevisionNotFound):
        return _fail(seen, tries, now, _FailureCause(reason=NOT_FOUND, message=found.message))
    if found is not None:
        return with_deadlines(seen, found)
    return _with(_reconcile_replicas(seen, tries, now), after=lost_replica_events(seen, verdict))


def _while_suspended(seen: JobView, status: JobStatus, tries: tuple[Try, ...], now: datetime) -> Plan | None:
    """Leave a job alone that is paused or suspended, until it is wanted back."""
    if status.phase is Phase.PAUSED:
        return stay(seen, status, tries, now) if seen.is_paused else resume(seen, status, now)
    if is_true(status, SUSPENDED):
        return stay(seen, status, tries, now) if seen.is_suspended else unsuspend(seen, status, now)
    return None


def _apply_user_request(seen: JobView, status: JobStatus, tries: tuple[Try, ...], now: datetime) -> Plan | None:
    """Do what people ask of a job under way: to give its pods back, or to begin anew."""
    if seen.is_paused:
        return pause(seen, status, tries, now)
    if seen.is_suspended:
        return suspend(seen, status, tries, now)
    if is_restart_wanted(seen):
        return begin_again(seen, status, "somebody asked for a restart; next try of all members")
    if is_resized(seen):
        message = f"the job has {len(seen.gang.members)} members now, which start together; next try of all members"
        return begin_again(seen, status, message)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _FailureCause:
    """Why a job cannot succeed any more, and the try that is to blame, if one is."""

    reason: str
    message: str
    cause: Try | None = None


def _lost(seen: JobView, verdict: RestartVerdict) -> _FailureCause | None:
    if not verdict.lost:
        return None
    first = verdict.failed[0]
    # Of several rules that hold, the one about the first failure tells most.
    rules = tuple(sorted(seen.gang.failure, key=lambda rule: first.place not in rule))
    if rule := holding(rules, verdict.lost):
        cause = next(each for each in verdict.failed if each.place in rule)
        said = f"failure rule {say(rule)} holds"
    elif is_hopeless(seen.gang.success, verdict.lost):
        cause, said = first, "no success rule can hold any more"
    elif is_too_small(seen.gang, verdict.lost):
        left = len(seen.gang.members) - len(verdict.lost)
        cause, said = first, f"{left} replicas are left of at least {seen.gang.least}"
    else:
        return None
    message = f"{said}: {say_failure(_failure(seen, cause))}"
    is_memory = is_killed_again(seen.gang, seen.status, cause)
    return _FailureCause(reason=OUT_OF_MEMORY if is_memory else Phase.FAILED.value, message=message, cause=cause)


def _late(seen: JobView, status: JobStatus, tries: tuple[Try, ...], now: datetime) -> _FailureCause | None:
    deadline, beginning = deadline_of(seen.gang, status), start_by(seen, status)
    if deadline is not None and now >= deadline:
        message = f"the job was not done {seen.gang.active_deadline_seconds} seconds after its start"
        return _FailureCause(reason=EXCEEDED, message=message)
    # Who runs at the last moment has run in time, though nobody has written it down yet; who is put on hold has time.
    is_waiting = not seen.is_paused and not seen.is_suspended and not is_up(seen.gang, tries)
    if beginning is not None and now >= beginning and is_waiting:
        return _FailureCause(reason=NOT_STARTED, message=say_not_started(seen.gang, tries))
    return None


def _failure(seen: JobView, cause: Try) -> Failure:
    return failure_of(cause, advice(seen.gang, seen.status, cause) or shared_memory_advice(seen.gang, cause))


def _succeed(seen: JobView, tries: tuple[Try, ...], now: datetime, message: str) -> Plan:
    status = _started(_observed(seen, tries), tries, now)
    status = ended(status, Phase.SUCCEEDED, now, reason=Phase.SUCCEEDED.value, message=message)
    status = status.but(phase=Phase.SUCCEEDED, completion_time=now, start_after=None, failure=None, preempted="")
    told = EventDraft(reason="Succeeded", message=message)
    return _with(clean_up(seen, tries, status, now), before=created_events(seen, tries), after=(told,))


def _fail(seen: JobView, tries: tuple[Try, ...], now: datetime, loss: _FailureCause) -> Plan:
    status = _started(_observed(seen, tries), tries, now)
    status = _with_failures(seen, status, tries, now, cause=loss.cause)
    status = under_way(status, now, made=_made(tries), members=len(tries))
    status = ended(status, Phase.FAILED, now, reason=loss.reason, message=loss.message)
    status = status.but(phase=Phase.FAILED, completion_time=now, start_after=None, preempted="")
    told = EventDraft(reason=loss.reason, message=loss.message, is_warning=True)
    return _with(clean_up(seen, tries, status, now), before=created_events(seen, tries), after=(told,))


def _restart_or_stall(seen: JobView, tries: tuple[Try, ...], verdict: RestartVerdict, now: datetime) -> Plan | None:
    """Try those members again that ended and should not have, or all of them when nobody says anything any more."""
    if verdict.again:
        return _restart(seen, tries, verdict, now=now)
    since = silence(seen, tries, now).since
    return None if since is None else _restart_stalled(seen, tries, since, now)


def _restart(seen: JobView, tries: tuple[Try, ...], verdict: RestartVerdict, *, now: datetime) -> Plan:
    """Count first, unmake next, make later: nothing is created in the pass that counts."""
    cause = next((each for each in verdict.again if each.has_failed), None)
    status = _started(_observed(seen, tries), tries, now)
    status = _with_failures(seen, status, tries, now, cause=cause)
    status = restarted(status, seen.gang, verdict.again, now)
    is_whole = restarts_whole_gang(seen.gang, verdict.again)
    what = "all members" if is_whole else ", ".join(str(each.place) for each in verdict.again)
    why = say_failure(failure_of(cause)) if cause else "restartPolicy is Always"
    message = f"{why}; next try of {what} {_say_count(seen.gang, status)}"
    told = EventDraft(reason=RESTARTING, message=message, is_warning=cause is not None)
    return _begin_next(seen, tries, status, told, now=now)


def _restart_stalled(seen: JobView, tries: tuple[Try, ...], since: datetime, now: datetime) -> Plan:
    """Try all members again of which none writes anything; nobody knows which of them hangs."""
    said = say_stalled(seen.gang, since)
    if why := why_not_again(seen):
        return _fail(seen, tries, now, _FailureCause(reason=STALLED, message=f"{said}; {why}"))
    status = restart_all(_started(_observed(seen, tries), tries, now), seen.gang, now)
    told = EventDraft(
        reason=STALLED, message=f"{said}; next try of all members {_say_count(seen.gang, status)}", is_warning=True
    )
    return _begin_next(seen, tries, status, told, now=now)


def _say_count(gang: Gang, status: JobStatus) -> str:
    most = "" if gang.backoff_limit is None else f" of at most {gang.backoff_limit}"
    return f"(restart {status.backoff_count}{most})"


def _begin_next(seen: JobView, tries: tuple[Try, ...], status: JobStatus, told: EventDraft, *, now: datetime) -> Plan:
    """Unmake what has to go before the tries that a status has counted."""
    is_whole = status.attempt > seen.status.attempt
    if is_whole and status.phase is Phase.RUNNING:
        status = status.but(phase=Phase.PENDING)
    next_tries = tries_of(seen, status)
    status = _set_running_conditions(seen.gang, with_tasks(status, next_tries), now, tries=next_tries)
    plan = Plan(status=status, delete=unfinished(seen.pods) if is_whole else (), wake_at=status.start_after)
    return _with(plan, before=created_events(seen, tries), after=(told,))


def _reconcile_replicas(seen: JobView, tries: tuple[Try, ...], now: datetime) -> Plan:
    """Make what is missing, once what is old has gone, and say how far the job is."""
    old = tuple(pod for pod in older_pods(seen, tries) if not pod.phase.is_final)
    # Somebody who asks for a restart waits no longer for the one that comes anyway.
    held = None if is_wished(seen) else backoff_until(seen.status, now)
    create = () if held else _missing(seen, tries, old)
    status = _observed(seen, tries).but(start_after=held)
    status = _with_failures(seen, _started(status, tries, now), tries, now, cause=None)
    status = _set_running_conditions(seen.gang, status, now, tries=tries, old=old)
    quiet = silence(seen, tries, now)
    wake_at = min((moment for moment in (status.start_after, quiet.look_at) if moment is not None), default=None)
    plan = Plan(status=status, delete=unfinished(old), create=create, wake_at=wake_at, listen=quiet.ask)
    return _with(
        with_deadlines(seen, plan), before=created_events(seen, tries), after=transition_events(seen.status, status)
    )


def _missing(seen: JobView, tries: tuple[Try, ...], old: tuple[PodSeen, ...]) -> tuple[NewPod, ...]:
    # Old and new ranks must never share a rendezvous, nor two tries one place: the old ones go first.
    if old and is_new_meeting(seen.gang, tries):
        return ()
    taken = {pod.place for pod in old}
    size, is_alone = gang_size(seen.gang, tries), comes_alone(seen.gang, tries)
    return tuple(
        NewPod(
            place=each.place,
            attempt=each.attempt,
            gang_size=1 if is_alone and seen.gang.watches(each.place) else size,
        )
        for each in tries
        if each.phase is ReplicaPhase.CREATING and each.place not in taken
    )


def _observed(seen: JobView, tries: tuple[Try, ...]) -> JobStatus:
    # A wish for a restart is granted by a first start too.
    status = seen.status.but(observed_generation=seen.generation, waiting="", restart_granted=seen.restart_wish)
    if seen.gang.commit:
        status = status.but(source={"commit": seen.gang.commit})
    return with_tasks(status, tries)


def _started(status: JobStatus, tries: tuple[Try, ...], now: datetime) -> JobStatus:
    has_started = any(each.has_started for each in tries)
    return status.but(start_time=now) if has_started and status.start_time is None else status


def _with_failures(
    seen: JobView, status: JobStatus, tries: tuple[Try, ...], now: datetime, *, cause: Try | None
) -> JobStatus:
    """Say which try failed: the one to blame, or the one named before, or the first. It stays until all are well."""
    failed = failed_first(tries)
    if not failed:
        is_well = all(each.has_started for each in tries)
        if is_well or status.condition(REPLICA_FAILURE) is None:
            return put(status, Condition(type=REPLICA_FAILURE, status=False, reason=NONE, since=now))
        return status
    failure = status.failure
    is_named = failure is not None and failure.pod in {each.name for each in failed}
    to_blame = cause if cause is not None else None if is_named else failed[0]
    if failure is None or (to_blame is not None and failure.pod != to_blame.name):
        failure = _failure(seen, to_blame or failed[0])
    message = say_failure(failure)
    wrong = Condition(type=REPLICA_FAILURE, status=True, reason="ErrorInPod", message=message, since=now)
    return put(status, wrong).but(failure=failure)


def _made(tries: tuple[Try, ...]) -> int:
    return sum(each.phase is not ReplicaPhase.CREATING for each in tries)


def _set_running_conditions(
    gang: Gang, status: JobStatus, now: datetime, *, tries: tuple[Try, ...], old: tuple[PodSeen, ...] = ()
) -> JobStatus:
    """Set phase, waiting and the conditions of a job that is under way."""
    status = under_way(status, now, made=_made(tries), members=len(tries))
    if is_up(gang, tries):
        status = status.but(phase=Phase.RUNNING, running_time=status.running_time or now)
    if all(each.has_started for each in tries):
        failed = sum(each.has_failed for each in tries)
        message = f"{len(tries) - failed} of {len(tries)} pods run" if failed else "all pods run"
        status = status.but(preempted="")
        return put(status, Condition(type=RUNNING, status=True, reason=NONE, message=message, since=now))
    waiting = _why(status, tries, old)
    is_running = status.phase is Phase.RUNNING
    reason = waiting.reason if waiting else NONE
    message = waiting.text if waiting else "pods are starting"
    return put(status, Condition(type=RUNNING, status=is_running, reason=reason, message=message, since=now)).but(
        phase=status.phase if is_running or status.phase is Phase.RESUMING else Phase.PENDING,
        waiting=waiting.text if waiting else "",
    )


def _why(status: JobStatus, tries: tuple[Try, ...], old: tuple[PodSeen, ...]) -> Waiting | None:
    if status.start_after is not None:
        cause = f" after {say_failure(status.failure)}" if status.failure else ""
        text = f"restart {status.backoff_count} comes at {to_wire(status.start_after)}{cause}"
        return Waiting(reason=RESTARTING, text=text)
    if old:
        pods = "1 pod of an older try has" if len(old) == 1 else f"{len(old)} pods of an older try have"
        return _after(status, Waiting(reason=RESTARTING, text=f"{pods} not ended yet"))
    return _after(status, why_waiting(tries))


def _after(status: JobStatus, waiting: Waiting | None) -> Waiting | None:
    """Say first of a job that gave its room away that it did."""
    if not status.preempted:
        return waiting
    said = f"; {waiting.text}" if waiting else ""
    return Waiting(reason=waiting.reason if waiting else PREEMPTED, text=f"{status.preempted}{said}")


def _with(plan: Plan, *, before: tuple[EventDraft, ...] = (), after: tuple[EventDraft, ...] = ()) -> Plan:
    return replace(plan, tell=(*before, *plan.tell, *after))
