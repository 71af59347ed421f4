"""Plays scheduler and kubelet of one namespace: pods get a node, run, and end as a script says."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.meta import Key, Object, is_deleting, key_of, labels_of, name_of, uid_of
from paceline.apimachinery.timestamps import to_wire
from paceline.client.informer import Informer
from paceline.client.interface import PODS, Cluster, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Clock, Random
from paceline.errors import Conflict, NotFound
from paceline.model import well_known_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a program ends."""

    code: int
    reason: str = ""


# Given a pod's place (`worker-0`), its attempt, and how many pods run: how its program ends now, or that it runs on.
Script = Callable[[str, int, int], Exit | int | None]


def runs_on(_place: str, _attempt: int, _running: int) -> None:
    """Let every program run for ever."""


def ends_well(count: int) -> Script:
    """Let all programs end well once so many run."""
    state = {"begun": False}

    def script(_place: str, _attempt: int, running: int) -> int | None:
        state["begun"] = state["begun"] or running >= count
        return 0 if state["begun"] else None

    return script


@dataclass(kw_only=True)
class Player:
    """Moves pods through their phases."""

    cluster: Cluster
    namespace: str
    clock: Clock
    chance: Random
    script: Script = runs_on
    # Whether deleted pods go, as on a node that answers.
    is_there: bool = True
    # Where pods are placed; nowhere if it is empty.
    node: str = "played"
    # Every pod there ever was, by name: more than one of a name is one too many.
    uids: dict[str, set[str]] = field(default_factory=dict)
    # The most pods of one place that ran at the same time.
    most: Counter[str] = field(default_factory=Counter)
    _queue: WorkQueue[Key] = field(init=False)
    pods: Informer = field(init=False)

    def __post_init__(self) -> None:
        self._queue = WorkQueue(self.chance)
        select = Select(namespace=self.namespace)
        self.pods = Informer(self.cluster, PODS, select=select, chance=self.chance, on_change=self._changed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pods.run())
            group.create_task(run(self._queue, self._move, workers=4))

    def poke(self) -> None:
        """Look at every pod again: the script has changed."""
        for key in self.pods.cache:
            self._queue.add(key)

    def running(self) -> list[Object]:
        return [pod for pod in self.pods.cache.values() if _phase(pod) == "Running"]

    def live(self) -> list[Object]:
        """Give the pods that hold a place: neither ended nor going."""
        found = self.pods.cache.values()
        return [pod for pod in found if _phase(pod) in ("Pending", "Running") and not is_deleting(pod)]

    def _changed(self, _change: object, _old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.uids.setdefault(name_of(new), set()).add(uid_of(new))
        counted = Counter(place_of(pod) for pod in self.running())
        for place, count in counted.items():
            self.most[place] = max(self.most[place], count)
        self.poke()

    async def _move(self, key: Key) -> None:
        pod = self.pods.cache.get(key)
        if pod is None:
            return
        try:
            await self._step(pod)
        except (NotFound, Conflict):
            # It went meanwhile.
            return

    async def _step(self, pod: Object) -> None:
        is_placed = bool(pod["spec"].get("nodeName"))
        if is_deleting(pod):
            if is_placed and self.is_there:
                options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
                await self.cluster.delete(PODS, key_of(pod), options)
        elif not is_placed and not self.node:
            return
        elif not is_placed:
            target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
            metadata = {"name": name_of(pod), "uid": uid_of(pod)}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
            await self.cluster.post(PODS.path(*key_of(pod), "binding"), binding)
        elif _phase(pod) == "Pending":
            await self._write(pod, "Running", {"running": {"startedAt": to_wire(self.clock.now())}})
        elif _phase(pod) == "Running":
            ended = self.script(place_of(pod), attempt_of(pod), len(self.running()))
            if ended is not None:
                await self._end(pod, ended if isinstance(ended, Exit) else Exit(code=ended))

    async def _end(self, pod: Object, ended: Exit) -> None:
        reason = ended.reason or ("Error" if ended.code else "Completed")
        told = {"exitCode": ended.code, "reason": reason, "finishedAt": to_wire(self.clock.now())}
        await self._write(pod, "Failed" if ended.code else "Succeeded", {"terminated": told})

    async def _write(self, pod: Object, phase: str, state: dict[str, Any]) -> None:
        is_running = phase == "Running"
        containers = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "",
                "ready": is_running,
                "restartCount": 0,
                "state": state,
            }
            for each in pod["spec"]["containers"]
        ]
        ready = {"type": "Ready", "status": str(is_running)}
        status = {"phase": phase, "podIP": "10.1.2.3", "conditions": [ready], "containerStatuses": containers}
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        self.pods.observe(await self.cluster.patch(PODS, key_of(pod), patch, subresource="status"))


def place_of(pod: Object) -> str:
    told = labels_of(pod)
    return f"{told.get(well_known_labels.REPLICA_TYPE, '')}-{told.get(well_known_labels.REPLICA_INDEX, '')}"


def attempt_of(pod: Object) -> int:
    return int(labels_of(pod).get(well_known_labels.ATTEMPT, "0"))


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")
