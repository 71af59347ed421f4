"""Jobs in a queue of Kueue, which the test plays: nothing starts before it is admitted, and quota is given back."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, has_condition, uid_of
from paceline.client.interface import CRDS, Collection
from paceline.client.requests import Request, Response
from paceline.errors import Conflict
from tests.kube.kueue_kinds import (
    FLAVORS,
    PRIORITIES,
    WORKLOADS,
    admission,
    condition,
    define_kueue,
    definition_of,
    is_served,
)
from tests.kube.player import ends_well, runs_on
from tests.kube.stage import OpenTransport, Stage, Tap, embedded_transport, live, run, skip, staged, where_of
from tests.unit.kinds.manifests import generic, pytorch, replica, template

LABEL = "kueue.x-k8s.io/queue-name"
PREEMPTED = "Preempted to accommodate a higher priority Workload"


async def submit(stage: Stage, job: Object, queue: str = "team-queue", **labels: str) -> Object:
    metadata = {"name": "demo", "namespace": stage.namespace, "labels": {LABEL: queue, **labels}}
    return await stage.people.create(where_of(job), {**job, "metadata": metadata})


async def workload_of(stage: Stage, *, other_than: str = "") -> Object:
    workloads: tuple[Object, ...] = ()

    async def look() -> bool:
        nonlocal workloads
        workloads = tuple(workload for workload in await stage.all(WORKLOADS) if uid_of(workload) != other_than)
        return len(workloads) == 1

    await stage.until(look, lambda: f"there is one Workload: {workloads}")
    return workloads[0]


async def write(stage: Stage, *conditions: Object, **status: Any) -> None:
    """Write into the status of the Workload, as Kueue does; the controller may write it at the same time."""
    kinds = {row["type"] for row in conditions}
    while True:
        workload = await workload_of(stage)
        old = workload.get("status") or {}
        unchanged = [row for row in old.get("conditions") or () if row["type"] not in kinds]
        changed = {**workload, "status": {**old, **status, "conditions": [*unchanged, *conditions]}}
        try:
            await stage.people.replace(WORKLOADS, changed, subresource="status")
        except Conflict:
            continue
        return


async def admit(stage: Stage, flavor: str = "") -> None:
    reservation = {"admission": admission(await workload_of(stage), flavor)} if flavor else {}
    # As Kueue does: it sets Evicted to False when it reserves quota again.
    evicted = condition("Evicted", "False", "QuotaReserved")
    await write(stage, condition("QuotaReserved", "True"), condition("Admitted", "True"), evicted, **reservation)


async def waits(stage: Stage, job: Object, text: str, *, hurry: float = 0.0) -> None:
    last: Object = {}

    async def look() -> bool:
        nonlocal last
        last = (await stage.read(job)).get("status") or {}
        return text in last.get("waiting", "")

    await stage.until(look, lambda: f"the job waits: {last.get('waiting')!r}", hurry=hurry)


async def has(stage: Stage, kind: str, *, is_true: bool = True) -> None:
    async def look() -> bool:
        return has_condition(await workload_of(stage), kind) is is_true

    await stage.until(look, lambda: f"the Workload is {kind}: {is_true}")


def test_no_pod_is_created_before_the_queue_admits_the_job(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        await define_kueue(stage)
        flavor = f"spot-{stage.namespace}"
        toleration = {"key": "spot", "operator": "Exists"}
        spec = {"nodeLabels": {"pool": "spot"}, "tolerations": [toleration]}
        await stage.people.create(
            FLAVORS,
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "ResourceFlavor",
                "metadata": {"name": flavor},
                "spec": spec,
            },
        )
        stage.play(runs_on)
        job = await submit(stage, pytorch(replica("master", 1), replica("worker", 2)))
        workload = await workload_of(stage)
        assert [(pods["name"], pods["count"]) for pods in workload["spec"]["podSets"]] == [("master", 1), ("worker", 2)]
        assert workload["spec"]["queueName"] == "team-queue"
        assert workload["metadata"]["ownerReferences"][0]["uid"] == uid_of(job), "it is deleted with the job"
        message = "couldn't assign flavors to pod set worker: insufficient quota"
        await write(stage, condition("QuotaReserved", "False", "Pending", message))
        await waits(stage, job, f"queue team-queue: {message}")
        assert await stage.pods() == []

        await admit(stage, flavor)
        await stage.runs(3)
        for pod in await stage.pods():
            assert pod["spec"]["nodeSelector"] == {"pool": "spot"}
            assert toleration in [
                {name: entry.get(name) for name in toleration} for entry in pod["spec"]["tolerations"]
            ]
        await has(stage, "PodsReady")
        stage.play(ends_well(3))
        await stage.becomes(job, "Succeeded")
        await has(stage, "Finished")

    live(opens, act)


def test_an_evicted_job_gives_its_quota_back_and_comes_back_uncharged(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        await define_kueue(stage)
        stage.play(runs_on)
        job = await submit(stage, generic(replica(replicas=2)))
        await admit(stage)
        await stage.runs(2)

        message = "Preempted to accommodate a more important workload"
        await write(stage, condition("Evicted", "True", "Preempted", message))
        await waits(stage, job, "queue team-queue: evicted: Preempted to accommodate")
        await has(stage, "QuotaReserved", is_true=False)
        assert stage.player.live() == [], "quota is given back when no pod runs any more"
        workload = await workload_of(stage)
        assert has_condition(workload, "Requeued")
        assert not has_condition(workload, "Admitted")

        await admit(stage)
        await stage.runs(2)
        status = (await stage.becomes(job, "Running"))["status"]
        assert status["backoffCount"] == 0

    live(opens, act)


def test_a_job_that_somebody_suspends_needs_no_quota(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        await define_kueue(stage)
        job = await submit(stage, generic(replica(replicas=1)))
        await admit(stage)
        await stage.runs(1)

        async def is_active(*, expected: bool) -> bool:
            return (await workload_of(stage))["spec"]["active"] is expected

        await stage.change(job, {"suspend": True})
        await stage.until(lambda: is_active(expected=False))
        await waits(stage, job, "set spec.suspend to false")
        await stage.change(job, {"suspend": False})
        await stage.until(lambda: is_active(expected=True))

    live(opens, act)


def test_another_queue_means_another_workload(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        await define_kueue(stage)
        job = await submit(stage, generic(replica(replicas=1)))
        first = await workload_of(stage)
        labels = {"metadata": {"labels": {LABEL: "other-queue"}}}
        await stage.people.patch(where_of(job), (stage.namespace, "demo"), labels)
        second = await workload_of(stage, other_than=uid_of(first))
        assert second["spec"]["queueName"] == "other-queue"

    live(opens, act)


def test_the_priority_is_that_of_the_workload_priority_class(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        await define_kueue(stage)
        name = f"high-{stage.namespace}"
        job = await submit(stage, generic(replica(replicas=1)), **{"kueue.x-k8s.io/priority-class": name})
        await waits(stage, job, f"WorkloadPriorityClass {name} of the job cannot be read")
        kind = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass"}
        await stage.people.create(PRIORITIES, {**kind, "metadata": {"name": name}, "value": 100})
        skip(31)
        spec = (await workload_of(stage))["spec"]
        reference = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name}
        assert (spec["priority"], spec["priorityClassRef"]) == (100, reference)

    live(opens, act)


@pytest.mark.parametrize("installs", [False, True])
def test_a_cluster_without_kueue_says_so_until_it_is_installed(*, installs: bool) -> None:
    async def act(stage: Stage) -> None:
        job = await submit(stage, generic(replica(replicas=1)))
        await waits(stage, job, "queue team-queue: this cluster does not have Kueue (kueue.x-k8s.io is not served)")
        assert await stage.pods() == []
        if installs:
            await define_kueue(stage)
            skip(61)
            await workload_of(stage)

    live(embedded_transport, act)


GROUPS = {
    "volcano": Collection(group="scheduling.volcano.sh", version="v1beta1", plural="podgroups"),
    "scheduler-plugins-scheduler": Collection(group="scheduling.x-k8s.io", version="v1alpha1", plural="podgroups"),
}


@pytest.mark.parametrize("scheduler", GROUPS)
def test_the_pod_group_of_a_scheduler_is_written_or_missed(scheduler: str) -> None:
    async def act(stage: Stage) -> None:
        where = GROUPS[scheduler]
        shape = template()
        shape["spec"]["schedulerName"] = scheduler
        job = await stage.submit(generic({"type": "worker", "replicas": 3, "template": shape}))
        await waits(stage, job, f"scheduler {scheduler}, but this cluster has no podgroups.{where.group}; install")
        assert await stage.pods() == [], "a part of a gang never starts"
        await stage.people.create(CRDS, definition_of(where, "PodGroup"))
        await stage.until(lambda: is_served(stage.people, where))
        skip(61)
        await stage.runs(3)
        group = (await stage.all(where))[0]
        assert (group["spec"]["minMember"], group["metadata"]["ownerReferences"][0]["uid"]) == (3, uid_of(job))
        for pod in await stage.pods():
            metadata = pod["metadata"]
            marks = {**metadata["labels"], **metadata["annotations"]}
            assert group["metadata"]["name"] in (
                marks.get("scheduling.k8s.io/group-name"),
                marks.get("scheduling.x-k8s.io/pod-group"),
            )

    live(embedded_transport, act)


class EvictingTap(Tap):
    """Evicts the Workload while the last pod is being created; delays the watch events of pods until it is released."""

    def __init__(self, stage: Stage, pods: int) -> None:
        super().__init__(stage.transport)
        self.released = asyncio.Event()
        self._stage = stage
        self._left = pods
        self._is_holding = False
        self._is_told = asyncio.Event()

    async def send(self, request: Request) -> Response:
        is_of_pod = request.method == "POST" and request.path.endswith("/pods")
        self._is_holding = self._is_holding or is_of_pod
        answer = await super().send(request)
        if is_of_pod:
            self._left -= 1
            if self._left == 0:
                await write(self._stage, condition("Evicted", "True", "Preempted", PREEMPTED))
                await self._is_told.wait()
                # Let the controller's cache receive it.
                for _ in range(10):
                    await asyncio.sleep(0)
        return answer

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        async with aclosing(super().stream(request)) as chunks:
            async for chunk in chunks:
                if request.path.endswith("/pods") and self._is_holding:
                    await self.released.wait()
                yield chunk
                if PREEMPTED.encode() in chunk:
                    self._is_told.set()


def test_pods_that_are_being_created_at_an_eviction_hold_their_quota() -> None:
    async def main() -> None:
        async with embedded_transport() as transport, staged(transport) as stage:
            await define_kueue(stage)
            tap = EvictingTap(stage, pods=2)
            stage.play(runs_on)
            async with stage.controllers(tap):
                job = await submit(stage, generic(replica(replicas=2)))
                await admit(stage)
                await waits(stage, job, f"queue team-queue: evicted: {PREEMPTED}")
                assert has_condition(await workload_of(stage), "QuotaReserved")
                tap.released.set()
                await has(stage, "QuotaReserved", is_true=False)
                assert stage.player.live() == []

    run(main())
