"""Jobs of every kind live beside either server, their pods moved by the test."""

from typing import Any

import pytest

from paceline.apimachinery.meta import name_of
from paceline.client.interface import SERVICES
from tests.kube.player import ends_well
from tests.kube.stage import OpenTransport, Stage, live
from tests.unit.kinds.manifests import colossalai, deepspeed, generic, mpi, pytorch, tensorflow, xgboost

JOBS = {
    each["kind"]: each
    for each in (
        *(pytorch(), generic(), tensorflow(), xgboost(), mpi(), deepspeed(), colossalai()),
        *(tensorflow(kind="TensorFlowJob"), deepspeed(kind="DeepspeedJob")),
    )
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_runs_and_succeeds(opens: OpenTransport, job: dict[str, Any]) -> None:
    async def act(stage: Stage) -> None:
        made = await stage.submit(job)
        begun = await stage.becomes(made, "Running")
        members = sum(len(task["replicas"]) for task in begun["status"]["tasks"])
        await stage.runs(members)
        pods = await stage.pods()
        hosts = {(pod["spec"]["hostname"], pod["spec"]["subdomain"]) for pod in pods}
        assert len(hosts) == members
        (subdomain,) = {each for _, each in hosts}
        assert subdomain in [name_of(each) for each in await stage.all(SERVICES)]
        stage.player.script = ends_well(1)
        stage.player.poke()
        await stage.becomes(made, "Succeeded")
        assert all(len(uids) == 1 for uids in stage.player.uids.values())

    live(opens, act)
