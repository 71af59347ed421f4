"""What happens to a job, case by case."""

from dataclasses import replace

import pytest

from paceline.model.gang import CleanUp
from paceline.model.job_status import ConditionType, Failure, JobStatus, Phase
from paceline.model.replica_record import ContainerState
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, REPLICA, SITE, after, gang, numbers, obeyed, places, pod, seen, then

P, R, S, F = Phase.PENDING, Phase.RUNNING, Phase.SUCCEEDED, Phase.FAILED
A, B = places(2)

ALONE = gang(2, scope=REPLICA)
NEVER = gang(2, restart="Never")
NEVER_ALONE = gang(2, restart="Never", scope=REPLICA)
KEEP = gang(2, clean_up=CleanUp.NONE)
TIDY = gang(2, clean_up=CleanUp.UNFINISHED)
SPENT = {"restarts": 3, "attempt": 3}
RUNNING = {"phase": R, "start_time": NOW}

# What is seen → phase, pods to create, pods to delete.
CASES = {
    "a new job creates its whole gang": (seen(), P, 2, 0),
    "a half-made gang is completed": (seen("Pending", ""), P, 1, 0),
    "a gang with a pending member waits": (seen("Running", "Pending"), P, 0, 0),
    "a full gang is running": (seen("Running", "Running"), R, 0, 0),
    "a pod whose node is lost counts as running": (seen("Running", "Unknown"), R, 0, 0),
    "one failure restarts every member": (seen("Running", "Failed"), P, 0, 1),
    "a failure before the others run restarts them too": (seen("Pending", "Failed"), P, 0, 1),
    "a vanished pod restarts every member": (seen("Running", "gone"), P, 0, 1),
    "no restarts left means failed": (seen("Running", "Failed", **SPENT), F, 0, 0),
    "policy Never means failed at once": (seen("Running", "Failed", of=NEVER), F, 0, 0),
    "a vanished pod under Never means failed": (seen("Running", "gone", of=NEVER), F, 0, 0),
    "the leader's success ends the job": (seen("Succeeded", "Running"), S, 0, 0),
    "the leader's success wins over a peer's failure": (seen("Succeeded", "Failed"), S, 0, 0),
    "a peer's success alone ends nothing": (seen("Running", "Succeeded"), R, 0, 0),
    "alone, one failure restarts one member": (seen("Running", "Failed", of=ALONE, **RUNNING), R, 0, 0),
    "alone, a peer's loss does not end the job": (seen("Running", "Failed", of=NEVER_ALONE), R, 0, 0),
    "alone, the leader's loss ends the job": (seen("Failed", "Running", of=NEVER_ALONE), F, 0, 0),
    "a failed job stops its runners": (seen("Failed", "Running", of=replace(TIDY, backoff_limit=0)), F, 0, 1),
    "a finished job is left alone": (seen("Succeeded", "Succeeded", of=TIDY, phase=S, completion_time=NOW), S, 0, 0),
    "a finished job makes nothing": (seen("", "", phase=F, completion_time=NOW), F, 0, 0),
    "a phase nobody knows is seen anew": (seen("Running", "Running", phase=Phase.UNKNOWN), R, 0, 0),
}


@pytest.mark.parametrize(("world", "phase", "creates", "deletes"), CASES.values(), ids=CASES)
def test_decide(world, phase, creates, deletes):
    plan = decide(world, NOW)

    assert (plan.status.phase, len(plan.create), len(plan.delete)) == (phase, creates, deletes)


@pytest.mark.parametrize("world", [case[0] for case in CASES.values()], ids=CASES)
def test_the_same_world_after_the_write_gives_the_same_status(world):
    """Nothing is counted twice: only a restart changes what the next pass sees, and it says so in the status."""
    first = decide(world, NOW)
    again = decide(replace(world, status=JobStatus.from_wire(first.status.to_wire())), NOW)

    assert again.status.to_wire() == first.status.to_wire()
    assert again.status.backoff_count == first.status.backoff_count


class TestRestarting:
    def test_a_restart_counts_waits_and_makes_nothing_yet(self):
        """A failed gang pauses, so a crash loop cannot flood the node."""
        world = seen("Failed", "Running")
        plan = decide(world, NOW)

        assert (plan.status.attempt, plan.status.backoff_count) == (1, 1)
        assert plan.wake_at == plan.status.start_after == after(1)
        assert decide(then(world, plan), after(0.5)).create == ()
        assert decide(then(world, plan), after(0.5)).wake_at == after(1)

    def test_the_next_try_has_new_names_and_the_same_hosts(self):
        world = seen("Failed", "Running")
        plan = decide(then(world, decide(world, NOW)), after(1))

        assert [SITE.pod(new.place, new.attempt) for new in plan.create] == [
            "demo-12345-worker-0-r1",
            "demo-12345-worker-1-r1",
        ]
        assert plan.status.start_after is None

    def test_old_pods_go_before_new_ones_come(self):
        old = (pod(A, "Failed"), pod(B, "Running"))
        plan = decide(seen("", "", older=old, attempt=1), NOW)

        assert plan.create == ()
        assert plan.delete == ("demo-12345-worker-1",)
        assert plan.status.waiting == "1 pod of an earlier attempt has not ended yet"

    def test_old_pods_that_are_told_to_end_are_waited_for(self):
        old = (pod(B, "Running", is_deleting=True),)
        plan = decide(seen("", "", older=old, attempt=1), NOW)

        assert (plan.create, plan.delete) == ((), ())

    def test_ended_pods_of_old_tries_stay_for_their_logs(self):
        old = (pod(A, "Failed"), pod(B, "Succeeded"))
        plan = decide(seen("", "", older=old, attempt=1), NOW)

        assert plan.delete == ()
        assert len(plan.create) == 2

    def test_alone_only_the_place_of_an_old_pod_waits(self):
        old = (pod(B, "Running"),)
        plan = decide(seen("", "", of=ALONE, older=old, attempt=1), NOW)

        assert [new.place for new in plan.create] == [A]

    def test_alone_the_others_keep_running_under_their_names(self):
        world = seen("Running", "Failed", of=ALONE, **RUNNING)
        plan = decide(world, NOW)
        later = decide(then(world, plan, "Running", ""), after(1))

        assert plan.delete == ()
        assert numbers(plan.status) == {"worker-1": 1}
        assert [(new.place, new.attempt) for new in later.create] == [(B, 1)]
        assert later.status.phase is R

    def test_a_vanished_name_is_never_made_again(self):
        world = seen("Running", "gone", of=ALONE)
        plan = decide(world, NOW)
        later = decide(then(world, plan, "Running", ""), after(1))

        assert [(new.place, new.attempt) for new in later.create] == [(B, 1)]

    def test_the_phase_of_a_restarting_gang_is_pending(self):
        plan = decide(seen("Running", "Failed", **RUNNING), NOW)

        assert plan.status.phase is P
        assert plan.status.waiting == (
            "restart 1 comes at 2030-01-01T00:00:01Z after pod demo-12345-worker-1 failed with exit code 1"
        )

    def test_always_starts_a_member_that_ended_well_again(self):
        always = gang(2, restart=["Never", "Always"], scope=REPLICA)
        plan = decide(seen("Running", "Succeeded", of=always), NOW)

        assert numbers(plan.status) == {"worker-1": 1}
        assert [(told.reason, told.is_warning) for told in plan.events][-1] == ("Restarting", False)

    def test_a_leader_under_always_has_not_succeeded_while_restarts_are_left(self):
        always = gang(1, restart="Always", scope=REPLICA)

        assert decide(seen("Succeeded", of=always), NOW).status.phase is P
        assert decide(seen("Succeeded", of=always, restarts=3), NOW).status.phase is S

    def test_in_a_gang_always_does_not_throw_work_away(self):
        always = gang(2, restart="Always")

        assert decide(seen("Running", "Succeeded", of=always), NOW).status.backoff_count == 0


class TestEnding:
    def test_success_lets_the_others_finish_and_then_stops_them(self):
        world = seen("Succeeded", "Running", of=TIDY)
        plan = decide(world, NOW)
        meanwhile = then(world, plan, "Succeeded", "Running")

        assert (plan.delete, plan.wake_at) == ((), after(10))
        assert decide(meanwhile, after(9)).wake_at == after(10)
        assert decide(meanwhile, after(10)).delete == ("demo-12345-worker-1",)

    def test_without_runners_nobody_looks_again(self):
        assert decide(seen("Succeeded", "Succeeded", of=TIDY), NOW).wake_at is None

    def test_policy_none_leaves_runners_alone(self):
        world = seen("Succeeded", "Running", of=KEEP)
        plan = decide(then(world, decide(world, NOW), "Succeeded", "Running"), after(60))

        assert (plan.delete, plan.wake_at) == ((), None)

    def test_policy_all_takes_the_ended_pods_too(self):
        every = gang(2, clean_up=CleanUp.ALL)
        world = seen("Succeeded", "Succeeded", of=every, older=(pod(B, "Failed", name="demo-12345-worker-1-old"),))
        plan = decide(world, NOW)

        assert (plan.delete, plan.wake_at) == ((), after(10))
        assert len(decide(replace(world, status=plan.status), after(10)).delete) == 3

    def test_a_runner_of_an_old_try_goes_whatever_the_policy(self):
        world = seen("Succeeded", "Succeeded", of=KEEP, older=(pod(B, "Running"),), attempt=1)

        assert decide(world, NOW).delete == ("demo-12345-worker-1",)

    @pytest.mark.parametrize(
        ("before", "phase"),
        [("Running", "Deleted"), ("Failed", "Failed")],
        ids=["one that ran is gone", "one that had failed has failed"],
    )
    def test_what_is_ended_because_the_job_is_over_has_not_failed_by_that(self, before, phase):
        world = seen("Succeeded", before, of=gang(2, scope=REPLICA, restart="Never", clean_up=CleanUp.ALL))
        plan = decide(world, NOW)
        ending = (world.pods[0], pod(B, "Failed 143", is_deleting=True))
        later = decide(replace(world, pods=ending, status=plan.status), after(11))
        gone = decide(replace(world, pods=ending[:1], status=later.status), after(20))

        for each in (later, gone):
            assert [row["phase"] for row in each.status.tasks[0]["replicas"]] == ["Succeeded", phase]

    def test_an_ended_status_without_its_time_is_cleaned_up_at_once(self):
        world = seen("Succeeded", "Running", of=TIDY, phase=S)

        assert decide(world, NOW).delete == ("demo-12345-worker-1",)

    def test_the_outcome_of_a_pod_outlives_it(self):
        world = seen("Succeeded", "Succeeded", of=TIDY)
        plan = decide(world, NOW)
        later = decide(replace(world, pods=(), status=plan.status), after(60))

        assert later.status.aggregate["succeeded"] == 2
        assert later.status == plan.status

    def test_the_deadline_fails_the_job_and_stops_it_whatever_the_policy(self):
        short = gang(2, clean_up=CleanUp.NONE, active_deadline_seconds=5)
        world = seen("Running", "Running", of=short, **RUNNING)

        assert decide(world, after(4)).wake_at == after(5)
        plan = decide(world, after(5))
        assert plan.status.phase is F
        assert plan.status.condition(ConditionType.FAILED).reason == "DeadlineExceeded"
        assert len(plan.delete) == 2
        assert plan.events[-1].message == "the job did not end within 5 seconds after its start"

    def test_the_deadline_does_not_run_before_the_start(self):
        short = gang(2, active_deadline_seconds=5)

        assert decide(seen("Pending", "Pending", of=short), after(60)).status.phase is P

    def test_success_at_the_last_moment_is_success(self):
        short = gang(2, active_deadline_seconds=5)

        assert decide(seen("Succeeded", "Running", of=short, **RUNNING), after(5)).status.phase is S

    def test_a_gone_deadline_is_not_forgotten_by_a_restart_of_ours(self):
        """The moment is computed from the status, so the next controller has the same one."""
        short = gang(2, active_deadline_seconds=5)
        first = decide(seen("Running", "Running", of=short), NOW)
        world = seen("Running", "Running", of=short, status=JobStatus.from_wire(first.status.to_wire()))

        assert decide(world, after(1)).wake_at == after(5)

    def test_a_leader_that_vanished_after_its_success_was_noticed_has_succeeded(self):
        both = gang(2, success=((A, B),))
        world = seen("Succeeded", "Running", of=both)
        later = then(world, decide(world, NOW), "gone", "Succeeded")

        assert decide(later, after(1)).status.phase is S

    def test_a_pod_that_failed_and_vanished_in_one_moment_is_a_failed_try(self):
        world = seen("Running", "Running")
        later = then(world, decide(world, NOW), "Running", "gone")

        assert decide(later, after(1)).status.failure.reason == "Deleted"


class TestBlaming:
    def test_the_first_failure_is_named_not_the_first_member(self):
        """A peer that fails because of another must not hide it."""

        def ended(place, seconds, code):
            told = ContainerState(
                name="main",
                state="Terminated",
                exit_code=code,
                reason="Error",
                message="boom",
                finished_at=after(seconds),
            )
            return pod(place, "Failed", containers=(told,))

        world = replace(seen("", "", of=NEVER), pods=(ended(A, 2, 1), ended(B, 1, 9)))
        plan = decide(world, after(3))

        assert plan.status.failure == Failure(
            pod="demo-12345-worker-1",
            exit_code=9,
            reason="Error",
            message="boom",
            replica="worker-1",
            container="main",
        )
        assert plan.events[-1].message == (
            "failure rule {worker: [1]} is met: pod demo-12345-worker-1 failed with exit code 9: boom"
        )
        assert plan.events[-1].is_warning

    def test_a_rule_is_explained_by_a_member_it_names(self):
        world = seen("Running", "Failed 7", of=NEVER_ALONE)
        plan = decide(world, NOW)
        assert plan.status.failure.pod == "demo-12345-worker-1"

        ended = decide(then(world, plan, "Failed 3", "Failed 7"), after(1))

        assert ended.status.failure.pod == "demo-12345-worker-0"
        assert "worker-0 failed with exit code 3" in ended.events[-1].message

    def test_a_lost_peer_stays_named_while_the_job_runs_on(self):
        world = seen("Running", "Failed 7", of=NEVER_ALONE)
        plan = decide(world, NOW)
        later = decide(then(world, plan, "Running", "Failed 7"), after(1))

        assert later.status.failure == plan.status.failure
        assert later.status.condition(ConditionType.REPLICA_FAILURE).status

    def test_a_job_that_no_success_rule_can_save_fails(self):
        hopeless = gang(2, restart="Never", scope=REPLICA, success=((A, B),), failure=())
        plan = decide(seen("Running", "Failed", of=hopeless), NOW)

        assert plan.status.phase is F
        assert plan.events[-1].message.startswith("no success rule can be met any more: pod demo-12345-worker-1")

    def test_success_forgets_the_failure_before_it(self):
        failed = Failure(pod="demo-12345-worker-1", exit_code=1, reason="Error")

        assert decide(seen("Succeeded", "Running", failure=failed), NOW).status.failure is None

    def test_a_deleted_pod_is_said_to_be_deleted(self):
        plan = decide(seen("Running", "gone"), NOW)

        assert plan.events[-1].message == (
            "pod demo-12345-worker-1 was deleted before it ended; next attempt of all replicas (restart 1 of at most 3)"
        )


class TestTelling:
    def told(self, plan):
        return [told.reason for told in plan.events]

    def test_a_job_tells_its_life_once(self):
        world = seen()
        first = decide(world, NOW)
        pending = obeyed(world, first)
        second = decide(pending, NOW)
        running = then(pending, second, "Running", "Running")
        third = decide(running, after(1))
        quiet = decide(replace(running, status=third.status), after(2))
        last = decide(then(running, quiet, "Succeeded", "Running"), after(3))

        assert self.told(first) == ["Created"]
        assert self.told(second) == ["NewReplica", "NewReplica", "Start"]
        assert self.told(third) == ["Running"]
        assert self.told(quiet) == []
        assert self.told(last) == ["Succeeded"]

    def test_a_job_too_quick_to_be_seen_running_tells_of_its_pods_all_the_same(self):
        assert self.told(decide(seen("Succeeded", "Succeeded"), NOW)) == [
            "Created",
            "NewReplica",
            "NewReplica",
            "Succeeded",
        ]

    def test_a_reason_to_wait_is_on_the_job_and_told_once(self):
        """X-15"""
        stuck = replace(
            seen("", ""),
            pods=(
                pod(A, "Pending Unschedulable", message="lacks nvidia.com/gpu: 2 asked, 0 of 0 free"),
                pod(B, "Pending Unschedulable", message="lacks nvidia.com/gpu: 2 asked, 0 of 0 free"),
            ),
        )
        plan = decide(stuck, NOW)

        assert plan.status.waiting == (
            "pod demo-12345-worker-0 (and 1 more): lacks nvidia.com/gpu: 2 asked, 0 of 0 free"
        )
        assert plan.status.condition(ConditionType.RUNNING).reason == "Unschedulable"
        assert plan.status.condition(ConditionType.RUNNING).message == plan.status.waiting
        assert (plan.events[-1].reason, plan.events[-1].is_warning) == ("Unschedulable", True)
        assert self.told(decide(replace(stuck, status=plan.status), after(1))) == []

    def test_a_container_that_cannot_start_is_a_reason_to_wait(self):
        missing = ContainerState(
            name="main", state="Waiting", reason="SandboxMissing", message="bubblewrap is not installed"
        )
        world = replace(seen(""), pods=(pod(A, "Pending", containers=(missing,)),))

        assert decide(world, NOW).status.waiting == "pod demo-12345-worker-0: bubblewrap is not installed"

    @pytest.mark.parametrize("reason", ["", "ContainerCreating", "PodInitializing"])
    def test_what_every_pod_goes_through_is_no_reason_to_wait(self, reason):
        usual = ContainerState(name="main", state="Waiting", reason=reason)
        world = replace(seen(""), pods=(pod(A, "Pending", containers=(usual,)),))
        plan = decide(world, NOW)

        assert plan.status.waiting == ""
        assert plan.status.condition(ConditionType.RUNNING).message == "pods are starting"


class TestTimes:
    def test_the_start_is_when_the_first_pod_started(self):
        waiting = decide(seen("Pending", "Pending"), NOW)
        started = decide(seen("Running", "Pending", status=waiting.status), after(7))

        assert waiting.status.start_time is None
        assert started.status.start_time == after(7)
        assert decide(seen("Running", "Running", status=started.status), after(9)).status.start_time == after(7)

    def test_the_end_is_written_once(self):
        world = seen("Succeeded", "Succeeded")
        plan = decide(world, after(3))

        assert plan.status.completion_time == after(3)
        assert decide(replace(world, status=plan.status), after(9)).status.completion_time == after(3)

    def test_the_generation_that_was_looked_at_is_said(self):
        assert decide(replace(seen(), generation=4), NOW).status.observed_generation == 4


def test_conditions_of_a_running_job_are_those_of_t9k():
    """X-16"""
    plan = decide(seen("Running", "Running"), NOW)

    assert [(each.type.value, each.status, each.reason) for each in plan.status.conditions] == [
        ("Initialized", True, "-"),
        ("Running", True, "-"),
        ("ReplicaFailure", False, "-"),
        ("Completed", False, "NotFinished"),
    ]


def test_conditions_of_a_succeeded_job_are_those_of_t9k():
    """X-16"""
    plan = decide(seen("Succeeded", "Running"), NOW)

    assert [(each.type.value, each.status, each.reason) for each in plan.status.conditions] == [
        ("Initialized", True, "-"),
        ("Running", False, "Succeeded"),
        ("ReplicaFailure", False, "-"),
        ("Completed", True, "Succeeded"),
        ("Failed", False, "Succeeded"),
    ]


def test_conditions_of_a_failed_job_are_those_of_t9k():
    """Vector 20: Completed and Failed are both true, and ReplicaFailure names pod and exit code. X-16"""
    world = seen("Running", "Running", of=NEVER)
    plan = decide(then(world, decide(world, NOW), "Running", "Failed 127"), after(1))

    assert [(each.type.value, each.status, each.reason) for each in plan.status.conditions] == [
        ("Initialized", True, "-"),
        ("Running", False, "Failed"),
        ("ReplicaFailure", True, "ErrorInPod"),
        ("Completed", True, "Failed"),
        ("Failed", True, "Failed"),
    ]
    said = plan.status.condition(ConditionType.REPLICA_FAILURE).message
    assert said == "pod demo-12345-worker-1 failed with exit code 127"


@pytest.mark.parametrize(("members", "is_whole"), [(("Running", "Failed"), True), (("", "Failed"), False)])
def test_a_job_that_fails_before_anybody_saw_it_run_says_whether_all_its_pods_were_there(members, is_whole):
    """Vector 20, of a job that is faster than its controller."""
    first = decide(seen("", "", of=NEVER), NOW)
    plan = decide(then(seen("", "", of=NEVER), first, *members), after(1))
    initialized = plan.status.condition(ConditionType.INITIALIZED)

    assert (first.status.condition(ConditionType.INITIALIZED).status, plan.status.phase) == (False, Phase.FAILED)
    assert (initialized.status, initialized.message) == (
        is_whole,
        "all pods exist" if is_whole else "1 of 2 pods exist",
    )


def test_a_condition_keeps_its_moment_until_it_turns():
    world = seen("Running", "Running")
    first = decide(world, NOW)
    failing = decide(then(world, first, "Running", "Failed"), after(5))
    well = decide(then(world, failing, "Running", "Running"), after(9))

    def since(plan):
        return plan.status.condition(ConditionType.REPLICA_FAILURE).since

    assert (since(first), since(failing), since(well)) == (NOW, after(5), after(9))
    assert well.status.condition(ConditionType.INITIALIZED).since == NOW


def test_an_evicted_pod_is_explained_by_the_pod_itself():
    evicted = pod(A, "Failed", containers=(), reason="Evicted", message="the node was low on memory")
    plan = decide(replace(seen("", of=gang(1, restart="Never")), pods=(evicted,)), NOW)

    assert plan.events[-1].message.endswith("pod demo-12345-worker-0 failed: Evicted: the node was low on memory")
    assert plan.status.failure.exit_code is None
    assert plan.status.phase is F
