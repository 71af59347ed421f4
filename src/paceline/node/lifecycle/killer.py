"""Run the hooks of containers, and stop containers: preStop hook, stop signal, kill when the grace period is over."""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import container_named
from paceline.client.event_recorder import Recorder
from paceline.effects import Effects, Files, ProcessHandle
from paceline.node.host_info import Folders
from paceline.node.lifecycle.events import killing_message
from paceline.node.lifecycle.state_files import write_stop_request
from paceline.node.lifecycle.termination import chosen_signal, grace_of
from paceline.node.lifecycle.view import (
    POST_START,
    PRE_STOP,
    ContainerAttempt,
    PodPlan,
    PodView,
    field_path,
    hook_of,
)
from paceline.node.probes.prober import Prober, ProbeResult

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequests:
    """Records stop requests; those that a full disk refuses stay in memory, since stopping pods is what frees it."""

    _moments: dict[ProcessHandle, datetime] = field(default_factory=dict)

    def record(
        self, files: Files, folder: Path, shim: ProcessHandle, *, now: datetime, number: int | None = None
    ) -> None:
        """Record a stop request with the chosen signal, if any; when that fails, the next agent asks again."""
        try:
            write_stop_request(files, folder, now, number)
        except OSError as error:
            self._moments[shim] = now
            log.warning("stop request not recorded", extra={"folder": str(folder), "error": str(error)})

    def add_to(self, attempts: Mapping[str, ContainerAttempt]) -> dict[str, ContainerAttempt]:
        """Return the attempts with the requests that are only in memory."""
        return {
            name: replace(attempt, stop_requested_at=self._moments[attempt.shim])
            if attempt.shim in self._moments and attempt.stop_requested_at is None
            else attempt
            for name, attempt in attempts.items()
        }

    def forget(self, shim: ProcessHandle) -> None:
        """Forget a shim that has ended."""
        self._moments.pop(shim, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Runs the hooks of containers, and records an event for those that fail."""

    prober: Prober
    recorder: Recorder
    address: Callable[[Object], str]

    async def post_start(self, pod: Object, container: Mapping[str, Any], *, is_current: Callable[[], bool]) -> bool:
        """Run the postStart hook; False when it failed. A container that is no longer current gets no event."""
        result = await self._run(pod, container, POST_START)
        if not result.is_good and is_current():
            await self._record(pod, container, "PostStart", result)
        return result.is_good

    async def pre_stop(self, pod: Object, container: Mapping[str, Any], *, seconds: float) -> ProbeResult:
        """Run the preStop hook, at most for the grace period."""
        try:
            async with asyncio.timeout(seconds):
                return await self._run(pod, container, PRE_STOP)
        except TimeoutError:
            return ProbeResult(is_good=False, text="it took longer than the grace period")

    async def record_pre_stop(self, pod: Object, container: Mapping[str, Any], result: ProbeResult) -> None:
        """Record an event if the preStop hook failed."""
        if not result.is_good and (result.text or not result.is_unknown):
            await self._record(pod, container, "PreStop", result)

    async def _run(self, pod: Object, container: Mapping[str, Any], kind: str) -> ProbeResult:
        action, settings = hook_of(container, kind) or ("", {})
        return await self.prober.act(action, settings, pod, container=container, address=self.address(pod))

    async def _record(self, pod: Object, container: Mapping[str, Any], kind: str, result: ProbeResult) -> None:
        detail = result.text.strip()
        message = f"{kind}Hook failed: {detail}" if detail else f"{kind}Hook failed"
        part = field_path(pod, str(container["name"]))
        await self.recorder.record(pod, f"Failed{kind}Hook", message=message, is_warning=True, part=part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerKiller:
    """Stops and kills the containers that a plan names. Another agent recovers its memory from the state files."""

    world: Effects
    folders: Folders
    recorder: Recorder
    hooks: Hooks
    on_change: Callable[[str], None]
    # Shims that this process has asked to stop, or will once their preStop hook has run.
    _stopping: set[ProcessHandle] = field(default_factory=set)
    _signalled_at: dict[ProcessHandle, datetime] = field(default_factory=dict)
    # Pending kills: many pods may have to stop at once, and none of them waits for the others.
    _kills: dict[ProcessHandle, asyncio.TimerHandle] = field(default_factory=dict)
    _requests: StopRequests = field(default_factory=StopRequests)

    def add_to(self, view: PodView) -> PodView:
        """Return the view with what only this process remembers."""
        signalled_at = {
            name: self._signalled_at[attempt.shim]
            for name, attempt in view.attempts.items()
            if attempt.shim in self._signalled_at
        }
        return replace(view, attempts=self._requests.add_to(view.attempts), signalled_at=signalled_at)

    def carry_out(self, group: asyncio.TaskGroup, view: PodView, plan: PodPlan) -> bool:
        """Stop and kill containers; return whether any was asked to stop."""
        has_stopped = [self._stop(group, view, name) for name in plan.stop]
        for attempt in view.attempts.values():
            # The agent that asked did not live to see the preStop hook end: a second signal does no harm.
            if (
                attempt.has_shim
                and attempt.stop_requested_at
                and attempt.started
                and attempt.shim not in self._stopping
            ):
                self._signal_stop(attempt)
        for name in plan.kill:
            self.send(view.attempts[name], signal.SIGQUIT)
        self._set_timers(view.attempts, plan.kill_at)
        return any(has_stopped)

    def send(self, attempt: ContainerAttempt, number: int) -> None:
        """Signal the shim of an attempt, if its record names one."""
        if attempt.shim:
            self.world.processes.signal(attempt.shim, number)

    def forget(self, shim: ProcessHandle) -> None:
        """Forget a shim that has ended."""
        self._stopping.discard(shim)
        self._signalled_at.pop(shim, None)
        self._requests.forget(shim)
        if timer := self._kills.pop(shim, None):
            timer.cancel()

    def close(self) -> None:
        """Cancel all pending kills."""
        for timer in self._kills.values():
            timer.cancel()
        self._kills.clear()

    def _stop(self, group: asyncio.TaskGroup, view: PodView, name: str) -> bool:
        attempt, container = view.attempts[name], container_named(view.pod, name)
        if attempt.shim is None or container is None:
            return False
        # Recorded first: an agent that reads the request and has not sent the signal itself sends it again.
        folder = self.folders.attempt(uid_of(view.pod), name, attempt.restarts)
        number = chosen_signal(view.pod, name)
        self._requests.record(self.world.files, folder, attempt.shim, now=self.world.clock.now(), number=number)
        if hook_of(container, PRE_STOP):
            self._stopping.add(attempt.shim)
            group.create_task(self._run_pre_stop(view, container, attempt))
        else:
            self._signal_stop(attempt)
        # In a task of its own: the next pod need not wait for an event.
        group.create_task(self._record_killing(view, name))
        return True

    async def _record_killing(self, view: PodView, name: str) -> None:
        message, part = killing_message(view, name), field_path(view.pod, name)
        await self.recorder.record(view.pod, "Killing", message=message, part=part)

    async def _run_pre_stop(self, view: PodView, container: Object, attempt: ContainerAttempt) -> None:
        result = await self.hooks.pre_stop(view.pod, container, seconds=grace_of(view, str(container["name"])))
        self._signal_stop(attempt)
        self.on_change(uid_of(view.pod))
        await self.hooks.record_pre_stop(view.pod, container, result)

    def _signal_stop(self, attempt: ContainerAttempt) -> None:
        if attempt.shim:
            self._stopping.add(attempt.shim)
            self._signalled_at[attempt.shim] = self.world.clock.now()
        self.send(attempt, signal.SIGTERM)

    def _set_timers(self, attempts: Mapping[str, ContainerAttempt], kill_at: Mapping[str, datetime]) -> None:
        now, loop = self.world.clock.now(), asyncio.get_running_loop()
        for name, attempt in attempts.items():
            if attempt.shim is None:
                continue
            if timer := self._kills.pop(attempt.shim, None):
                timer.cancel()
            if name in kill_at and kill_at[name] > now:
                # The queue reconciles the pod at the same moment, but may have many others to do first.
                delay = (kill_at[name] - now).total_seconds()
                self._kills[attempt.shim] = loop.call_later(delay, self._kill, attempt.shim)

    def _kill(self, shim: ProcessHandle) -> None:
        del self._kills[shim]
        self.world.processes.signal(shim, signal.SIGQUIT)
