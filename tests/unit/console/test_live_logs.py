"""Every line of a log reaches a tab once, wherever the log is and whatever breaks."""

import asyncio
import random

import pytest

from paceline.apimachinery.meta import uid_of
from paceline.client.interface import PODS
from paceline.console.subscriptions.log_stream import WINDOW_BYTES
from tests.unit.console.stage import play

LOG = {"id": 9, "type": "log", "namespace": "default", "pod": "digits", "container": "main"}
ENDED = {"terminated": {"exitCode": 3, "finishedAt": "2030-01-01T00:00:00Z", "startedAt": "2030-01-01T00:00:00Z"}}


def texts(data):
    """The lines without their stamps."""
    return [line.partition(b" ")[2] for line in data.split(b"\n") if line]


async def write_groups(stage, uid, groups):
    """Write lines in groups with one stamp each; two groups are often in one second."""
    number = 0
    for size in groups:
        stage.node.write(uid, b"".join(b"line %d\n" % (number + offset) for offset in range(size)))
        number += size
        await asyncio.sleep(0.3)
    return [b"line %d" % count for count in range(number)]


async def running_pod(stage):
    """Create a pod that runs and has written one line."""
    pod = await stage.pod("digits")
    stage.node.write(uid_of(pod), b"one\n")
    return pod


async def tab_with_log(stage, message=LOG, **fields):
    """Open a tab that has asked for a log."""
    page = await stage.page()
    await page.tell(**message, **fields)
    return page


async def followed_log(stage):
    """Create a running pod and open a tab that follows its log and has its first line; return both."""
    pod = await running_pod(stage)
    page = await tab_with_log(stage, follow=True)
    await page.until(lambda: b"one" in page.logs.get(9, b""))
    return pod, page


def test_a_log_is_read_to_its_end_with_stamps():
    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        stage.node.write(uid_of(pod), b"one\ntwo\n", stamp=b"2030-01-01T00:00:00.000000001Z")
        page = await tab_with_log(stage)
        end = await page.hear("end", 9)

        assert page.logs[9] == b"2030-01-01T00:00:00.000000001Z one\n2030-01-01T00:00:00.000000001Z two\n"
        assert end["exitCode"] == 3

    play(scene)


def test_the_last_lines_are_enough():
    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        await write_groups(stage, uid_of(pod), [5, 5])
        page = await tab_with_log(stage, tail=3)
        await page.hear("end", 9)

        assert texts(page.logs[9]) == [b"line 7", b"line 8", b"line 9"]

    play(scene)


def test_a_followed_log_goes_on_until_its_container_ends():
    async def scene(stage):
        pod, page = await followed_log(stage)
        await asyncio.sleep(100)
        stage.node.write(uid_of(pod), b"two\n")
        await page.until(lambda: b"two" in page.logs[9])
        stage.node.write(uid_of(pod), b"three\n")
        stage.node.end(uid_of(pod))
        await stage.set_container(pod, state=ENDED, phase="Failed")

        assert (await page.hear("end", 9))["exitCode"] == 3
        assert texts(page.logs[9]) == [b"one", b"two", b"three"]

    play(scene)


def test_a_log_is_waited_for_until_its_container_starts():
    async def scene(stage):
        pod = await stage.pod("digits", state={"waiting": {"reason": "ContainerCreating"}})
        page = await tab_with_log(stage, follow=True)
        await asyncio.sleep(30)
        assert page.messages("error") == []
        stage.node.write(uid_of(pod), b"one\n")
        await page.until(lambda: b"one" in page.logs.get(9, b""))

    play(scene)


def test_a_log_that_is_not_followed_is_not_waited_for():
    async def scene(stage):
        await stage.pod("digits", state={"waiting": {"reason": "ContainerCreating"}})
        page = await tab_with_log(stage)

        assert (await page.hear("error", 9))["error"]["code"] == 400

    play(scene)


@pytest.mark.parametrize("message", [{**LOG, "pod": "nothing"}, {**LOG, "uid": "another"}], ids=["name", "uid"])
def test_a_log_that_is_nowhere_is_not_found(message):
    async def scene(stage):
        await running_pod(stage)
        page = await tab_with_log(stage, message, follow=True)

        assert (await page.hear("error", 9))["error"]["code"] == 404

    play(scene)


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_breaks_off_at_any_byte_comes_whole_and_once(seed):
    async def scene(stage):
        dice = random.Random(seed)
        pod = await stage.pod("digits", state=ENDED)
        expected = await write_groups(stage, uid_of(pod), [dice.randint(1, 8) for _ in range(12)])
        stage.node.end(uid_of(pod))
        page = await stage.page()
        stage.links["ada"].cuts = [dice.randint(0, 2500) for _ in range(4)]
        await page.tell(**LOG, follow=dice.random() < 0.5)
        await page.hear("end", 9)

        assert texts(page.logs[9]) == expected

    play(scene, seed=seed)


@pytest.mark.parametrize("seed", range(10))
def test_a_tab_that_was_cut_off_goes_on_after_its_last_line(seed):
    async def scene(stage):
        dice = random.Random(seed)
        pod = await stage.pod("digits", state=ENDED)
        expected = await write_groups(stage, uid_of(pod), [dice.randint(1, 8) for _ in range(8)])
        page = await tab_with_log(stage)
        await page.hear("end", 9)
        lines = page.logs[9].splitlines(keepends=True)
        had = lines[: dice.randint(1, len(lines))]
        stamp = had[-1].split()[0]
        count = sum(line.startswith(stamp) for line in had)

        again = await tab_with_log(stage, after=stamp.decode(), afterLines=count)
        await again.hear("end", 9)
        inclusive = await tab_with_log(stage, after=stamp.decode(), tail=1)
        await inclusive.hear("end", 9)

        assert texts(b"".join(had) + again.logs.get(9, b"")) == expected
        assert texts(inclusive.logs[9]) == texts(b"".join(line for line in lines if line.split()[0] >= stamp))

    play(scene, seed=seed)


def test_a_cluster_that_was_away_loses_no_line_and_the_tab_is_told():
    async def scene(stage):
        pod, page = await followed_log(stage)
        stage.links["ada"].cut()
        await page.hear("stale", 9)
        stage.node.write(uid_of(pod), b"two\n")
        await asyncio.sleep(60)
        stage.links["ada"].mend()
        await page.hear("fresh", 9)
        await page.until(lambda: b"two" in page.logs[9])

        assert texts(page.logs[9]) == [b"one", b"two"]

    play(scene)


def test_a_container_that_was_restarted_meanwhile_ends_its_log():
    async def scene(stage):
        pod, page = await followed_log(stage)
        stage.links["ada"].cut()
        stage.node.write(uid_of(pod), b"two\n")
        stage.node.end(uid_of(pod))
        stage.node.write(uid_of(pod), b"again\n", restarts=1)
        await stage.set_container(pod, restarts=1, last_state=ENDED)
        await asyncio.sleep(10)
        stage.links["ada"].mend()

        assert (await page.hear("end", 9))["exitCode"] == 3
        assert texts(page.logs[9]) == [b"one", b"two"]

    play(scene)


def test_the_log_before_a_restart_is_read():
    async def scene(stage):
        pod = await stage.pod("digits")
        stage.node.write(uid_of(pod), b"old\n")
        stage.node.write(uid_of(pod), b"new\n", restarts=1)
        await stage.set_container(pod, restarts=1, last_state=ENDED)
        page = await tab_with_log(stage, previous=True)

        assert (await page.hear("end", 9))["exitCode"] == 3
        assert texts(page.logs[9]) == [b"old"]

    play(scene)


async def delete_pod(stage, pod):
    """End the container of a pod and delete the pod."""
    stage.node.end(uid_of(pod))
    await stage.cluster.delete(PODS, ("default", "digits"), {"gracePeriodSeconds": 0})


def archive(stage, pod):
    """Have the node keep the log of a pod that is deleted."""
    tries = [{"container": "main", "restarts": 0, "exitCode": 9}]
    stage.node.archived[uid_of(pod)] = ("default", "digits", tries)


def test_the_log_of_a_pod_that_is_gone_comes_from_the_archive():
    async def scene(stage):
        pod = await stage.pod("digits")
        expected = await write_groups(stage, uid_of(pod), [3, 3])
        await delete_pod(stage, pod)
        archive(stage, pod)
        page = await tab_with_log(stage, uid=uid_of(pod), follow=True)

        assert (await page.hear("end", 9))["exitCode"] == 9
        assert texts(page.logs[9]) == expected

    play(scene)


def test_a_pod_that_goes_while_its_log_is_read_loses_no_line():
    async def scene(stage):
        pod, page = await followed_log(stage)
        stage.links["ada"].cut()
        stage.node.write(uid_of(pod), b"two\n")
        await delete_pod(stage, pod)
        await asyncio.sleep(3)
        stage.links["ada"].mend()
        await asyncio.sleep(1)
        archive(stage, pod)

        assert (await page.hear("end", 9))["exitCode"] == 9
        assert texts(page.logs[9]) == [b"one", b"two"]

    play(scene)


def test_a_pod_that_goes_without_an_archive_ends_its_log():
    async def scene(stage):
        pod, page = await followed_log(stage)
        await delete_pod(stage, pod)

        assert "exitCode" not in await page.hear("end", 9)

    play(scene)


def test_no_more_than_a_mebibyte_is_under_way_until_the_tab_gives_credit():
    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        for number in range(60):
            stage.node.write(uid_of(pod), b"%d %s\n" % (number, b"x" * 60_000))
        page = await tab_with_log(stage)
        await asyncio.sleep(60)
        assert 0.8 * WINDOW_BYTES < len(page.logs[9]) <= WINDOW_BYTES
        assert page.is_open

        received = len(page.logs[9])
        await page.tell(id=9, type="credit", bytes=200_000)
        await page.until(lambda: len(page.logs[9]) > received)
        await asyncio.sleep(10)
        assert len(page.logs[9]) <= WINDOW_BYTES + 200_000

        while not page.messages("end"):
            await page.tell(id=9, type="credit", bytes=WINDOW_BYTES)
            await asyncio.sleep(1)
        assert [text.split()[0] for text in texts(page.logs[9])] == [b"%d" % number for number in range(60)]

    play(scene)


def test_a_log_without_credit_does_not_hold_up_another():
    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        for _ in range(60):
            stage.node.write(uid_of(pod), b"x" * 60_000 + b"\n")
        other = await stage.pod("other", state=ENDED)
        stage.node.write(uid_of(other), b"one\n")
        page = await tab_with_log(stage)
        await page.until(lambda: len(page.logs.get(9, b"")) > WINDOW_BYTES / 2)
        await page.tell(**{**LOG, "id": 10, "pod": "other"})
        await page.hear("end", 10)

    play(scene)


def test_a_progress_bar_is_shown_before_its_line_ends():
    async def scene(stage):
        pod = await stage.pod("digits")
        stage.node.write(uid_of(pod), b"one\n10%\r")
        page = await tab_with_log(stage, follow=True)
        await page.until(lambda: page.logs.get(9, b"").endswith(b"10%\r"))
        stage.node.write(uid_of(pod), b"20%\r")
        await page.until(lambda: page.logs[9].endswith(b"10%\r20%\r"))
        stage.node.write(uid_of(pod), b"done\n")
        await page.until(lambda: page.logs[9].endswith(b"10%\r20%\rdone\n"))

    play(scene)
