"""How containers are made to leave: asked, told after their last hook, and killed on the moment their grace is over."""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.client.event_recorder import Recorder
from paceline.effects import Effects, Files, ProcessHandle
from paceline.node.host_info import Folders
from paceline.node.lifecycle.events import part_of, why_stopping
from paceline.node.lifecycle.state_files import write_asked
from paceline.node.lifecycle.termination import chosen_signal, grace_of
from paceline.node.lifecycle.view import POST_START, PRE_STOP, Plan, Seen, Try, hook_of
from paceline.node.probes.prober import Prober, ProbeResult

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequests:
    """Writes down when a container was asked to stop, and remembers it when that cannot be written."""

    _moments: dict[ProcessHandle, datetime] = field(default_factory=dict)

    def note(self, files: Files, folder: Path, who: ProcessHandle, *, now: datetime, number: int | None = None) -> None:
        """Put it on record, with a signal if somebody chose one, if there is room; else the next agent asks again."""
        try:
            write_asked(files, folder, now, number)
        except OSError as error:
            self._moments[who] = now
            log.warning("not on record that a container is to stop", extra={"folder": str(folder), "error": str(error)})

    def recalled(self, tries: Mapping[str, Try]) -> dict[str, Try]:
        """Add what is only remembered to what the folders say."""
        return {name: self._with_moment(each) for name, each in tries.items()}

    def forget(self, who: ProcessHandle) -> None:
        """Forget one that has ended."""
        self._moments.pop(who, None)

    def _with_moment(self, each: Try) -> Try:
        who = each.started.identity if each.started else None
        moment = self._moments.get(who) if who and each.asked_at is None else None
        return replace(each, asked_at=moment) if moment else each


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Runs hooks and tells of those that failed."""

    asking: Prober
    recorder: Recorder
    address: Callable[[Object], str]

    async def after_start(self, pod: Object, container: Mapping[str, Any], *, still: Callable[[], bool]) -> bool:
        """Run what follows the start; False when it failed, and the container has to go if it is `still` wanted."""
        said = await self._run(pod, container, POST_START)
        if not said.is_good and still():
            await self._tell(pod, container, "PostStart", said)
        return said.is_good

    async def before_stop(self, pod: Object, container: Mapping[str, Any], *, seconds: float) -> ProbeResult:
        """Run what precedes the end, for as long as the grace period lasts."""
        try:
            async with asyncio.timeout(seconds):
                return await self._run(pod, container, PRE_STOP)
        except TimeoutError:
            return ProbeResult(is_good=False, text="it took longer than the grace period")

    async def tell_of_stop(self, pod: Object, container: Mapping[str, Any], said: ProbeResult) -> None:
        """Tell of what preceded the end, if it failed."""
        if not said.is_good and (said.text or not said.is_unknown):
            await self._tell(pod, container, "PreStop", said)

    async def _run(self, pod: Object, container: Mapping[str, Any], kind: str) -> ProbeResult:
        action, what = hook_of(container, kind) or ("", {})
        return await self.asking.act(action, what, pod, container=container, address=self.address(pod))

    async def _tell(self, pod: Object, container: Mapping[str, Any], kind: str, said: ProbeResult) -> None:
        words = f"{kind}Hook failed: {said.text.strip()}" if said.text.strip() else f"{kind}Hook failed"
        part = part_of(pod, str(container["name"]))
        await self.recorder.record(pod, f"Failed{kind}Hook", message=words, is_warning=True, part=part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerKiller:
    """Carries out what a plan says of containers that have to go; what it remembers another agent finds out anew."""

    world: Effects
    folders: Folders
    recorder: Recorder
    hooks: Hooks
    on_change: Callable[[str], None]
    # Whom this process has asked to stop, or will once their last hook has run.
    _asked: set[ProcessHandle] = field(default_factory=set)
    # When this process told them to.
    _told: dict[ProcessHandle, datetime] = field(default_factory=dict)
    # Whose kill is on its way: many pods may have to go at once, and none of them waits for the others.
    _kills: dict[ProcessHandle, asyncio.TimerHandle] = field(default_factory=dict)
    _moments: StopRequests = field(default_factory=StopRequests)

    def recalled(self, seen: Seen) -> Seen:
        """Add to what the folders say what only this process knows."""
        known = ((name, each.started.identity) for name, each in seen.tries.items() if each.started)
        told = {name: self._told[who] for name, who in known if who is not None and who in self._told}
        return replace(seen, tries=self._moments.recalled(seen.tries), told=told)

    def carry_out(self, group: asyncio.TaskGroup, seen: Seen, plan: Plan) -> bool:
        """Ask, tell and kill; tell whether anybody was asked."""
        asked = [self._ask(group, seen, name) for name in plan.ask]
        for each in seen.tries.values():
            # StopRequests by an agent that did not live to see the hook end: asking twice does no harm.
            if each.is_held and each.asked_at and each.started and each.started.identity not in self._asked:
                self._tell(each)
        for name in plan.kill:
            self.send(seen.tries[name], signal.SIGQUIT)
        self._set_timers(seen.tries, plan.ends)
        return any(asked)

    def send(self, each: Try, number: int) -> None:
        """Signal a try's shim, if it has said who it is."""
        if each.started and each.started.identity:
            self.world.processes.signal(each.started.identity, number)

    def forget(self, who: ProcessHandle) -> None:
        """Forget one that has ended."""
        self._asked.discard(who)
        self._told.pop(who, None)
        self._moments.forget(who)
        if timer := self._kills.pop(who, None):
            timer.cancel()

    def close(self) -> None:
        """Kill nobody any more."""
        for timer in self._kills.values():
            timer.cancel()
        self._kills.clear()

    def _ask(self, group: asyncio.TaskGroup, seen: Seen, name: str) -> bool:
        each, container = seen.tries[name], next(c for c in containers_of(seen.pod) if c["name"] == name)
        who = each.started.identity if each.started else None
        if who is None:
            return False
        # First on record: an agent that finds it there and has not asked itself asks again.
        folder = self.folders.attempt(uid_of(seen.pod), name, each.restarts)
        number = chosen_signal(seen.pod, name)
        self._moments.note(self.world.files, folder, who, now=self.world.clock.now(), number=number)
        if hook_of(container, PRE_STOP):
            self._asked.add(who)
            group.create_task(self._run_pre_stop(seen, container, each))
        else:
            self._tell(each)
        # Beside the work: events are for people, and the next pod need not wait for them.
        group.create_task(self._say(seen, name))
        return True

    async def _say(self, seen: Seen, name: str) -> None:
        why, part = why_stopping(seen, name), part_of(seen.pod, name)
        await self.recorder.record(seen.pod, "Killing", message=why, part=part)

    async def _run_pre_stop(self, seen: Seen, container: Object, each: Try) -> None:
        said = await self.hooks.before_stop(seen.pod, container, seconds=grace_of(seen, str(container["name"])))
        self._tell(each)
        self.on_change(uid_of(seen.pod))
        await self.hooks.tell_of_stop(seen.pod, container, said)

    def _tell(self, each: Try) -> None:
        if each.started and each.started.identity:
            self._asked.add(each.started.identity)
            self._told[each.started.identity] = self.world.clock.now()
        self.send(each, signal.SIGTERM)

    def _set_timers(self, tries: Mapping[str, Try], ends: Mapping[str, datetime]) -> None:
        now, loop = self.world.clock.now(), asyncio.get_running_loop()
        for name, each in tries.items():
            who = each.started.identity if each.started else None
            if who is None:
                continue
            if timer := self._kills.pop(who, None):
                timer.cancel()
            if name in ends and ends[name] > now:
                # The queue looks at the pod at the same moment, but may have much else to look at.
                self._kills[who] = loop.call_later((ends[name] - now).total_seconds(), self._kill, who)

    def _kill(self, who: ProcessHandle) -> None:
        del self._kills[who]
        self.world.processes.signal(who, signal.SIGQUIT)
