"""The controllers of TensorBoards and Notebooks on three clusters; the test does what nodes do."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from paceline.apimachinery.meta import Object, name_of, owned_by, uid_of
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer
from paceline.client.interface import CLAIMS, PODS, SECRETS, SERVICES, SLICES, Collection
from paceline.cluster.wiring import SharedInformer
from paceline.controllers.interactive.job_tensorboard import JobTensorBoards
from paceline.controllers.interactive.reconciler import InteractiveController
from paceline.controllers.job.reconciler import Jobs
from paceline.errors import NotFound
from paceline.host.effects import real_world
from paceline.kinds.kind_types import GROUP, SERVICE_GROUP, VERSION
from paceline.testing.contract.target import OpenSubject, Subject, pod_spec

BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural="tensorboards")
NOTEBOOKS = Collection(group=SERVICE_GROUP, version=VERSION, plural="notebooks")
JOBS = Collection(group=GROUP, version=VERSION, plural="pytorchtrainingjobs")
LOGS = {"logDir": {"pvc": [{"name": "data", "subPath": ["log"]}]}}
SECONDS = 60.0

T = TypeVar("T")


@asynccontextmanager
async def controlled(subject: Subject) -> AsyncIterator[None]:
    """Run the controllers, and nothing else that a cluster has."""
    world, cluster = real_world(), subject.cluster
    recorder = Recorder(cluster, world.clock, component="test")
    pods = Informer(cluster, PODS, chance=world.chance)
    jobs = Jobs(
        cluster=cluster, clock=world.clock, chance=world.chance, recorder=recorder, pods=pods, shares_network=False
    )
    boards = JobTensorBoards(
        cluster=cluster, clock=world.clock, chance=world.chance, recorder=recorder, jobs=jobs.informers
    )
    services = InteractiveController(
        cluster=cluster, clock=world.clock, chance=world.chance, recorder=recorder, token=world.ids.secret
    )
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(each.run(asyncio.Event()))
            for each in (SharedInformer(informer=pods), jobs, boards, services)
        ]
        yield
        for task in tasks:
            task.cancel()


async def until(look: Callable[[], Awaitable[T]]) -> T:
    """Look again and again until there is something to see, and give it."""
    async with asyncio.timeout(SECONDS):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.05)


async def found(s: Subject, where: Collection, name: str) -> Object:
    async def look() -> Object | None:
        try:
            return await s.cluster.get(where, s.namespace, name)
        except NotFound:
            return None

    return await until(look)


async def gone(s: Subject, where: Collection, name: str) -> None:
    async def look() -> bool:
        return name not in [name_of(each) for each in (await s.cluster.list(where, s.select())).items]

    await until(look)


async def reaches(s: Subject, where: Collection, name: str, phase: str) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        status: dict[str, Any] = (await s.cluster.get(where, s.namespace, name)).get("status") or {}
        return status if status.get("phase") == phase else {}

    return await until(look)


async def pod_of(s: Subject, where: Collection, name: str) -> Object:
    async def look() -> Object | None:
        status: Any = (await s.cluster.get(where, s.namespace, name)).get("status") or {}
        return status.get("pod") and await found(s, PODS, status["pod"]["reference"]["name"])

    return await until(look)


async def move(s: Subject, pod: Object, phase: str, *, ready: bool = False) -> None:
    """Say of a pod what a node would."""
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"phase": phase, "conditions": conditions, "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
    await s.cluster.patch(PODS, (s.namespace, name_of(pod)), {"status": status}, subresource="status")


async def lead(s: Subject, service: Object, pod: Object) -> None:
    """Let a service lead to a pod, as a cluster's own controller would."""
    target = {"kind": "Pod", "namespace": s.namespace, "name": name_of(pod), "uid": uid_of(pod)}
    labels = {**service["metadata"]["labels"], "kubernetes.io/service-name": name_of(service)}
    metadata = {"name": f"{name_of(service)}-x", "namespace": s.namespace, "labels": labels}
    piece = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "ownerReferences": [owned_by({**service, "apiVersion": "v1", "kind": "Service"})]},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "targetRef": target}],
        "ports": [{"name": "http", "port": 6006}],
    }
    await s.cluster.create(SLICES, piece)


def service(s: Subject, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": s.namespace}
    return {"apiVersion": f"{SERVICE_GROUP}/{VERSION}", "kind": kind, "metadata": metadata, "spec": spec}


async def claim(s: Subject) -> None:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": s.namespace}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    await s.cluster.create(CLAIMS, body)


async def test_a_tensorboard_answers_is_suspended_and_comes_back(open_subject: OpenSubject) -> None:
    async with open_subject() as s, controlled(s):
        await claim(s)
        await s.cluster.create(BOARDS, service(s, "TensorBoard", "curves", LOGS))
        pod = await pod_of(s, BOARDS, "curves")
        await move(s, pod, "Running", ready=True)
        assert (await reaches(s, BOARDS, "curves", "Initializing"))["pod"]["reference"]["uid"] == uid_of(pod)
        await lead(s, await found(s, SERVICES, "tb-curves"), pod)
        status = await reaches(s, BOARDS, "curves", "Running")
        assert status["url"] == f"/t9k/tensorboards/projects/{s.namespace}/name/curves/"

        await suspend(s, "curves", suspend=True)
        await reaches(s, BOARDS, "curves", "Paused")
        await gone(s, PODS, name_of(pod))
        await suspend(s, "curves", suspend=False)
        assert uid_of(await pod_of(s, BOARDS, "curves")) != uid_of(pod)


async def test_h42_h59_the_service_in_front_of_a_tensorboard_is_of_the_type_that_was_asked_for(
    open_subject: OpenSubject,
) -> None:
    async with open_subject() as s, controlled(s):
        await claim(s)
        await s.cluster.create(BOARDS, service(s, "TensorBoard", "curves", {**LOGS, "serviceType": "LoadBalancer"}))
        pod = await pod_of(s, BOARDS, "curves")
        door = await found(s, SERVICES, "tb-curves")
        assert (door["spec"]["type"], door["spec"]["ports"][0]["port"]) == ("LoadBalancer", 80)
        assert "address" not in (await reaches(s, BOARDS, "curves", "Initializing"))
        # What a cloud does, or servicelb.
        ways = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}}
        await s.cluster.patch(SERVICES, (s.namespace, "tb-curves"), ways, subresource="status")
        await is_opened_at(s, "http://192.0.2.9/")

        await s.cluster.patch(
            PODS, (s.namespace, name_of(pod)), {"status": {"hostIP": "192.0.2.7"}}, subresource="status"
        )
        await s.cluster.patch(BOARDS, (s.namespace, "curves"), {"spec": {"serviceType": "NodePort"}})
        await is_opened_at(s, f"http://192.0.2.7:{door['spec']['ports'][0]['nodePort']}/")
        await s.cluster.patch(BOARDS, (s.namespace, "curves"), {"spec": {"serviceType": "ClusterIP"}})
        await is_opened_at(s, None)
        assert (await found(s, SERVICES, "tb-curves"))["spec"]["type"] == "ClusterIP"
        assert uid_of(await pod_of(s, BOARDS, "curves")) == uid_of(pod), "who reaches it is no matter of its pod"


async def is_opened_at(s: Subject, address: str | None) -> None:
    async def look() -> bool:
        status: Any = (await s.cluster.get(BOARDS, s.namespace, "curves")).get("status") or {}
        return bool(status.get("address") == address)

    await until(look)


async def suspend(s: Subject, name: str, *, suspend: bool) -> None:
    await s.cluster.patch(BOARDS, (s.namespace, name), {"spec": {"suspend": suspend}})


async def test_a_notebook_that_ends_rests_with_its_token_kept(open_subject: OpenSubject) -> None:
    async with open_subject() as s, controlled(s):
        await s.cluster.create(NOTEBOOKS, service(s, "Notebook", "desk", {"template": {"spec": pod_spec()}}))
        pod = await pod_of(s, NOTEBOOKS, "desk")
        await move(s, pod, "Succeeded")
        status = await reaches(s, NOTEBOOKS, "desk", "Paused")
        await gone(s, PODS, name_of(pod))
        assert (await s.cluster.get(SECRETS, s.namespace, status["tokenSecret"]))["data"]["token"]
        opened = {"metadata": {"annotations": {"paceline.dev/opened-at": "2999-01-01T00:00:00Z"}}}
        await s.cluster.patch(NOTEBOOKS, (s.namespace, "desk"), opened)
        assert uid_of(await pod_of(s, NOTEBOOKS, "desk")) != uid_of(pod)


async def test_a_job_says_how_its_tensorboard_is(open_subject: OpenSubject) -> None:
    async with open_subject() as s, controlled(s):
        await claim(s)
        replica = {"type": "worker", "template": {"spec": pod_spec()}}
        body = {"replicaSpecs": [replica], "tensorboardSpec": LOGS}
        job = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "PyTorchTrainingJob",
            "metadata": {"name": "train", "namespace": s.namespace},
            "spec": body,
        }
        await s.cluster.create(JOBS, job)

        async def told() -> dict[str, Any]:
            status: Any = (await s.cluster.get(JOBS, s.namespace, "train")).get("status") or {}
            said: dict[str, Any] = status.get("tensorboard") or {}
            return said if said.get("reason") == "DependentNotReady" else {}

        said = await until(told)
        board = await s.cluster.get(BOARDS, s.namespace, said["dependent"]["name"])
        assert said["dependent"]["uid"] == uid_of(board)
        assert board["metadata"]["ownerReferences"][0]["name"] == "train"
        # Both controllers write the same status, each its own part of it.
        assert name_of(await found(s, PODS, f"{name_of(board)}-worker-0"))
        assert (await s.cluster.get(JOBS, s.namespace, "train"))["status"]["tasks"]
