"""Schemas: unknown fields, references, and what a validator is given."""

import jsonschema_rs
import pytest

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.apimachinery.schema import META, QUANTITY, REF, Shapes, as_json_schema, prune, reachable, reference_of

COMPONENTS = {
    **builtin_components(),
    "Node": {
        "type": "object",
        "properties": {"value": {"type": "string"}, "next": {"$ref": f"{REF}Node"}},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "maybe": {"type": "string", "nullable": True},
                "list": {"type": "array", "items": {"$ref": f"{REF}Node"}},
                "map": {"type": "object", "additionalProperties": {"allOf": [{"$ref": f"{REF}Node"}]}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "open": {"type": "object"},
                "chain": {"$ref": f"{REF}Node"},
            },
        },
    },
}


def unknown(spec):
    obj = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}
    shape = Shapes(COMPONENTS).of_object(SCHEMA)
    return [str(field) for field in prune(obj, shape)], obj["spec"]


CASES = {
    "what is known stays": ({"name": "a"}, [], {"name": "a"}),
    "what is not goes": (
        {"nmae": "a"},
        ['unknown field "spec.nmae", did you mean "name"?'],
        {},
    ),
    "in a list": (
        {"list": [{"value": "1"}, {"valu": "2"}]},
        ['unknown field "spec.list[1].valu", did you mean "value"?'],
        {"list": [{"value": "1"}, {}]},
    ),
    "in a map": ({"map": {"k": {"x": 1}}}, ['unknown field "spec.map.k.x"'], {"map": {"k": {}}}),
    "in a schema that holds itself": (
        {"chain": {"next": {"next": {"nxt": 1}}}},
        ['unknown field "spec.chain.next.next.nxt", did you mean "next"?'],
        {"chain": {"next": {"next": {}}}},
    ),
    "not where anything may be": ({"free": {"a": {"b": None}}, "open": {"c": 1}}, [], None),
    "a null counts as missing": ({"name": None, "list": None}, [], {}),
    "a null that is allowed stays": ({"maybe": None}, [], {"maybe": None}),
    "a value of a wrong type is left to the validator": ({"list": {"a": 1}, "chain": [1]}, [], None),
}


@pytest.mark.parametrize(("spec", "said", "left"), CASES.values(), ids=CASES)
def test_pruning(spec, said, left):
    expected = spec if left is None else left

    assert unknown(spec) == (said, expected)


def test_an_object_always_has_metadata_of_kubernetes():
    obj = {"metadata": {"name": "a", "lables": {}}}

    (field,) = prune(obj, Shapes(COMPONENTS).of_object(SCHEMA))

    assert str(field) == 'unknown field "metadata.lables", did you mean "labels"?'


def test_a_long_unknown_name_is_not_compared():
    said, _ = unknown({"n" * 100_000: 1})

    assert "did you mean" not in said[0]


def test_only_what_is_needed_is_reachable():
    found = reachable({"$ref": f"{REF}Node"}, COMPONENTS)

    assert list(found) == ["Node"]
    assert QUANTITY in reachable({"$ref": f"{REF}io.k8s.api.core.v1.Pod"}, COMPONENTS)


def test_a_reference_may_be_wrapped():
    assert reference_of({"allOf": [{"$ref": f"{REF}Node"}], "default": {}}) == "Node"
    assert reference_of({"allOf": [{"$ref": f"{REF}Node"}, {"type": "object"}]}) == ""
    assert reference_of({"type": "object"}) == ""


VALUES = {
    "a nullable text": ({"type": "string", "nullable": True}, [None, "a"], [1]),
    "a 32-bit number": ({"type": "integer", "format": "int32"}, [0, 2**31 - 1], [2**31, -(2**31) - 1, "1"]),
    "a number below its own bound": ({"type": "integer", "format": "int64", "maximum": 5}, [5], [6, 1e30]),
    "more than": ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, [0.1], [0]),
    "at least": ({"type": "number", "minimum": 0, "exclusiveMinimum": False}, [0], [-1]),
    "a number or text": ({"x-kubernetes-int-or-string": True}, [1, "a"], [1.5, [], None]),
    "a port": ({"$ref": f"{REF}io.k8s.apimachinery.pkg.util.intstr.IntOrString"}, [80, "http"], [{}]),
    "an amount": ({"$ref": f"{REF}{QUANTITY}"}, ["1Gi", 2, 0.5], ["1x", [], True, 1e20, -1e20, "1e20"]),
    "a time": ({"$ref": f"{REF}io.k8s.apimachinery.pkg.apis.meta.v1.Time"}, ["2030-01-01T00:00:00Z"], ["soon"]),
    "metadata": ({"$ref": f"{REF}{META}"}, [{"name": "a", "labels": {"a": "b"}}], [{"labels": {"a": 1}}]),
}


@pytest.mark.parametrize(("schema", "good", "bad"), VALUES.values(), ids=VALUES)
def test_a_validator_takes_what_openapi_means(schema, good, bad):
    from paceline.apimachinery.quantity import is_quantity

    made = as_json_schema(schema, COMPONENTS)
    validator = jsonschema_rs.Draft7Validator(made, validate_formats=True, formats={"quantity": is_quantity})

    assert [validator.is_valid(each) for each in good] == [True] * len(good)
    assert [validator.is_valid(each) for each in bad] == [False] * len(bad)
