"""Applications on a simulated machine: each change is the next revision, and what was stays to be read."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import orjson
import pytest

from paceline.apimachinery.meta import Object, name_of
from paceline.apiserver import object_strategy
from paceline.client.interface import CLAIMS, CONFIG_MAPS, EVENTS, PODS, Collection, Select
from paceline.errors import Invalid, NotFound
from paceline.kinds.kind_types import GROUP, OWN_GROUP, SERVICE_GROUP, VERSION
from paceline.model import well_known_labels
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course, Intent
from tests.integration.life import ended, started

APPS = Collection(group=OWN_GROUP, version=VERSION, plural="trainingapps")
RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural="jobrecords")
JOBS = Collection(group=GROUP, version=VERSION, plural="tensorflowtrainingjobs")
GENERIC = Collection(group=GROUP, version=VERSION, plural="genericjobs")
BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural="tensorboards")
SECONDS = 300
SHORT = Course(seconds=5)
LONG = Course()


def app(name: str = "mnist", **spec: Any) -> Object:
    values = {"worker": {"number": 1, "gpuCount": 0}, "ps": {"number": 1}, "hyperparams": {"learningrate": 0.001}}
    told = {"template": {"name": "tensorflow-training"}, "values": values}
    return {
        "apiVersion": f"{OWN_GROUP}/{VERSION}",
        "kind": "TrainingApp",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**told, **spec},
    }


def plain(**spec: Any) -> Object:
    """An application whose job is written out."""
    container = {"name": "main", "image": "python:3", "command": ["true"]}
    replicas = {"type": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    rules = [{"worker": [0]}]
    job = {"kind": "GenericJob", "spec": {"replicaSpecs": [replicas], "successRules": rules, "failureRules": rules}}
    return {**app(), "spec": {"job": job, **spec}}


def workers_end(intent: Intent) -> Course:
    """Parameter servers never end, as everywhere, and nor does TensorBoard."""
    return SHORT if "-worker-" in intent["pod"]["name"] else LONG


async def names(cluster: SimCluster, where: Collection) -> list[str]:
    return sorted(name_of(each) for each in (await cluster.client().list(where, Select(namespace="default"))).items)


async def until(look: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(SECONDS):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.1)


async def status_of(cluster: SimCluster, where: Collection, name: str) -> Object:
    return (await cluster.client().get(where, "default", name)).get("status") or {}


async def phase_becomes(cluster: SimCluster, where: Collection, name: str, phase: str) -> None:
    async def look() -> bool:
        return not await is_gone(cluster, where, name) and (await status_of(cluster, where, name)).get("phase") == phase

    await until(look)


async def set_spec(cluster: SimCluster, **spec: Any) -> None:
    await cluster.client().patch(APPS, ("default", "mnist"), {"spec": spec})


async def comes_to(cluster: SimCluster, revision: int, phase: str) -> Object:
    async def look() -> Object | None:
        status = await status_of(cluster, APPS, "mnist")
        return status if (status.get("revision"), status.get("phase")) == (revision, phase) else None

    return await until(look)


def live(act: Callable[[SimCluster], Awaitable[None]], course: Callable[[Intent], Course] = workers_end) -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = course
        await act(cluster)
        await ended(cluster)

    run_simulated(1, main())


def test_one_application_becomes_a_job_with_its_claim_its_trainer_and_its_tensorboard() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, app())
        status = await comes_to(cluster, 1, "Succeeded")

        assert status["job"] == {"kind": "TensorFlowTrainingJob", "name": "mnist-1"}
        assert await names(cluster, JOBS) == ["mnist-1"]
        assert await names(cluster, BOARDS) == ["mnist"]
        assert "mnist-data" in await names(cluster, CLAIMS)
        assert "mnist-trainer" in await names(cluster, CONFIG_MAPS)
        record = await cluster.client().get(RECORDS, "default", "mnist-1")
        assert record["spec"]["hyperparameters"] == {"epochs": "100", "batchsize": "20", "learningrate": "0.001"}
        assert record["spec"]["values"]["worker"] == {"number": 1, "gpuCount": 0}
        shown = await cluster.client().get(CONFIG_MAPS, "default", "mnist-1-tf-cluster-spec")
        pods = (await cluster.client().list(PODS, Select(namespace="default"))).items
        told = [
            each["value"]
            for pod in pods
            for each in pod["spec"]["containers"][0].get("env") or ()
            if each["name"] == "CLUSTER_CONFIG"
        ]
        assert told == [shown["data"]["cluster"]] * 2
        assert record["status"]["clusterSpec"] == shown["data"]["cluster"]

    live(act)


def test_a_change_is_the_next_revision_and_no_change_is_none() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, app())
        await comes_to(cluster, 1, "Succeeded")
        await set_spec(cluster, values={"hyperparams": {"learningrate": 0.0005}})
        status = await comes_to(cluster, 2, "Succeeded")
        await set_spec(cluster, values={"hyperparams": {"learningrate": 0.0005}}, revisionHistoryLimit=5)
        await until(lambda: is_observed(cluster, 3))

        assert await names(cluster, JOBS) == ["mnist-1", "mnist-2"]
        assert [(each["revision"], each["phase"]) for each in status["history"]] == [(2, "Succeeded"), (1, "Succeeded")]
        told = [
            (await cluster.client().get(RECORDS, "default", name))["spec"]["hyperparameters"]["learningrate"]
            for name in ("mnist-1", "mnist-2")
        ]
        assert told == ["0.001", "0.0005"]

    live(act)


async def is_observed(cluster: SimCluster, generation: int) -> bool:
    return (await status_of(cluster, APPS, "mnist")).get("observedGeneration") == generation


def test_one_revision_runs_at_a_time_and_the_old_one_is_stopped_first() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, plain())
        await phase_becomes(cluster, GENERIC, "mnist-1", "Running")
        await set_spec(cluster, rerun=1)
        await phase_becomes(cluster, GENERIC, "mnist-2", "Running")

        assert (await status_of(cluster, GENERIC, "mnist-1"))["phase"] == "Paused"
        assert (await status_of(cluster, RECORDS, "mnist-1"))["phase"] == "Stopped"

    live(act, course=lambda _: LONG)


def test_a_stopped_application_goes_on_when_it_is_let_go_and_not_before() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, plain())
        await phase_becomes(cluster, GENERIC, "mnist-1", "Running")
        await set_spec(cluster, suspend=True)
        await phase_becomes(cluster, GENERIC, "mnist-1", "Paused")
        await comes_to(cluster, 1, "Stopped")
        await set_spec(cluster, suspend=False)
        await phase_becomes(cluster, GENERIC, "mnist-1", "Running")
        await comes_to(cluster, 1, "Running")

        assert await names(cluster, GENERIC) == ["mnist-1"]

    live(act, course=lambda _: LONG)


def test_a_record_outlives_the_job_and_the_training_is_not_begun_again() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, plain())
        await comes_to(cluster, 1, "Succeeded")
        await cluster.client().delete(GENERIC, ("default", "mnist-1"))
        await until(lambda: is_gone(cluster, GENERIC, "mnist-1"))
        await asyncio.sleep(30)

        assert await names(cluster, GENERIC) == []
        assert (await status_of(cluster, APPS, "mnist"))["phase"] == "Succeeded"
        record = await cluster.client().get(RECORDS, "default", "mnist-1")
        assert record["status"]["phase"] == "Succeeded"
        assert record["spec"]["job"]["spec"]["replicaSpecs"][0]["type"] == "worker"

    live(act, course=lambda _: SHORT)


async def is_gone(cluster: SimCluster, where: Collection, name: str) -> bool:
    try:
        await cluster.client().get(where, "default", name)
    except NotFound:
        return True
    return False


def test_jobs_beyond_the_limit_go_and_their_records_stay() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, plain(revisionHistoryLimit=1))
        for revision in (1, 2, 3):
            await comes_to(cluster, revision, "Succeeded")
            await set_spec(cluster, rerun=revision)
        await comes_to(cluster, 4, "Succeeded")
        await until(lambda: is_gone(cluster, GENERIC, "mnist-2"))

        assert await names(cluster, GENERIC) == ["mnist-3", "mnist-4"]
        of_revisions = Select(namespace="default", labels=well_known_labels.APP)
        records = (await cluster.client().list(RECORDS, of_revisions)).items
        assert sorted(map(name_of, records)) == ["mnist-1", "mnist-2", "mnist-3", "mnist-4"]

    live(act, course=lambda _: SHORT)


def test_all_of_an_application_goes_with_it() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, app())
        await comes_to(cluster, 1, "Succeeded")
        await cluster.client().delete(APPS, ("default", "mnist"))
        for where, name in ((JOBS, "mnist-1"), (RECORDS, "mnist-1"), (BOARDS, "mnist"), (CLAIMS, "mnist-data")):
            await until(lambda where=where, name=name: is_gone(cluster, where, name))
        await until(lambda: is_gone(cluster, CONFIG_MAPS, "mnist-trainer"))

    live(act)


def test_a_claim_of_somebody_else_is_not_taken_and_the_application_says_so() -> None:
    async def act(cluster: SimCluster) -> None:
        wish = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        taken = {"name": "mnist-data", "namespace": "default"}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": taken, "spec": wish}
        await cluster.client().create(CLAIMS, claim)
        await cluster.client().create(APPS, app())

        async def look() -> bool:
            return "belongs to somebody else" in (await status_of(cluster, APPS, "mnist")).get("waiting", "")

        await until(look)
        assert await names(cluster, JOBS) == []

    live(act)


def test_a_claim_cannot_change_and_the_application_says_so_until_it_need_not() -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, app())
        await comes_to(cluster, 1, "Succeeded")
        await set_spec(cluster, values={"persistence": {"pvc": {"storage": "9Gi"}}})

        async def look() -> bool:
            return "its size cannot change" in (await status_of(cluster, APPS, "mnist")).get("waiting", "")

        await until(look)
        assert await names(cluster, JOBS) == ["mnist-1"]
        await set_spec(cluster, values={"persistence": {"pvc": {"storage": "5Gi"}}})
        await comes_to(cluster, 3, "Succeeded")
        assert await names(cluster, JOBS) == ["mnist-1", "mnist-3"]

    live(act)


SPOILT: dict[str, tuple[Collection, str, Any]] = {
    "an application": (APPS, "mnist", {"revision": "many", "updated": "yesterday", "job": "x"}),
    "a record": (RECORDS, "mnist-1", {"startTime": "yesterday", "metrics": "none"}),
    "a job": (GENERIC, "mnist-1", {"tasks": [{"replicas": [{"x": 1}]}], "ports": "x", "phase": "Nonsense"}),
    "the end of a job": (GENERIC, "mnist-1", {"phase": "Running", "ending": {"phase": "Nonsense"}}),
}


async def spoil(cluster: SimCluster, where: Collection, name: str, status: dict[str, Any]) -> None:
    """Put a status into the store that the API server would refuse: an older one may have accepted it."""
    assert cluster.store is not None
    stored = cluster.store.get(f"/{where.group}/{where.plural}/default/{name}")
    assert stored is not None
    obj = orjson.loads(stored.value)
    obj["status"] |= status
    await cluster.store.replace(stored.key, partial(object_strategy.write, obj), expected=stored.revision)


@pytest.mark.parametrize("where", [APPS, RECORDS, GENERIC], ids=lambda where: str(where.plural))
def test_a_status_with_a_value_of_the_wrong_type_is_refused(where: Collection) -> None:
    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, plain())
        await comes_to(cluster, 1, "Succeeded")
        name = "mnist" if where is APPS else "mnist-1"
        with pytest.raises(Invalid, match=r"status\.phase"):
            await cluster.client().patch(where, ("default", name), {"status": {"phase": 1}}, subresource="status")

    live(act)


@pytest.mark.parametrize("spoilt", SPOILT.values(), ids=SPOILT)
def test_a_status_that_nobody_can_read_is_said_and_holds_up_nothing_else(spoilt: tuple[Collection, str, Any]) -> None:
    """I14: whoever may write one status does not stop the others, nor the controllers."""
    where, name, status = spoilt

    async def act(cluster: SimCluster) -> None:
        await cluster.client().create(APPS, plain())
        await comes_to(cluster, 1, "Succeeded")
        await spoil(cluster, where, name, status)

        async def is_said() -> bool:
            events = (await cluster.client().list(EVENTS, Select(namespace="default"))).items
            return any(each["reason"] == "Unreadable" for each in events)

        await until(is_said)
        await cluster.client().create(APPS, {**plain(), "metadata": {"name": "other", "namespace": "default"}})
        await phase_becomes(cluster, APPS, "other", "Succeeded")

    live(act)


def test_values_that_are_wrong_are_refused_at_once_with_all_that_is_wrong() -> None:
    async def act(cluster: SimCluster) -> None:
        wrong = {"worker": {"numbr": 2}, "ps": {"number": -1}, "hyperparams": {"learningrate": "fast"}}
        with pytest.raises(Invalid) as refused:
            await cluster.client().create(APPS, app(values=wrong))
        told = {fault.path: fault.hint for fault in refused.value.faults}
        assert 'did you mean "number"?' in told["spec.values.worker.numbr"]
        assert "spec.values.ps.number" in told
        with pytest.raises(Invalid) as unknown:
            await cluster.client().create(APPS, app(template={"name": "acs-tensorflow-tarining"}))
        assert 'did you mean "acs-tensorflow-training"?' in str(unknown.value)

    live(act)
