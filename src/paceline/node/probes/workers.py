"""Ask the running containers of this machine how they are, for as long as they run.

What the answers add up to lives in memory: an agent that comes back asks again, as a kubelet does.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.client.event_recorder import Recorder
from paceline.effects import Clock
from paceline.node.lifecycle.events import part_of
from paceline.node.lifecycle.view import POST_START, Try, has_hook
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

# One try of one container: the pod's uid, the container's name, the number of the try.
Attempt = tuple[str, str, int]


@dataclass(slots=True, kw_only=True)
class Checks:
    """Every probe of every container that runs here."""

    asking: Prober
    clock: Clock
    recorder: Recorder
    address: Callable[[Object], str]
    # Called with a pod's uid when something has changed for it.
    on_change: Callable[[str], None]
    _tallies: dict[Attempt, dict[str, Tally]] = field(default_factory=dict)
    _tasks: dict[Attempt, asyncio.Task[None]] = field(default_factory=dict)
    # Tries whose first hook failed, and those whose has run well.
    _condemned: set[Attempt] = field(default_factory=set)
    _welcomed: set[Attempt] = field(default_factory=set)

    def keep(self, group: asyncio.TaskGroup, pod: Object, tries: Mapping[str, Try]) -> None:
        """Ask the containers of a pod that run, and stop asking those that do not any more."""
        uid = uid_of(pod)
        wanted = {
            (uid, name, each.restarts): (container, each.started.at)
            for name, each in tries.items()
            if each.is_held and each.ended is None and each.started and each.started.at
            # Nobody is asked before the first hook has run.
            if each.is_greeted or not has_hook(pod, name, POST_START)
            for container in _with_probes(pod, name)
        }
        self._stop(uid, but=wanted)
        for attempt, (container, began) in wanted.items():
            if attempt not in self._tasks:
                self._tallies[attempt] = {}
                self._tasks[attempt] = group.create_task(
                    self._run(group, attempt, pod, container=container, began=began)
                )

    def forget(self, uid: str) -> None:
        """Stop asking the containers of a pod that is gone."""
        self._stop(uid, but={})
        for known in (self._condemned, self._welcomed):
            known -= {each for each in known if each[0] == uid}

    def _stop(self, uid: str, *, but: Mapping[Attempt, Any]) -> None:
        for attempt in [each for each in self._tasks if each[0] == uid and each not in but]:
            self._tasks.pop(attempt).cancel()
            self._tallies.pop(attempt, None)

    def health(self, pod: Object, tries: Mapping[str, Try]) -> dict[str, Health]:
        """Say how each container of a pod that has probes is."""
        uid = uid_of(pod)
        said = {
            name: health_of(container, self._tallies.get((uid, name, each.restarts)) or {})
            for name, each in tries.items()
            for container in _with_probes(pod, name)
        }
        dead = {
            name: Health(alive=False) for name, each in tries.items() if (uid, name, each.restarts) in self._condemned
        }
        return said | dead

    def welcome(self, attempt: Attempt) -> None:
        """Take note that the first hook of a try has run well, should a full disk keep it from being on record."""
        self._welcomed.add(attempt)
        self.on_change(attempt[0])

    def with_post_start(self, uid: str, tries: Mapping[str, Try]) -> dict[str, Try]:
        """Give a pod's tries with what this process knows of their first hooks."""
        known = {name: (uid, name, each.restarts) in self._welcomed for name, each in tries.items()}
        return {name: replace(each, is_greeted=each.is_greeted or known[name]) for name, each in tries.items()}

    def is_unhealthy(self, attempt: Attempt) -> bool:
        """Tell whether a try has to end because its first hook failed."""
        return attempt in self._condemned

    def mark_unhealthy(self, attempt: Attempt) -> None:
        """Have a try end whose first hook failed."""
        self._condemned.add(attempt)
        self.on_change(attempt[0])

    async def _run(
        self,
        group: asyncio.TaskGroup,
        attempt: Attempt,
        pod: Object,
        *,
        container: Mapping[str, Any],
        began: datetime,
    ) -> None:
        probes = {probe.kind: probe for probe in probes_of(container)}
        due = {probe.kind: began + probe.delay for probe in probes.values()}
        tallies = self._tallies[attempt]
        while asked := _asked(probes, tallies):
            kind = min(asked, key=lambda each: due[each])
            await asyncio.sleep(max((due[kind] - self.clock.now()).total_seconds(), 0.0))
            said = await self.asking.ask(probes[kind], pod, container, self.address(pod))
            # Told beside: who is found sick is asked no more, and that it was has to be told all the same.
            if said.is_unknown and said.text:
                told = f"errored and resulted in unknown state: {said.text}"
                group.create_task(self._tell(attempt, pod, told, kind=kind))
            elif not said.is_unknown:
                self._count(attempt, probes[kind], said)
                if not said.is_good:
                    group.create_task(self._tell(attempt, pod, f"failed: {said.text}", kind=kind))
            due[kind] = self.clock.now() + max(probes[kind].period, timedelta(milliseconds=1))

    def _count(self, attempt: Attempt, probe: Probe, said: ProbeResult) -> None:
        tallies = self._tallies[attempt]
        before = tallies.get(probe.kind) or first_tally(probe)
        after = tallies[probe.kind] = count(before, probe, is_good=said.is_good)
        has_failed = not said.is_good and after.times >= probe.failures
        if after.verdict != before.verdict or has_failed or (probe.kind == STARTUP and said.is_good):
            self.on_change(attempt[0])

    async def _tell(self, attempt: Attempt, pod: Object, said: str, *, kind: str) -> None:
        message, part = f"{NAMES[kind]} probe {said}", part_of(pod, attempt[1])
        await self.recorder.record(pod, "Unhealthy", message=message, is_warning=True, part=part)


def _asked(probes: Mapping[str, Probe], tallies: Mapping[str, Tally]) -> tuple[str, ...]:
    """Name the probes whose turn it is: until a container has started, only that is asked."""
    startup = probes.get(STARTUP)
    if startup is not None and not (tallies.get(STARTUP) or first_tally(startup)).verdict:
        return (STARTUP,)
    return tuple(kind for kind in (READINESS, LIVENESS) if kind in probes)


def _with_probes(pod: Object, name: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(container for container in containers_of(pod) if container["name"] == name and probes_of(container))
