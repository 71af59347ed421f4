"""The past is cleared away by policy, again and again, and it is said."""

import asyncio
import functools
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from paceline.client.events import Recorder
from paceline.node.history import ABOUT, CONTAINERS, History, Past, Policy
from paceline.node.host import Host
from paceline.objects.meta import Object
from paceline.objects.times import to_wire
from paceline.world import Blocking

log = logging.getLogger(__name__)

PERIOD_SECONDS = 600.0
# Of how many pods it is remembered that there were logs once.
MAX_REMEMBERED = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one round took."""

    pods: int = 0
    bytes: int = 0


@dataclass(slots=True, kw_only=True)
class Clearing:
    """Sweeps the history: at the start, whenever something was added to it, and from time to time."""

    history: History
    blocking: Blocking
    recorder: Recorder
    host: Host
    _is_due: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def hint(self) -> None:
        """Have the next round begin now."""
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

    async def sweep(self) -> None:
        """Clear away once; a disk that does not let us is tried again in the next round."""
        try:
            swept = await self.blocking.run(functools.partial(sweep, self.history))
        except OSError as error:
            log.warning("history not cleared", extra={"error": str(error)})
            return
        if swept.pods:
            said = f"removed logs of {swept.pods} pods that are gone, {swept.bytes} bytes, to keep within the policy"
            log.info("history cleared", extra={"pods": swept.pods, "bytes": swept.bytes})
            node: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.host.name}}
            await self.recorder.record(node, "HistoryPruned", message=said)


def sweep(history: History) -> Swept:
    """Clear away what the policy does not keep, and give how much that was."""
    everything = sorted(history.all(), key=lambda each: each.gone_at, reverse=True)
    there = [each for each in everything if not each.is_pruned]
    pruned = tuple(to_prune(there, history.policy, history.world.clock.now()))
    for each in pruned:
        _prune(history, each)
    for each in everything[MAX_REMEMBERED:]:
        history.world.files.remove(each.folder)
    return Swept(pods=len(pruned), bytes=sum(each.bytes for each in pruned))


def to_prune(newest_first: Iterable[Past], policy: Policy, now: datetime) -> Iterator[Past]:
    """Choose what goes: all that is too old, and of the rest what does not fit, the newest being kept."""
    pods = size = 0
    for each in newest_first:
        pods, size = pods + 1, size + each.bytes
        if pods > policy.pods or size > policy.bytes or now - each.gone_at > policy.age:
            yield each


def _prune(history: History, past: Past) -> None:
    """Remove the logs of a pod, and remember that there were some."""
    # In this order: what is half gone is still among what is there, and goes again.
    history.world.files.remove(past.folder / CONTAINERS)
    told = past.about | {"prunedAt": to_wire(history.world.clock.now())}
    history.world.files.write(past.folder / ABOUT, json.dumps(told).encode())
