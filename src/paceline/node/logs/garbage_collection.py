"""The past is cleared away by policy, again and again, and it is said."""

import asyncio
import functools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import from_wire, to_wire
from paceline.client.event_recorder import Recorder
from paceline.effects import Executor
from paceline.node.host_info import Host
from paceline.node.logs.archive import ABOUT, CONTAINERS, PRUNED, ArchivedPod, History, Policy
from paceline.node.logs.rotated_log import RotatedLog, is_page

log = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0
# Pods often go together: what they leave is looked at once.
TOGETHER_SECONDS = 2.0
# Of how many pods it is remembered that there were logs once.
MAX_REMEMBERED = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class GCResult:
    """What one round took."""

    pods: int = 0
    bytes: int = 0


@dataclass(slots=True, kw_only=True)
class LogGC:
    """Sweeps the history: at the start, whenever something was added to it, and from time to time."""

    history: History
    blocking: Executor
    recorder: Recorder
    host: Host
    # All pods that there are.
    pods: Mapping[Key, Object]
    _is_due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    # What was read of the past in earlier rounds: nobody but us changes it, and thousands are not read for one more.
    _known: dict[Path, ArchivedPod] = field(default_factory=dict, init=False)

    def hint(self) -> None:
        """Have the next round begin soon."""
        self._is_due.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._is_due.clear()
            await self.sweep()
            try:
                async with asyncio.timeout(PERIOD_SECONDS):
                    await self._is_due.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(TOGETHER_SECONDS)

    async def sweep(self) -> None:
        """Clear away once; a disk that does not let us is tried again in the next round."""
        try:
            ended = [pod for pod in self.pods.values() if self._has_ended(pod)]
            swept = await self.blocking.run(functools.partial(sweep, self.history, ended, self._known))
        except OSError as error:
            log.warning("history not cleared", extra={"error": str(error)})
            return
        if swept.pods:
            said = f"removed logs of {swept.pods} pods, {swept.bytes} bytes, to keep within the policy"
            log.info("history cleared", extra={"pods": swept.pods, "bytes": swept.bytes})
            node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.host.name}}
            await self.recorder.record(node, "HistoryPruned", message=said)

    def _has_ended(self, pod: Object) -> bool:
        is_mine = pod["spec"].get("nodeName") == self.host.name
        return is_mine and is_terminal(pod)


def sweep(history: History, ended: Iterable[Object] = (), known: dict[Path, ArchivedPod] | None = None) -> GCResult:
    """Clear away what the policy does not keep, and give how much that was.

    Pods that have ended and are still there keep their logs, unless these alone are more than is kept at all. `known`
    is what earlier rounds have read, and is brought up to date.
    """
    known = {} if known is None else known
    everything = sorted(history.all(known=known), key=lambda each: each.gone_at, reverse=True)
    known.clear()
    there = [each for each in everything if not each.is_pruned]
    kept = sorted(_still_there(history, ended), key=lambda each: each.gone_at, reverse=True)
    room = max(history.policy.bytes - sum(each.bytes for each in kept), 0)
    policy, now = replace(history.policy, bytes=room), history.world.clock.now()
    pruned = tuple(there if history.is_tight() else to_prune(there, policy, now))
    for each in pruned:
        _prune(history, each)
    large = tuple(to_prune(kept, replace(history.policy, age=timedelta.max, pods=len(kept)), now))
    for each in large:
        _empty(history, each)
    for each in everything[MAX_REMEMBERED:]:
        history.world.files.remove(each.folder)
    # Only now, and without what was changed: a round that failed halfway has the next one read everything.
    gone = {each.folder for each in pruned}
    known.update(
        {each.folder: replace(each, about={}) for each in everything[:MAX_REMEMBERED] if each.folder not in gone}
    )
    return GCResult(pods=len(pruned) + len(large), bytes=sum(each.bytes for each in (*pruned, *large)))


def to_prune(newest_first: Iterable[ArchivedPod], policy: Policy, now: datetime) -> Iterator[ArchivedPod]:
    """Choose what goes: all that is too old, and of the rest what does not fit, the newest being kept."""
    pods = size = 0
    for each in newest_first:
        pods, size = pods + 1, size + each.bytes
        if pods > policy.pods or size > policy.bytes or now - each.gone_at > policy.age:
            yield each


def _still_there(history: History, ended: Iterable[Object]) -> Iterator[ArchivedPod]:
    """Give the logs of pods that have ended and not gone; of one in which anything runs nothing is touched."""
    for pod in ended:
        folder = history.folders.pod(uid_of(pod))
        tries = tuple(history.tries_in(folder))
        size = sum(RotatedLog(history.world.files, each).kept() for each in tries)
        if size and not any(history.world.processes.holds(each) for each in tries):
            began = from_wire(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"])
            yield ArchivedPod(folder=folder, about={}, gone_at=began, bytes=size, is_pruned=False)


def _empty(history: History, past: ArchivedPod) -> None:
    """Remove the logs of a pod that is still there, and leave a note in their place."""
    files = history.world.files
    for folder in history.tries_in(past.folder):
        files.write(folder / PRUNED, to_wire(history.world.clock.now()).encode())
        for name in files.names(folder):
            if is_page(name):
                files.remove(folder / name)


def _prune(history: History, past: ArchivedPod) -> None:
    """Remove the logs of a pod, and remember that there were some."""
    # In this order: what is half gone is still among what is there, and goes again.
    history.world.files.remove(past.folder / CONTAINERS)
    whole = past if past.about else history.past(past.folder)
    if whole is not None:
        told = whole.about | {"prunedAt": to_wire(history.world.clock.now())}
        history.world.files.write(past.folder / ABOUT, json.dumps(told).encode())
