"""Our kinds are there by their definitions, whatever happens while those are stored."""

import asyncio
from typing import Any

import pytest

from paceline.apimachinery.crd.crd import ShippedKind
from paceline.apimachinery.meta import Object, revision_of
from paceline.apiserver.crd.schema_validation import definition_faults
from paceline.client.interface import CRDS, Collection
from paceline.cluster.crd_install import own_kinds
from paceline.errors import Invalid
from paceline.kinds.kind_types import GROUP, VERSION
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.e2e.support.manifests import generic
from tests.integration.life import PATIENCE_SECONDS, ended, phase_becomes

JOBS = Collection(group=GROUP, version=VERSION, plural="genericjobs")
NAME = f"genericjobs.{GROUP}"


async def started(cluster: SimCluster) -> SimCluster:
    """Start both processes of a cluster whose kinds are defined by way of the API."""
    await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
    await asyncio.wait_for(cluster.start_agent().ready.wait(), PATIENCE_SECONDS)
    return cluster


async def restarted(cluster: SimCluster) -> None:
    """Kill the control process and start it again."""
    await cluster.kill_control()
    await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)


async def definitions(cluster: SimCluster) -> dict[str, Object]:
    """The stored definitions by name."""
    page = await cluster.client().list(CRDS)
    return {each["metadata"]["name"]: each for each in page.items}


def job(name: str) -> Any:
    """A small job in the default namespace."""
    made = generic(name, command=["true"], replicas=2)
    made["metadata"]["namespace"] = "default"
    return made


def test_a_job_of_a_defined_kind_runs() -> None:
    async def main() -> None:
        cluster = await started(SimCluster(seed=1, defines=True))
        cluster.sim.processes.script = lambda _intent: Course(seconds=1)
        await cluster.client().create(JOBS, job("hello"))
        await phase_becomes(cluster, JOBS, "hello", "Succeeded")
        await ended(cluster)

    run_simulated(1, main())


def test_what_only_the_author_of_a_kind_knows_counts() -> None:
    async def main() -> None:
        cluster = await started(SimCluster(seed=1, defines=True))
        await cluster.client().create(JOBS, job("hello"))
        wrong = job("other")
        wrong["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "much"}}
        with pytest.raises(Invalid, match=r"containers\[0\]\.resources\.limits"):
            await cluster.client().create(JOBS, wrong)
        patch = {"spec": {"successRules": [{"worker": [1]}]}}
        with pytest.raises(Invalid, match="immutable"):
            await cluster.client().patch(JOBS, ("default", "hello"), patch)
        await ended(cluster)

    run_simulated(1, main())


def test_a_start_that_finds_its_definitions_writes_none() -> None:
    async def main() -> None:
        cluster = await started(SimCluster(seed=1, defines=True))
        before = {name: revision_of(each) for name, each in (await definitions(cluster)).items()}
        await restarted(cluster)
        after = {name: revision_of(each) for name, each in (await definitions(cluster)).items()}
        assert after == before
        assert len(after) == len(own_kinds())
        await ended(cluster)

    run_simulated(1, main())


def test_our_definitions_are_stored_as_they_are_written() -> None:
    """Only then are they known for our own: not tried, not held twice, and not sent again at the next start."""

    async def main() -> None:
        cluster = await started(SimCluster(seed=1, defines=True))
        stored = {name: each["spec"] for name, each in (await definitions(cluster)).items()}
        assert stored == {each.definition["metadata"]["name"]: each.definition["spec"] for each in own_kinds().values()}
        await ended(cluster)

    run_simulated(1, main())


@pytest.mark.parametrize("known", own_kinds().values(), ids=lambda known: known.resource.kind)
def test_our_definitions_work_for_a_start_does_not_try_them(known: ShippedKind) -> None:
    assert definition_faults(known.definition) == ()


def test_a_definition_of_another_paceline_is_replaced() -> None:
    async def main() -> None:
        cluster = await started(SimCluster(seed=1, defines=True))
        wanted = (await definitions(cluster))[NAME]["spec"]
        patch = {"spec": {"names": {"shortNames": ["old"]}}}
        await cluster.client().patch(CRDS, ("", NAME), patch)
        await cluster.client().create(JOBS, job("hello"))
        await restarted(cluster)
        assert (await definitions(cluster))[NAME]["spec"] == wanted
        assert (await cluster.client().get(JOBS, "default", "hello"))["apiVersion"] == f"{GROUP}/{VERSION}"
        await ended(cluster)

    run_simulated(1, main())


@pytest.mark.parametrize("turns", [5, 20, 60, 200])
def test_a_start_that_was_killed_is_made_good_by_the_next(turns: int) -> None:
    async def main() -> None:
        cluster = SimCluster(seed=1, defines=True)
        cluster.start_control()
        for _ in range(turns):
            await asyncio.sleep(0)
        await cluster.kill_control()
        await started(cluster)
        found = await definitions(cluster)
        served = [each["status"]["conditions"][1]["status"] for each in found.values()]
        assert served == ["True"] * len(own_kinds())
        await ended(cluster)

    run_simulated(1, main())
