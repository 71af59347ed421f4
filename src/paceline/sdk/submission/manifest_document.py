"""An object of a manifest, and its location for messages."""

from dataclasses import dataclass, replace
from typing import Any

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest

TOP_LEVEL = ("apiVersion", "kind", "metadata", "spec", "data", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An object and its location."""

    object: Object
    # `job.yaml:12`, for messages.
    place: str


def with_namespace(document: Document, namespace: str, *, is_chosen: bool) -> Document:
    """Return the object with a namespace; raise BadRequest if a chosen one contradicts the file."""
    metadata = document.object["metadata"]
    written = metadata.get("namespace")
    if written and is_chosen and written != namespace:
        raise BadRequest(
            f"{document.place}: metadata.namespace is {written!r}, but -n says {namespace!r}; drop one of them"
        )
    changed = {**document.object, "metadata": {**metadata, "namespace": written or namespace}}
    return replace(document, object=changed)


def checked(value: dict[str, Any], place: str) -> Object:
    """Return the object if it has apiVersion, kind and a name; BadRequest lists everything that is missing."""
    faults = []
    for field, example in (
        ("apiVersion", "batch.tensorstack.dev/v1beta1"),
        ("kind", "PyTorchTrainingJob"),
    ):
        if not isinstance(value.get(field), str) or not value[field]:
            faults.append(_fault(value, field, f"such as {field}: {example}"))
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        faults.append(_fault(value, "metadata", "such as metadata: {name: my-job}"))
    elif not any(isinstance(metadata.get(key), str) and metadata[key] for key in ("name", "generateName")):
        faults.append(_fault(metadata, "name", "such as name: my-job", prefix="metadata."))
    elif not isinstance(metadata.get("namespace") or "", str):
        faults.append(_fault(metadata, "namespace", "or leave it out", prefix="metadata."))
    if faults:
        raise BadRequest("\n".join(f"{place}: {fault}" for fault in faults))
    return value


def _fault(value: dict[str, Any], field: str, example: str, *, prefix: str = "") -> str:
    if value.get(field) is not None:
        return f"{prefix}{field}: {called(value[field])} is not allowed; write {_wanted(field)}, {example}"
    suggestion = nearest(field, (key for key in value if key not in TOP_LEVEL))
    if suggestion:
        return f"{prefix}{field} is missing; did you mean {field} where you wrote {suggestion}?"
    return f"{prefix}{field} is missing; add it, {example}"


def _wanted(field: str) -> str:
    return "a mapping" if field == "metadata" else "a text"


def called(value: object) -> str:
    """Describe a YAML value in words."""
    match value:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return f"a list of {len(value)}"
        case bool():
            return f"the value {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case _:
            text = str(value)
            return f"the text {text[:40] + '…' if len(text) > 40 else text!r}"
