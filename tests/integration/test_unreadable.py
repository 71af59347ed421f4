"""What others wrote and nobody can read is said on its object, and what runs goes on."""

from paceline.client.interface import EVENTS, PODS, Select
from paceline.testing.sim.cluster import SimCluster
from tests.integration.life import phase_becomes
from tests.integration.test_kinds import named, where
from tests.integration.test_rules import live, submit, until
from tests.unit.kinds.manifests import generic, pytorch


async def said(cluster: SimCluster) -> list[str]:
    events = (await cluster.client().list(EVENTS, Select(namespace="default"))).items
    return [each["message"] for each in events if each["reason"] == "Unreadable"]


def test_a_job_whose_ports_somebody_took_away_is_told_which_it_lacks_and_runs_on() -> None:
    job = pytorch()

    async def act(cluster: SimCluster) -> None:
        await submit(cluster, job)
        begun = await phase_becomes(cluster, where(job), "demo", "Running")
        others = {**dict.fromkeys(begun["status"]["ports"]), "other": 1}
        spoilt = {"status": {"ports": others}}
        await cluster.client().patch(where(job), ("default", "demo"), spoilt, subresource="status")

        async def is_said() -> bool:
            return bool(await said(cluster))

        await until(is_said)
        (why, *_) = await said(cluster)
        assert all(name in why for name in begun["status"]["ports"])
        pods = (await cluster.client().list(PODS, Select(namespace="default"))).items
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        other = named(generic(), "fine")
        await cluster.client().create(where(other), other)
        await phase_becomes(cluster, where(other), "fine", "Running")

    live(act)
