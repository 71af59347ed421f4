"""What forms are made of: examples, templates with their values, and schemas with help texts."""

import re
from pathlib import Path

import pytest

from paceline.console.manifests.examples import examples
from paceline.console.manifests.manifest_checks import check
from paceline.console.manifests.templates import rendered, schema_of
from paceline.kinds import registry
from paceline.kinds.apps.templates.registry import TEMPLATES
from paceline.kinds.kind_types import OWN_API_VERSION

FORMS = Path(__file__).parents[3] / "console" / "src" / "forms" / "kinds.ts"
REF = "#/components/schemas/"
CREATED = [kind.kind for kind in (*registry.KINDS, *registry.SERVICES)]


def app(template="model-training", name="mnist", **values):
    spec = {"template": {"name": template}, "values": values}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": OWN_API_VERSION, "kind": "TrainingApp", "metadata": metadata, "spec": spec}


def test_every_kind_but_its_aliases_has_an_example():
    kinds = {kind.kind for kind in registry.KINDS if not kind.alias_of}

    assert kinds <= {example["kind"] for example in examples()}


@pytest.mark.parametrize("example", examples(), ids=lambda example: example["id"])
def test_an_example_has_a_title_and_no_fault_with_its_claim(example):
    text = f"{example['claim']}---\n{example['text']}" if example["claim"] else example["text"]

    result = check(text, namespace="default", claims={"default": frozenset()})

    assert example["title"]
    assert [finding.message for finding in result.findings if finding.severity == "error"] == []


@pytest.mark.parametrize("kind", [*CREATED, "TrainingApp", "PersistentVolumeClaim"])
def test_the_schema_of_a_kind_contains_everything_that_it_refers_to(kind):
    schema = schema_of(kind)

    assert set(references(schema)) <= set(schema["components"])
    assert schema["schema"]["properties"]["spec"]


def references(part):
    if isinstance(part, dict):
        for name, value in part.items():
            if name == "$ref":
                yield value.removeprefix(REF)
            else:
                yield from references(value)
    elif isinstance(part, list | tuple):
        for item in part:
            yield from references(item)


@pytest.mark.parametrize("kind", CREATED)
def test_every_field_of_our_own_kinds_has_a_help_text(kind):
    fields = schema_of(kind)["schema"]["properties"]["spec"]["properties"]

    assert [name for name, field in fields.items() if not field.get("description")] == []


def test_a_template_shows_what_its_values_would_create():
    values = {"git": {"url": "https://example.org/code.git"}, "command": "python3 train.py", "logDir": "/output/logs"}

    result = rendered(app(**values), None)

    kinds = [obj["kind"] for obj in result["objects"]]
    assert result["faults"] == []
    assert result["isNew"]
    assert result["revision"] == 1
    assert "TensorBoard" in kinds
    assert any(obj["metadata"]["name"] == "mnist-1" for obj in result["objects"])


def test_a_template_names_the_values_that_are_wrong():
    result = rendered(app(command="python3 train.py", workers=0), None)

    assert [fault["path"] for fault in result["faults"]] == ["spec.values.workers"]
    assert result["objects"] == []


def test_a_template_shows_how_values_differ_from_the_current_revision():
    git = {"git": {"url": "https://example.org/code.git"}, "command": "python3 train.py"}
    current = {**app(**git, gpus=0), "status": {"revision": 3}}

    result = rendered(app(**git, gpus=2), current)

    assert result["revision"] == 4
    assert result["changes"] == [{"path": "gpus", "old": 0, "new": 2}]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_the_defaults_of_a_template_need_no_fault_besides_missing_code(template):
    result = rendered(app(template.name), None)

    assert {fault["reason"] for fault in result["faults"]} <= {"FieldValueRequired"}


def test_every_path_that_a_form_names_exists_in_a_schema():
    literals = re.findall(r"path: \[((?:'\w+'|\d+|, )+)\]", FORMS.read_text())
    paths = {tuple(step.strip("'") for step in literal.split(", ")) for literal in literals}
    kinds = [schema_of(kind) for kind in (*CREATED, "PersistentVolumeClaim")]

    assert len(paths) > 50
    assert [
        path for path in paths if not any(has_path(kind["schema"], path, kind["components"]) for kind in kinds)
    ] == []


def has_path(schema, path, components):
    if "$ref" in schema or "allOf" in schema:
        name = schema.get("$ref") or schema["allOf"][0]["$ref"]
        schema = components[name.removeprefix(REF)]
    if not path or schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    if path[0].isdigit():
        return "items" in schema and has_path(schema["items"], path[1:], components)
    inner = (schema.get("properties") or {}).get(path[0], schema.get("additionalProperties"))
    return inner is not None and has_path(inner, path[1:], components)
