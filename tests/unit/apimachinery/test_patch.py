"""Changing parts of an object."""

import copy

import pytest

from paceline.apimachinery.json_patch import MAX_OPERATIONS, PatchFailed, apply_operations, merge
from paceline.errors import BadRequest

# The examples of RFC 7386, appendix A.
MERGES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), MERGES)
def test_a_merge_patch_does_what_its_standard_says(target, patch, expected):
    before = copy.deepcopy((target, patch))

    assert merge(target, patch) == expected
    assert (target, patch) == before


def op(name, path, **rest):
    return {"op": name, "path": path, **rest}


OPERATIONS = {
    "add to an object": ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
    "add over what is there": ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
    "add into a list": ({"a": [1, 3]}, op("add", "/a/1", value=2), {"a": [1, 2, 3]}),
    "add to the end of a list": ({"a": [1]}, op("add", "/a/-", value=2), {"a": [1, 2]}),
    "add deep inside": ({"a": [{"b": {}}]}, op("add", "/a/0/b/c", value=1), {"a": [{"b": {"c": 1}}]}),
    "remove from an object": ({"a": 1, "b": 2}, op("remove", "/a"), {"b": 2}),
    "remove from a list": ({"a": [1, 2, 3]}, op("remove", "/a/1"), {"a": [1, 3]}),
    "replace": ({"a": {"b": 1}}, op("replace", "/a/b", value=2), {"a": {"b": 2}}),
    "replace in a list keeps the order": ({"a": [1, 2, 3]}, op("replace", "/a/1", value=9), {"a": [1, 9, 3]}),
    "replace everything": ({"a": 1}, op("replace", "", value={"b": 2}), {"b": 2}),
    "move": ({"a": {"b": 1}, "c": {}}, op("move", "/c/d", **{"from": "/a/b"}), {"a": {}, "c": {"d": 1}}),
    "copy": ({"a": [1]}, op("copy", "/b", **{"from": "/a"}), {"a": [1], "b": [1]}),
    "test what is so": ({"a": [1, {"b": 2}]}, op("test", "/a/1", value={"b": 2}), {"a": [1, {"b": 2}]}),
    "names with a slash and a tilde": ({"a/b": {"c~d": 1}}, op("remove", "/a~1b/c~0d"), {"a/b": {}}),
}


@pytest.mark.parametrize(("target", "operation", "expected"), OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_does_what_its_standard_says(target, operation, expected):
    before = copy.deepcopy(target)

    assert apply_operations(target, [operation]) == expected
    assert target == before


UNFIT = {
    "something that is no operation": "x",
    "an operation that is none": op("put", "/a", value=1),
    "no path": {"op": "remove"},
    "a path without a slash": op("remove", "a"),
    "a path that is a number": op("remove", 5),
    "removing what is not there": op("remove", "/b"),
    "replacing below what is not there": op("replace", "/b/c", value=1),
    "adding below what is not there": op("add", "/b/c", value=1),
    "adding below a number": op("add", "/n/c", value=1),
    "a place beyond the end": op("add", "/a/5", value=1),
    "a place before the start": op("add", "/a/-1", value=1),
    "a place with a leading zero": op("replace", "/a/00", value=1),
    "a place that is a name": op("add", "/a/x", value=1),
    "moving what is not there": op("move", "/a/0", **{"from": "/b"}),
    "testing what is not so": op("test", "/a/0", value=2),
    "removing everything": op("remove", ""),
}


@pytest.mark.parametrize("operation", UNFIT.values(), ids=UNFIT)
def test_an_operation_that_does_not_fit_is_refused_with_its_number(operation):
    with pytest.raises(PatchFailed, match="operation 1 of the patch"):
        apply_operations({"a": [1], "n": 1}, [op("test", "/n", value=1), operation])


def test_a_patch_is_a_list_of_bounded_length():
    with pytest.raises(BadRequest):
        apply_operations({}, {})
    with pytest.raises(BadRequest):
        apply_operations({}, [op("add", "/a", value=1)] * (MAX_OPERATIONS + 1))


def test_copies_are_bounded_by_what_they_hold():
    steps = [op("copy", f"/a/k{number}", **{"from": "/a"}) for number in range(64)]

    with pytest.raises(PatchFailed, match="copies may have at most"):
        apply_operations({"a": {"k": "x" * 100}}, steps)


def nest(depth):
    inner = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def test_a_patch_that_nests_ever_deeper_is_refused():
    """Each operation is small; what they make together is more than any function here can walk through."""
    deeper = [
        op("add", "/y", value=nest(120)),
        op("move", f"/y{'/a' * 120}/z", **{"from": "/x"}),
        op("move", "/x", **{"from": "/y"}),
    ]
    operations = [op("add", "/x", value={}), *deeper * 10, op("copy", "/q", **{"from": "/x"})]

    with pytest.raises(PatchFailed, match="too deeply"):
        apply_operations({}, operations)


@pytest.mark.parametrize("name", ["add", "remove", "replace", "test"])
def test_a_path_without_end_is_refused(name):
    with pytest.raises(PatchFailed, match="steps"):
        apply_operations({}, [op("add", "/a", value=nest(100)), op(name, "/a" * 100_000, value=1)])
