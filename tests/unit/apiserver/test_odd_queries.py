"""Query parameters that nobody means: a clear 4xx or an ordinary answer, never a 5xx."""

import pytest

from tests.unit.apiserver.client import CONFIG_MAPS, PODS, config_map

ODD = (
    *(
        "",
        "0",
        "-1",
        "1",
        "9" * 13,
        "9" * 18,
        "9" * 19,
        "9" * 25,
        "9" * 5000,
        "-" + "9" * 18,
        "+5",
        "+-5",
        "-+5",
        "--5",
    ),
    *("٣", "²", "1e3", "1.5", "NaN", "inf", "0x10", " 5", "true", "\x00", "%", "a" * 300, "null", "[]", "{}", "ÿ"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
    *("2030-02-30T00:00:00Z", "2030-01-01T00:00:00+99:99", "2030-01-01"),
)
LISTING = (
    *("limit", "continue", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "allowWatchBookmarks"),
    *("sendInitialEvents", "labelSelector", "fieldSelector", "pretty"),
)
DELETING = ("gracePeriodSeconds", "propagationPolicy", "orphanDependents", "dryRun")
WRITING = ("dryRun", "fieldManager", "fieldValidation", "force")
LOGGING = ("sinceSeconds", "sinceTime", "tailLines", "limitBytes", "previous", "timestamps", "container", "stream")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"nodeName": "here", "containers": [{"name": "main", "image": "i"}]},
}


async def ask(client, method, path, name, body=None):
    """Send one request for each odd value; give the values that the server failed at."""
    failed = {}
    for value in ODD:
        said = await client.send(method, path, body, query={name: value})
        # As Kubernetes answers for a revision that is yet to come.
        if said.code >= 500 and "ResourceVersionTooLarge" not in said.body.decode():
            failed[value[:40]] = said.body
    return failed


@pytest.mark.parametrize("name", LISTING)
async def test_of_a_list(client, name):
    await client.post(CONFIG_MAPS, config_map("a"))

    assert not await ask(client, "GET", CONFIG_MAPS, name)


@pytest.mark.parametrize("name", WRITING)
async def test_of_a_write(client, name):
    assert not await ask(client, "POST", CONFIG_MAPS, name, config_map("a"))
    assert not await ask(client, "PATCH", f"{CONFIG_MAPS}/a", name, {})


@pytest.mark.parametrize("name", DELETING)
async def test_of_a_delete(client, name):
    for value in ODD:
        await client.post(PODS, POD)
        said = await client.send("DELETE", f"{PODS}/p", query={name: value})
        assert said.code < 500, (value, said.body)


@pytest.mark.parametrize("name", LOGGING)
async def test_of_a_log(client, nodes, name):
    await client.post(PODS, POD)
    for _ in ODD:
        nodes.queue.put_nowait(None)

    assert not await ask(client, "GET", f"{PODS}/p/log", name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sinceSeconds", "9999999999999"),
        ("sinceSeconds", "60000000001"),
        ("sinceTime", "0001-01-01T00:00:00+23:59"),
        ("sinceTime", "9999-12-31T23:59:59-23:59"),
        ("sinceTime", "yesterday"),
        ("tailLines", "9" * 25),
        ("limitBytes", "٣"),
        ("tailLines", "-+5"),
    ],
)
async def test_what_cannot_be_meant_is_refused(client, name, value):
    await client.post(PODS, POD)

    said = await client.send("GET", f"{PODS}/p/log", query={name: value})

    assert (said.code, said.json["reason"]) == (400, "BadRequest")
