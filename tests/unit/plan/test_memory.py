"""Rule on memory: a member that is killed for its limit twice in a row is not tried a third time."""

from dataclasses import replace

import pytest

from paceline.model.gang import Member
from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.model.replica_record import ContainerState
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import GANG, NOW, REPLICA, after, attempt_of, gang, places, pod, seen, then

A, B = places(2)


def crew(workers=2, *, limit="512Mi", **rules):
    """A gang whose members may use so much memory."""
    limits = {"resources": {"limits": {"memory": limit}}} if limit else {}
    template = {"spec": {"containers": [{"name": "main", "image": "python", **limits}]}}
    made = gang(workers, **rules)
    members = tuple(Member(place=each.place, template=template, restart=each.restart) for each in made.members)
    return replace(made, members=members)


def limits(status):
    return {str(record.place): record.oom_limit for record in status.replicas if record.oom_limit}


def killed(place, attempt):
    told = ContainerState(name="main", state="Terminated", exit_code=137, reason="OOMKilled")
    return pod(place, "Failed 137", attempt=attempt, containers=(told,))


def life(of, *ends):
    """What is decided when worker-1 ends like this, try after try; the others run."""
    world, plan = seen("Running", "Running", of=of), None
    for turn, end in enumerate(ends):
        if plan is not None:
            world = then(world, plan, "Running", "")
        tried = attempt_of(world.status, B)
        ended = killed(B, tried) if end == "killed" else pod(B, end, attempt=tried)
        others = tuple(each for each in world.pods if each.place != B)
        # What a stopped controller leaves behind is the wire form.
        status = JobStatus.from_wire(world.status.to_wire())
        world = replace(world, pods=(*others, ended), status=status)
        plan = decide(world, after(1000 * turn))
    return plan


# How the tries of a member end → whether the job is tried again.
RECURS = {
    "the first kill is tried again": (("killed",), True),
    "the second in a row is not": (("killed", "killed"), False),
    "another failure in between is another story": (("killed", "Failed 1", "killed"), True),
    "a kill by somebody is not one for memory": (("Failed 137", "Failed 137"), True),
}


@pytest.mark.parametrize("scope", [GANG, REPLICA])
@pytest.mark.parametrize(("ends", "is_again"), RECURS.values(), ids=RECURS)
def test_of_kills_for_memory(ends, is_again, scope):
    plan = life(crew(scope=scope, backoff_limit=10), *ends)

    assert (plan.status.backoff_count == len(ends)) is is_again


def test_a_job_fails_and_says_what_to_raise():
    plan = life(crew(), "killed", "killed")
    failed = plan.status.condition(ConditionType.FAILED)

    assert (plan.status.phase, failed.reason) == (Phase.FAILED, "OutOfMemory")
    assert failed.message == (
        "failure rule {worker: [1]} is met: pod demo-12345-worker-1-r1 failed with exit code 137: OOMKilled: "
        "killed for memory twice in a row with a limit of 512Mi; raise resources.limits.memory of container main of "
        "replica type worker"
    )
    assert (plan.events[-1].reason, plan.events[-1].is_warning) == ("OutOfMemory", True)
    assert plan.status.failure.reason == "OOMKilled"


def test_where_the_member_does_not_decide_the_job_runs_on_and_says_it():
    plan = life(crew(scope=REPLICA), "killed", "killed")

    assert plan.status.phase is not Phase.FAILED
    assert "raise resources.limits.memory" in plan.status.condition(ConditionType.REPLICA_FAILURE).message


def test_exit_code_policy_knows_the_rule_too():
    """137 is restartable, whoever sent it."""
    assert life(crew(restart="ExitCode"), "killed").status.phase is Phase.PENDING
    assert life(crew(restart="ExitCode"), "killed", "killed").status.phase is Phase.FAILED


def test_without_a_limit_the_machine_was_full_which_may_pass():
    plan = life(crew(limit=""), "killed", "killed")

    assert (plan.status.phase, plan.status.backoff_count) == (Phase.PENDING, 2)


def test_a_kill_of_another_member_is_its_first():
    of = crew()
    world = seen("Running", "Running", of=of)
    first = decide(replace(world, pods=(pod(A, "Running"), killed(B, 0))), NOW)
    later = then(world, first)
    second = decide(replace(later, pods=(killed(A, 1), pod(B, "Running", attempt=1))), after(100))

    assert (second.status.phase, second.status.backoff_count) == (Phase.PENDING, 2)
    assert limits(second.status) == {"worker-0": "512Mi", "worker-1": "512Mi"}


def test_a_sidecar_without_a_limit_is_not_confused_with_the_member():
    of = crew()
    members = tuple(
        replace(each, template={"spec": {"containers": [*each.template["spec"]["containers"], {"name": "beside"}]}})
        for each in of.members
    )
    beside = ContainerState(name="beside", state="Terminated", exit_code=137, reason="OOMKilled")
    world = replace(
        seen("Running", "", of=replace(of, members=members), oom_limits={"worker-1": "512Mi"}),
        pods=(pod(A, "Running"), pod(B, "Failed 137", containers=(beside,))),
    )

    assert decide(world, NOW).status.phase is Phase.PENDING


def test_a_container_that_somebody_else_put_into_the_pod_has_no_limit_of_ours():
    injected = ContainerState(name="proxy", state="Terminated", exit_code=137, reason="OOMKilled")
    world = replace(
        seen("Running", "", of=crew(), oom_limits={"worker-1": "512Mi"}),
        pods=(pod(A, "Running"), pod(B, "Failed 137", containers=(injected,))),
    )
    plan = decide(world, NOW)

    assert (plan.status.phase, limits(plan.status)) == (Phase.PENDING, {})
