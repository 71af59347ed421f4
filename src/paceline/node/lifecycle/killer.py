"""How containers are made to leave: asked, told after their last hook, and killed on the moment their grace is over."""

import asyncio
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from paceline.apimachinery.meta import Object, uid_of
from paceline.client.event_recorder import Recorder
from paceline.effects import Effects, ProcessHandle
from paceline.node.host_info import Folders
from paceline.node.lifecycle.events import part_of, why_stopping
from paceline.node.lifecycle.hooks import Hooks
from paceline.node.lifecycle.hooks_spec import PRE_STOP, hook_of
from paceline.node.lifecycle.snapshot import containers_of
from paceline.node.lifecycle.stop_requests import StopRequests
from paceline.node.lifecycle.termination import chosen_signal, grace_of
from paceline.node.lifecycle.view import Plan, Seen, Try


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
