"""What failed pods wrote last is read beside the loop, against our real API server in the same process."""

import asyncio

import pytest

from paceline.controllers.job.pod_logs import LINE_CHARACTERS, LastLines, last_lines
from paceline.errors import ServiceUnavailable
from paceline.plan.job.plan import LogRef
from tests.unit.controllers.reading import JOB, WISH, Node, beside


def play(node, story):
    return beside(node, lambda cluster, sim, told: LastLines(cluster=cluster, chance=sim.chance, on_read=told), story)


async def asked_once(found, told):
    found.ask(JOB, WISH)
    assert await told.get() == JOB
    return found.of(JOB)


def test_the_last_lines_of_the_container_that_failed_are_found():
    node = Node(b"one\ntwo\n")

    assert play(node, asked_once) == {"demo-0": ("one", "two")}
    assert node.asked[0]["container"] == "main"
    assert node.asked[0]["tailLines"] == "20"


# How a node answers → what is found.
ANSWERS = {
    "an empty log is no failure": ((b"",), ()),
    "a node that never answers is not waited for": ((None,), ()),
    "a node that is away for good leaves nothing": ((ServiceUnavailable("away"),) * 99, ()),
    "a node that comes back is asked again": ((ServiceUnavailable("away"), b"back\n"), ("back",)),
}


@pytest.mark.parametrize(("answers", "lines"), ANSWERS.values(), ids=ANSWERS)
def test_of_answers(answers, lines):
    assert play(Node(*answers), asked_once) == {"demo-0": lines}


def test_a_pod_that_is_gone_leaves_nothing():
    async def story(found, told):
        found.ask(JOB, LogRef(pod="nobody", container="main"))
        await told.get()
        return found.of(JOB)

    assert play(Node(), story) == {"nobody": ()}


def test_slow_nodes_hold_up_only_those_who_read_them():
    """Two readers: a third job gets its answer once the patience with the first two is over."""

    async def story(found, told):
        for number in range(3):
            found.ask(("genericjobs", "default", str(number)), WISH)
        return [await told.get() for _ in range(3)], found.of(("genericjobs", "default", "2"))

    order, lines = play(Node(None, None, b"quick\n"), story)

    assert len(set(order)) == 3
    assert lines == {"demo-0": ("quick",)}


def test_asking_twice_is_asking_once():
    node = Node(None, b"second\n")

    async def story(found, told):
        for _ in range(3):
            found.ask(JOB, WISH)
            await asyncio.sleep(1)
        await told.get()
        await asyncio.sleep(60)
        return told.empty()

    assert play(node, story)
    assert len(node.asked) == 1


def test_what_is_written_down_is_forgotten():
    async def story(found, told):
        await asked_once(found, told)
        found.forget(JOB)
        return found.of(JOB)

    assert play(Node(b"one\n"), story) == {}


def test_what_comes_while_somebody_decides_without_it_is_kept_for_the_next_one():
    """Else it would be asked for again, and come again just too late: two loops that keep each other busy for ever."""
    node = Node(b"one\n")

    async def story(found, told):
        known = found.of(JOB)
        await asked_once(found, told)
        found.forget(JOB, known)
        found.ask(JOB, WISH)
        await asyncio.sleep(60)
        kept = found.of(JOB)
        found.forget(JOB, kept)
        return kept, found.of(JOB), told.empty()

    assert play(node, story) == ({"demo-0": ("one",)}, {}, True)
    assert len(node.asked) == 1


SHOWN = {
    "nothing is no line": (b"", ()),
    "a last line may lack its end": (b"one\ntwo", ("one", "two")),
    "only the last twenty are kept": (b"".join(b"%d\n" % n for n in range(50)), tuple(map(str, range(30, 50)))),
    "of a progress bar the last state is kept": (b"epoch 1\r 10%\r100%\r\ndone\n", ("100%", "done")),
    "what is no text is shown as such": (b"\xff\n", ("�",)),
    "a long line is cut": (b"x" * 1000 + b"\n", ("x" * (LINE_CHARACTERS - 1) + "…",)),
}


@pytest.mark.parametrize(("tail", "lines"), SHOWN.values(), ids=SHOWN)
def test_of_a_log(tail, lines):
    assert last_lines(tail) == lines
