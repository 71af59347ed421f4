"""The schema says what the types say, in words a server, kubectl and a form understand."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.kinds import registry
from paceline.kinds.schema import Components, object_schema, spec_schema, structural
from paceline.kinds.spec.fields import POD_TEMPLATE
from tests.unit.kinds.manifests import generic, pytorch, replica
from tests.unit.kinds.test_decode import EXAMPLES

COMPONENTS = builtin_components()
KINDS = {kind.kind: kind for kind in registry.KINDS}
SPECS = {name: spec_schema(kind.spec) for name, kind in KINDS.items()}


def parts(schema):
    """The schema and every schema inside it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for each in inner:
        if isinstance(each, dict):
            yield from parts(each)


@pytest.mark.parametrize("kind", SPECS)
def test_every_field_has_help(kind):
    """`kubectl explain`, the forms and the reference page are made from it."""
    silent = [
        name
        for part in parts(SPECS[kind])
        for name, field in part.get("properties", {}).items()
        if not field.get("description")
    ]

    assert silent == []


@pytest.mark.parametrize("kind", SPECS)
def test_nothing_is_defaulted_by_the_server(kind):
    """Specs are stored as written; what holds when nothing is written is said in the help."""
    assert not [part for part in parts(SPECS[kind]) if "default" in part or "title" in part or "nullable" in part]
    limit = SPECS["PyTorchTrainingJob"]["properties"]["runPolicy"]["properties"]["backoffLimit"]
    assert limit["description"].endswith("Default: 3.")


def test_bounds_are_in_the_schema():
    replica_spec = SPECS["PyTorchTrainingJob"]["properties"]["replicaSpecs"]

    assert replica_spec["minItems"] == 1
    assert replica_spec["items"]["required"] == ["type", "template"]
    assert replica_spec["items"]["properties"]["replicas"]["minimum"] == 1
    assert replica_spec["items"]["properties"]["scalingWeight"]["minimum"] == 0


def test_a_number_or_text_is_said_the_kubernetes_way():
    count = SPECS["PyTorchTrainingJob"]["properties"]["torchrunConfig"]["properties"]["procPerNode"]

    assert count["x-kubernetes-int-or-string"]
    assert count["anyOf"] == [{"type": "integer"}, {"type": "string"}]


def test_text_or_an_object_is_left_to_the_check():
    policy = SPECS["GenericJob"]["properties"]["replicaSpecs"]["items"]["properties"]["restartPolicy"]

    assert policy["x-kubernetes-preserve-unknown-fields"]
    assert "type" not in policy
    # Text must still be one of a few; an object passes a pattern.
    assert policy["pattern"] == "^(Always|OnFailure|Never)$"


def test_a_template_is_the_servers_own():
    template = SPECS["GenericJob"]["properties"]["replicaSpecs"]["items"]["properties"]["template"]

    assert template["allOf"] == [{"$ref": POD_TEMPLATE}]
    assert POD_TEMPLATE.rpartition("/")[2] in COMPONENTS


def test_a_field_of_a_type_without_schema_is_a_mistake_of_ours():
    class Odd(msgspec.Struct):
        when: bytes

    with pytest.raises(TypeError, match="a spec cannot have a field of type"):
        spec_schema(Odd)


@pytest.mark.parametrize("kind", SPECS)
def test_the_published_object_says_which_kind_it_is(kind):
    assert object_schema(KINDS[kind])["x-kubernetes-group-version-kind"] == [
        {"group": "batch.tensorstack.dev", "version": "v1beta1", "kind": kind}
    ]


def crd_schema(kind) -> dict[str, Any]:
    (found,) = [each for each in registry.crds(COMPONENTS) if each["spec"]["names"]["kind"] == kind]
    schema: dict[str, Any] = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize("kind", SPECS)
def test_a_crd_has_a_structural_schema(kind):
    """What the real server refuses: references, defaults, keys that an item need not have, a field without a type."""
    for part in parts(crd_schema(kind)):
        assert not part.keys() & {"$ref", "allOf", "oneOf", "default"}
        assert not [key for key in part if key.startswith("x-kubernetes-patch")]
        assert set(part.get("x-kubernetes-list-map-keys", ())) <= set(part.get("items", {}).get("required", ()))
        is_free = part.get("x-kubernetes-preserve-unknown-fields") or part.get("x-kubernetes-int-or-string")
        assert "type" in part or is_free


@pytest.mark.parametrize("kind", SPECS)
def test_a_crd_is_small_enough_to_be_applied(kind):
    """kubectl apply keeps the whole object in an annotation of at most 256 KiB."""
    (found,) = [each for each in registry.crds(COMPONENTS) if each["spec"]["names"]["kind"] == kind]

    assert len(json.dumps(found)) < 200_000


def test_a_crd_shows_the_same_columns_as_the_embedded_server():
    (found, *_) = registry.crds(COMPONENTS)
    (resource, *_) = registry.resources()
    columns = found["spec"]["versions"][0]["additionalPrinterColumns"]

    assert [(each["name"], each["jsonPath"], each.get("priority", 0)) for each in columns] == [
        (each.name, each.path, each.priority) for each in resource.columns
    ]
    assert found["spec"]["names"]["shortNames"] == ["pj"]
    assert found["spec"]["versions"][0]["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.elastic.expectedReplicas",
            "statusReplicasPath": ".status.elastic.currentReplicas",
        },
    }


def test_a_template_in_a_crd_keeps_labels_and_fractions():
    template = crd_schema("GenericJob")["properties"]["spec"]["properties"]["replicaSpecs"]["items"]["properties"][
        "template"
    ]
    limits = template["properties"]["spec"]["properties"]["containers"]["items"]["properties"]["resources"]

    assert template["properties"]["metadata"]["properties"]["labels"]["additionalProperties"] == {"type": "string"}
    assert "type" not in limits["properties"]["limits"]["additionalProperties"]
    assert template["description"].startswith("Pod template of a replica.")


def test_a_port_by_name_or_number_stays_one_in_a_crd():
    assert structural(COMPONENTS["io.k8s.apimachinery.pkg.util.intstr.IntOrString"], Components(schemas=COMPONENTS))[
        "x-kubernetes-int-or-string"
    ]


WRONG = {
    "no replicas": pytorch(replica(replicas=0)),
    "text for a number": pytorch(replica(replicas="two")),
    "a missing field": pytorch({"type": "worker"}),
    "a policy nobody knows": pytorch(replica(restartPolicy="Sometimes")),
    "a rule about no rank": generic(successRules=[{"worker": []}]),
    "a list for a number or text": pytorch(torchrunConfig={"procPerNode": []}),
}


@pytest.mark.parametrize("job", WRONG.values(), ids=WRONG)
def test_the_schema_refuses_what_the_types_refuse(job):
    validator = jsonschema_rs.validator_for(crd_schema(job["kind"]))

    assert not validator.is_valid(job)
    assert registry.faults(job)


@pytest.mark.parametrize("job", EXAMPLES, ids=lambda each: each["kind"])
def test_the_schema_takes_what_the_types_take(job):
    validator = jsonschema_rs.validator_for(crd_schema(job["kind"]))

    assert [error.message for error in validator.iter_errors(job)] == []
    assert registry.faults(job) == ()
