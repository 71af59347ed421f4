"""A pause gives the pods back and keeps everything else."""

from dataclasses import replace

from paceline.model.job_status import ConditionType, Phase
from paceline.plan.job.decide import decide
from tests.unit.plan.worlds import NOW, after, gang, seen, then

R, S = Phase.RUNNING, Phase.SUCCEEDED
RUNNING = {"phase": R, "start_time": NOW}


def test_a_paused_job_gives_its_pods_back():
    plan = decide(seen("Running", "Succeeded", is_paused=True, **RUNNING), NOW)

    assert plan.status.phase is Phase.PAUSED
    assert plan.delete == ("demo-12345-worker-0",)
    assert plan.status.condition(ConditionType.PAUSED).status
    assert not plan.status.condition(ConditionType.RUNNING).status


def test_a_job_made_paused_makes_nothing():
    plan = decide(seen("", "", is_paused=True), NOW)

    assert (plan.status.phase, plan.create, plan.delete) == (Phase.PAUSED, (), ())


def test_a_paused_job_stays_paused_whatever_its_pods_do():
    """A leader that is told to end may end with 0; that is no success."""
    world = seen("Running", "Running", is_paused=True, **RUNNING)
    plan = decide(world, NOW)
    later = decide(then(world, plan, "Succeeded", "Running"), after(1))

    assert later.status.phase is Phase.PAUSED
    assert later.delete == ("demo-12345-worker-1",)


def test_success_before_the_pause_is_success():
    assert decide(seen("Succeeded", "Running", is_paused=True), NOW).status.phase is S


def test_a_failing_job_that_is_paused_counts_no_restart():
    plan = decide(seen("Running", "Failed", is_paused=True), NOW)

    assert (plan.status.phase, plan.status.backoff_count) == (Phase.PAUSED, 0)


def test_a_resumed_job_begins_its_next_try_and_counts_no_restart():
    world = seen("Running", "Running", is_paused=True, **RUNNING)
    paused = decide(world, NOW)
    resumed = decide(then(world, paused, is_paused=False), after(60))
    going = then(world, resumed, is_paused=False)
    made = decide(going, after(60))
    running = decide(then(going, made, "Running", "Running"), after(61))

    assert (resumed.status.phase, resumed.create) == (Phase.RESUMING, ())
    assert [new.attempt for new in made.create] == [1, 1]
    assert made.status.phase is Phase.RESUMING
    assert (running.status.phase, running.status.backoff_count) == (R, 0)
    assert not running.status.condition(ConditionType.PAUSED).status
    assert resumed.status.resumes == 1


def test_a_job_resumed_before_it_ever_ran_is_at_its_first_try():
    world = seen("", "", is_paused=True)
    resumed = decide(then(world, decide(world, NOW), is_paused=False), after(60))

    assert resumed.status.attempt == 0


def test_pods_that_have_not_gone_yet_hold_a_resumed_job_back():
    world = seen("Running", "Running", is_paused=True, **RUNNING)
    paused = decide(world, NOW)
    resumed = decide(replace(world, status=paused.status, is_paused=False), after(1))
    plan = decide(replace(world, status=resumed.status, is_paused=False), after(1))

    assert plan.create == ()
    assert len(plan.delete) == 2


def test_the_pause_stops_the_clock_of_the_deadline():
    short = gang(2, active_deadline_seconds=100)
    world = seen("Running", "Running", of=short, is_paused=True, **RUNNING)
    paused = decide(world, after(10))
    resumed = decide(then(world, paused, is_paused=False), after(70))

    assert resumed.status.paused_seconds == 60
    going = then(world, resumed, "Running", "Running", is_paused=False)
    assert decide(going, after(71)).wake_at == after(160)


def test_a_paused_status_without_its_condition_resumes_too():
    assert decide(seen("", "", phase=Phase.PAUSED), NOW).status.paused_seconds == 0


class TestRestartWish:
    """Rule restart: each new text of the annotation is one restart, which counts for nothing."""

    WORLD = seen("Running", "Running", restarts=3, attempt=3, **RUNNING)

    def test_who_waits_before_the_next_try_waits_no_longer(self):
        """The pause after failures may be five minutes, and somebody says that it is time."""
        world = seen("Failed", "Running", restarts=2, attempt=2)
        waits = decide(world, NOW)
        held, wished = (decide(then(world, waits, restart_request=wish), after(1)) for wish in ("", "now"))

        assert (held.create, held.wake_at) == ((), after(4))
        assert (len(wished.create), wished.status.start_after, wished.status.backoff_count) == (2, None, 3)

    def test_all_members_begin_anew_even_without_restarts_left(self):
        plan = decide(replace(self.WORLD, restart_request="now"), NOW)
        made = decide(then(self.WORLD, plan, restart_request="now"), after(1))

        assert len(plan.delete) == 2
        assert plan.create == ()
        assert (plan.status.phase, plan.status.backoff_count) == (Phase.RESUMING, 3)
        assert [new.attempt for new in made.create] == [4, 4]
        assert [told.reason for told in plan.events][-1] == "Restarting"

    def test_one_wish_is_granted_once(self):
        plan = decide(replace(self.WORLD, restart_request="now"), NOW)
        again = decide(then(self.WORLD, plan, "Running", "Running", restart_request="now"), after(1))

        assert (again.delete, again.status.attempt) == ((), 4)

    def test_the_next_wish_is_granted_too(self):
        plan = decide(replace(self.WORLD, restart_request="now"), NOW)
        again = decide(then(self.WORLD, plan, "Running", "Running", restart_request="again"), after(1))

        assert again.status.attempt == 5

    def test_a_job_that_has_nothing_yet_grants_it_by_starting(self):
        world = seen("", "", restart_request="now")
        plan = decide(world, NOW)
        later = decide(then(world, plan, "Running", "Running"), after(1))

        assert [new.attempt for new in plan.create] == [0, 0]
        assert (later.status.attempt, later.delete) == (0, ())

    def test_a_paused_job_grants_it_by_going_on(self):
        world = seen("Running", "Running", is_paused=True, **RUNNING)
        paused = decide(world, NOW)
        resumed = decide(then(world, paused, is_paused=False, restart_request="now"), after(1))
        going = then(world, resumed, "Running", "Running", is_paused=False, restart_request="now")

        assert resumed.status.attempt == 1
        assert decide(going, after(2)).status.attempt == 1

    def test_an_ended_job_stays_ended(self):
        world = seen("Succeeded", "Succeeded", phase=S, completion_time=NOW, restart_request="now")

        assert decide(world, NOW).status.phase is S
