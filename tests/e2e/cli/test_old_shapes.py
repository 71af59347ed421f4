"""Jobs of older generations are kept as written, understood, and told of, by the real kubectl."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from paceline.kinds import registry
from paceline.testing.embedded import Embedded
from tests.unit.kinds.manifests import beam
from tests.unit.kinds.oldshapes import OLD, alias_tensorflow, g1_pytorch


def named(obj: dict[str, Any], name: str) -> dict[str, Any]:
    return {**obj, "metadata": {"name": name}}


def where(obj: dict[str, Any]) -> str:
    """Plural and group: two kinds differ only by their capitals, which kubectl does not see."""
    kind = registry.kind_of(obj) or registry.service_of(obj)
    assert kind is not None
    return f"{kind.plural}.{kind.group}"


@pytest.mark.parametrize(("number", "make"), tuple(enumerate(OLD.values())), ids=OLD)
def test_an_old_shape_is_kept_as_written(cluster: Embedded, number: int, make: Callable[[], dict[str, Any]]) -> None:
    """T-20"""
    written = named(make(), f"old-{number}")

    first = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(written))
    again = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(written))
    shown = cluster.kubectl("get", where(written), f"old-{number}", "-o", "json")

    assert first.out.endswith(" created\n"), first.err
    assert first.err.splitlines() == [f"Warning: {each}" for each in registry.warnings(written)]
    assert again.out.endswith(" unchanged\n"), again.err
    assert json.loads(shown.out)["spec"] == written["spec"]
    assert json.loads(shown.out)["kind"] == written["kind"]


def phase_of(cluster: Embedded, obj: dict[str, Any], phase: str) -> None:
    waited = cluster.kubectl(
        "wait", f"--for=jsonpath={{.status.phase}}={phase}", f"{where(obj)}/{obj['metadata']['name']}", "--timeout=60s"
    )
    assert waited.code == 0, waited.err


def test_a_pause_of_2023_pauses_and_its_end_resumes(cluster: Embedded) -> None:
    job = named(g1_pytorch(), "paused")
    # Torchrun is not on every machine that runs this.
    job["spec"]["torchrunConfig"]["enable"] = False
    job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0] |= {"command": ["true"], "args": []}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    phase_of(cluster, job, "Paused")

    job["spec"]["runMode"]["pause"]["enable"] = False
    resumed = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(job))

    assert resumed.out.endswith(" configured\n"), resumed.err
    phase_of(cluster, job, "Succeeded")


def test_a_job_under_its_kinds_old_name_runs(cluster: Embedded) -> None:
    """Vector 1: four pods, the first of which is the master, and every one knows its task."""
    job = named(alias_tensorflow(), "mnist")
    job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0] |= {
        "command": ["python", "-c"],
        "args": ["import json, os; print('task', json.loads(os.environ['TF_CONFIG'])['task']['index'])"],
    }
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(job))
    phase_of(cluster, job, "Succeeded")

    found = cluster.kubectl("get", "pods", "-l", "tensorstack.dev/owner-name=mnist", "-o", "json")
    pods = json.loads(found.out)["items"]

    roles = {
        pod["metadata"]["name"].partition("-worker-")[2]: pod["metadata"]["labels"].get("job-role") for pod in pods
    }
    assert roles == {"0": "master", "1": None, "2": None, "3": None}
    said = [cluster.kubectl("logs", pod["metadata"]["name"]).out for pod in pods]
    assert sorted(said) == [f"task {index}\n" for index in range(4)]


def test_a_pipeline_waits_with_the_reason_that_there_is_no_flink(cluster: Embedded) -> None:
    job = named(beam(), "pipeline")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(job))

    waited = cluster.kubectl("wait", "--for=condition=Initialized=false", "bj/pipeline", "--timeout=60s")

    assert waited.code == 0, waited.err
    status = json.loads(cluster.kubectl("get", "bj", "pipeline", "-o", "json").out)["status"]
    assert status["waiting"].startswith("Flink is not supported")
    # Nothing of it runs, so nothing has to be waited for.
    stopped = cluster.paceline("stop", "pipeline")
    assert (stopped.code, stopped.out) == (0, "beamjob/pipeline stopped\n"), stopped.err
