"""Stop the containers of a pod: the main ones first, then its sidecars in reverse order of their start."""

import re
import signal
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of
from paceline.apimachinery.pods import DEFAULT_GRACE_SECONDS, sidecars_of
from paceline.apimachinery.timestamps import from_wire
from paceline.model import well_known_labels
from paceline.node.lifecycle.view import PRE_STOP, PodPlan, PodView, has_hook

# What a container gets after its stop signal, however long its preStop hook and other containers took.
MIN_GRACE = timedelta(seconds=2)
DEADLINE = "DeadlineExceeded"
EVICTED = "Evicted"
OVERDUE = "Pod was active on the node longer than the specified deadline"


def stop_signal(container: Mapping[str, Any]) -> int:
    """Return the signal that asks a container to stop: `lifecycle.stopSignal`, such as SIGINT, or SIGTERM."""
    name = str((container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM")
    number = _signal_number(name)
    return signal.SIGTERM.value if number is None else number


def chosen_signal(pod: Object, name: str) -> int | None:
    """Return the signal that the user chose for the main containers of a stopped pod; None for their own."""
    chosen = annotations_of(pod).get(well_known_labels.STOP_SIGNAL, "")
    return _signal_number(chosen) if chosen and name not in sidecars_of(pod) else None


def _signal_number(text: str) -> int | None:
    """Parse a signal's name; None for one that this system does not have."""
    name = re.split(r"[-+]", text)[0]
    if name not in signal.Signals.__members__:
        return None
    # Real-time signals are counted from the first or back from the last: SIGRTMIN+3.
    step = text.removeprefix(name) or "0"
    return signal.Signals[name].value + int(step) if re.fullmatch(r"[-+]?\d{1,2}", step) else None


def deadline_of(pod: Object) -> datetime | None:
    """Return until when a pod may be active; None without a deadline or before its start."""
    seconds, began = pod["spec"].get("activeDeadlineSeconds"), (pod.get("status") or {}).get("startTime")
    return from_wire(began) + timedelta(seconds=seconds) if seconds is not None and began else None


def is_overdue(pod: Object, now: datetime) -> bool:
    """Return whether a pod has been active for longer than its deadline allows."""
    deadline = deadline_of(pod)
    return deadline is not None and deadline <= now


def grace_seconds(pod: Object) -> int:
    """Return the termination grace period of a pod."""
    chosen = (pod["metadata"].get("deletionGracePeriodSeconds"), pod["spec"].get("terminationGracePeriodSeconds"))
    return int(next((seconds for seconds in chosen if seconds is not None), DEFAULT_GRACE_SECONDS))


def grace_of(view: PodView, name: str) -> int:
    """Return the grace period of one container: a failed probe may set a shorter one than its pod."""
    health = view.health.get(name)
    seconds = None if health is None or health.alive else health.grace_seconds
    return grace_seconds(view.pod) if seconds is None else seconds


def stop(view: PodView, now: datetime) -> PodPlan:
    """Request the stop of the containers whose turn it is, and kill those whose grace period is over."""
    grace = timedelta(seconds=grace_seconds(view.pod))
    requests = {name: request for name in view.attempts if (request := _request_of(view, name, now))}
    begun = min(requests.values(), default=now)
    kill_at = {
        name: max(begun + grace, _earliest_kill(view, name, requests.get(name, now), grace)) if grace else now
        for name in _next_to_stop(view)
    }
    return _plan(kill_at, tuple(name for name in kill_at if name not in requests and grace), now)


def stop_unhealthy(view: PodView, now: datetime) -> PodPlan:
    """Stop containers that failed a probe or their postStart hook; the pod lives on."""
    asks, kill_at = [], {}
    for name in view.running:
        health = view.health.get(name)
        if health is None or health.alive:
            continue
        grace = timedelta(seconds=grace_of(view, name))
        request = _request_of(view, name, now)
        if request is None and grace:
            asks.append(name)
        begun = request or now
        kill_at[name] = max(begun + grace, _earliest_kill(view, name, begun, grace)) if grace else now
    return _plan(kill_at, tuple(asks), now)


def _request_of(view: PodView, name: str, now: datetime) -> datetime | None:
    """Return when a container was asked to stop; a request in the future (the clock was set back) does not count."""
    request = view.attempts[name].stop_requested_at
    return request if request is not None and request <= now else None


def _plan(kill_at: Mapping[str, datetime], asks: tuple[str, ...], now: datetime) -> PodPlan:
    kill = tuple(name for name, deadline in kill_at.items() if deadline <= now)
    wake_at = min((deadline for deadline in kill_at.values() if deadline > now), default=None)
    return PodPlan(stop=asks, kill=kill, kill_at=kill_at, wake_at=wake_at)


def _earliest_kill(view: PodView, name: str, request: datetime, grace: timedelta) -> datetime:
    """Return until when a container is not killed: its signal follows its preStop hook, which has the grace period."""
    if name in view.signalled_at:
        return view.signalled_at[name] + MIN_GRACE
    return request + (grace if has_hook(view.pod, name, PRE_STOP) else timedelta()) + MIN_GRACE


def _next_to_stop(view: PodView) -> tuple[str, ...]:
    """Return the running containers whose turn to stop it is."""
    running, sidecars = view.running, sidecars_of(view.pod)
    main = tuple(name for name in running if name not in sidecars)
    if main or not grace_seconds(view.pod):
        return main or tuple(running)
    return tuple(name for name in reversed(sidecars) if name in running)[:1]
