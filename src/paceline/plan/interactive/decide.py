"""The decision for one TensorBoard or Notebook: given what we see, what should happen next to it?"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paceline.apimachinery.timestamps import to_wire
from paceline.model.interactive import INSIDE, InteractiveWorkload
from paceline.model.interactive_status import ServiceCondition, ServicePhase, ServiceStatus, Trait
from paceline.plan.job.plan import EventDraft
from paceline.plan.job.view import PodPhase

# T9k's reason where there is nothing to explain.
NONE = "-"
# Why it is suspended: its author says so, nobody used it, or its program ended by itself.
ASKED, IDLE, ENDED = "Suspended", "Idle", "Ended"
# T9k calls it idle after an hour.
IDLE_AFTER = timedelta(hours=1)
# A pod that failed is not made again at once.
PAUSE = timedelta(seconds=10)
# How exactly it is written down when it was last used, at most.
EXACTNESS = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePod:
    """One pod, as its status tells it."""

    name: str
    uid: str
    phase: PodPhase = PodPhase.PENDING
    is_ready: bool = False
    is_deleting: bool = False
    # Of the spec it was made from.
    digest: str = ""
    # Why it waits or failed, as scheduler or node say it.
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is known of the people who look into it; nothing where requests are not counted."""

    is_counted: bool = False
    # When it was last used in any way, and when somebody last opened it or asked for it to go on.
    used: datetime | None = None
    opened: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSeen:
    """Everything one decision may look at."""

    window: InteractiveWorkload
    status: ServiceStatus
    pods: tuple[ServicePod, ...] = ()
    # Whether the service in front of the pod is there, of which type it is, and where it is reached from outside.
    has_door: bool = False
    door_type: str = INSIDE
    address: str = ""
    generation: int = 1
    use: Use = Use()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """Everything one decision may ask for, in the order it is carried out: write, unmake, make, tell."""

    status: ServiceStatus
    delete: tuple[ServicePod, ...] = ()
    makes_door: bool = False
    changes_door: bool = False
    makes_pod: bool = False
    tell: tuple[EventDraft, ...] = ()
    wake_at: datetime | None = None


def decide(seen: ServiceSeen, now: datetime) -> ServicePlan:
    """Choose the next step.

    The branches are ordered: a rule may assume that every rule above it did not apply.
    """
    plan = _decide(seen, now)
    return replace(
        plan,
        makes_door=not seen.has_door,
        changes_door=seen.has_door and seen.door_type != seen.window.service_type,
        tell=_news(seen.status, plan.status),
    )


def _decide(seen: ServiceSeen, now: datetime) -> ServicePlan:
    window = seen.window
    if window.is_suspended:
        return _suspend(seen, now, reason=ASKED, message="spec.suspend is true; set it to false to go on")
    rest = seen.status.condition(Trait.SUSPENDED)
    if rest is not None and rest.status and rest.reason in (IDLE, ENDED) and not _is_wanted(seen, rest.since):
        return _suspend(seen, now, reason=rest.reason, message=rest.message)
    if window.ends_by_itself and any(pod.phase is PodPhase.SUCCEEDED for pod in seen.pods):
        message = "its program has ended: it was shut down, or nobody had used it for long; open it to go on"
        return _suspend(seen, now, reason=ENDED, message=message)
    # Whoever comes back has all of the time before it counts as idle.
    last = now if rest is not None and rest.status else _last_use(seen, now)
    if last is not None and _may_idle(seen) and now - last >= timedelta(seconds=window.idle_seconds):
        message = f"nobody has used it for {window.idle_seconds} seconds; open it to go on"
        return _suspend(seen, now, reason=IDLE, message=message)
    return _go_on(seen, now, last=last)


def _is_wanted(seen: ServiceSeen, since: datetime) -> bool:
    """Tell whether somebody has opened it since it was suspended."""
    return seen.use.opened is not None and seen.use.opened >= since


def _may_idle(seen: ServiceSeen) -> bool:
    """Tell whether it is known when nobody uses it: who comes from outside is not counted."""
    is_counted = seen.use.is_counted and seen.window.service_type == INSIDE
    return is_counted and seen.window.idle_seconds > 0 and not seen.window.ends_by_itself


def _last_use(seen: ServiceSeen, now: datetime) -> datetime | None:
    """Return when it was last used; a moment still to come is of somebody's clock that is wrong, and says nothing."""
    known = (seen.status.last_activity, seen.use.used, seen.use.opened)
    return max((moment for moment in known if moment is not None and moment <= now), default=None)


def _suspend(seen: ServiceSeen, now: datetime, *, reason: str, message: str) -> ServicePlan:
    """Give the pod back; the object, the service and the token stay."""
    idle = reason != ASKED
    status = _named(seen).but(phase=ServicePhase.PAUSED, waiting="", start_after=None, last_activity=None, pod=None)
    for trait, holds in ((Trait.READY, False), (Trait.IDLE, idle), (Trait.SUSPENDED, True)):
        status = status.put(ServiceCondition(type=trait, status=holds, reason=reason, message=message, since=now))
    return ServicePlan(status=status, delete=tuple(pod for pod in seen.pods if not pod.is_deleting))


def _go_on(seen: ServiceSeen, now: datetime, *, last: datetime | None) -> ServicePlan:
    """Have one pod, of today's spec, once what is old has gone."""
    old = tuple(pod for pod in seen.pods if not _is_current(pod, seen.window))
    current = next((pod for pod in seen.pods if pod not in old), None)
    has_failed = any(pod.phase.is_final and not pod.is_deleting for pod in old)
    held = now + PAUSE if has_failed else seen.status.start_after
    held = held if held is not None and held > now else None
    makes_pod = not seen.pods and held is None
    if makes_pod or last is None:
        # The time begins anew, also when nobody knows any more when it began.
        last = now
    status = _named(seen).but(
        start_after=held,
        last_activity=last if makes_pod else _written(seen, last),
        pod=(current.name, current.uid, current.phase.value) if current else None,
    )
    status = _with_readiness(status, current, now, old=old)
    status = _with_idleness(status, now, last=last, seen=seen)
    going = ServiceCondition(type=Trait.SUSPENDED, status=False, reason=NONE, since=now)
    return ServicePlan(
        status=status.put(going),
        delete=tuple(pod for pod in old if not pod.is_deleting),
        makes_pod=makes_pod,
        wake_at=_next_look(seen, held, last, now=now),
    )


def _is_current(pod: ServicePod, window: InteractiveWorkload) -> bool:
    return not pod.is_deleting and not pod.phase.is_final and pod.digest == window.digest


def _named(seen: ServiceSeen) -> ServiceStatus:
    secret = seen.window.secret if seen.window.has_token else ""
    return seen.status.but(
        observed_generation=seen.generation, url=seen.window.url, address=seen.address, secret=secret
    )


def _written(seen: ServiceSeen, last: datetime) -> datetime | None:
    """Give what is written of the last use: every request would be too often."""
    known = seen.status.last_activity
    if not _may_idle(seen):
        return known
    exactness = min(EXACTNESS, timedelta(seconds=seen.window.idle_seconds) / 4)
    return known if known is not None and last - known < exactness else last


def _with_readiness(
    status: ServiceStatus, pod: ServicePod | None, now: datetime, *, old: tuple[ServicePod, ...]
) -> ServiceStatus:
    is_ready = pod is not None and pod.is_ready
    reason, waiting = (NONE, "") if is_ready else _why(status, pod, old)
    message = "it answers" if is_ready else waiting or "its pod is starting"
    ready = ServiceCondition(type=Trait.READY, status=is_ready, reason=reason, message=message, since=now)
    phase = ServicePhase.RUNNING if is_ready else ServicePhase.INITIALIZING
    return status.put(ready).but(phase=phase, waiting=waiting)


def _why(status: ServiceStatus, pod: ServicePod | None, old: tuple[ServicePod, ...]) -> tuple[str, str]:
    """Say in a word and in a sentence why it does not answer, if there is more to say than that it starts."""
    if status.start_after is not None:
        failed = next((f": pod {each.name} failed: {each.reason} {each.message}".rstrip() for each in old), "")
        return "Restarting", f"the next pod comes at {to_wire(status.start_after)}{failed}"
    if old:
        return "Restarting", f"pod {old[0].name} has not ended yet"
    if pod is not None and pod.reason:
        return pod.reason, f"pod {pod.name}: {pod.message or pod.reason}"
    return NONE, ""


def _with_idleness(status: ServiceStatus, now: datetime, *, last: datetime, seen: ServiceSeen) -> ServiceStatus:
    is_idle = _may_idle(seen) and now - last >= IDLE_AFTER
    message = f"nobody has used it since {to_wire(last)}" if is_idle else ""
    reason = "NotUsed" if is_idle else NONE
    return status.put(ServiceCondition(type=Trait.IDLE, status=is_idle, reason=reason, message=message, since=now))


def _next_look(seen: ServiceSeen, held: datetime | None, last: datetime, *, now: datetime) -> datetime | None:
    moments = [held] if held is not None else []
    if _may_idle(seen):
        moments += [last + IDLE_AFTER, last + timedelta(seconds=seen.window.idle_seconds)]
    return min((moment for moment in moments if moment > now), default=None)


def _news(before: ServiceStatus, after: ServiceStatus) -> tuple[EventDraft, ...]:
    """Tell what has changed since the last pass, each thing once."""
    if after.phase is not before.phase and after.phase is ServicePhase.RUNNING:
        return (EventDraft(reason="Running", message=f"it answers at {after.url}"),)
    here, then = after.condition(Trait.SUSPENDED), before.condition(Trait.SUSPENDED)
    was_suspended = then is not None and then.status
    if here is not None and here.status and not was_suspended:
        return (EventDraft(reason="Suspended", message=here.message),)
    if was_suspended and here is not None and not here.status:
        return (EventDraft(reason="Resumed", message="it goes on; its pod is made anew"),)
    ready, unready = after.condition(Trait.READY), before.condition(Trait.READY)
    if after.waiting and ready is not None and (unready is None or unready.reason != ready.reason):
        return (EventDraft(reason=ready.reason, message=after.waiting, is_warning=True),)
    return ()


def refused(status: ServiceStatus, message: str, now: datetime) -> ServiceStatus:
    """Say that nothing is done for it until its author changes it."""
    wrong = ServiceCondition(type=Trait.READY, status=False, reason="Invalid", message=message, since=now)
    return status.put(wrong).but(waiting=message)
