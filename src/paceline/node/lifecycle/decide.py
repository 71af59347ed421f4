"""The decision about one pod: from what its folders record to what happens next."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paceline.apimachinery.meta import is_deleting
from paceline.apimachinery.pods import is_sidecar, is_terminal
from paceline.node.lifecycle.pod_status import is_over, pod_status
from paceline.node.lifecycle.termination import deadline_of, is_overdue, stop, stop_unhealthy
from paceline.node.lifecycle.view import (
    ContainerStart,
    ExitRecord,
    PodPlan,
    PodView,
    Role,
    back_off_after,
    should_restart,
)

KILLED = 137
# A shim writes its start record within this time after it has taken the lock.
START_RECORD_DELAY = timedelta(milliseconds=50)
REBOOTED = "the node was rebooted while the container ran"
LOST = "the container's shim was killed, and the container with it; the exit code of the program is not known"


def decide(view: PodView, now: datetime) -> PodPlan:
    """Choose the next step for one pod.

    The branches are ordered: a rule may assume that every rule above it did not apply.
    """
    if lost := tuple(_lost(view, now)):
        return PodPlan(record=lost)
    running = view.running
    status = pod_status(view, now)
    if is_deleting(view.pod):
        return replace(stop(view, now), status=status, remove=not running)
    if is_terminal(view.pod):
        # The phase is final: its containers that still run are given up.
        return PodPlan(kill=tuple(running))
    if view.eviction or is_overdue(view.pod, now) or is_over(view):
        return replace(stop(view, now), status=status)
    steps = tuple(_steps(view, now))
    unhealthy = stop_unhealthy(view, now)
    wakes = [step.at for step in steps if step.at is not None and step.at > now]
    wakes += [moment for moment in (deadline_of(view.pod), unhealthy.wake_at) if moment is not None]
    starts = tuple(
        step.start
        for step in steps
        if step.start and step.start.container not in view.problems and (step.at is None or step.at <= now)
    )
    return replace(unhealthy, start=starts, status=status, wake_at=min(wakes, default=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A container to start, at once or at a given time; without a container only a time to decide again."""

    start: ContainerStart | None = None
    at: datetime | None = None


def _steps(view: PodView, now: datetime) -> Iterator[_Step]:
    """Yield init containers one after the other, sidecars among them, then all main containers at once."""
    spec = view.pod["spec"]
    main = [str(container["name"]) for container in spec["containers"]]
    # From then on sidecars may stop and restart.
    has_begun = any(name in view.attempts for name in main)
    for container in spec.get("initContainers") or ():
        name = str(container["name"])
        attempt = view.attempts.get(name)
        if is_sidecar(container):
            yield from _step(view, name, now, role=Role.SIDECAR)
            if not has_begun and (attempt is None or attempt.started is None or not _is_up(view, name)):
                return
        elif attempt is None or attempt.ended is None or attempt.ended.exit_code != 0:
            yield from _step(view, name, now, role=Role.INIT)
            return
    for name in main:
        yield from _step(view, name, now, role=Role.MAIN)
        if not view.is_post_start_done(name):
            # As in a kubelet, the following containers wait for its postStart hook.
            return


def _is_up(view: PodView, name: str) -> bool:
    """Return whether a sidecar runs, and its postStart hook and startup probe, if any, let the next container start."""
    health = view.health.get(name)
    has_started = health is None or health.started
    return view.attempts[name].ended is None and view.is_post_start_done(name) and has_started


def _step(view: PodView, name: str, now: datetime, *, role: Role) -> Iterator[_Step]:
    attempt = view.attempts.get(name)
    if attempt is None:
        yield _Step(start=ContainerStart(container=name, restarts=0))
    elif attempt.started is None:
        # A shim that holds the folder is about to record its start; without one the attempt never began.
        retry = ContainerStart(container=name, restarts=attempt.restarts)
        yield _Step(at=now + START_RECORD_DELAY) if attempt.has_shim else _Step(start=retry)
    elif attempt.ended is not None and should_restart(view.pod, attempt.ended, role):
        yield _Step(
            start=ContainerStart(container=name, restarts=attempt.restarts + 1),
            # Never counted from the future: the clock may have been set back since.
            at=min(attempt.ended.finished_at, now) + back_off_after(attempt),
        )


def _lost(view: PodView, now: datetime) -> Iterator[tuple[str, ExitRecord]]:
    """Yield exit records for attempts that began, have no shim any more, and have no exit record."""
    for name, attempt in view.attempts.items():
        if attempt.started is None or attempt.ended is not None or attempt.has_shim:
            continue
        is_reboot = attempt.shim is None or attempt.shim.boot_id != view.boot_id
        reason, message = ("NodeRebooted", REBOOTED) if is_reboot else ("ShimLost", LOST)
        started_at = attempt.started.at
        yield (
            name,
            ExitRecord(exit_code=KILLED, reason=reason, message=message, started_at=started_at, finished_at=now),
        )
