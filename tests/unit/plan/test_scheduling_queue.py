"""A job that waits for resources has a position in the queue, and the queue is one small object."""

import json

import pytest

from paceline.model.scheduling_queue import EMPTY, MAX_ENTRIES, QueueEntry, SchedulingQueue, read_queue
from paceline.plan.scheduling.gang import place, queue_of
from tests.unit.plan.test_place import GPU, amounts, ask, node
from tests.unit.plan.test_preempt import full, holder

FULL = node(gpu=2, memory="8Gi", used=amounts(gpu=2))


def gang(name, *pods, **fields):
    return ask(name, *pods, **{"family": f"uid-{name}", **fields})


def names(placement):
    return [entry.name for entry in queue_of(placement).entries]


def test_those_who_wait_are_queued_by_priority_and_then_by_age():
    gangs = (gang("new", GPU, since="2032"), gang("old", GPU, since="2031"), gang("high", GPU, priority=5))

    assert names(place(gangs, (FULL,))) == ["high", "old", "new"]


def test_who_gets_a_node_is_not_in_the_queue():
    gangs = (gang("gpu", GPU), gang("memory", amounts(memory="1Gi"), since="2031"))

    assert names(place(gangs, (FULL,))) == ["gpu"]


NOT_QUEUED = {
    "one that can never run": gang("a", GPU, GPU, GPU),
    "one whose pods are still being created": gang("a", GPU, size=2, present=1),
    "one that no node may run": gang("a", GPU, selector={"disk": "ssd"}),
}


@pytest.mark.parametrize("other", NOT_QUEUED.values(), ids=NOT_QUEUED)
def test_who_gets_no_room_when_others_leave_has_no_place(other):
    assert names(place((other, gang("b", GPU, since="2031")), (FULL,))) == ["b"]


def test_one_that_can_never_run_says_so_and_has_no_place_wherever_it_would_be():
    placement = place((gang("first", GPU), gang("huge", GPU, GPU, GPU, since="2031")), (FULL,))

    assert names(placement) == ["first"]
    assert placement.waits["default", "huge-0"].endswith("it can never run here")


def test_an_elastic_job_that_grows_later_is_in_the_queue_and_only_once():
    room = node(memory="4Gi")
    elastic = gang("a", *[amounts(memory="2Gi")] * 3, size=1)
    again = gang("a", amounts(memory="2Gi"), size=1, present=4, placed=2, since="2031")

    assert names(place((elastic, again), (room,))) == ["a"]


def test_who_others_give_way_to_is_first():
    low = holder("low", gpu=2)
    winner = gang("winner", GPU, rank=10, priority=1000)

    assert names(place((gang("other", GPU, rank=0), winner), (full(low, gpu=2),), (low,))) == ["winner", "other"]


def test_the_message_of_those_behind_stays_the_same_when_another_is_first():
    behind = gang("z", GPU, amounts(gpu=1, memory="4Gi"), since="2033")

    messages = {
        place((gang(first, GPU, since="2030"), behind), (FULL,)).waits["default", "z-0"] for first in ("a", "b", "c")
    }

    assert messages == {"waits behind others for nvidia.com/gpu (2 asked)"}


def test_a_place_names_the_one_before():
    first, second = (QueueEntry(uid=name, namespace="team", name=name) for name in ("a", "b"))
    queue = SchedulingQueue.of((first, second))
    position = queue.position_of("b")

    assert position is not None
    assert (position.position, position.length, position.ahead) == (2, 2, first)
    assert queue.position_of("c") is None


def test_the_queue_is_read_as_it_was_written():
    queue = SchedulingQueue.of(QueueEntry(uid=f"u{n}", namespace="default", name=f"job-{n}") for n in range(3))

    assert read_queue(queue.manifest()) == queue
    assert read_queue(EMPTY.manifest()) == EMPTY


def test_a_long_queue_is_a_small_object_that_knows_its_length():
    queue = SchedulingQueue.of(QueueEntry(uid=36 * "u", namespace="default", name=63 * "n") for _ in range(5000))

    assert (len(queue.entries), queue.length) == (MAX_ENTRIES, 5000)
    assert read_queue(queue.manifest()) == queue
    assert len(json.dumps(queue.manifest())) < 200_000


@pytest.mark.parametrize("data", [{"entries": "{"}, {"entries": "[[1]]"}, {"entries": "7"}, {"length": "x"}, None])
def test_what_others_wrote_into_it_is_an_empty_queue(data):
    assert read_queue({"data": data}) == EMPTY
    assert read_queue(None) == EMPTY
