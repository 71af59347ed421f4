"""A job whose pods give way waits for room again: it has not failed, and no restart is counted."""

from dataclasses import replace
from datetime import timedelta

import pytest

from paceline.controllers.job.snapshot import pod_snapshot
from paceline.model.gang import CleanUp
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.snapshot import Disruption
from paceline.plan.scheduling.preemption import MESSAGE, needs_delete, new_mark, rest_of
from tests.unit.plan.test_room import pod as a_pod
from tests.unit.plan.worlds import NOW, REPLICA, after, gang, numbers, obeyed, seen

WHY = f"{MESSAGE} (default/urgent-worker-0)"
MARK = Disruption(reason="PreemptionByScheduler", message=WHY)
RUNNING = {"phase": Phase.RUNNING, "start_time": NOW, "running_time": NOW}


def world(*members, marked=(0, 1), of=None, **status):
    """Members of which some give way."""
    made = seen(*members, of=of, **{**RUNNING, **status})
    pods = (replace(pod, disruption=MARK if pod.place.index in marked else None) for pod in made.pods)
    return replace(made, pods=tuple(pods))


BOTH = {"worker-0": 1, "worker-1": 1}
# What is seen → pods to delete, attempt of the gang, attempts of its members.
CASES = {
    "that runs": (("Running", "Running"), {}, 2, 1, BOTH),
    "one of which has ended by the signal": (("Failed 143", "Running"), {}, 1, 1, BOTH),
    "all of which have": (("Failed 143", "Failed 137"), {}, 0, 1, BOTH),
    "one of which alone is marked begins anew as a whole": (("Running", "Running"), {"marked": (1,)}, 2, 1, BOTH),
    "with no restarts left": (("Failed 1", "Running"), {"of": gang(2, backoff_limit=0)}, 1, 1, BOTH),
    "that is never restarted": (("Failed 1", "Running"), {"of": gang(2, restart="Never")}, 1, 1, BOTH),
    "whose members restart alone": (
        ("Running", "Running"),
        {"of": gang(2, scope=REPLICA)},
        2,
        0,
        BOTH,
    ),
    "whose member alone is marked": (
        ("Running", "Running"),
        {"of": gang(2, scope=REPLICA), "marked": (1,)},
        1,
        0,
        {"worker-1": 1},
    ),
}


@pytest.mark.parametrize(("members", "more", "deleted", "attempt", "attempts"), CASES.values(), ids=CASES)
def test_x14_a_job(members, more, deleted, attempt, attempts):
    plan = decide(world(*members, **more), NOW)

    assert (len(plan.delete), plan.create) == (deleted, ())
    assert (plan.status.attempt, numbers(plan.status)) == (attempt, attempts)
    assert (plan.status.backoff_count, plan.status.start_after, plan.status.failure) == (0, None, None)
    assert plan.status.waiting == plan.status.disruption["message"] == WHY
    assert plan.status.disruptions == 1
    (told,) = [each for each in plan.events if each.reason == "Preempted"]
    assert told.message.startswith(WHY)


def test_x14_it_is_pending_until_it_has_room_again_and_says_why_all_the_while():
    now = world("Running", "Running")
    gone = decide(now, NOW)
    empty = obeyed(now, gone)
    again = decide(replace(empty, pods=()), after(1))
    waits = obeyed(replace(empty, pods=()), again)
    stuck = tuple(replace(each, reason="Unschedulable", message="0/1 nodes are available") for each in waits.pods)
    waiting = decide(replace(waits, pods=stuck), after(2))

    assert [(new.place.index, new.attempt) for new in again.create] == [(0, 1), (1, 1)]
    assert [plan.status.phase for plan in (gone, again, waiting)] == [Phase.PENDING] * 3
    assert waiting.status.waiting.startswith(f"{WHY}; pod demo-12345-worker-0-r1")
    assert "0/1 nodes are available" in waiting.status.waiting
    ran = decide(seen("Running", "Running", status=waiting.status), after(9))
    assert (ran.status.phase, ran.status.disruption, ran.status.waiting) == (Phase.RUNNING, {}, "")
    assert ran.status.backoff_count == 0


def test_x14_a_member_that_goes_alone_leaves_the_job_running():
    plan = decide(world("Running", "Running", of=gang(2, scope=REPLICA), marked=(1,)), NOW)

    assert plan.status.phase is Phase.RUNNING


def test_x14_a_job_of_which_all_go_that_still_ran_is_pending():
    of = gang(2, scope=REPLICA, success=())
    plan = decide(world("Succeeded", "Running", of=of, marked=(0, 1)), NOW)

    assert (plan.status.phase, numbers(plan.status)) == (Phase.PENDING, {"worker-1": 1})


def test_x14_success_is_success_also_when_others_want_the_room():
    assert decide(world("Succeeded", "Running"), NOW).status.phase is Phase.SUCCEEDED


@pytest.mark.parametrize("word", ["is_paused", "is_suspended"])
def test_x14_a_job_that_is_paused_later_tells_of_the_pause(word):
    now = world("Running", "Running")
    held = decide(replace(now, status=decide(now, NOW).status, pods=(), **{word: True}), after(1))

    assert held.status.disruption == {}


def test_x14_what_an_ended_job_has_left_running_goes_too():
    over = world("Succeeded", "Running", of=gang(2, clean_up=CleanUp.NONE), phase=Phase.SUCCEEDED, completion_time=NOW)
    plan = decide(over, after(60))

    assert plan.delete == ("demo-12345-worker-1",)
    assert (plan.status.phase, plan.status.attempt) == (Phase.SUCCEEDED, 0)


def test_x14_the_reason_is_on_record():
    status = JobStatus(disruption={"reason": "PreemptionByScheduler", "message": WHY}, disruptions=1)

    assert JobStatus.from_wire(status.to_wire()) == status


def member(name, *, mark=None, index=0, **more):
    made = a_pod(name, owner="crew", size=2, index=index, spec={"nodeName": "one"}, phase="Running", **more)
    return with_mark(made, mark) if mark is not None else made


def with_mark(made, moment):
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}, new_mark(WHY, moment)]
    return made


def keys(*names):
    return [("default", name) for name in names]


def test_x14_a_mark_is_read_as_kubernetes_writes_it():
    evicted = member("crew-1")
    evicted["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    ]

    assert pod_snapshot(member("crew-0", mark=NOW)).disruption == MARK
    assert pod_snapshot(evicted).disruption is None, "it is not being deleted: the eviction may have failed"


def test_x14_marking_goes_on_where_it_was_stopped():
    rest = rest_of((member("crew-0", mark=NOW), member("crew-1", index=1)), NOW)

    assert rest.mark == {("default", "crew-1"): WHY}
    assert (rest.end, rest.wake_at) == ((), after(30))


def test_x14_a_job_without_marks_is_left_alone():
    rest = rest_of((member("crew-0"), member("crew-1", index=1)), NOW)

    assert (rest.mark, rest.end, rest.wake_at) == ({}, (), None)


ENDED = {
    "a pod alone, at once": (with_mark(a_pod("alone", spec={"nodeName": "one"}), NOW), NOW, True),
    "not a member, whose job does": (member("crew-0", mark=NOW), NOW, False),
    "a member whose job does not answer": (member("crew-0", mark=NOW), after(30), True),
    "a member of which the clock was set back": (member("crew-0", mark=after(3600)), NOW, False),
    "nobody who is going": (member("crew-0", mark=NOW, deleting=True), after(60), False),
}


@pytest.mark.parametrize(("pod", "now", "is_ended"), ENDED.values(), ids=ENDED)
def test_x14_the_scheduler_ends(pod, now, is_ended):
    rest = rest_of((pod,), now)

    assert bool(rest.end) is is_ended
    assert needs_delete(pod) is ("deletionTimestamp" not in pod["metadata"])
    assert rest.wake_at is None or rest.wake_at <= now + timedelta(seconds=30)
