"""The decision about one TensorBoard or Notebook: what should happen next?"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paceline.apimachinery.timestamps import to_wire
from paceline.model import reasons
from paceline.model.interactive import INSIDE, InteractiveWorkload, ServicePhase, ServiceStatus, Trait
from paceline.plan.job.plan import EventDraft
from paceline.plan.job.snapshot import PodPhase

# T9k calls it idle after an hour.
IDLE_AFTER = timedelta(hours=1)
# The back-off before a failed pod is created again.
PAUSE = timedelta(seconds=10)
# The precision with which the last use is recorded.
EXACTNESS = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePod:
    """A pod, from its status."""

    name: str
    uid: str
    phase: PodPhase = PodPhase.PENDING
    is_ready: bool = False
    is_deleting: bool = False
    # The digest of the spec it was created from.
    digest: str = ""
    # Why it is pending or failed, as reported by the scheduler or the node.
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """When it was used; empty if requests are not counted."""

    is_counted: bool = False
    # When it was last used, and when it was last opened or resumed by a user.
    used: datetime | None = None
    opened: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSeen:
    """Everything one decision may look at."""

    window: InteractiveWorkload
    status: ServiceStatus
    pods: tuple[ServicePod, ...] = ()
    # Whether the v1.Service exists, its type, and its external URL.
    has_door: bool = False
    door_type: str = INSIDE
    address: str = ""
    generation: int = 1
    use: Use = Use()
    # Who asked for the current spec; empty if unknown.
    asked_by: str = ""
    # Whether the API server serves T9k's URL paths; only the embedded one does.
    serves_pages: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """Everything one decision may ask for, in the order it is applied: write, delete, create, record events."""

    status: ServiceStatus
    delete: tuple[ServicePod, ...] = ()
    makes_door: bool = False
    changes_door: bool = False
    makes_pod: bool = False
    events: tuple[EventDraft, ...] = ()
    wake_at: datetime | None = None

    @property
    def makes_anything(self) -> bool:
        """Whether an object is created or changed, which the cluster may reject."""
        return self.makes_door or self.changes_door or self.makes_pod


def decide(view: ServiceSeen, now: datetime) -> ServicePlan:
    """Choose the next step.

    The branches are ordered: a rule may assume that every rule above it did not apply.
    """
    plan = _decide(view, now)
    return replace(
        plan,
        makes_door=not view.has_door,
        changes_door=view.has_door and view.door_type != view.window.service_type,
        events=_news(view.status, plan.status, asked_by=view.asked_by),
    )


def _decide(view: ServiceSeen, now: datetime) -> ServicePlan:
    window = view.window
    if window.is_suspended:
        return _suspend(view, now, reason=reasons.SUSPENDED, message="spec.suspend is true; set it to false to go on")
    suspension = view.status.condition(Trait.SUSPENDED)
    if (
        suspension is not None
        and suspension.status
        and suspension.reason in (reasons.IDLE, reasons.ENDED)
        and not _is_wanted(view, view.status.suspended_at or suspension.since)
    ):
        return _suspend(view, now, reason=suspension.reason, message=suspension.message)
    if window.ends_by_itself and any(pod.phase is PodPhase.SUCCEEDED for pod in view.pods):
        message = "its program has ended: it was shut down, or was idle for too long; open it to resume"
        return _suspend(view, now, reason=reasons.ENDED, message=message)
    # A resume resets the idle time.
    last = now if suspension is not None and suspension.status else _last_use(view, now)
    if last is not None and _may_idle(view) and now - last >= timedelta(seconds=window.idle_seconds):
        message = f"unused for {window.idle_seconds} seconds; open it to resume"
        return _suspend(view, now, reason=reasons.IDLE, message=message)
    return _go_on(view, now, last=last)


def _is_wanted(view: ServiceSeen, since: datetime) -> bool:
    """Return whether it was opened since it was suspended."""
    return view.use.opened is not None and view.use.opened >= since


def _may_idle(view: ServiceSeen) -> bool:
    """Return whether idleness can be detected: requests from outside the cluster are not counted."""
    is_counted = view.use.is_counted and view.window.service_type == INSIDE
    return is_counted and view.window.idle_seconds > 0 and not view.window.ends_by_itself


def _last_use(view: ServiceSeen, now: datetime) -> datetime | None:
    """Return when it was last used, ignoring times in the future, which come from a wrong clock."""
    moments = (view.status.last_activity, view.use.used, view.use.opened)
    return max((moment for moment in moments if moment is not None and moment <= now), default=None)


def _suspend(view: ServiceSeen, now: datetime, *, reason: str, message: str) -> ServicePlan:
    """Delete the pod; the object, the Service and the token stay."""
    idle = reason != reasons.SUSPENDED
    status = _named(view).but(phase=ServicePhase.PAUSED, waiting="", start_after=None, last_activity=None, pod=None)
    status = status.but(suspended_at=view.status.suspended_at or now)
    for trait, holds in ((Trait.READY, False), (Trait.IDLE, idle), (Trait.SUSPENDED, True)):
        status = status.put(trait, now, holds=holds, reason=reason, message=message)
    return ServicePlan(status=status, delete=tuple(pod for pod in view.pods if not pod.is_deleting))


def _go_on(view: ServiceSeen, now: datetime, *, last: datetime | None) -> ServicePlan:
    """Create a pod of the current spec once older pods have ended."""
    old = tuple(pod for pod in view.pods if not _is_current(pod, view.window))
    current = next((pod for pod in view.pods if pod not in old), None)
    has_failed = any(pod.phase.is_final and not pod.is_deleting for pod in old)
    not_before = now + PAUSE if has_failed else view.status.start_after
    not_before = not_before if not_before is not None and not_before > now else None
    makes_pod = not view.pods and not_before is None
    if makes_pod or last is None:
        # The idle time starts anew.
        last = now
    status = _named(view).but(
        start_after=not_before,
        suspended_at=None,
        last_activity=last if makes_pod else _written(view, last),
        pod=(current.name, current.uid, current.phase.value) if current else None,
    )
    status = _with_readiness(status, current, now, old=old)
    status = _with_idleness(status, now, last=last, view=view)
    return ServicePlan(
        status=status.put(Trait.SUSPENDED, now, holds=False),
        delete=tuple(pod for pod in old if not pod.is_deleting),
        makes_pod=makes_pod,
        wake_at=_next_look(view, not_before, last, now=now),
    )


def _is_current(pod: ServicePod, window: InteractiveWorkload) -> bool:
    return not pod.is_deleting and not pod.phase.is_final and pod.digest == window.digest


def _named(view: ServiceSeen) -> ServiceStatus:
    secret = view.window.secret if view.window.has_token else ""
    url = view.window.url if view.serves_pages else view.window.service_url
    return view.status.but(observed_generation=view.generation, url=url, address=view.address, secret=secret)


def _written(view: ServiceSeen, last: datetime) -> datetime | None:
    """Return the last use with reduced precision, so that not every request causes a write."""
    recorded = view.status.last_activity
    if not _may_idle(view):
        return recorded
    exactness = min(EXACTNESS, timedelta(seconds=view.window.idle_seconds) / 4)
    return recorded if recorded is not None and last - recorded < exactness else last


def _with_readiness(
    status: ServiceStatus, pod: ServicePod | None, now: datetime, *, old: tuple[ServicePod, ...]
) -> ServiceStatus:
    is_ready = pod is not None and pod.is_ready
    reason, waiting = (reasons.NONE, "") if is_ready else _why(status, pod, old)
    message = "it answers" if is_ready else waiting or "its pod is starting"
    phase = ServicePhase.RUNNING if is_ready else ServicePhase.INITIALIZING
    status = status.put(Trait.READY, now, holds=is_ready, reason=reason, message=message)
    return status.but(phase=phase, waiting=waiting)


def _why(status: ServiceStatus, pod: ServicePod | None, old: tuple[ServicePod, ...]) -> tuple[str, str]:
    """Return reason and message why it is not ready; empty while it just starts."""
    if status.start_after is not None:
        failed = next((f": pod {pod.name} failed: {pod.reason} {pod.message}".rstrip() for pod in old), "")
        return reasons.RESTARTING, f"the next pod comes at {to_wire(status.start_after)}{failed}"
    if old:
        return reasons.RESTARTING, f"pod {old[0].name} has not ended yet"
    if pod is not None and pod.reason:
        return pod.reason, f"pod {pod.name}: {pod.message or pod.reason}"
    return reasons.NONE, ""


def _with_idleness(status: ServiceStatus, now: datetime, *, last: datetime, view: ServiceSeen) -> ServiceStatus:
    is_idle = _may_idle(view) and now - last >= IDLE_AFTER
    message = f"unused since {to_wire(last)}" if is_idle else ""
    reason = reasons.NOT_USED if is_idle else reasons.NONE
    return status.put(Trait.IDLE, now, holds=is_idle, reason=reason, message=message)


def _next_look(view: ServiceSeen, not_before: datetime | None, last: datetime, *, now: datetime) -> datetime | None:
    moments = [not_before] if not_before is not None else []
    if _may_idle(view):
        moments += [last + IDLE_AFTER, last + timedelta(seconds=view.window.idle_seconds)]
    return min((moment for moment in moments if moment > now), default=None)


def _news(previous: ServiceStatus, current: ServiceStatus, *, asked_by: str) -> tuple[EventDraft, ...]:
    """Return events for what changed since the last reconcile, each once."""
    if current.phase is not previous.phase and current.phase is ServicePhase.RUNNING:
        return (EventDraft(reason=reasons.RUNNING, message=f"it answers at {current.url}"),)
    suspension, was_suspended = current.condition(Trait.SUSPENDED), previous.is_true(Trait.SUSPENDED)
    if suspension is not None and suspension.status and not was_suspended:
        is_asked = asked_by and suspension.reason == reasons.SUSPENDED
        message = f"suspended by {asked_by}: {suspension.message}" if is_asked else suspension.message
        return (EventDraft(reason=reasons.SUSPENDED, message=message),)
    if was_suspended and suspension is not None and not suspension.status:
        return (EventDraft(reason=reasons.RESUMED, message=_resumed(previous, asked_by)),)
    readiness, previous_readiness = current.condition(Trait.READY), previous.condition(Trait.READY)
    if (
        current.waiting
        and readiness is not None
        and (previous_readiness is None or previous_readiness.reason != readiness.reason)
    ):
        return (EventDraft(reason=readiness.reason, message=current.waiting, is_warning=True),)
    return ()


def _resumed(previous: ServiceStatus, asked_by: str) -> str:
    """Return the message of a resume; after idleness, the first request is what asked for it."""
    suspension = previous.condition(Trait.SUSPENDED)
    is_asked = asked_by and suspension is not None and suspension.reason == reasons.SUSPENDED
    resumed = f"resumed by {asked_by}" if is_asked else "it resumes"
    return f"{resumed}; its pod is created again"


def refused(status: ServiceStatus, message: str, now: datetime) -> ServiceStatus:
    """Return the status of an invalid spec: nothing happens until its author changes it."""
    return status.put(Trait.READY, now, holds=False, reason=reasons.INVALID, message=message).but(waiting=message)


def hindered(view: ServiceSeen, plan: ServicePlan, message: str, *, now: datetime, until: datetime) -> ServicePlan:
    """Return the plan while the cluster rejects an object of it: the status says so, and only a retry is ever new."""
    # A retry does not reset the idle time.
    status = plan.status.but(phase=ServicePhase.INITIALIZING, waiting=message, last_activity=view.status.last_activity)
    status = status.put(Trait.READY, now, holds=False, reason=reasons.REFUSED, message=message)
    plan = replace(plan, status=status, events=())
    if now >= until:
        return plan
    wake_at = until if plan.wake_at is None else min(until, plan.wake_at)
    return replace(plan, makes_door=False, changes_door=False, makes_pod=False, wake_at=wake_at)
