"""The one decision about a pod: given what its folders say, what should happen next?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paceline.apimachinery.meta import Object, is_deleting
from paceline.apimachinery.pods import is_sidecar, is_terminal
from paceline.node.lifecycle.pod_status import is_over, pod_status
from paceline.node.lifecycle.termination import deadline_of, held_tries, is_overdue, stop, stop_sick
from paceline.node.lifecycle.view import Ended, Plan, Role, Seen, Start, comes_again, pause_after, post_start_done

KILLED = 137
# A shim that holds its folder but has not yet said who it is does so within moments.
MOMENT = timedelta(milliseconds=50)


def decide(seen: Seen, now: datetime) -> Plan:
    """Choose the next step for one pod.

    The branches are ordered: a rule may assume that every rule above it did not apply.
    """
    if lost := tuple(_lost(seen, now)):
        return Plan(record=lost)
    held = held_tries(seen)
    status = pod_status(seen, now)
    if is_deleting(seen.pod):
        return replace(stop(seen, now), status=status, remove=not held)
    if is_terminal(seen.pod):
        # Terminal is terminal; what still runs was given up by whoever set the phase.
        return Plan(kill=tuple(held))
    if seen.evicted or is_overdue(seen.pod, now) or is_over(seen):
        return replace(stop(seen, now), status=status)
    steps = tuple(_steps(seen, now))
    wakes = [step.at for step in steps if step.at is not None and step.at > now]
    if (deadline := deadline_of(seen.pod)) is not None:
        wakes.append(deadline)
    sick = stop_sick(seen, now)
    wakes.extend([] if sick.wake_at is None else [sick.wake_at])
    starts = tuple(
        step.start
        for step in steps
        if step.start and step.start.container not in seen.problems and (step.at is None or step.at <= now)
    )
    return replace(sick, start=starts, status=status, wake_at=min(wakes, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A container to start, at once or at a moment; or only a moment to look again."""

    start: Start | None = None
    at: datetime | None = None


def _steps(seen: Seen, now: datetime) -> Iterator[_Step]:
    """Init containers one after the other, sidecars among them, then all others side by side."""
    spec = seen.pod["spec"]
    # From then on sidecars may come and go.
    has_begun = any(name in seen.tries for name in names_of(spec["containers"]))
    for container in spec.get("initContainers") or ():
        name = str(container["name"])
        each = seen.tries.get(name)
        if is_sidecar(container):
            yield from _step(seen, name, now, role=Role.SIDECAR)
            if not has_begun and (each is None or each.started is None or not _has_started(seen, name)):
                return
        elif each is None or each.ended is None or each.ended.exit_code != 0:
            yield from _step(seen, name, now, role=Role.INIT)
            return
    for name in names_of(spec["containers"]):
        yield from _step(seen, name, now, role=Role.MAIN)
        if not post_start_done(seen, name):
            # As with a kubelet, those that follow wait for its first hook.
            return


def _has_started(seen: Seen, name: str) -> bool:
    """Tell whether a sidecar runs, and its first hook and its startup probe, if any, let the next container start."""
    each, health = seen.tries[name], seen.health.get(name)
    return each.ended is None and post_start_done(seen, name) and (health is None or health.started)


def _step(seen: Seen, name: str, now: datetime, *, role: Role) -> Iterator[_Step]:
    each = seen.tries.get(name)
    if each is None:
        yield _Step(start=Start(container=name, restarts=0))
    elif each.started is None:
        # A shim that holds the folder is about to say that it started; without one the try was never begun.
        again = Start(container=name, restarts=each.restarts)
        yield _Step(at=now + MOMENT) if each.is_held else _Step(start=again)
    elif each.ended is not None and comes_again(seen.pod, each.ended, role):
        yield _Step(
            # Not counted from a moment yet to come: the clock may have been set back since.
            start=Start(container=name, restarts=each.restarts + 1),
            at=min(each.ended.finished_at, now) + pause_after(each),
        )


def _lost(seen: Seen, now: datetime) -> Iterator[tuple[str, Ended]]:
    """Find tries that were begun, are not held by any shim, and have no record of their end."""
    for name, each in seen.tries.items():
        if each.started is None or each.ended is not None or each.is_held:
            continue
        who = each.started.identity
        is_reboot = who is None or who.boot_id != seen.boot_id
        reason, message = ("NodeRebooted", REBOOTED) if is_reboot else ("ShimLost", LOST)
        yield name, Ended(exit_code=KILLED, reason=reason, message=message, started_at=each.started.at, finished_at=now)


REBOOTED = "the machine was started anew while the container ran"
LOST = "the container's keeper was killed, and all that it kept with it; how the program ended is not known"


def names_of(containers: Iterable[Object] | None) -> tuple[str, ...]:
    """Name containers in their order."""
    return tuple(str(container["name"]) for container in containers or ())
