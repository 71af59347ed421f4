"""Rule on last lines: what a failed pod wrote last is in the status, and nobody waits for it."""

from dataclasses import replace

from paceline.model.gang import CleanUp, ReplicaId
from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.plan import LogRef
from tests.unit.plan.worlds import NOW, REPLICA, after, gang, places, seen, then

NEVER = gang(2, restart="Never")
POD = "demo-12345-worker-1"
WISH = LogRef(pod=POD, container="main")
LINES = {POD: ("Traceback", "ValueError: boom")}


def test_a_failure_is_decided_at_once_and_its_lines_are_asked_for():
    plan = decide(seen("Running", "Failed", of=NEVER), NOW)

    assert plan.status.phase is Phase.FAILED
    assert plan.status.failure.last_lines is None
    assert plan.read_log == WISH


def test_what_was_read_is_kept_and_not_asked_for_again():
    world = seen("Running", "Failed", of=NEVER)
    known = decide(replace(then(world, decide(world, NOW), "Running", "Failed"), last_lines=LINES), after(1))
    last = JobStatus.from_wire(known.status.to_wire())
    later = decide(replace(world, status=last), after(2))

    assert (known.status.failure.last_lines, known.read_log) == (LINES[POD], None)
    assert (later.status.failure.last_lines, later.read_log) == (LINES[POD], None)


def test_that_there_was_nothing_to_read_is_kept_too():
    world = seen("Running", "Failed", of=NEVER)
    known = decide(replace(then(world, decide(world, NOW), "Running", "Failed"), last_lines={POD: ()}), after(1))
    later = decide(replace(world, status=JobStatus.from_wire(known.status.to_wire())), after(2))

    assert (later.status.failure.last_lines, later.read_log) == ((), None)


def test_the_next_controller_asks_when_the_first_one_stopped_before_the_answer():
    world = seen("Running", "Failed", of=NEVER)
    last = JobStatus.from_wire(decide(world, NOW).status.to_wire())

    assert decide(replace(world, status=last), after(60)).read_log == WISH


def test_a_restart_does_not_wait_for_lines_and_they_come_later():
    world = seen("Running", "Failed")
    plan = decide(world, NOW)
    next_try = then(world, plan, "Running", "Running", older=(world.pods[1],), last_lines=LINES)

    assert (plan.status.attempt, plan.read_log) == (1, WISH)
    assert decide(next_try, after(2)).status.failure.last_lines == LINES[POD]


def test_lines_of_one_failure_are_not_taken_for_those_of_the_next():
    world = seen("Running", "Failed", of=gang(2, scope=REPLICA))
    plan = decide(world, NOW)
    known = decide(replace(then(world, plan, "Running", ""), last_lines=LINES), after(0.5))
    again = then(world, known, "Running", "Failed")
    second = decide(again, after(5))

    assert second.status.failure.last_lines is None
    assert second.read_log == LogRef(pod=f"{POD}-r1", container="main")


def test_lines_stay_when_the_same_pod_brings_the_job_down_later():
    """The rule needs both, and the first of them, whose lines are known, is to blame."""
    both = gang(2, restart="Never", scope=REPLICA, failure=(tuple(places(2)),), success=((ReplicaId("worker", 7),),))
    world = seen("Running", "Failed 137", of=both)
    named = decide(replace(world, last_lines=LINES), NOW)
    over = decide(then(world, named, "Failed 1", "Failed 137"), after(1))

    assert (named.status.phase, over.status.phase) == (Phase.RUNNING, Phase.FAILED)
    assert over.status.failure.last_lines == LINES[POD]


def test_a_pod_that_is_gone_is_not_asked():
    assert decide(seen("Running", "gone", of=NEVER), NOW).read_log is None


def test_an_evicted_pod_without_containers_is_not_asked():
    world = seen("Running", "Failed", of=NEVER)
    evicted = replace(world.pods[1], containers=(), reason="Evicted")

    assert decide(replace(world, pods=(world.pods[0], evicted)), NOW).read_log is None


def test_the_failed_pod_is_cleaned_up_last_so_that_it_can_be_read():
    world = seen("Running", "Failed", of=replace(NEVER, clean_up=CleanUp.ALL))
    plan = decide(world, NOW)

    assert (plan.delete, plan.wake_at) == (("demo-12345-worker-0",), after(10))
    read = decide(replace(world, status=plan.status, last_lines=LINES), after(1))
    assert POD in read.delete
    unread = decide(replace(world, status=plan.status), after(10))
    assert POD in unread.delete


def test_success_asks_for_nothing():
    world = seen("Succeeded", "Failed")

    assert (decide(world, NOW).read_log, decide(world, NOW).status.failure) == (None, None)
