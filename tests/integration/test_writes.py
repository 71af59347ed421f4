"""How often the controller writes over the life of a job: what it must, and no more."""

import json
from collections import Counter

import pytest

from paceline.client.interface import Collection
from paceline.store.backend import Op
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.integration.life import ended, phase_becomes, started
from tests.unit.kinds.manifests import pytorch

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
REPLICAS = 4


def written(cluster: SimCluster) -> Counter[str]:
    """Count what was written since the cluster began, by what it is."""
    counts: Counter[str] = Counter()
    for record in cluster.log.since(0):
        _, group, plural, *_ = record.key.split("/")
        if plural == "events":
            counts[f"event of {json.loads(record.value)['source']['component']}"] += 1
        elif record.op is not Op.DELETE:
            counts[f"{record.op} {plural if group != JOBS.group else 'job'}"] += 1
    return counts


@pytest.mark.parametrize("seed", range(5))
def test_a_life_without_trouble_is_told_in_four_writes_of_the_status(seed: int) -> None:
    async def main() -> None:
        cluster = await started(seed)
        cluster.sim.processes.script = lambda _intent: Course(seconds=30)
        before = written(cluster)
        job = pytorch()
        job["metadata"] = {"name": "demo", "namespace": "default"}
        job["spec"]["replicaSpecs"][0]["replicas"] = REPLICAS
        await cluster.client().create(JOBS, job)
        await phase_becomes(cluster, JOBS, "demo", "Succeeded")
        counts = written(cluster) - before
        assert counts["create pods"] == REPLICAS
        assert counts["create services"] == 1
        # Begun, with its ports; all pods there; all of them running; over.
        assert counts["replace job"] <= 4
        # The job and each pod made, running, over.
        assert counts["event of paceline-controller"] == REPLICAS + 4
        await ended(cluster)

    run_simulated(seed, main())
