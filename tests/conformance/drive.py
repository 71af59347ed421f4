"""Run cases on a cluster, side by side, and take their answers."""

import asyncio
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Key, Object, key_of, namespace_of, uid_of
from paceline.client.http.cluster import HttpCluster
from paceline.client.informer import Informer
from paceline.client.interface import (
    ACCOUNTS,
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SECRETS,
    SERVICES,
    STORAGE_CLASSES,
    VOLUMES,
    Change,
    Cluster,
    Collection,
    PatchType,
)
from paceline.client.kubeconfig import load
from paceline.errors import AlreadyExists, NotFound, PacelineError
from paceline.host.effects import real_world
from tests.conformance.answers import alike, answer
from tests.conformance.conditions import STATUSES, Look, holds, logs_asked
from tests.conformance.table import POD, Case

KINDS: Mapping[str, Collection] = {
    "ConfigMap": CONFIG_MAPS,
    "Namespace": NAMESPACES,
    "PersistentVolume": VOLUMES,
    "PersistentVolumeClaim": CLAIMS,
    "Pod": PODS,
    "PriorityClass": PRIORITY_CLASSES,
    "Secret": SECRETS,
    "Service": SERVICES,
    "ServiceAccount": ACCOUNTS,
    "StorageClass": STORAGE_CLASSES,
}
LOOK_SECONDS = 0.1
# Nothing new for so long, or so long not the expected answer: what is there is the answer.
QUIET_SECONDS = 3.0
LATE_SECONDS = 15.0

Expected = Callable[[Case], Any]


def run_cases(kubeconfig: Path, cases: Iterable[Case], *, width: int, expected: Expected | None) -> dict[str, Any]:
    """Run cases, `width` at a time; with expected answers, an equal one is not waited for any longer."""
    wanted = tuple(cases)
    try:
        return asyncio.run(_run(kubeconfig, wanted, width=width, expected=expected))
    finally:
        for case in wanted:
            shutil.rmtree(case.folder, ignore_errors=True)


async def _run(kubeconfig: Path, cases: tuple[Case, ...], *, width: int, expected: Expected | None) -> dict[str, Any]:
    world = real_world()
    async with HttpCluster(load(kubeconfig, Path.read_bytes), world.chance) as cluster:
        stage = Stage(cluster=cluster, expected=expected)
        stage.pods = Informer(cluster, PODS, chance=world.chance, on_change=stage.pod_changed)
        stage.events = Informer(cluster, EVENTS, chance=world.chance)
        async with asyncio.TaskGroup() as group:
            following = [group.create_task(each.run()) for each in (stage.pods, stage.events)]
            stage.node = (await cluster.list(NODES)).items[0]["metadata"]["name"]
            width_left = asyncio.Semaphore(width)
            async with asyncio.TaskGroup() as plays:
                tasks = {case.name: plays.create_task(stage.play(case, width_left)) for case in cases}
            for each in following:
                each.cancel()
        return {name: task.result() for name, task in tasks.items()}


@dataclass(slots=True, kw_only=True)
class Stage:
    """A cluster on which cases are played."""

    cluster: Cluster
    expected: Expected | None
    node: str = ""
    pods: Informer = field(init=False)
    events: Informer = field(init=False)
    # What pods that are gone said last.
    gone: dict[Key, Object] = field(default_factory=dict)

    def pod_changed(self, change: Change, old: Object | None, new: Object | None) -> None:
        """Keep the last words of a pod that goes."""
        last = new or old
        if change is Change.DELETED and last is not None:
            self.gone[key_of(last)] = last

    async def play(self, case: Case, width_left: asyncio.Semaphore) -> dict[str, Any]:
        """Play one case and give its answer; `failure` in it says what never came."""
        async with width_left:
            try:
                await self._prepare(case)
                look = await self._until(case, case.until)
                for step in case.then:
                    look = await self._step(case, step) or look
                if case.ends:
                    look = await self._until(case, ("gone",))
                if case.moment and self.expected is None:
                    return await self._answer(case, look)
                return await self._settled(case)
            except (TimeoutError, PacelineError) as problem:
                return {"failure": str(problem), **answer(case, self._look(case), {}, node=self.node)}
            finally:
                await self._clear(case)

    async def _prepare(self, case: Case) -> None:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": case.namespace}}
        await self.cluster.create(NAMESPACES, space)
        await self._wait(case, "the service account is there", lambda: self._has_account(case.namespace))
        case.folder.mkdir(exist_ok=True)
        *objects, pod = case.manifests
        for manifest in objects:
            await self.cluster.create(KINDS[manifest["kind"]], manifest)
        for name in case.bound:
            await self._wait(case, f"claim {name} has a volume", partial(self._is_bound, (case.namespace, name)))
        await self.cluster.create(PODS, pod)

    async def _is_bound(self, key: Key) -> bool:
        claim = await self.cluster.get(CLAIMS, *key)
        return bool((claim.get("status") or {}).get("phase") == "Bound")

    async def _has_account(self, namespace: str) -> bool:
        try:
            await self.cluster.get(ACCOUNTS, namespace, "default")
        except NotFound:
            return False
        return True

    async def _step(self, case: Case, step: Mapping[str, Any]) -> Look | None:
        key = (case.namespace, POD)
        for manifest in map(case.placed, step.get("apply") or ()):
            where = KINDS[manifest["kind"]]
            try:
                await self.cluster.create(where, manifest)
            except AlreadyExists:
                await self.cluster.patch(where, key_of(manifest), manifest)
        for kind, name in (step.get("remove") or {}).items():
            await self.cluster.delete(KINDS[kind], (case.namespace, name), {})
        if "patch" in step:
            door = step.get("door", "")
            await self.cluster.patch(PODS, key, step["patch"], kind=PatchType.STRATEGIC, subresource=door)
        if "delete" in step:
            await self.cluster.delete(PODS, key, _grace(step["delete"]))
        if "evict" in step:
            kind = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": POD}}
            await self.cluster.post(PODS.path(*key, "eviction"), kind | {"deleteOptions": _grace(step["evict"])})
        return await self._until(case, step["until"]) if "until" in step else None

    async def _until(self, case: Case, terms: Iterable[str]) -> Look:
        """Wait for all conditions at once, and give what was there at that moment."""
        look = Look(pod={})

        async def all_hold() -> bool:
            nonlocal look
            logs = {name: await self._log(case, name) for name in logs_asked(terms)}
            look = self._look(case, logs)
            return all(holds(term, look) for term in terms)

        await self._wait(case, " and ".join(terms), all_hold)
        return look

    async def _wait(self, case: Case, what: str, look: Callable[[], Any]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + case.seconds
        while not await look():
            if loop.time() > deadline:
                raise TimeoutError(f"waited {case.seconds:g} s in vain until {what}")
            await asyncio.sleep(LOOK_SECONDS)

    async def _settled(self, case: Case) -> dict[str, Any]:
        """Wait until the answer is the expected one or, when none is, until it stays the same for a while."""
        loop = asyncio.get_running_loop()
        wanted = alike(case, self.expected(case)) if self.expected else None
        began = since = loop.time()
        last: dict[str, Any] = {}
        while True:
            said = await self._answer(case, self._look(case))
            now = loop.time()
            if wanted is not None and (alike(case, said) == wanted or now - began > LATE_SECONDS):
                return said
            since = now if said != last else since
            if wanted is None and now - since > QUIET_SECONDS:
                return said
            last = said
            await asyncio.sleep(LOOK_SECONDS)

    async def _answer(self, case: Case, look: Look) -> dict[str, Any]:
        logs = {}
        if case.logs and not look.is_gone:
            logs = {name: await self._log(case, name) for name in _have_run(look)}
        logs |= {f"{name} (previous)": await self._log(case, name, previous=True) for name in case.previous}
        return answer(case, look, logs, node=self.node)

    def _look(self, case: Case, logs: Mapping[str, str] | None = None) -> Look:
        key = (case.namespace, POD)
        pod = self.pods.cache.get(key)
        last = pod or self.gone.get(key) or {}
        events = (
            [
                each
                for each in self.events.cache.values()
                if namespace_of(each) == case.namespace and each["involvedObject"].get("uid") == uid_of(last)
            ]
            if last
            else []
        )
        return Look(pod=last, is_gone=pod is None and bool(last), events=events, logs=logs or {})

    async def _log(self, case: Case, container: str, *, previous: bool = False) -> str:
        path = PODS.path(case.namespace, POD, "log")
        query = {"container": container} | ({"previous": "true"} if previous else {})
        parts = []
        with suppress(PacelineError):
            async with aclosing(self.cluster.stream(path, query)) as stream:
                parts = [part async for part in stream]
        return b"".join(parts).decode(errors="replace")

    async def _clear(self, case: Case) -> None:
        """Make room for the next case."""
        for manifest in case.manifests:
            if manifest["kind"] == "Pod":
                key = (case.namespace, manifest["metadata"]["name"])
                with suppress(PacelineError):
                    await self.cluster.delete(PODS, key, {"gracePeriodSeconds": 0})


def _grace(seconds: Any) -> dict[str, Any]:
    return {} if seconds == "default" else {"gracePeriodSeconds": seconds}


def _have_run(look: Look) -> tuple[str, ...]:
    """Name the containers that have a log."""
    return tuple(
        str(each["name"])
        for kind in STATUSES
        for each in look.status.get(kind) or ()
        if "waiting" not in each.get("state", {}) or each.get("lastState")
    )
