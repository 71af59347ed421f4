"""Every example of every kind, with a hostile value at every place: taken or refused, never a crash.

What is taken is carried on as a controller would: a document that passes the door must not stop the house.
"""

import itertools
from pathlib import Path

import pytest
import yaml

from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.errors import Invalid
from paceline.kinds import registry
from paceline.testing.fixed_kinds import fixed_kinds, full_scheme
from tests.unit.apiserver.client import HOST, MERGE, TOKEN, Client
from tests.unit.apiserver.test_hostile import mutated, places

ROOT = Path(__file__).parents[3]
APPLY = "application/apply-patch+yaml"
HOSTILE = (
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    2**63,
    10**400,
    1e308,
    "",
    " ",
    "x" * 100_000,
    "☃\u202e\u0000",
    "1e999999999",
    "-1Ki",
    "$(A)$(A)",
    "../../etc/passwd",
    [],
    [None],
    [[[[[[[]]]]]]],
    [{}] * 1000,
    {},
    {"": ""},
    {"a": {"b": {"c": {"d": {"e": [1]}}}}},
    {str(number): number for number in range(1000)},
)
# Each place meets this many of them by each verb, in turns, so that all meet all over the places.
TURNS = 5


def examples():
    """Every example job of the repository, once per kind."""
    found = {}
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            found.setdefault(document["kind"], document)
    return found


EXAMPLES = examples()
CLAIMS = ("digits", "kinds", "launched")


@pytest.fixture
async def client(store, world, nodes):
    server = Server(
        store=store,
        kinds=fixed_kinds(store),
        clock=world.clock,
        ids=world.ids,
        gate=Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST})),
        nodes=nodes,
    )
    client = Client(make_app(server))
    await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    for claim in CLAIMS:
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        where = "/api/v1/namespaces/default/persistentvolumeclaims"
        await client.post(where, {"metadata": {"name": claim}, "spec": spec})
    return client


def collection(kind):
    resource = next(each for each in full_scheme().resources if each.kind == kind)
    start = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{start}/namespaces/default/{resource.plural}"


def carried_on(obj):
    """Do with a job that was taken what the job controller does first."""
    if registry.kind_of(obj) is None:
        return
    try:
        if not registry.faults(obj):
            registry.expand(obj, {})
    except (Invalid, KeyError):
        return  # A port that nobody gave it is the controller's business.


def test_there_is_an_example_of_every_kind():
    kinds = {kind.kind for kind in registry.KINDS if not kind.alias_of}
    assert kinds <= EXAMPLES.keys()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", EXAMPLES)
async def test_a_hostile_value_anywhere_is_taken_or_refused(client, store, kind):
    sample, where = EXAMPLES[kind], collection(kind)
    name = sample["metadata"]["name"]
    made = await client.post(where, sample)
    assert made.code in {201, 409}, made.body
    before = store.revision
    values = itertools.cycle(HOSTILE)

    for place in places(sample):
        for value in itertools.islice(values, TURNS):
            body = mutated(sample, place, value)
            said = [
                await client.post(
                    where, body | {"metadata": {"name": "other"}} if place[0] != "metadata" else body, dryRun="All"
                ),
                await client.put(f"{where}/{name}", body, dryRun="All"),
                await client.patch(f"{where}/{name}", body, sort=MERGE, dryRun="All"),
                await client.patch(f"{where}/{name}", body, sort=APPLY, dryRun="All", fieldManager="m", force="true"),
            ]
            assert all(each.code in {200, 201, 400, 404, 409, 413, 422} for each in said), (place, value, said)
            assert all(len(each.body) < 1_000_000 for each in said if each.code > 299)
            if said[0].code == 201:
                carried_on(said[0].json)

    assert store.revision == before
