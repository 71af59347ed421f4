"""Probe the running containers of this node for as long as they run.

The results live in memory: a restarted agent probes again, as a kubelet does.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import container_named
from paceline.client.event_recorder import Recorder
from paceline.effects import Clock
from paceline.node.lifecycle.view import POST_START, ContainerAttempt, field_path, has_hook
from paceline.node.probes.prober import Prober, ProbeResult
from paceline.node.probes.probes import (
    LIVENESS,
    NAMES,
    READINESS,
    STARTUP,
    Health,
    Probe,
    Tally,
    count,
    first_tally,
    health_of,
    probes_of,
)

# The pod's uid, the container's name, its restart count.
AttemptKey = tuple[str, str, int]


@dataclass(slots=True, kw_only=True)
class ProbeWorkers:
    """One task for every running container that has probes."""

    prober: Prober
    clock: Clock
    recorder: Recorder
    address: Callable[[Object], str]
    # Called with the uid of a pod whose health has changed.
    on_change: Callable[[str], None]
    _tallies: dict[AttemptKey, dict[str, Tally]] = field(default_factory=dict)
    _tasks: dict[AttemptKey, asyncio.Task[None]] = field(default_factory=dict)
    # Whether the postStart hooks that this process ran succeeded, in case a full disk keeps that from being recorded.
    _post_starts: dict[AttemptKey, bool] = field(default_factory=dict)

    def sync(self, group: asyncio.TaskGroup, pod: Object, attempts: Mapping[str, ContainerAttempt]) -> None:
        """Probe the running containers of a pod, and no others of it."""
        uid = uid_of(pod)
        targets = {
            (uid, name, attempt.restarts): (container, attempt.started.at)
            for name, attempt in attempts.items()
            if attempt.is_running and attempt.started and attempt.started.at
            # No probe runs before the postStart hook has.
            if attempt.is_post_start_done or not has_hook(pod, name, POST_START)
            for container in _with_probes(pod, name)
        }
        self._stop(uid, but=targets)
        for key, (container, began) in targets.items():
            if key not in self._tasks:
                self._tallies[key] = {}
                self._tasks[key] = group.create_task(self._run(group, key, pod, container=container, began=began))

    def forget(self, uid: str) -> None:
        """Stop probing the containers of a pod that is gone."""
        self._stop(uid, but={})
        self._post_starts = {key: is_good for key, is_good in self._post_starts.items() if key[0] != uid}

    def _stop(self, uid: str, *, but: Mapping[AttemptKey, Any]) -> None:
        for key in [key for key in self._tasks if key[0] == uid and key not in but]:
            self._tasks.pop(key).cancel()
            self._tallies.pop(key, None)

    def health(self, pod: Object, attempts: Mapping[str, ContainerAttempt]) -> dict[str, Health]:
        """Return the health of a pod's containers that have probes or failed their postStart hook."""
        keys = {name: (uid_of(pod), name, attempt.restarts) for name, attempt in attempts.items()}
        probed = {
            name: health_of(container, self._tallies.get(key) or {})
            for name, key in keys.items()
            for container in _with_probes(pod, name)
        }
        return probed | {name: Health(alive=False) for name, key in keys.items() if self.has_post_start_failed(key)}

    def set_post_start(self, key: AttemptKey, *, is_good: bool) -> None:
        """Remember the result of a postStart hook; an attempt whose hook failed is stopped."""
        self._post_starts[key] = is_good
        self.on_change(key[0])

    def with_post_start(self, uid: str, attempts: Mapping[str, ContainerAttempt]) -> dict[str, ContainerAttempt]:
        """Return a pod's attempts with what this process knows about their postStart hooks."""
        return {
            name: replace(attempt, is_post_start_done=True)
            if self._post_starts.get((uid, name, attempt.restarts))
            else attempt
            for name, attempt in attempts.items()
        }

    def has_post_start_failed(self, key: AttemptKey) -> bool:
        """Return whether the postStart hook of an attempt failed."""
        return self._post_starts.get(key) is False

    async def _run(
        self,
        group: asyncio.TaskGroup,
        key: AttemptKey,
        pod: Object,
        *,
        container: Mapping[str, Any],
        began: datetime,
    ) -> None:
        probes = {probe.kind: probe for probe in probes_of(container)}
        due = {probe.kind: began + probe.delay for probe in probes.values()}
        tallies = self._tallies[key]
        while kinds := _active(probes, tallies):
            kind = min(kinds, key=lambda kind: due[kind])
            await asyncio.sleep(max((due[kind] - self.clock.now()).total_seconds(), 0.0))
            result = await self.prober.probe(probes[kind], pod, container, self.address(pod))
            # Recorded in another task: a failure may cancel this one, and must be recorded all the same.
            if result.is_unknown and result.text:
                message = f"errored and resulted in unknown state: {result.text}"
                group.create_task(self._record(key, pod, message, kind=kind))
            elif not result.is_unknown:
                self._count(key, probes[kind], result)
                if not result.is_good:
                    group.create_task(self._record(key, pod, f"failed: {result.text}", kind=kind))
            due[kind] = self.clock.now() + max(probes[kind].period, timedelta(milliseconds=1))

    def _count(self, key: AttemptKey, probe: Probe, result: ProbeResult) -> None:
        tallies = self._tallies[key]
        old = tallies.get(probe.kind) or first_tally(probe)
        new = tallies[probe.kind] = count(old, probe, is_good=result.is_good)
        has_failed = not result.is_good and new.times >= probe.failures
        if new.verdict != old.verdict or has_failed or (probe.kind == STARTUP and result.is_good):
            self.on_change(key[0])

    async def _record(self, key: AttemptKey, pod: Object, outcome: str, *, kind: str) -> None:
        message, part = f"{NAMES[kind]} probe {outcome}", field_path(pod, key[1])
        await self.recorder.record(pod, "Unhealthy", message=message, is_warning=True, part=part)


def _active(probes: Mapping[str, Probe], tallies: Mapping[str, Tally]) -> tuple[str, ...]:
    """Return the kinds of probes to run: until the startup probe succeeds, no other."""
    startup = probes.get(STARTUP)
    if startup is not None and not (tallies.get(STARTUP) or first_tally(startup)).verdict:
        return (STARTUP,)
    return tuple(kind for kind in (READINESS, LIVENESS) if kind in probes)


def _with_probes(pod: Object, name: str) -> tuple[Object, ...]:
    """Return the container of this name if it has probes."""
    container = container_named(pod, name)
    return (container,) if container is not None and probes_of(container) else ()
