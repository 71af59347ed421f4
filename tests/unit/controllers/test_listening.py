"""When containers wrote last is asked beside the loop, against our real API server in the same process."""

import asyncio
from datetime import timedelta

from paceline.apimachinery.timestamps import from_wire
from paceline.controllers.job.pod_logs import LAST, LogActivityReader
from paceline.errors import ServiceUnavailable
from paceline.testing.sim.effects import START
from tests.unit.controllers.reading import JOB, WISH, Node, beside

LINE = b"2029-12-31T23:59:58.123456789Z epoch 3\n"
WRITTEN = from_wire("2029-12-31T23:59:58.123456Z")


def play(node, story):
    def make(cluster, sim, told):
        return LogActivityReader(cluster=cluster, chance=sim.chance, clock=sim.clock, on_read=told)

    return beside(node, make, story)


async def ask(listening, told):
    listening.ask(JOB, (WISH,))
    assert await told.get() == JOB
    return listening.of(JOB)[WISH]


def test_the_time_of_the_last_line_is_asked_for_and_nothing_else():
    node = Node(LINE)
    heard = play(node, ask)

    assert (heard.last, heard.is_known) == (WRITTEN, True)
    assert heard.read_at == heard.since >= START
    assert node.asked == [{"container": "main", **LAST}]


def test_who_has_written_nothing_is_known_to_have():
    heard = play(Node(b""), ask)

    assert (heard.last, heard.is_known) == (None, True)


def test_an_answer_that_stays_the_same_is_remembered_since_when():
    async def story(listening, told):
        first = await ask(listening, told)
        await asyncio.sleep(30)
        same = await ask(listening, told)
        await asyncio.sleep(30)
        return first, same, await ask(listening, told)

    first, same, other = play(Node(LINE, LINE, LINE.replace(b"58.1", b"59.1")), story)

    assert (same.since, same.read_at - first.read_at) == (first.since, timedelta(seconds=30))
    assert other.since == other.read_at


def test_who_does_not_answer_or_nonsense_is_not_known_to_be_silent():
    for answer in (ServiceUnavailable("not now"), None, b"no time at all\n"):
        heard = play(Node(answer), ask)

        assert (heard.last, heard.is_known) == (None, False)


def test_an_answer_after_none_begins_anew():
    async def story(listening, told):
        await ask(listening, told)
        await asyncio.sleep(30)
        return await ask(listening, told)

    heard = play(Node(ServiceUnavailable("not now"), b""), story)

    assert (heard.is_known, heard.since) == (True, heard.read_at)


def test_asking_twice_is_asking_once_and_a_job_is_forgotten():
    node = Node(LINE)

    async def story(listening, told):
        listening.ask(JOB, (WISH, WISH))
        await told.get()
        listening.forget(JOB)
        return listening.of(JOB)

    assert play(node, story) == {}
    assert len(node.asked) == 1
