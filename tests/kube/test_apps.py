"""Applications live beside either server: the controllers make the jobs, the test moves their pods."""

from typing import Any

from paceline.apimachinery.meta import name_of
from paceline.client.interface import CLAIMS, CONFIG_MAPS, Collection
from paceline.kinds.kind_types import GROUP, OWN_API_VERSION, OWN_GROUP, VERSION
from tests.kube.player import ends_well
from tests.kube.stage import OpenTransport, Stage, live

APPS = Collection(group=OWN_GROUP, version=VERSION, plural="trainingapps")
RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural="jobrecords")
JOBS = Collection(group=GROUP, version=VERSION, plural="tensorflowtrainingjobs")


def app(stage: Stage, **values: Any) -> dict[str, Any]:
    told = {"worker": {"number": 2, "gpuCount": 0}, "ps": {"number": 0}, **values}
    return {
        "apiVersion": OWN_API_VERSION,
        "kind": "TrainingApp",
        "metadata": {"name": "mnist", "namespace": stage.namespace},
        "spec": {"template": {"name": "tensorflow-training"}, "values": told},
    }


async def comes_to(stage: Stage, revision: int, phase: str) -> dict[str, Any]:
    status: dict[str, Any] = {}

    async def look() -> bool:
        status.update((await stage.people.get(APPS, stage.namespace, "mnist")).get("status") or {})
        return (status.get("revision"), status.get("phase")) == (revision, phase)

    await stage.until(look, lambda: f"revision {revision} is {phase}: {status}")
    return status


def test_each_change_of_an_application_is_a_job_of_its_own(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        stage.player.script = ends_well(1)
        await stage.people.create(APPS, app(stage))
        await comes_to(stage, 1, "Succeeded")
        change = {"spec": {"values": {"hyperparams": {"learningrate": 0.0005}}}}
        await stage.people.patch(APPS, (stage.namespace, "mnist"), change)
        status = await comes_to(stage, 2, "Succeeded")

        assert [record["job"] for record in status["history"]] == ["mnist-2", "mnist-1"]
        assert sorted(map(name_of, await stage.all(JOBS))) == ["mnist-1", "mnist-2"]
        revisions = [record for record in await stage.all(RECORDS) if record["spec"].get("revision")]
        rates = {name_of(record): record["spec"]["hyperparameters"]["learningrate"] for record in revisions}
        assert rates == {"mnist-1": "0.001", "mnist-2": "0.0005"}
        assert "mnist-data" in map(name_of, await stage.all(CLAIMS))
        assert {"mnist-trainer", "mnist-1-tf-cluster-spec"} <= set(map(name_of, await stage.all(CONFIG_MAPS)))

    live(opens, act)
