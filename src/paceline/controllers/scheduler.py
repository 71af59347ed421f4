"""The scheduler of the embedded cluster: all pods of a gang get a node, or none of them does."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Key, Object, condition_of, key_of, name_of, namespace_of, revision_of, uid_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import to_wire
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer, running
from paceline.client.interface import CLAIMS, CONFIG_MAPS, NODES, PODS, Change, Cluster
from paceline.client.workqueue import WorkQueue, all_of, run
from paceline.effects import Clock, Random
from paceline.errors import Conflict, NotFound
from paceline.model import reasons
from paceline.model.scheduling_queue import EMPTY, NAME, NAMESPACE, SchedulingQueue, read_queue
from paceline.plan.scheduling.gang import Placement, lack_of, place, queue_of
from paceline.plan.scheduling.preemption import MESSAGE, TYPE, holders_of, needs_delete, new_mark, rest_of
from paceline.plan.scheduling.resources import PodGroup, asks_of, family_of, rooms_of, waits

# There are two things to do: place what waits, and publish the queue of what still waits after that.
ALL, QUEUE = "all", "queue"
# The queue is published at most so often, however many jobs come and go.
PUBLISH_SECONDS = 1.0
# How many pods are bound at a time.
TOGETHER = 50
WAITING, PLACED, FAMILY, MARKED = "waiting", "placed", "family", "marked"


@dataclass(slots=True, kw_only=True)
class PodScheduler:
    """Looks at all pods and nodes at once, places what fits, and says on each other pod why it waits."""

    cluster: Cluster
    clock: Clock
    chance: Random
    recorder: Recorder
    # Run by whoever made it, as others look at pods too.
    pods: Informer
    queue: WorkQueue[str] = field(init=False)
    _nodes: Informer = field(init=False)
    _claims: Informer = field(init=False)
    # What waits after the last pass, and what was published of it; None before that was read.
    _waiting: SchedulingQueue = EMPTY
    _published: SchedulingQueue | None = None

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="scheduler")
        self.pods.cache.listen(self._changed)
        self._nodes = Informer(self.cluster, NODES, chance=self.chance, on_change=self._changed)
        self._claims = Informer(self.cluster, CLAIMS, chance=self.chance, on_change=self._changed)
        # So that a pass costs nothing for the many pods that have ended.
        self.pods.cache.index(WAITING, lambda pod: (True,) if waits(pod) else ())
        self.pods.cache.index(
            PLACED, lambda pod: (True,) if pod["spec"].get("nodeName") and not is_terminal(pod) else ()
        )
        self.pods.cache.index(FAMILY, lambda pod: (family_of(pod),))
        self.pods.cache.index(MARKED, lambda pod: (True,) if needs_delete(pod) else ())

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with running(self._claims, self._nodes, shared=(self.pods,), synced=synced):
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, key: str) -> None:
        """Schedule all pods, or publish the queue."""
        await (self._publish() if key == QUEUE else self._schedule())

    async def _schedule(self) -> None:
        """Place every gang that fits; a gang half bound by a crash is bound on in the next pass."""
        pods = self.pods.cache
        await self._go_on()
        # A gang whose pods are still being made is not waiting for a node yet; its job says what it lacks.
        families = dict.fromkeys(family_of(pod) for pod in sorted(pods.having(WAITING, index_key=True), key=key_of))
        near = (pod for family in families for pod in pods.having(FAMILY, family))
        gangs = tuple(gang for gang in asks_of(near) if gang.present >= gang.size)
        if not gangs:
            self._queue_is(EMPTY)
            return
        placed = pods.having(PLACED, index_key=True)
        rooms = rooms_of(self._nodes.cache.values(), placed)
        lacks = self._lacks(gangs, len(rooms))
        # One whose claims have no volumes keeps no room from others.
        gangs = tuple(gang for gang in gangs if gang.asks[0].key not in lacks)
        plan = place(gangs, rooms, holders_of(placed, below=max((gang.rank for gang in gangs), default=0)))
        self._queue_is(queue_of(plan))
        pods_by_key = {key: pods[key] for key in (*plan.bind, *plan.waits, *lacks, *plan.victims)}
        await self._bind_all(plan, pods_by_key)
        for key, message in (*plan.waits.items(), *lacks.items()):
            await self._say_why(pods_by_key[key], message, plan.nominate.get(key, ""))
        # Who they give way to is written down by now.
        await self._preempt(plan, pods_by_key)

    def _queue_is(self, queue: SchedulingQueue) -> None:
        self._waiting = queue
        if queue != self._published:
            self.queue.add_after(QUEUE, PUBLISH_SECONDS)

    async def _publish(self) -> None:
        """Publish the queue if it has changed: one object, however many jobs wait."""
        key, queue = (NAMESPACE, NAME), self._waiting
        if self._published is None:
            try:
                self._published = read_queue(await self.cluster.get(CONFIG_MAPS, *key))
            except NotFound:
                self._published = EMPTY
        if queue == self._published:
            return
        try:
            await self.cluster.patch(CONFIG_MAPS, key, {"data": queue.data()})
        except NotFound:
            await self.cluster.create(CONFIG_MAPS, queue.manifest())
        self._published = queue

    async def _go_on(self) -> None:
        """End what was marked by an earlier pass, as far as nobody else does."""
        pods = self.pods.cache
        families = dict.fromkeys(family_of(pod) for pod in sorted(pods.having(MARKED, index_key=True), key=key_of))
        now = self.clock.now()
        near = [pod for family in families for pod in pods.having(FAMILY, family) if pod["spec"].get("nodeName")]
        work, pods_by_key = rest_of(near, now), {key_of(pod): pod for pod in near}
        for key, message in work.mark.items():
            await self._mark(pods_by_key[key], message)
        for key in work.end:
            await self._end(pods_by_key[key])
        if work.wake_at is not None:
            self.queue.add_after(ALL, (work.wake_at - now).total_seconds())

    async def _preempt(self, plan: Placement, pods_by_key: dict[Key, Object]) -> None:
        """Mark all pods that give way; each job ends its own when it has written down why."""
        for key, other in plan.victims.items():
            winner = pods_by_key[other]
            message = f"Preempted by pod {uid_of(winner)} on node {pods_by_key[key]['spec']['nodeName']}"
            if await self._mark(pods_by_key[key], f"{MESSAGE} ({namespace_of(winner)}/{name_of(winner)})"):
                await self.recorder.record(pods_by_key[key], reasons.PREEMPTED, message=message)

    async def _mark(self, pod: Object, message: str) -> bool:
        """Mark a pod as one that gives way; False when it went meanwhile."""
        others = [other for other in (pod.get("status") or {}).get("conditions") or () if other["type"] != TYPE]
        patch = {
            "metadata": {"resourceVersion": revision_of(pod)},
            "status": {"conditions": [*others, new_mark(message, self.clock.now())]},
        }
        try:
            self.pods.observe(await self.cluster.patch(PODS, key_of(pod), patch, subresource="status"))
        except NotFound:
            return False
        return True

    async def _end(self, pod: Object) -> None:
        try:
            await self.cluster.delete(PODS, key_of(pod), {"preconditions": {"uid": uid_of(pod)}})
        except (NotFound, Conflict):
            # It went by itself; the watch tells.
            return

    def _lacks(self, gangs: Iterable[PodGroup], nodes: int) -> dict[Key, str]:
        """Return, for every pod of a gang with an unbound claim, which claim that is."""
        lacks: dict[Key, str] = {}
        for gang in gangs:
            keys = [ask.key for ask in gang.asks]
            lack = next(filter(None, (lack_of(self.pods.cache[key], self._claims.cache) for key in keys)), "")
            if lack:
                lacks |= dict.fromkeys(keys, f"0/{nodes} nodes are available: {lack}")
        return lacks

    async def _bind_all(self, plan: Placement, pods_by_key: dict[Key, Object]) -> None:
        """Bind what is placed, some at a time, and tell of it when all may start."""
        bound: list[Key] = []
        keys = tuple(plan.bind)
        for start in range(0, len(keys), TOGETHER):
            several = keys[start : start + TOGETHER]
            done = await all_of(*(self._bind(pods_by_key[key], plan.bind[key]) for key in several))
            bound += [key for key, is_bound in zip(several, done, strict=True) if is_bound]
        for key in bound:
            message = f"Successfully assigned {key[0]}/{key[1]} to {plan.bind[key]}"
            await self.recorder.record(pods_by_key[key], reasons.SCHEDULED, message=message)
            if warning := plan.warn.get(key):
                await self.recorder.record(pods_by_key[key], reasons.OVERCOMMITTED, message=warning, is_warning=True)

    async def _bind(self, pod: Object, node: str) -> bool:
        """Bind one pod; False when somebody else was faster, or it went."""
        key = key_of(pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key[1], "namespace": key[0], "uid": pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self.cluster.post(PODS.path(*key, "binding"), binding)
            self.pods.observe(await self.cluster.get(PODS, *key))
        except (NotFound, Conflict):
            # The pod went, or was bound by an earlier pass whose answer got lost: the watch tells which.
            return False
        return True

    async def _say_why(self, pod: Object, message: str, node: str) -> None:
        """Set PodScheduled=False with the reason, and nominatedNodeName if preemption makes room."""
        key, nominated = key_of(pod), str((pod.get("status") or {}).get("nominatedNodeName") or "")
        is_told = _reason_of(pod) == message
        # While others end, what is free changes with each of them; it has been said that they do.
        if nominated == node and (is_told or nominated):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reasons.UNSCHEDULABLE,
            "message": message,
            "lastTransitionTime": to_wire(self.clock.now()),
        }
        others = [
            other for other in (pod.get("status") or {}).get("conditions") or () if other["type"] != "PodScheduled"
        ]
        patch = {
            "metadata": {"resourceVersion": revision_of(pod)},
            "status": {"conditions": [*others, condition], "nominatedNodeName": node or None},
        }
        try:
            self.pods.observe(await self.cluster.patch(PODS, key, patch, subresource="status"))
        except NotFound:
            return
        if not is_told:
            await self.recorder.record(pod, reasons.FAILED_SCHEDULING, message=message, is_warning=True)

    def _changed(self, _change: Change, _old: Object | None, _new: Object | None) -> None:
        self.queue.add(ALL)


def _reason_of(pod: Object) -> str:
    condition = condition_of(pod, "PodScheduled") or {}
    return str(condition.get("message", "")) if condition.get("status") == "False" else ""
