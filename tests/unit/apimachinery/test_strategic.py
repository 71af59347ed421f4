"""Strategic merge patches of built-in kinds."""

import copy

import pytest

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.apimachinery.json_patch import PatchFailed
from paceline.apimachinery.strategic_merge import Strategic

POD = builtin_components()["io.k8s.api.core.v1.Pod"]


def pod(**spec):
    return {"metadata": {"name": "p", "labels": {"a": "1"}, "finalizers": ["x/a", "x/b"]}, "spec": spec}


CONTAINERS = [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "1"}]
CASES = {
    "a field of one item of a list": (
        {"spec": {"containers": [{"name": "b", "image": "2"}]}},
        {"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"}]},
    ),
    "a new item": (
        {"spec": {"containers": [{"name": "c", "image": "3"}]}},
        {"containers": [*CONTAINERS, {"name": "c", "image": "3"}]},
    ),
    "an item that goes": (
        {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
        {"containers": [{"name": "b", "image": "1"}]},
    ),
    "a list that is replaced": (
        {"spec": {"containers": [{"$patch": "replace"}, {"name": "c", "image": "3"}]}},
        {"containers": [{"name": "c", "image": "3"}]},
    ),
    "a list without keys is replaced": (
        {"spec": {"containers": [{"name": "a", "args": ["y"]}]}},
        {"containers": [{"name": "a", "image": "1", "args": ["y"]}, {"name": "b", "image": "1"}]},
    ),
    "a field that goes": (
        {"spec": {"containers": [{"name": "a", "args": None}]}},
        {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
    ),
    "another order": (
        {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
        {"containers": [CONTAINERS[1], CONTAINERS[0]]},
    ),
    "another order with one that nobody named": (
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [{"name": "c", "image": "3"}],
            }
        },
        {"containers": [{"name": "c", "image": "3"}, CONTAINERS[0], CONTAINERS[1]]},
    ),
    "a whole part that is replaced": ({"spec": {"$patch": "replace", "hostname": "h"}}, {"hostname": "h"}),
    "a list where there was none": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"containers": CONTAINERS, "volumes": [{"name": "v", "emptyDir": {}}]},
    ),
}


@pytest.mark.parametrize(("patch", "spec"), CASES.values(), ids=CASES)
def test_a_patch_merges_as_the_schema_says(patch, spec):
    target = pod(containers=CONTAINERS)
    before = copy.deepcopy((target, patch))

    assert Strategic(builtin_components()).apply(target, patch, POD)["spec"] == spec
    assert (target, patch) == before


def test_the_source_of_a_volume_can_change():
    target = pod(volumes=[{"name": "v", "emptyDir": {}}])
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}

    patched = Strategic(builtin_components()).apply(target, patch, POD)

    assert patched["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_plain_items_are_added_and_taken_away():
    patch = {
        "metadata": {"finalizers": ["x/c", "x/a"], "$deleteFromPrimitiveList/finalizers": ["x/b"], "labels": {"b": "2"}}
    }

    metadata = Strategic(builtin_components()).apply(pod(), patch, POD)["metadata"]

    assert metadata == {"name": "p", "labels": {"a": "1", "b": "2"}, "finalizers": ["x/a", "x/c"]}


BAD = [{"spec": {"containers": [{"image": "1"}]}}, {"spec": {"containers": ["a"]}}, {"$patch": "explode"}]


@pytest.mark.parametrize("patch", BAD, ids=str)
def test_a_patch_that_does_not_fit_is_refused(patch):
    with pytest.raises(PatchFailed):
        Strategic(builtin_components()).apply(pod(containers=CONTAINERS), patch, POD)


def test_an_order_that_repeats_a_name_repeats_no_items():
    """Otherwise a small patch makes a list of as many items as the product of both lengths."""
    patch = {"metadata": {"$setElementOrder/finalizers": ["x/a"] * 1000}}

    patched = Strategic(builtin_components()).apply(pod(), patch, POD)

    assert patched["metadata"]["finalizers"] == ["x/a", "x/b"]
