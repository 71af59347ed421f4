"""Rule elastic: a job grows and shrinks while it runs, and a killed member comes back."""

from dataclasses import replace

import pytest

from paceline.model.job_status import ConditionType, JobStatus, Phase
from paceline.plan.job.decide import decide
from tests.unit.kinds.manifests import deepspeed, gang_of, pytorch, replica
from tests.unit.plan.worlds import GANG, NOW, REPLICA, SITE, after, gang, numbers, obeyed, places, pod, seen

A, B, C = places(3)


def crew(size, *, least=1, scope=REPLICA, **rules):
    made = gang(size, scope=scope, **rules)
    return replace(made, is_elastic=True, least=least if scope is REPLICA else None)


class Job:
    """An elastic job in a cluster that does what it is told: pods come, run, and go."""

    def __init__(self, size, **rules):
        self.rules = rules
        self.now = 0
        self.world = seen(of=crew(size, **rules))
        self.names, self.told, self.deleted = [], [], []

    def turn(self, *, resize=None):
        """Decide once; what is deleted is gone by then, and what is made runs."""
        if resize is not None:
            self.world = replace(self.world, gang=crew(resize, **self.rules))
        self.now += 100
        plan = decide(self.world, after(self.now))
        self.names += [SITE.pod(new.place, new.attempt) for new in plan.create]
        self.told += [told.reason for told in plan.events]
        self.deleted += plan.delete
        # What a stopped controller leaves behind is the wire form.
        world = obeyed(self.world, replace(plan, status=JobStatus.from_wire(plan.status.to_wire())))
        started = tuple(
            pod(each.place, "Running", attempt=each.attempt) if each.phase.value == "Pending" else each
            for each in world.pods
        )
        self.world = replace(world, pods=started)
        return plan

    def settle(self, *, resize=None):
        self.turn(resize=resize)
        for _ in range(5):
            plan = self.turn()
        return plan

    def kill(self, place, code=137):
        live = next(each for each in self.world.pods if each.place == place and not each.phase.is_final)
        dead = pod(place, f"Failed {code}", attempt=live.attempt)
        self.world = replace(self.world, pods=tuple(dead if each is live else each for each in self.world.pods))

    def running(self):
        return sorted(each.name for each in self.world.pods if each.phase.value == "Running")


def size_of(plan):
    return plan.status.elastic["currentReplicas"], plan.status.elastic["expectedReplicas"]


def test_two_three_two_without_a_restart_of_anybody():
    job = Job(2)
    assert size_of(job.settle()) == (2, 2)
    assert size_of(job.settle(resize=3)) == (3, 3)
    plan = job.settle(resize=2)

    assert size_of(plan) == (2, 2)
    assert job.names == ["demo-12345-worker-0", "demo-12345-worker-1", "demo-12345-worker-2"]
    assert job.deleted == ["demo-12345-worker-2"]
    assert (plan.status.phase, plan.status.attempt, plan.status.backoff_count) == (Phase.RUNNING, 0, 0)
    assert len(plan.status.tasks[0]["replicas"]) == 2


def test_another_size_is_told_once():
    job = Job(2)
    job.settle()
    job.settle(resize=3)
    job.settle(resize=2)

    assert job.told.count("Resized") == 2
    ended = replace(job.world, gang=crew(3), status=job.world.status.but(phase=Phase.SUCCEEDED, completion_time=NOW))
    assert decide(ended, NOW).events == ()


def test_a_killed_worker_comes_back_alone_in_between():
    job = Job(2)
    job.settle()
    job.settle(resize=3)
    job.kill(B)
    plan = job.settle()

    assert job.running() == ["demo-12345-worker-0", "demo-12345-worker-1-r1", "demo-12345-worker-2"]
    assert (plan.status.phase, plan.status.backoff_count) == (Phase.RUNNING, 1)
    assert size_of(job.settle(resize=2)) == (2, 2)


def test_a_worker_that_was_given_up_comes_back_under_a_new_name():
    job = Job(3)
    job.settle()
    job.settle(resize=2)
    plan = job.settle(resize=3)

    assert job.names[-1] == "demo-12345-worker-2-r1"
    assert (plan.status.phase, plan.status.backoff_count) == (Phase.RUNNING, 0)
    assert numbers(plan.status) == {"worker-2": 1}


def test_a_gang_that_grows_before_its_pods_exist_starts_with_one_attempt_number():
    job = Job(3, scope=GANG)
    job.settle()
    job.settle(resize=2)
    job.settle(resize=1)
    job.turn(resize=2)
    job.settle(resize=3)

    assert len({pod.attempt for pod in job.world.pods if pod.name in job.running()}) == 1
    assert len(job.running()) == 3


def test_a_worker_that_has_not_gone_yet_holds_its_successor_back_and_is_no_failure():
    job = Job(3)
    job.settle()
    shrunk = replace(job.world, gang=crew(2))
    plan = decide(shrunk, after(10_000))
    leaving = tuple(replace(each, is_deleting=each.name in plan.delete) for each in shrunk.pods)
    grown = decide(replace(shrunk, gang=crew(3), pods=leaving, status=plan.status), after(10_001))
    gone = decide(replace(shrunk, gang=crew(3), pods=leaving[:2], status=grown.status), after(10_002))

    assert plan.delete == ("demo-12345-worker-2",)
    assert (grown.create, grown.delete, grown.status.backoff_count) == ((), (), 0)
    assert [SITE.pod(new.place, new.attempt) for new in gone.create] == ["demo-12345-worker-2-r1"]


def test_a_worker_that_vanished_when_it_was_given_up_comes_back_under_a_new_name():
    job = Job(3)
    job.settle()
    job.world = replace(job.world, pods=job.world.pods[:2])
    job.settle(resize=2)
    plan = job.settle(resize=3)

    assert job.names[-1] == "demo-12345-worker-2-r1"
    assert plan.status.backoff_count == 0


def test_a_worker_that_was_made_and_not_recorded_is_given_up_too():
    job = Job(2)
    job.settle()
    grown = decide(replace(job.world, gang=crew(3)), after(10_000))
    made = replace(obeyed(job.world, grown), gang=crew(2))
    shrunk = decide(made, after(10_001))

    assert shrunk.delete == ("demo-12345-worker-2",)
    assert numbers(shrunk.status) == {"worker-2": 1}


def test_a_job_runs_with_fewer_than_wanted_and_says_what_the_others_wait_for():
    world = seen("Running", "Running", "Pending Unschedulable", of=crew(3, least=2))
    plan = decide(world, NOW)

    assert plan.status.phase is Phase.RUNNING
    assert size_of(plan) == (2, 3)
    assert plan.status.condition(ConditionType.RUNNING).status
    assert plan.status.waiting == "pod demo-12345-worker-2: Unschedulable"
    assert [told.reason for told in plan.events][-2:] == ["Running", "Unschedulable"]
    assert plan.events[-2].message == "2 of 3 pods run"


def test_a_job_does_not_run_with_fewer_than_its_least():
    world = seen("Running", "Pending", "Pending", of=crew(3, least=2))

    assert decide(world, NOW).status.phase is Phase.PENDING


# Members that are lost for good, of three of which two must be left.
LOST = {
    "one worker may be lost": (("Running", "Running", "Failed"), Phase.RUNNING),
    "two may not": (("Running", "Failed", "Failed"), Phase.FAILED),
}


@pytest.mark.parametrize(("members", "phase"), LOST.values(), ids=LOST)
def test_of_three_with_a_least_of_two(members, phase):
    plan = decide(seen(*members, of=crew(3, least=2, restart="Never")), NOW)

    assert plan.status.phase is phase


def test_too_few_is_said():
    plan = decide(seen("Running", "Failed", "Failed", of=crew(3, least=2, restart="Never")), NOW)

    assert plan.events[-1].message.startswith("1 replicas remain of at least 2: pod demo-12345-worker-1 failed")


def test_members_that_start_together_begin_anew_in_the_new_size():
    """DeepSpeed: the first worker was told of all the others, so all start again, from their checkpoint."""
    job = Job(2, scope=GANG)
    job.settle()
    plan = job.settle(resize=3)

    assert job.running() == [f"demo-12345-worker-{index}-r1" for index in range(3)]
    assert job.told.count("Restarting") == 1
    assert (plan.status.phase, plan.status.backoff_count, plan.status.resumes) == (Phase.RUNNING, 0, 1)
    assert size_of(job.settle(resize=2)) == (2, 2)
    assert job.running() == [f"demo-12345-worker-{index}-r2" for index in range(2)]


def test_a_job_of_fixed_size_says_nothing_about_its_size():
    assert decide(seen("Running", "Running"), NOW).status.elastic == {}


ELASTIC = {"elastic": {"enabled": True, "minReplicas": 4, "maxReplicas": 10, "expectedReplicas": 7}}


def test_as_few_as_the_least_are_placed_together():
    """Vector 13: 7 replicas, of which 4 are the group that is scheduled together."""
    job = gang_of(pytorch(replica(replicas=1), torchrunConfig={"enabled": True}, **ELASTIC))
    plan = decide(seen(of=job), NOW)

    assert (len(job.members), job.least) == (7, 4)
    assert [new.gang_size for new in plan.create] == [4] * 7


def test_deepspeed_needs_all_because_each_is_told_of_all():
    assert gang_of(deepspeed(**ELASTIC)).least is None


def test_all_begin_anew_without_the_one_they_meet_at_and_that_is_one_restart():
    """Torchrun's store is in the first replica: the others end soon after it, whatever they do."""
    job = Job(3)
    job.settle()
    job.kill(A)
    plan = job.settle()

    assert job.running() == [f"demo-12345-worker-{index}-r1" for index in range(3)]
    assert (plan.status.phase, plan.status.backoff_count, plan.status.attempt) == (Phase.RUNNING, 1, 1)
    assert job.told.count("Restarting") == 1


def test_the_one_they_meet_at_comes_first_when_all_have_failed():
    world = seen("Failed 1", "Failed 1", "Failed 1", of=crew(3, backoff_limit=1))
    plan = decide(world, NOW)

    assert (plan.status.phase, plan.status.backoff_count, plan.status.attempt) == (Phase.PENDING, 1, 1)


def test_a_new_meeting_waits_until_all_of_the_old_one_have_gone():
    job = Job(2)
    job.settle()
    job.kill(A)
    counted = decide(job.world, after(1000))
    leaving = tuple(replace(each, is_deleting=each.name in counted.delete) for each in job.world.pods)
    waits = decide(replace(job.world, pods=leaving, status=counted.status), after(2000))
    goes_on = decide(replace(job.world, pods=leaving[:1], status=waits.status), after(2001))

    assert counted.delete == ("demo-12345-worker-1",)
    assert waits.create == ()
    assert [SITE.pod(new.place, new.attempt) for new in goes_on.create] == [
        "demo-12345-worker-0-r1",
        "demo-12345-worker-1-r1",
    ]


# Why a worker is lost while the others go on.
NOT_AGAIN = {
    "its policy": ({"restart": "Never"}, "restartPolicy is Never"),
    "its exit code": ({"restart": "ExitCode"}, "restartPolicy is ExitCode"),
    "no restart left": ({"backoff_limit": 0}, "all restarts are used (0 of the job)"),
}


@pytest.mark.parametrize(("rules", "why"), NOT_AGAIN.values(), ids=NOT_AGAIN)
def test_a_worker_is_lost_by(rules, why):
    world = seen("Running", "Running", "Failed 1", of=crew(3, **rules))
    plan = decide(world, NOW)
    later = decide(replace(world, status=plan.status), after(1))

    lost = [told.message for told in plan.events if told.reason == "ReplicaLost"]
    assert lost == [f"pod demo-12345-worker-2 failed with exit code 1; worker-2 is not restarted: {why}"]
    assert plan.status.condition(ConditionType.RUNNING).message == "2 of 3 pods run"
    assert later.events == ()


def test_a_worker_that_is_tried_again_is_not_lost():
    plan = decide(seen("Running", "Running", "Failed 1", of=crew(3)), NOW)

    assert "ReplicaLost" not in {told.reason for told in plan.events}
