"""What definitions make the server serve, and what becomes of them."""

import pytest
from tests.unit.apiserver.definitions import SPEC, conditions, definition, version

from paceline.apimachinery.crd.crd import (
    ShippedKind,
    fill_defaults,
    list_faults,
    resources_of,
    scale_faults,
    unenforced,
    version_rank,
)
from paceline.apimachinery.crd.status import begin_deletion, finish_deletion, status_of
from paceline.apimachinery.crd.structural_schema import schema_faults
from paceline.apimachinery.crd.validation import change_faults, default, faults
from paceline.apimachinery.schema import Shapes, prune
from paceline.apimachinery.scheme import Resource, ScalePaths

NOW = "2030-01-01T00:00:00Z"
LATER = "2030-01-02T00:00:00Z"
PATHS = ScalePaths(spec=".spec.replicas", status=".status.replicas")


def stored(**changes):
    """A definition as it is stored once its names were accepted."""
    made = definition(**changes)
    default(made)
    return made | {"status": status_of(made, (), NOW)}


def test_clients_prefer_stable_and_new_versions():
    names = ["v1beta1", "v1", "foo", "v2", "v1alpha2", "v10", "v1beta2", "v1alpha1"]

    assert sorted(names, key=version_rank) == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1", "foo"]


def test_there_is_one_resource_for_each_version_that_is_served():
    versions = [version("v1beta1", storage=False), version("v1"), version("v2", storage=False, served=False)]
    made = resources_of(stored(versions=versions), {})

    assert [(each.version, each.stored_version, each.is_shared) for each in made] == [
        ("v1", "v1", True),
        ("v1beta1", "v1", True),
    ]
    assert made[0].subresources == ("status", "scale")
    assert made[0].schema_name == "test.home.v1.Lamp"


def same_color(_new, _old):
    return ()


def test_the_author_of_a_kind_adds_what_a_definition_cannot_say():
    finer = {"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/x"}}}
    own = Resource(
        group="home.test",
        version="v1",
        kind="Lamp",
        plural="lamps",
        schema_name="x",
        schema=finer,
        check_change=same_color,
    )
    kept = stored()
    known = {("home.test", "Lamp"): ShippedKind(resource=own, definition=kept)}
    (same,) = resources_of(kept, known)
    (other,) = resources_of(stored(versions=[version(additionalPrinterColumns=[])]), known)

    assert (same.schema, same.check_change, same.is_structural) == (finer, same_color, False)
    assert (other.schema["properties"]["spec"], other.check_change, other.is_structural) == (SPEC, same_color, True)


def test_defaults_are_not_shared_between_objects():
    schema = {"properties": {"a": {"type": "object", "default": {}, "properties": {"b": {"default": [1]}}}}}
    first, second = {}, {}
    fill_defaults(first, schema)
    first["a"]["b"] = 2
    fill_defaults(second, schema)

    assert second == {"a": {"b": [1]}}


def test_defaults_reach_into_lists_and_maps():
    inner = {"type": "object", "properties": {"n": {"default": 1}}}
    schema = {"properties": {"list": {"items": inner}, "map": {"additionalProperties": inner}}}
    obj = {"list": [{}, {"n": 2}], "map": {"x": {}}, "other": {}}
    fill_defaults(obj, schema)

    assert obj == {"list": [{"n": 1}, {"n": 2}], "map": {"x": {"n": 1}}, "other": {}}


def test_an_open_part_keeps_what_it_does_not_name():
    schema = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
    }
    obj = {"kind": "X", "a": {"b": "1", "c": 2}, "z": {"y": 1}}
    found = prune(obj, Shapes({}).of_object(schema, structural=True))

    assert obj == {"kind": "X", "a": {"b": "1"}, "z": {"y": 1}}
    assert [each.path for each in found] == ["a.c"]


def test_a_name_that_is_taken_is_told_and_the_others_are_kept():
    first = stored()
    second = definition("lanterns", "Lamp", shortNames=["ln"])
    default(second)
    status = status_of(second, (first,), NOW)

    assert conditions({"status": status}) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert status["acceptedNames"] == {"plural": "lanterns", "shortNames": ["ln"], "kind": ""}


def test_kinds_of_other_groups_are_in_nobodys_way():
    first, second = stored(), stored()
    second["spec"]["group"] = "garden.test"

    assert conditions({"status": status_of(second, (first,), NOW)})["NamesAccepted"][0] == "True"


def test_what_is_served_stays_served_when_a_new_name_is_taken():
    other = stored(plural="lanterns", kind="Lantern", shortNames=["ln"])
    ours = stored()
    ours["spec"]["names"]["shortNames"] = ["ln"]
    status = status_of(ours, (other,), LATER)

    assert conditions({"status": status})["NamesAccepted"] == ("False", "ShortNamesConflict")
    assert conditions({"status": status})["Established"][0] == "True"
    assert "shortNames" not in status["acceptedNames"]


def test_the_time_of_a_condition_is_when_it_changed():
    ours = stored()

    assert status_of(ours, (), LATER) == ours["status"]


def test_a_definition_waits_for_its_objects():
    going = begin_deletion(stored(), LATER)
    gone = finish_deletion(going, LATER)

    assert going["metadata"]["deletionTimestamp"] == LATER
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert "finalizers" not in gone["metadata"]
    assert conditions(gone)["Terminating"] == ("False", "InstanceDeletionCompleted")


def test_a_version_that_is_stored_cannot_be_left_out():
    new = stored(versions=[version("v2")])

    assert [fault.path for fault in change_faults(new, stored())] == ["status.storedVersions[0]"]


def test_a_good_definition_has_no_faults():
    assert tuple(faults(stored(), lambda _plural, _namespace: ())) == ()


def test_a_part_that_versions_have_in_common_is_told_once():
    bad = {"schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {}}}}}
    both = [version("v1", **bad), version("v2", storage=False, **bad)]
    one = [version("v1", **bad), version("v2", storage=False)]
    inside = "openAPIV3Schema.properties[a].type"

    def told(versions):
        return [fault.path for fault in faults(stored(versions=versions), lambda _plural, _namespace: ())]

    assert told(both) == [f"spec.validation.{inside}"]
    assert told(one) == [f"spec.versions[0].schema.{inside}"]


@pytest.mark.parametrize(
    ("inner", "path"),
    [
        ({"type": "array", "items": 5}, "s.properties[a].items"),
        ({"type": "object", "properties": "x"}, "s.properties[a].properties"),
        ({"type": "string", "anyOf": [5]}, "s.properties[a].anyOf[0]"),
        ({"type": "object", "additionalProperties": "x"}, "s.properties[a].additionalProperties"),
    ],
)
def test_what_is_no_schema_at_all_is_told_and_nothing_else(inner, path):
    found = schema_faults({"type": "object", "properties": {"a": inner, "b": {}}}, "s")

    assert [fault.path for fault in found] == [path]


def test_members_are_told_apart_by_type():
    schema = {"properties": {"l": {"x-kubernetes-list-type": "set", "items": {}}}}

    assert list_faults({"l": [1, "1", True]}, lambda *_: (), schema=schema) == ()
    assert [fault.path for fault in list_faults({"l": [1, 2, 1]}, lambda *_: (), schema=schema)] == ["l[2]"]


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ({"replicas": -1}, "must be between 0 and 2147483647, inclusive"),
        ({"replicas": 2**31}, "must be between 0 and 2147483647, inclusive"),
        ({"replicas": "two"}, "must be an integer"),
        ({"replicas": 1.5}, "must be an integer"),
    ],
)
def test_replicas_that_no_scale_could_say_are_told(spec, hint):
    assert [fault.hint for fault in scale_faults({"spec": spec}, PATHS)] == [hint]


def test_replicas_need_not_be_said():
    assert list(scale_faults({"spec": {"replicas": 0}}, PATHS)) == []
    assert list(scale_faults({}, PATHS)) == []
    assert [fault.path for fault in scale_faults({"status": {"replicas": -1}}, PATHS, status=True)] == [PATHS.status]


def test_rules_that_are_not_run_are_named_by_version():
    rule = {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}
    both = [version("v1"), version("v2", storage=False, schema={"openAPIV3Schema": rule})]

    (problem,) = unenforced(definition(versions=both), None)
    assert problem.startswith("spec.versions[1].")
