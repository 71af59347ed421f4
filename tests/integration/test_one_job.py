"""A job travels the whole road on a simulated machine, in virtual time."""

from paceline.client.interface import PODS, Collection, Select
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.processes import Course
from tests.e2e.support.manifests import generic
from tests.integration.life import ended, phase_becomes, started

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="genericjobs")


def test_a_job_of_two_members_runs_and_succeeds() -> None:
    async def main() -> None:
        cluster = await started(1)
        cluster.sim.processes.script = lambda _intent: Course(seconds=30)
        job = generic("hello", command=["true"], replicas=2)
        job["metadata"]["namespace"] = "default"
        await cluster.client().create(JOBS, job)
        await phase_becomes(cluster, JOBS, "hello", "Running")
        assert len(cluster.sim.processes.running()) == 2
        await phase_becomes(cluster, JOBS, "hello", "Succeeded")
        assert cluster.sim.processes.running() == {}
        pods = await cluster.client().list(PODS, Select(namespace="default"))
        assert [pod["status"]["phase"] for pod in pods.items] == ["Succeeded", "Succeeded"]
        await ended(cluster)

    run_simulated(1, main())


def test_a_failing_member_uses_up_its_restarts_and_fails_the_job() -> None:
    async def main() -> None:
        cluster = await started(2)
        cluster.sim.processes.script = lambda _intent: Course(seconds=1, exit_code=9)
        job = generic("breaks", command=["false"])
        job["metadata"]["namespace"] = "default"
        job["spec"]["replicaSpecs"][0]["restartPolicy"] = {"policy": "OnFailure", "limit": 2}
        await cluster.client().create(JOBS, job)
        over = await phase_becomes(cluster, JOBS, "breaks", "Failed")
        assert over["status"]["backoffCount"] == 2
        assert over["status"]["failure"]["exitCode"] == 9
        assert len(cluster.sim.processes.ledger) == 3
        await ended(cluster)

    run_simulated(2, main())
