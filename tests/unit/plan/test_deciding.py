"""Who decides over a job of each kind, what a failure of each role means, and who is cleaned up."""

import pytest

from paceline.model.job_status import Phase
from paceline.plan.job.decide import decide
from tests.unit.kinds.manifests import (
    colossalai,
    deepspeed,
    gang_of,
    mpi,
    pytorch,
    replica,
    tensorflow,
    trainer,
    xgboost,
)
from tests.unit.plan.worlds import NOW, after, seen, then

NEVER = {"restartPolicy": "Never"}


def tf(**roles):
    return tensorflow(*(trainer("tensorflow", role, count, **NEVER) for role, count in roles.items()))


def elastic():
    return pytorch(
        replica("worker", 2, **NEVER),
        torchrunConfig={"enabled": True},
        elastic={"enabled": True, "minReplicas": 1, "maxReplicas": 2},
    )


# Members in the order of the gang; what the next pass makes of the job.
DECISIONS = {
    "the chief ends well, whatever the others do": (
        tf(chief=1, worker=1, ps=1),
        ("Succeeded", "Running", "Running"),
        Phase.SUCCEEDED,
    ),
    "a worker ends well before its chief": (
        tf(chief=1, worker=1, ps=1),
        ("Running", "Succeeded", "Running"),
        Phase.RUNNING,
    ),
    "a worker of a job with parameter servers fails": (
        tf(chief=1, worker=1, ps=1),
        ("Running", "Failed", "Running"),
        Phase.RUNNING,
    ),
    "a parameter server fails": (tf(chief=1, worker=1, ps=1), ("Running", "Running", "Failed"), Phase.RUNNING),
    "the chief fails": (tf(chief=1, worker=1, ps=1), ("Failed", "Running", "Running"), Phase.FAILED),
    "the first worker ends well where there is no chief": (tf(worker=2), ("Succeeded", "Running"), Phase.SUCCEEDED),
    "another worker ends well where there is no chief": (tf(worker=2), ("Running", "Succeeded"), Phase.RUNNING),
    "a worker fails that the others reduce with": (tf(worker=2), ("Running", "Failed"), Phase.FAILED),
    "an evaluator fails": (tf(worker=1, evaluator=1), ("Running", "Failed"), Phase.RUNNING),
    "the first worker is done while the evaluator has failed": (
        tf(worker=1, evaluator=1),
        ("Succeeded", "Failed"),
        Phase.SUCCEEDED,
    ),
    "XGBoost's master ends well": (xgboost(), ("Succeeded", "Running", "Running"), Phase.SUCCEEDED),
    "DeepSpeed's first worker ends well": (deepspeed(), ("Succeeded", "Running"), Phase.SUCCEEDED),
    "DeepSpeed's first worker fails for good": (deepspeed(worker=NEVER), ("Failed", "Running"), Phase.FAILED),
    "mpirun ends well": (mpi(), ("Succeeded", "Running", "Running"), Phase.SUCCEEDED),
    "mpirun fails": (mpi(), ("Failed 1", "Running", "Running"), Phase.FAILED),
    "a worker of an MPI job is lost": (mpi(), ("Running", "Failed 137", "Running"), Phase.FAILED),
    "Colossal-AI's launcher fails": (colossalai(), ("Failed 1", "Running", "Running"), Phase.FAILED),
    "a worker of an elastic job fails": (elastic(), ("Running", "Failed"), Phase.RUNNING),
}


@pytest.mark.parametrize(("job", "members", "phase"), DECISIONS.values(), ids=DECISIONS)
def test_what_becomes_of_the_job_when(job, members, phase):
    plan = decide(seen(*members, of=gang_of(job)), NOW)

    assert plan.status.phase is phase


POLICIES = {
    "the chief decides": ({}, Phase.SUCCEEDED),
    "all workers do": ({"successPolicy": "AllWorkers"}, Phase.FAILED),
}


@pytest.mark.parametrize(("policy", "phase"), POLICIES.values(), ids=POLICIES)
def test_a_worker_that_fails_after_its_chief_has_succeeded_counts_where(policy, phase):
    """X-05, S-48: and without that failure the job is done when the last worker is."""
    job = tf(chief=1, worker=2, ps=1)
    gang = gang_of({**job, "spec": {**job["spec"], **policy}})

    assert decide(seen("Succeeded", "Running", "Failed", "Running", of=gang), NOW).status.phase is phase
    waits = decide(seen("Succeeded", "Running", "Succeeded", "Running", of=gang), NOW).status.phase
    done = decide(seen("Succeeded", "Succeeded", "Succeeded", "Running", of=gang), NOW).status.phase
    assert (waits, done) == (Phase.RUNNING if policy else Phase.SUCCEEDED, Phase.SUCCEEDED)


def test_the_true_exit_status_of_mpirun_is_told():
    """T9k says Succeeded whatever mpirun's ranks did."""
    plan = decide(seen("Failed 3", "Running", "Running", of=gang_of(mpi())), NOW)

    assert (plan.status.failure.exit_code, plan.status.failure.pod) == (3, "demo-12345-launcher-0")


def test_mpirun_is_tried_again_with_all_its_workers_as_often_as_its_limit_says():
    again = mpi(trainer("worker"), {"type": "launcher", "restartPolicy": {"policy": "OnFailure", "limit": 1}})
    world = seen("Failed 3", "Running", "Running", of=gang_of(again))
    plan = decide(world, NOW)

    assert (plan.status.phase, plan.status.attempt) == (Phase.PENDING, 1)
    assert len(plan.delete) == 2
    assert decide(then(world, plan, "Failed 3", "Running", "Running"), after(9)).status.phase is Phase.FAILED


CLEAN_UPS = {
    "a parameter server that would wait for ever": (tf(chief=1, ps=1), ("Succeeded", "Running"), {"ps-0"}),
    "a parameter server unless its author keeps it": (
        {**(kept := tf(chief=1, ps=1)), "spec": {**kept["spec"], "runPolicy": {"cleanUpPolicy": "None"}}},
        ("Succeeded", "Running"),
        set(),
    ),
    "workers that mpirun has left": (mpi(), ("Succeeded", "Running", "Running"), {"worker-0", "worker-1"}),
    "workers that are wanted gone, but never the launcher": (
        mpi(runPolicy={"cleanUpWorkers": True}),
        ("Succeeded", "Running", "Running"),
        {"worker-0", "worker-1"},
    ),
    "no worker that its author keeps": (
        mpi(runPolicy={"cleanUpWorkers": False}),
        ("Succeeded", "Running", "Running"),
        set(),
    ),
    "DeepSpeed's other workers": (deepspeed(), ("Succeeded", "Running"), {"worker-1"}),
    "everything under All": (
        tensorflow(trainer("tensorflow", "worker", 2), runPolicy={"cleanUpPolicy": "All"}),
        ("Succeeded", "Running"),
        {"worker-0", "worker-1"},
    ),
}


@pytest.mark.parametrize(("job", "members", "gone"), CLEAN_UPS.values(), ids=CLEAN_UPS)
def test_after_the_end_there_goes(job, members, gone):
    """X-06, H-68"""
    world = seen(*members, of=gang_of(job))
    plan = decide(world, NOW)
    later = decide(then(world, plan, *members), after(3600))

    assert {name.removeprefix("demo-12345-") for name in later.delete} == gone
