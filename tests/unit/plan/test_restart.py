"""Who is tried again, how often, and after which wait."""

from dataclasses import replace
from datetime import timedelta

import pytest

from paceline.model.gang import Member, ReplicaId, RestartPolicy
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ContainerState
from paceline.plan.job.attempts import current_attempts
from paceline.plan.job.decide import decide
from paceline.plan.job.restart_policy import backoff_after, evaluate
from tests.unit.plan.worlds import NOW, REPLICA, TEMPLATE, after, attempt_of, gang, places, pod, seen, then

A, B = places(2)


@pytest.mark.parametrize("code", [130, 137, 138, 143])
def test_exit_code_policy_restarts_after_these(code):
    """Vector 5, the first half. X-07"""
    assert decide(seen(f"Failed {code}", of=gang(1, restart="ExitCode")), NOW).status.backoff_count == 1


@pytest.mark.parametrize("code", [1, 2, 126, 127, 134, 139, 255])
def test_exit_code_policy_takes_every_other_code_as_final(code):
    """Vector 5, the second half. X-07"""
    assert decide(seen(f"Failed {code}", of=gang(1, restart="ExitCode")), NOW).status.phase is Phase.FAILED


def test_exit_code_policy_restarts_what_no_program_failed():
    """An evicted or deleted pod has no exit code, and its program is not to blame."""
    policy = gang(1, restart="ExitCode")

    assert decide(seen("gone", of=policy), NOW).status.backoff_count == 1


def test_exit_code_policy_does_not_restart_success():
    policy = gang(1, restart="ExitCode", scope=REPLICA, success=((B,),))

    assert decide(seen("Succeeded", of=policy), NOW).status.backoff_count == 0


def test_two_replicas_that_fail_by_turns_share_the_limit():
    """Vector 6: the third restart is the last; the next failure of the master fails the job. X-08"""
    world = seen("Running", "Running", of=gang(2, scope=REPLICA))
    turns = [("Failed", "Running"), ("Running", "Failed"), ("Failed", "Running"), ("Failed", "Running")]
    plan = decide(world, NOW)
    for moment, members in enumerate(turns, start=1):
        world = then(world, plan, *members)
        plan = decide(world, after(1000 * moment))

    assert plan.status.backoff_count == 3
    assert plan.status.phase is Phase.FAILED


def test_two_failures_in_one_pass_take_two_restarts():
    world = seen("Failed", "Failed", of=gang(2, scope=REPLICA, backoff_limit=1))
    verdict = evaluate(world.gang, world.status, current_attempts(world))

    assert [each.place for each in verdict.again] == [A]
    assert verdict.lost == {B}


def test_a_gang_takes_one_restart_for_all_its_failures():
    assert decide(seen("Failed", "Failed"), NOW).status.backoff_count == 1


def test_a_role_has_a_limit_of_its_own():
    """GenericJob: the limit is for all replicas of one type together."""
    worker, ps = ReplicaId("worker", 0), ReplicaId("ps", 0)
    crew = tuple(Member(place=place, template=TEMPLATE, restart=RestartPolicy.ON_FAILURE) for place in (worker, ps))
    limited = replace(gang(1, scope=REPLICA, backoff_limit=None), members=crew, role_limits={"worker": 0, "ps": 2})
    world = seen("Failed", "Failed", of=limited)
    verdict = evaluate(world.gang, world.status, current_attempts(world))

    assert [each.place for each in verdict.again] == [ps]
    assert verdict.lost == {worker}
    assert decide(replace(world, gang=replace(limited, failure=())), NOW).status.phase is Phase.FAILED


def test_restarts_are_counted_per_role():
    plan = decide(seen("Running", "Failed", of=gang(2, scope=REPLICA)), NOW)

    assert plan.status.role_restarts == {"worker": 1}
    assert plan.status.tasks[0]["restartCount"] == 1


def test_a_peer_that_gives_up_because_of_another_does_not_decide():
    """One rank is killed (retryable), the other then exits 1 (final): the first counts."""

    def ended(place, code, seconds):
        told = ContainerState(name="main", state="Terminated", exit_code=code, finished_at=seconds)
        return pod(place, "Failed", containers=(told,))

    policy = gang(2, restart="ExitCode")
    for killed, gave_up in ((after(1), after(2)), (after(1), after(1)), (None, None)):
        world = replace(seen("", "", of=policy), pods=(ended(A, 1, gave_up), ended(B, 137, killed)))

        assert decide(world, after(3)).status.backoff_count == 1


MAINS = {"the container that trains": ("train", 1, False), "the first that failed where none is named": ("", 137, True)}


@pytest.mark.parametrize(("main", "code", "is_tried_again"), MAINS.values(), ids=MAINS)
def test_of_several_containers_that_failed_decides(main, code, is_tried_again):
    """Rule ExitCode: a helper that was killed says nothing about a training that gave up."""
    crew = gang(1, restart="ExitCode")
    crew = replace(crew, members=(replace(crew.members[0], main=main),))
    ends = tuple(
        ContainerState(name=name, state="Terminated", exit_code=exit_code)
        for name, exit_code in (("log", 137), ("train", 1))
    )
    world = replace(seen("", of=crew), pods=(pod(A, "Failed", containers=ends),))
    plan = decide(world, NOW)

    assert (plan.status.failure.exit_code, plan.status.phase is Phase.PENDING) == (code, is_tried_again)


def test_the_wait_doubles_up_to_five_minutes():
    waits = [backoff_after(count) for count in range(1, 12)]

    assert waits[:4] == [timedelta(seconds=seconds) for seconds in (1, 2, 4, 8)]
    assert waits[-1] == backoff_after(10_000) == timedelta(minutes=5)
    assert waits == sorted(waits)


def test_the_wait_is_the_same_for_the_next_controller():
    world = seen("Failed", "Running", restarts=2, attempt=2)

    assert decide(world, NOW).status.start_after == after(4)


def test_of_all_exit_codes_four_are_restartable():
    """Rule ExitCode, every code there is: 128 and above are no class of their own, as Kubeflow has it."""
    again = [
        code
        for code in range(1, 256)
        if decide(seen(f"Failed {code}", of=gang(1, restart="ExitCode")), NOW).status.phase is Phase.PENDING
    ]

    assert again == [130, 137, 138, 143]


def test_a_roles_own_limit_counts_beside_that_of_the_job():
    """Rule limits: worker may restart once, though the job has three restarts."""
    limited = gang(2, scope=REPLICA, backoff_limit=3, role_limits={"worker": 1})
    world = seen("Running", "Failed", of=limited)
    first = decide(world, NOW)
    second = decide(then(world, first, "Running", "Failed"), after(100))

    assert (first.status.backoff_count, second.status.backoff_count) == (1, 1)
    assert second.status.failure.pod == "demo-12345-worker-1-r1"


def test_the_jobs_limit_counts_beside_that_of_a_role():
    """Rule limits: a role with nine restarts has no more than the job has left."""
    limited = gang(1, backoff_limit=1, role_limits={"worker": 9})
    world = seen("Failed", of=limited)
    first = decide(world, NOW)

    assert decide(then(world, first, "Failed"), after(100)).status.phase is Phase.FAILED


# Rule restartScope: who is tried again when the second of three fails.
SCOPES = {
    "the whole gang": (gang(3), {"worker-0": 1, "worker-1": 1, "worker-2": 1}, 2),
    "that replica alone": (gang(3, scope=REPLICA), {"worker-0": 0, "worker-1": 1, "worker-2": 0}, 0),
}


@pytest.mark.parametrize(("crew", "attempts", "deletes"), SCOPES.values(), ids=SCOPES)
def test_who_is_tried_again(crew, attempts, deletes):
    world = seen("Running", "Failed", "Running", of=crew)
    plan = decide(world, NOW)

    assert {str(each.place): attempt_of(plan.status, each.place) for each in crew.members} == attempts
    assert len(plan.delete) == deletes


def test_a_wait_outlives_the_controller():
    """Rule back-off: what the next controller reads is the wire form, to the fraction of a second."""
    world = seen("Failed", "Running", of=gang(2, backoff_limit=9), restarts=4, attempt=4)
    plan = decide(world, after(0.25))
    last = JobStatus.from_wire(plan.status.to_wire())
    later = then(world, replace(plan, status=last))

    assert last.start_after == after(16.25)
    assert (decide(later, after(16)).create, decide(later, after(16)).wake_at) == ((), after(16.25))
    assert len(decide(later, after(16.25)).create) == 2
