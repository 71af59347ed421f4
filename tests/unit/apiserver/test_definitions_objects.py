"""Objects of a defined kind: completed, cleaned and checked as their schema says."""

import pytest

from tests.unit.apiserver.client import TABLE
from tests.unit.apiserver.definitions import CRDS, LAMPS, definition, lamp


@pytest.fixture
async def lamps(client):
    """A client whose server has lamps."""
    await client.post(CRDS, definition())
    return client


async def test_defaults_are_filled_in_where_nothing_was_said(lamps):
    said = await lamps.post(LAMPS, lamp(parts=[{"name": "x"}, {"name": "y", "count": 1}]))

    assert said.json["spec"] == {
        "color": "red",
        "parts": [{"name": "x", "count": 3}, {"name": "y", "count": 1}],
    }


async def test_a_null_counts_as_nothing_unless_it_is_allowed(lamps):
    said = await lamps.post(LAMPS, lamp(color=None, replicas=None, note=None))

    assert said.json["spec"] == {"color": "red", "note": None}


async def test_what_the_schema_does_not_name_is_taken_out_and_told(lamps):
    spec = {
        "colour": "red",
        "empty": {"a": 1},
        "free": {"anything": {"goes": None}, "known": {"a": "x", "b": 1}},
        "inner": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "bogus": 1}, "rest": 1},
        "labels": {"a": "b"},
    }
    said = await lamps.post(LAMPS, lamp(**spec))

    assert said.json["spec"] == {
        "color": "red",
        "empty": {},
        "free": {"anything": {"goes": None}, "known": {"a": "x"}},
        "inner": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "rest": 1},
        "labels": {"a": "b"},
    }
    told = {text.split('"')[2].rstrip("\\") for text in said.header("warning")}
    assert told == {"spec.colour", "spec.empty.a", "spec.free.known.b", "spec.inner.metadata.bogus"}


WRONG = {
    "a value that is not listed": ({"color": "pink"}, "spec.color"),
    "a value of another type": ({"replicas": "two"}, "spec.replicas"),
    "a value below the least": ({"replicas": -1}, "spec.replicas"),
    "a number too large for its format": ({"replicas": 2**31}, "spec.replicas"),
    "neither a number nor text": ({"port": True}, "spec.port"),
    "a map with a value of another type": ({"labels": {"a": 1}}, "spec.labels.a"),
    "a part without what it needs": ({"parts": [{}]}, "spec.parts[0].name"),
    "the same key twice": ({"parts": [{"name": "x"}, {"name": "x"}]}, "spec.parts[1]"),
    "the same member twice": ({"tags": ["a", "b", "a"]}, "spec.tags[2]"),
    "an object within that does not say what it is": ({"inner": {}}, "spec.inner.kind"),
}


@pytest.mark.parametrize(("spec", "path"), WRONG.values(), ids=WRONG)
async def test_what_the_schema_forbids_is_refused_with_its_path(lamps, spec, path):
    said = await lamps.post(LAMPS, lamp(**spec))

    assert said.code == 422
    assert path in said.causes
    assert said.json["details"] | {"group": "home.test", "kind": "Lamp"} == said.json["details"]


async def test_both_a_number_and_text_may_stand_where_either_may(lamps):
    codes = [(await lamps.post(LAMPS, lamp(f"p{index}", port=port))).code for index, port in enumerate((80, "http"))]

    assert codes == [201, 201]


async def test_a_scale_is_read_and_written(lamps):
    await lamps.post(LAMPS, lamp(replicas=1))
    await lamps.patch(f"{LAMPS}/a/status", {"status": {"replicas": 1, "selector": "app=a"}})
    seen = (await lamps.get(f"{LAMPS}/a/scale")).json
    patched = await lamps.patch(f"{LAMPS}/a/scale", {"spec": {"replicas": 4}})
    put = await lamps.put(f"{LAMPS}/a/scale", {**seen, "spec": {"replicas": 7}})
    fresh = await lamps.put(f"{LAMPS}/a/scale", {**patched.json, "spec": {"replicas": 5}})

    assert (seen["kind"], seen["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (seen["spec"], seen["status"]) == ({"replicas": 1}, {"replicas": 1, "selector": "app=a"})
    assert (patched.code, put.code, fresh.code) == (200, 409, 200)
    now = (await lamps.get(f"{LAMPS}/a")).json
    assert (now["spec"]["replicas"], now["metadata"]["generation"]) == (5, 3)


@pytest.mark.parametrize("replicas", [-1, 2**31, "two", 1.5, True])
async def test_a_scale_that_cannot_be_is_refused(lamps, replicas):
    await lamps.post(LAMPS, lamp(replicas=1))
    said = await lamps.patch(f"{LAMPS}/a/scale", {"spec": {"replicas": replicas}})

    assert said.code == 422
    assert (await lamps.get(f"{LAMPS}/a")).json["spec"]["replicas"] == 1


async def test_a_scale_of_nothing_is_missing(lamps):
    assert (await lamps.get(f"{LAMPS}/none/scale")).code == 404
    assert (await lamps.patch(f"{LAMPS}/none/scale", {"spec": {"replicas": 1}})).code == 404


async def test_a_scale_can_be_a_row_of_a_table(lamps):
    await lamps.post(LAMPS, lamp(replicas=2))
    table = (await lamps.get(f"{LAMPS}/a/scale", accept=TABLE)).json

    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"] == ["a", 2, 0, "0s"]
