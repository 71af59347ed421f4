"""A key waits once, runs alone, and comes back when it should."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.apimachinery.metrics import MetricRegistry
from paceline.client.workqueue import WorkQueue, run
from paceline.errors import Conflict, NotFound, ServiceUnavailable


async def settle(queue, reconcile, *, seconds, workers=3):
    """Let the workers work for a while."""
    try:
        async with asyncio.timeout(seconds):
            await run(queue, reconcile, workers=workers)
    except TimeoutError:
        pass


def test_a_key_that_is_added_twice_runs_once(hurry, chance):
    runs = Counter()

    async def reconcile(key):
        runs[key] += 1

    async def main():
        queue = WorkQueue(chance)
        queue.add("a")
        queue.add("a")
        queue.add("b")
        await settle(queue, reconcile, seconds=1)

    hurry(main())
    assert runs == {"a": 1, "b": 1}


def test_a_key_that_is_added_while_it_runs_runs_once_more(hurry, chance):
    runs = Counter()
    queue = WorkQueue(chance)

    async def reconcile(key):
        runs[key] += 1
        if runs[key] == 1:
            queue.add(key)
            queue.add(key)

    queue.add("a")
    hurry(settle(queue, reconcile, seconds=1))
    assert runs == {"a": 2}


def test_an_urgent_key_goes_before_those_that_wait_already(hurry, chance):
    order = []
    queue = WorkQueue(chance)

    async def reconcile(key):
        order.append(key)
        if order == ["urgent", "a"]:
            # Once more, and before the others: it was still running.
            queue.add("a", is_urgent=True)

    for key in "abc":
        queue.add(key)
    queue.add("urgent", is_urgent=True)
    hurry(settle(queue, reconcile, seconds=1, workers=1))
    assert order == ["urgent", "a", "a", "b", "c"]


EVENTS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3), st.sampled_from(["add", "later"])), max_size=20)
TURNS = st.lists(
    st.tuples(st.floats(0, 2), st.sampled_from([None, ServiceUnavailable, Conflict, NotFound])), max_size=20
)


@given(events=EVENTS, turns=TURNS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_key_runs_beside_itself_and_none_is_forgotten(hurry, events, turns):
    """Whatever comes when and whatever fails: one run at a time, and one that begins after each add."""
    turns = iter(turns)
    running, began, wanted = set(), {}, {}
    queue = WorkQueue(type("Low", (), {"fraction": lambda _: 0.0})())

    async def reconcile(key):
        assert key not in running
        running.add(key)
        began[key] = asyncio.get_running_loop().time()
        try:
            seconds, error = next(turns, (0.0, None))
            await asyncio.sleep(seconds)
            if error is not None:
                raise error("no luck")
        finally:
            running.remove(key)

    async def bring():
        loop = asyncio.get_running_loop()
        for key, seconds, how in events:
            if how == "add":
                await asyncio.sleep(seconds)
                queue.add(key)
                wanted[key] = loop.time()
            else:
                queue.add_after(key, seconds)
                wanted[key] = max(wanted.get(key, 0.0), loop.time())

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(settle(queue, reconcile, seconds=1000))
            group.create_task(bring())

    hurry(main())
    assert all(began[key] >= moment for key, moment in wanted.items())
    assert len(queue) == 0


def test_a_failure_is_tried_again_after_pauses_that_double(hurry, chance):
    starts = []

    async def reconcile(_key):
        starts.append(asyncio.get_running_loop().time())
        raise ServiceUnavailable("not now")

    async def main():
        queue = WorkQueue(chance)
        queue.add("a")
        await settle(queue, reconcile, seconds=200)

    hurry(main())
    pauses = [round(later - sooner, 3) for sooner, later in pairwise(starts)]
    # Three quarters of 0.5, 1, 2 … up to 60: the dice always fall in the middle.
    assert pauses[:9] == [0.375, 0.75, 1.5, 3.0, 6.0, 12.0, 24.0, 45.0, 45.0]


def test_a_success_forgets_the_failures(hurry, chance):
    starts = []

    async def reconcile(_key):
        starts.append(asyncio.get_running_loop().time())
        if len(starts) in (1, 2, 4):
            raise ServiceUnavailable("not now")
        if len(starts) == 3:
            queue.add("a")

    queue = WorkQueue(chance)
    queue.add("a")
    hurry(settle(queue, reconcile, seconds=100))
    assert round(starts[4] - starts[3], 3) == 0.375


def test_a_first_conflict_is_tried_again_at_once_and_a_lasting_one_is_not_a_tight_loop(hurry, chance):
    starts = []

    async def reconcile(_key):
        starts.append(asyncio.get_running_loop().time())
        raise Conflict("changed")

    async def main():
        queue = WorkQueue(chance)
        queue.add("a")
        await settle(queue, reconcile, seconds=10)

    hurry(main())
    assert starts[1] == starts[0]
    assert starts[2] > starts[1]
    assert len(starts) < 20


def test_an_error_that_nobody_can_mend_by_waiting_is_not_tried_again(hurry, chance, caplog):
    runs = Counter()

    async def reconcile(key):
        runs[key] += 1
        raise NotFound("gone")

    async def main():
        queue = WorkQueue(chance)
        queue.add("a")
        await settle(queue, reconcile, seconds=1000)

    hurry(main())
    assert runs == {"a": 1}
    assert [(record.message, record.reason) for record in caplog.records] == [("reconcile failed", "NotFound")]


def test_of_several_timers_the_earliest_counts(hurry, chance):
    starts = []

    async def reconcile(_key):
        starts.append(asyncio.get_running_loop().time())

    async def main():
        queue = WorkQueue(chance)
        for seconds in (30, 10, 20):
            queue.add_after("a", seconds)
        await settle(queue, reconcile, seconds=100)

    hurry(main())
    assert starts == [10]


def test_a_bug_ends_all_workers_and_is_seen(hurry, chance):
    async def reconcile(key):
        if key == "bad":
            raise ZeroDivisionError
        await asyncio.sleep(1000)

    async def main():
        queue = WorkQueue(chance)
        queue.add("good")
        queue.add("bad")
        await run(queue, reconcile, workers=2)

    with pytest.raises(ExceptionGroup) as caught:
        hurry(main())
    assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]


def test_no_timer_outlives_its_workers(hurry, chance):
    async def reconcile(_key):
        raise AssertionError("nobody works any more")

    async def main():
        queue = WorkQueue(chance)
        queue.add_after("a", 50)
        await settle(queue, reconcile, seconds=10)
        await asyncio.sleep(100)
        return len(queue)

    assert hurry(main()) == 0


def test_a_queue_counts_what_it_was_given_and_how_that_ended(hurry, chance):
    queue = WorkQueue(chance, name="jobs")

    async def reconcile(key):
        await asyncio.sleep(2)
        if key == "stale":
            queue.stop()
            raise Conflict("the object has been modified")

    async def main():
        for key in ("fine", "stale", "fine"):
            queue.add(key)
        await settle(queue, reconcile, seconds=3.5, workers=1)

    hurry(main())
    registry = MetricRegistry()
    registry.put("queue", queue.metrics)
    lines = registry.write().decode().splitlines()
    assert 'workqueue_adds_total{name="jobs"} 2' in lines
    assert 'paceline_reconcile_total{name="jobs",result="success"} 1' in lines
    assert 'workqueue_depth{name="jobs"} 0' in lines
    # The second key waited for the first one, which took two seconds.
    assert 'workqueue_queue_duration_seconds_sum{name="jobs"} 2' in lines
    assert 'workqueue_work_duration_seconds_bucket{name="jobs",le="1"} 0' in lines
