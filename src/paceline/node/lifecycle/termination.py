"""How a pod's containers are brought to an end: the main ones first, then its sidecars, the last started first."""

import re
import signal
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, annotations_of
from paceline.apimachinery.pods import sidecars_of
from paceline.apimachinery.timestamps import from_wire
from paceline.model import well_known_labels
from paceline.node.lifecycle.view import PRE_STOP, Plan, Seen, Try, has_hook

DEFAULT_GRACE_SECONDS = 30
# What a container gets once it is told to stop, however long its last hook and those before it took.
LEAST_GRACE = timedelta(seconds=2)
DEADLINE = "DeadlineExceeded"
EVICTED = "Evicted"
OVERDUE = "Pod was active on the node longer than the specified deadline"


def stop_signal(container: Mapping[str, Any]) -> int:
    """Give the signal by which a container is asked to stop: `lifecycle.stopSignal`, such as SIGINT, or SIGTERM."""
    word = str((container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM")
    number = _number_of(word)
    return signal.SIGTERM.value if number is None else number


def chosen_signal(pod: Object, name: str) -> int | None:
    """Give the signal that somebody chose for a pod's main containers when it was stopped; None for their own."""
    word = annotations_of(pod).get(well_known_labels.STOP_SIGNAL, "")
    return _number_of(word) if word and name not in sidecars_of(pod) else None


def _number_of(word: str) -> int | None:
    """Read a signal's name; None for one that this system does not have."""
    name = re.split(r"[-+]", word)[0]
    if name not in signal.Signals.__members__:
        return None
    # Those for real time are counted from the first or back from the last: SIGRTMIN+3.
    step = word.removeprefix(name) or "0"
    return signal.Signals[name].value + int(step) if re.fullmatch(r"[-+]?\d{1,2}", step) else None


def deadline_of(pod: Object) -> datetime | None:
    """Say until when a pod may be active; None when nobody said so, or it has not begun."""
    seconds, began = pod["spec"].get("activeDeadlineSeconds"), (pod.get("status") or {}).get("startTime")
    return from_wire(began) + timedelta(seconds=seconds) if seconds is not None and began else None


def is_overdue(pod: Object, now: datetime) -> bool:
    """Tell whether a pod has been active for longer than it may."""
    deadline = deadline_of(pod)
    return deadline is not None and deadline <= now


def held_tries(seen: Seen) -> dict[str, Try]:
    """Find the containers that run."""
    return {name: each for name, each in seen.tries.items() if each.is_held and each.ended is None}


def grace_seconds(pod: Object) -> int:
    """Say how long a pod's containers may take to stop."""
    chosen = (pod["metadata"].get("deletionGracePeriodSeconds"), pod["spec"].get("terminationGracePeriodSeconds"))
    return int(next((seconds for seconds in chosen if seconds is not None), DEFAULT_GRACE_SECONDS))


def grace_of(seen: Seen, name: str) -> int:
    """Say how long one container may take: a probe that found it dead may give it less than its pod does."""
    health = seen.health.get(name)
    own = None if health is None or health.alive else health.grace_seconds
    return grace_seconds(seen.pod) if own is None else own


def stop(seen: Seen, now: datetime) -> Plan:
    """Ask, wait for the grace period, kill; one after the other where the order matters."""
    grace = timedelta(seconds=grace_seconds(seen.pod))
    held = held_tries(seen)
    # Asked in the future: the clock was set back, and the grace period begins again.
    asked = {name: each.asked_at for name, each in seen.tries.items() if each.asked_at and each.asked_at <= now}
    begun = min(asked.values(), default=now)
    ask, ends = [], {}
    for name in _next_to_go(seen, held):
        if name not in asked and grace:
            ask.append(name)
        ends[name] = max(begun + grace, _least(seen, name, asked.get(name, now), grace)) if grace else now
    kill = tuple(name for name, end in ends.items() if end <= now)
    waits = [end for end in ends.values() if end > now]
    return Plan(ask=tuple(ask), kill=kill, ends=ends, wake_at=min(waits, default=None))


def stop_sick(seen: Seen, now: datetime) -> Plan:
    """Ask containers to go that a probe found dead, and kill those that took too long; the pod lives on."""
    ask, ends = [], {}
    for name, each in held_tries(seen).items():
        health = seen.health.get(name)
        if health is None or health.alive:
            continue
        grace = timedelta(seconds=grace_of(seen, name))
        asked = each.asked_at if each.asked_at is not None and each.asked_at <= now else None
        if asked is None and grace:
            ask.append(name)
        begun = asked or now
        ends[name] = max(begun + grace, _least(seen, name, begun, grace)) if grace else now
    waits = [end for end in ends.values() if end > now]
    kill = tuple(name for name, end in ends.items() if end <= now)
    return Plan(ask=tuple(ask), kill=kill, ends=ends, wake_at=min(waits, default=None))


def _least(seen: Seen, name: str, asked: datetime, grace: timedelta) -> datetime:
    """Say until when a container is left alone: its last hook has the grace period, and only then is it told."""
    if name in seen.told:
        return seen.told[name] + LEAST_GRACE
    return asked + (grace if has_hook(seen.pod, name, PRE_STOP) else timedelta()) + LEAST_GRACE


def _next_to_go(seen: Seen, held: Mapping[str, Try]) -> tuple[str, ...]:
    """Name the containers whose turn to stop it is."""
    sidecars = sidecars_of(seen.pod)
    main = tuple(name for name in held if name not in sidecars)
    if main or not grace_seconds(seen.pod):
        return main or tuple(held)
    return tuple(each for each in reversed(sidecars) if each in held)[:1]
