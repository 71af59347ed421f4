"""A log is downloaded as a file, whole or in part; errors in a request are answered before anything is sent."""

import asyncio
import json

import pytest

from paceline.apimachinery.meta import uid_of
from paceline.client.interface import PODS
from tests.unit.console.stage import play
from tests.unit.console.test_live_logs import ENDED, archive

PATH = "/api/logs/default/digits/main"


def downloaded(query, *, path=PATH):
    """Download the log of a pod that writes a line each second from 12:00:00 on."""
    answers = []

    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        for second in range(6):
            text = b"step %d\nError at %d\n" % (second, second)
            stage.node.write(uid_of(pod), text, stamp=b"2030-01-01T12:00:0%d.500000000Z" % second)
        answers.append(await stage.get(f"{path}?{query}"))

    play(scene)
    return answers[0]


def test_a_log_is_a_file_of_its_lines():
    answer = downloaded("")

    assert answer.status == 200
    assert answer.body == b"".join(b"step %d\nError at %d\n" % (second, second) for second in range(6))
    headers = dict(answer.headers)
    assert headers["content-disposition"] == 'attachment; filename="digits-main.log"'
    assert headers["content-type"].startswith("text/plain")


CASES = {
    "since=2030-01-01T12:00:05Z": [b"step 5", b"Error at 5"],
    "until=2030-01-01T12:00:00.5Z": [b"step 0", b"Error at 0"],
    "since=2030-01-01T12:00:02Z&until=2030-01-01T12:00:03Z&find=step": [b"step 2"],
    "tail=1": [b"Error at 5"],
    "tail=2&find=step": [b"step 4", b"step 5"],
    "tail=1&until=2030-01-01T12:00:03Z": [b"Error at 2"],
    "tail=0&find=step": [],
    "find=error": [],
    "find=error+at+3&ignoreCase=true": [b"Error at 3"],
    "find=2030": [],
    "find=step+5&timestamps=true": [b"2030-01-01T12:00:05.500000000Z step 5"],
}


@pytest.mark.parametrize(("query", "lines"), CASES.items(), ids=CASES)
def test_a_part_of_a_log_is_chosen_by_time_text_and_number(query, lines):
    assert downloaded(query).body.splitlines() == lines


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        (PATH, "since=yesterday", 400),
        (PATH, "until=x", 400),
        (PATH, "tail=-1", 400),
        (PATH, "tail=many", 400),
        (PATH, "follow=true", 400),
        (PATH, "previous=perhaps", 400),
        (PATH, "previous=true", 400),
        (PATH, "uid=another", 404),
        ("/api/logs/default/nothing/main", "", 404),
        ("/api/logs/default/digits/other", "", 400),
        ("/api/logs/default/A%22b/main", "", 400),
        ("/api/logs/default/..%2f..%2fnodes/main", "", 404),
    ],
)
def test_what_is_wrong_is_said_as_a_status(path, query, code):
    answer = downloaded(query, path=path)

    assert answer.status == code
    if code == 400:
        assert json.loads(answer.body)["kind"] == "Status"


def test_the_log_of_a_pod_that_is_gone_is_downloaded_by_its_uid():
    async def scene(stage):
        pod = await stage.pod("digits")
        stage.node.write(uid_of(pod), b"one\n")
        await stage.cluster.delete(PODS, ("default", "digits"), {"gracePeriodSeconds": 0})
        archive(stage, pod)

        assert (await stage.get(f"{PATH}?uid={uid_of(pod)}")).body == b"one\n"

    play(scene)


def test_a_download_goes_on_after_a_break():
    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        for number in range(200):
            stage.node.write(uid_of(pod), b"line %d\n" % number)
            await asyncio.sleep(0.01)
        stage.person("ada")
        stage.links["ada"].cuts = [1000, 10, 3000]

        assert (await stage.get(PATH)).body == b"".join(b"line %d\n" % number for number in range(200))

    play(scene)


def test_a_cluster_that_stays_away_breaks_a_download_off():
    async def scene(stage):
        pod = await stage.pod("digits", state=ENDED)
        stage.node.write(uid_of(pod), b"one\n")
        stage.person("ada")
        stage.links["ada"].cut()

        assert (await stage.get(PATH)).status == 503

    play(scene)
