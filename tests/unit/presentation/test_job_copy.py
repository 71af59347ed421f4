"""A job that is run once more is new in every way but its spec."""

import pytest
from tests.unit.kinds.manifests import pytorch
from tests.unit.kinds.oldshapes import OLD

from paceline.kinds import registry
from paceline.presentation.job_copy import copy_of, next_name


def first(**metadata):
    job = pytorch(
        runMode={"pause": {"enabled": True, "resumeSpecs": [{"type": "worker", "args": ["x"]}]}}, suspend=True
    )
    job["metadata"] |= {"name": "digits", "resourceVersion": "7", "labels": {"team": "a"}, **metadata}
    return {**job, "status": {"phase": "Failed"}}


def test_nothing_of_the_first_ones_life_is_copied():
    made = copy_of(first(annotations={"paceline.dev/restart": "x", "note": "keep"}), "again")

    assert made["metadata"] == {
        "name": "again",
        "namespace": "default",
        "labels": {"team": "a"},
        "annotations": {"note": "keep", "paceline.dev/copy-of": "digits"},
    }
    assert "status" not in made


def test_a_copy_runs_whether_or_not_the_first_one_is_held():
    made = copy_of(first(), "again")

    assert not registry.is_paused(made)
    assert not registry.is_suspended(made)
    assert made["spec"]["runMode"]["pause"]["resumeSpecs"] == first()["spec"]["runMode"]["pause"]["resumeSpecs"]
    assert made["spec"]["replicaSpecs"] == first()["spec"]["replicaSpecs"]


@pytest.mark.parametrize("make", [make for make in OLD.values() if registry.kind_of(make())])
def test_a_copy_of_an_old_shape_is_as_good_as_the_first(make):
    made = copy_of(make(), "again")

    assert registry.faults(made) == registry.faults(make())
    assert not registry.is_paused(made)


NAMES = {
    "the second": ((), "digits-2"),
    "the next that is free": (("digits-2", "digits-3"), "digits-4"),
    "one in between that was deleted": (("digits-3",), "digits-2"),
}


@pytest.mark.parametrize(("taken", "name"), NAMES.values(), ids=NAMES)
def test_the_new_name_is(taken, name):
    assert next_name(first(), {"digits", *taken}) == name


def test_a_copy_of_a_copy_is_in_the_same_row():
    second = copy_of(first(), "digits-2")

    assert next_name(second, {"digits", "digits-2"}) == "digits-3"
    assert copy_of(second, "digits-3")["metadata"]["annotations"] == {"paceline.dev/copy-of": "digits"}


def test_a_number_that_belongs_to_the_name_is_kept():
    job = first(name="resnet-50")

    assert next_name(job, {"resnet-50"}) == "resnet-50-2"
