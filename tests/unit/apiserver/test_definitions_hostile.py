"""No definition, however odd, breaks the server: it is refused, or what it defines can be used."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.apiserver.client import TABLE
from tests.unit.apiserver.definitions import CRDS, LAMPS, definition, lamp, version
from tests.unit.apiserver.test_hostile import FUZZ, JSON, mutated, places

COLUMNS = [{"name": "A", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "x"}]
FIELDS = [{"jsonPath": ".spec.color"}]
SAMPLE = definition(
    versions=[version(additionalPrinterColumns=COLUMNS, selectableFields=FIELDS)], shortNames=["lp"], categories=["all"]
)
PLACES = list(places(SAMPLE))
WORDS = st.sampled_from(["array", "object", "string", "integer", "(", "[", ".", ".spec", ".spec.x[", "v1", "map"])


@FUZZ
@given(place=st.sampled_from(PLACES), value=JSON | WORDS)
async def test_any_value_anywhere_in_a_definition_is_refused_or_works(client, place, value):
    made = await client.post(CRDS, mutated(SAMPLE, place, value))

    assert made.code in {201, 400, 422}, (place, value, made.body)
    if made.code != 201:
        return
    name = made.json["metadata"]["name"]
    about = [await client.get(path) for path in ("/apis", "/openapi/v3", "/openapi/v3/apis/home.test/v1")]
    used = [
        await client.post(LAMPS, lamp(color="red", parts=[{"name": "x"}], free={"a": 1})),
        await client.get(LAMPS, accept=TABLE),
        await client.get(LAMPS, fieldSelector="spec.color=red"),
        await client.patch(f"{LAMPS}/a/scale", {"spec": {"replicas": 2}}),
        await client.patch(f"{CRDS}/{name}", {"spec": {"names": {"shortNames": ["lq"]}}}),
        await client.delete(f"{CRDS}/{name}"),
    ]
    assert [said.code for said in about[:2]] == [200, 200]
    assert all(said.code < 500 for said in (*about, *used)), (place, value, [said.body for said in used])
    assert (await client.get(f"{CRDS}/{name}")).code == 404
