"""Members that only watch the others, as TensorFlow's evaluator does: what becomes of them is their own affair."""

from dataclasses import replace

import pytest

from paceline.model.job_status import Phase
from paceline.model.replica_record import ContainerState
from paceline.plan.job.decide import decide
from tests.unit.kinds.manifests import gang_of, generic, replica, tensorflow, trainer
from tests.unit.plan.worlds import NOW, after, attempt_of, obeyed, places, pod, seen, then

A, B, E = places(2, 1, roles=("worker", "evaluator"))
RUNNING = {"phase": Phase.RUNNING, "start_time": NOW, "running_time": NOW}


def crew(evaluator="OnFailure", **policy):
    """Two workers that reduce among themselves, and an evaluator."""
    watcher = trainer("tensorflow", "evaluator", 1, restartPolicy=evaluator)
    return gang_of(tensorflow(trainer("tensorflow"), watcher, runPolicy=policy))


def attempts(status, gang):
    return tuple(attempt_of(status, each.place) for each in gang.members)


def failed_at(place, seconds, code=1):
    told = ContainerState(name="main", state="Terminated", exit_code=code, finished_at=after(seconds))
    return pod(place, "Failed", containers=(told,))


def test_a_watcher_that_fails_is_tried_again_alone():
    """X-04: the training goes on, and the restart is one of the job's."""
    world = seen("Running", "Running", "Failed", of=crew(), **RUNNING)
    plan = decide(world, NOW)
    back = decide(obeyed(world, plan), after(1))

    assert (plan.status.phase, plan.delete, plan.status.backoff_count) == (Phase.RUNNING, (), 1)
    assert attempts(plan.status, world.gang) == (0, 0, 1)
    # It waits for nobody's room but its own.
    assert [(new.place, new.attempt, new.gang_size) for new in back.create] == [(E, 1, 1)]
    assert back.status.phase is Phase.RUNNING


def test_a_worker_that_fails_begins_anew_with_its_watcher():
    world = seen("Failed", "Running", "Running", of=crew(), attempts={"evaluator-0": 2}, **RUNNING)
    plan = decide(world, NOW)
    back = decide(obeyed(world, plan), after(1))

    assert attempts(plan.status, world.gang) == (3, 3, 3)
    assert {(new.attempt, new.gang_size) for new in back.create} == {(3, 3)}


def test_when_both_fail_the_gang_begins_anew_once():
    world = seen("Running", "Failed", "Failed", of=crew(), **RUNNING)

    assert (decide(world, NOW).status.attempt, decide(world, NOW).status.backoff_count) == (1, 1)


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
def test_a_watcher_that_was_lost_takes_no_restart_from_the_training(policy):
    """A failure that the job has borne says nothing of the next one."""
    world = seen("Running", "", "", of=crew(policy), **RUNNING)
    lost = replace(world, pods=(*world.pods, pod(B, "Running"), failed_at(E, 1)))
    plan = decide(lost, after(2))
    later = replace(lost, status=plan.status, pods=(lost.pods[0], failed_at(B, 5, code=137), failed_at(E, 1)))

    assert plan.status.phase is Phase.RUNNING
    assert (decide(later, after(6)).status.phase, decide(later, after(6)).status.backoff_count) == (Phase.PENDING, 1)


def test_a_watcher_without_restarts_left_does_not_end_the_job():
    world = seen("Running", "Running", "Failed", of=crew(backoffLimit=0), **RUNNING)

    assert decide(world, NOW).status.phase is Phase.RUNNING


def test_a_watcher_that_is_deleted_before_it_ran_is_made_again_whatever_its_policy():
    """Else the workers would wait for ever for the room of all."""
    first = seen("Pending", "Pending", "Pending", of=crew("Never"))
    plan = decide(then(first, decide(first, NOW), "Pending", "Pending", ""), after(1))

    assert (plan.status.backoff_count, plan.status.phase) == (0, Phase.PENDING)
    assert [(new.place, new.attempt) for new in plan.create] == [(E, 1)]
    assert [told.reason for told in plan.events] == ["Remade"]


def test_workers_that_are_not_made_yet_are_placed_together_though_their_watcher_was_made_twice():
    world = seen("", "", "Running", of=crew(), attempts={"evaluator-0": 1})

    assert {(new.place, new.gang_size) for new in decide(world, NOW).create} == {(A, 3), (B, 3)}


def test_beside_parameter_servers_a_watcher_waits_for_room_with_all_who_begin():
    """In Replica scope it is a replica as any other: one that is done has a number of its own."""
    trained = gang_of(
        tensorflow(trainer("tensorflow"), *(trainer("tensorflow", role, 1) for role in ("ps", "evaluator")))
    )
    begun = {"worker-1": 1, "ps-0": 1, "evaluator-0": 1}
    plan = decide(seen("Running", "", "", "", of=replace(trained, success=()), attempts=begun), NOW)
    done = decide(seen("Succeeded", "", "", "", of=replace(trained, success=()), attempts=begun), NOW)

    assert [new.gang_size for new in plan.create] == [1, 1, 1]
    assert [new.gang_size for new in done.create] == [3, 3, 3]


def test_who_is_in_no_rule_and_lost_leaves_the_others_their_restarts():
    """GenericJob in Gang scope: a helper that may not restart fails, and later a worker that may."""
    again = {"restartPolicy": {"policy": "OnFailure", "limit": 3}}
    job = generic(replica("worker", 1, **again), replica("helper", 1), restartScope="Gang")
    worker, helper = places(1, 1, roles=("worker", "helper"))
    world = seen("", "", of=gang_of(job), **RUNNING)
    world = replace(world, pods=(failed_at(worker, 5), failed_at(helper, 1)))

    assert decide(world, after(6)).status.attempt == 1
