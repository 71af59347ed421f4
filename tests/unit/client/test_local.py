"""A cluster in the same process behaves as one behind a wire does."""

import asyncio
from contextlib import aclosing

import pytest

from paceline.client.in_process import MAX_CHUNKS, LocalCluster
from paceline.client.interface import PODS, Select
from paceline.errors import NotFound

NOT_FOUND = {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'pods "a" not found'}


def test_an_answer_is_read(with_cluster, script, answer, pod):
    script.lists = [answer([pod("a", 1)])]

    assert with_cluster(lambda cluster: cluster.get(PODS, "team", "a")) == pod("a", 1)


def test_an_error_is_raised(with_cluster, script, answer):
    script.lists = [answer([NOT_FOUND], status=404)]

    with pytest.raises(NotFound, match='pods "a" not found'):
        with_cluster(lambda cluster: cluster.get(PODS, "team", "a"))


def test_an_error_in_place_of_a_stream_is_raised(with_cluster, script, answer):
    script.lists = [answer([NOT_FOUND], status=404)]

    async def use(cluster):
        with pytest.raises(NotFound, match='pods "a" not found'):
            async for _ in cluster.stream("/logs", {}):
                pass

    with_cluster(use)


def test_a_stream_comes_in_pieces_and_ends(with_cluster, script, answer):
    script.lists = [answer([b"one", b"two"])]

    async def use(cluster):
        return [chunk async for chunk in cluster.stream("/logs", {"follow": "true"})]

    assert with_cluster(use) == [b"one", b"two"]


def test_who_stops_reading_is_seen_to_disconnect(with_cluster, script, answer, pod):
    script.watches = [answer([{"type": "ADDED", "object": pod("a", 1)}], stays=True)]

    async def use(cluster):
        async with aclosing(cluster.watch(PODS, Select(), since="0")) as events:
            async for _ in events:
                break
        await asyncio.sleep(1)
        return list(script.hung_up)

    assert with_cluster(use) == ["http.disconnect"]


def test_a_slow_reader_slows_the_server_down(with_cluster, script, answer):
    sent = []

    def lines():
        for number in range(MAX_CHUNKS * 3):
            sent.append(number)
            yield b"%d\n" % number

    script.lists = [answer(lines())]

    async def use(cluster):
        async with aclosing(cluster.stream("/logs", {})) as chunks:
            first = await anext(chunks)
            await asyncio.sleep(1)
            ahead = len(sent)
            rest = [chunk async for chunk in chunks]
        return first, ahead, len(rest)

    first, ahead, rest = with_cluster(use)

    assert first == b"0\n"
    assert ahead < MAX_CHUNKS + 5
    assert rest == MAX_CHUNKS * 3 - 1


def test_a_server_that_waits_for_a_reader_who_left_can_end(with_cluster, script, answer):
    script.lists = [answer([b"line\n"] * MAX_CHUNKS * 3)]

    async def use(cluster):
        async with aclosing(cluster.stream("/logs", {})) as chunks:
            await anext(chunks)
            # Time for the server to run into the bound.
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        return {task.get_name() for task in asyncio.all_tasks() if "stream" in task.get_name()}

    assert with_cluster(use) == set()


def test_warnings_are_handed_on(hurry, script, answer, pod):
    script.lists = [answer([pod("a", 1)], headers={"Warning": '299 - "old shape"'})]
    heard = []

    async def main():
        async with LocalCluster(script, on_warning=heard.append) as cluster:
            await cluster.get(PODS, "team", "a")

    hurry(main())

    assert heard == ["old shape"]


def test_who_calls_is_said(hurry):
    scopes = []

    async def app(scope, _receive, send):
        scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def main():
        async with LocalCluster(app, token="secret") as cluster:
            await cluster.get(PODS, "team", "a b")

    hurry(main())

    (scope,) = scopes
    assert dict(scope["headers"])[b"authorization"] == b"Bearer secret"
    assert scope["path"] == "/api/v1/namespaces/team/pods/a b"
    assert scope["raw_path"] == b"/api/v1/namespaces/team/pods/a%20b"


def test_a_bug_of_the_server_in_a_stream_is_seen(hurry):
    async def app(_scope, _receive, _send):
        raise ZeroDivisionError

    async def main():
        async with LocalCluster(app) as cluster:
            async for _ in cluster.stream("/logs", {}):
                pass
            await asyncio.sleep(1)

    with pytest.raises(BaseExceptionGroup) as caught:
        hurry(main())
    assert caught.group_contains(ZeroDivisionError)
