"""The place of a waiting job in one sentence, the same for commands, Python and pages."""

import pytest

from paceline.model.scheduling_queue import EMPTY, QueueEntry, SchedulingQueue
from paceline.presentation.queue_position import (
    ordinal,
    position_fields,
    position_of,
    queue_sentence,
    waits_for_room,
)

FIRST = "pod bert-0: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu (2 asked, 0 of 2 free)"
BEHIND = "pod bert-0 (and 1 more): waits behind others for memory (4Gi asked), nvidia.com/gpu (2 asked)"
PORT = "pod bert-0: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports"
ELSEWHERE = "pod bert-0: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available"


def job(waiting=FIRST, phase="Pending", namespace="default", uid="bert"):
    metadata = {"name": "bert", "namespace": namespace, "uid": uid}
    return {"metadata": metadata, "status": {"phase": phase, "waiting": waiting}}


def queue(*uids):
    return SchedulingQueue.of(QueueEntry(uid=uid, namespace="default", name=uid) for uid in uids)


SENTENCES = {
    "the first one": (job(), queue("bert", "b"), "1st of 2 in the queue: needs 2 nvidia.com/gpu, 0 of 2 free"),
    "one behind others": (
        job(BEHIND),
        queue("a", "digits", "bert"),
        "3rd of 3 in the queue, after digits: needs 4Gi memory; needs 2 nvidia.com/gpu",
    ),
    "one behind a job of another namespace": (
        job(namespace="team"),
        queue("a", "bert"),
        "2nd of 2 in the queue, after default/a: needs 2 nvidia.com/gpu, 0 of 2 free",
    ),
    "one that lacks what is not counted": (job(PORT), queue("bert"), "1st of 1 in the queue"),
    "amounts that are not known": (job(ELSEWHERE), queue("bert"), "1st of 1 in the queue: needs more nvidia.com/gpu"),
    "an elastic one that waits for more replicas": (
        job(phase="Running"),
        queue("bert"),
        "1st of 1 in the queue: needs 2 nvidia.com/gpu, 0 of 2 free",
    ),
}


@pytest.mark.parametrize(("waiting", "line", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_the_sentence_names_place_and_shortage(waiting, line, sentence):
    """X-15"""
    assert queue_sentence(waiting, line) == sentence


NO_PLACE = {
    "a cluster without such a queue": (job(), EMPTY),
    "a job that is not in it": (job(uid="x"), queue("bert")),
    "a job that waits for something else": (job("the image is being built"), queue("bert")),
    "a job that has ended": (job(phase="Failed"), queue("bert")),
    "a paused job": (job(phase="Paused"), queue("bert")),
}


@pytest.mark.parametrize(("other", "line"), NO_PLACE.values(), ids=NO_PLACE)
def test_nothing_is_said_without_a_place(other, line):
    assert queue_sentence(other, line) == ""
    assert position_fields(position_of(other, line)) is None


def test_the_place_as_pages_get_it():
    assert position_fields(position_of(job(), queue("a", "bert"))) == {
        "position": 2,
        "length": 2,
        "ahead": {"namespace": "default", "name": "a"},
    }


def test_only_jobs_without_a_node_are_looked_up():
    assert waits_for_room(job())
    assert waits_for_room(job(BEHIND))
    assert not waits_for_room(job("the image is being built"))
    assert not waits_for_room({"metadata": {"uid": "x"}})


def test_ordinals():
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 101, 111)

    assert " ".join(map(ordinal, numbers)) == "1st 2nd 3rd 4th 11th 12th 13th 21st 101st 111th"
