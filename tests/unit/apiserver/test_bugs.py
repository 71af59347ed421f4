"""A bug in one request: told once to the log, never to the user, and the next request is served."""

import logging

import pytest

from tests.unit.apiserver.client import CONFIG_MAPS, PODS, config_map, pod, scope_of


async def test_a_bug_is_answered_without_its_traceback_and_the_server_lives(client, store, monkeypatch, caplog):
    await client.post(CONFIG_MAPS, config_map("a"))
    caplog.set_level(logging.ERROR)
    with monkeypatch.context() as broken:
        broken.setattr(type(store), "get", lambda _self, _key: 1 / 0)
        said = await client.get(f"{CONFIG_MAPS}/a")

    assert (said.code, said.json["reason"]) == (500, "InternalError")
    assert "this is a bug in Paceline" in said.message
    assert b"ZeroDivision" not in said.body
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert (await client.get(f"{CONFIG_MAPS}/a")).code == 200


async def test_a_bug_in_the_middle_of_a_stream_ends_the_stream(client, nodes, caplog):
    await client.post(PODS, pod("p"))
    await client.post(f"{PODS}/p/binding", {"target": {"name": "n1"}})
    caplog.set_level(logging.ERROR)
    nodes.queue.put_nowait(b"first\n")
    nodes.queue.put_nowait(ZeroDivisionError())

    said = await client.get(f"{PODS}/p/log")

    assert (said.code, said.body) == (200, b"first\n")
    assert len(caplog.records) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_client_that_hangs_up_in_the_middle_of_its_body_is_forgotten(client, store, method, caplog):
    before = store.revision
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await client.app(scope_of(method, f"{CONFIG_MAPS}/a"), receive, send)

    assert (sent, store.revision, caplog.records) == ([], before, [])
