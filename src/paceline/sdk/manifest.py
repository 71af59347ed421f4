"""Read objects from YAML: small, flat and JSON-shaped, or refused with the line that is wrong."""

import difflib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paceline.errors import Malformed, TooLarge
from paceline.objects.meta import Object
from paceline.sdk.tree import Tree, read_trees

MAX_BYTES = 1024 * 1024
STDIN = "-"
TOP_LEVEL = ("apiVersion", "kind", "metadata", "spec", "data", "status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object and the place it was written at."""

    object: Object
    # `job.yaml:12`, for messages.
    place: str


def read_file(path: str) -> tuple[Document, ...]:
    """Read all objects of a file (`-` is standard input); Malformed or TooLarge say what to change, and where."""
    if path == STDIN:
        return read_text(_limited(sys.stdin.buffer.read(MAX_BYTES + 1), "stdin"), "stdin")
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except IsADirectoryError as error:
        raise Malformed(f"{path}: is a folder; name the files in it, such as {path.rstrip('/')}/job.yaml") from error
    except FileNotFoundError as error:
        raise Malformed(f"{path}: no such file{_similar_file(path)}") from error
    except OSError as error:
        raise Malformed(f"{path}: cannot be read: {error.strerror}") from error
    return read_text(_limited(data, path), path)


def read_text(data: bytes, source: str) -> tuple[Document, ...]:
    """Read all objects of a YAML text; `source` is how messages call it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Malformed(
            f"{source}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error
    documents = [each for tree in read_trees(text, source) for each in _objects(tree, source)]
    if not documents:
        raise Malformed(f"{source}: holds no object; it should begin with apiVersion, kind and metadata")
    return tuple(documents)


def with_namespace(document: Document, namespace: str, *, is_chosen: bool) -> Document:
    """Put an object that names no namespace into `namespace`; Malformed when a chosen one contradicts the file."""
    metadata = document.object["metadata"]
    written = metadata.get("namespace")
    if written and is_chosen and written != namespace:
        raise Malformed(
            f"{document.place}: metadata.namespace is {written!r}, but -n says {namespace!r}; drop one of them"
        )
    changed = {**document.object, "metadata": {**metadata, "namespace": written or namespace}}
    return replace(document, object=changed)


def _limited(data: bytes, source: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise TooLarge(
            f"{source}: more than {MAX_BYTES // 1024} KiB of YAML is not read; "
            "a job takes a few KiB: put data on a claim"
        )
    return data


def _similar_file(path: str) -> str:
    try:
        names = [each.name for each in Path(path).parent.iterdir()]
    except OSError:
        return ""
    close = difflib.get_close_matches(Path(path).name, names, n=1)
    return f"; did you mean {Path(path).parent / close[0]}?" if close else ""


def _objects(tree: Tree, source: str) -> Iterator[Document]:
    """Give the objects of one document: itself, or the items of a List."""
    value = tree.value
    if not isinstance(value, dict):
        raise Malformed(f"{source}:{tree.line}: {_called(value)} is not an object; {_instead(value)}")
    if value.get("kind") == "List" and isinstance(value.get("items"), list):
        for number, item in enumerate(value["items"]):
            place = f"{source}:{tree.line}: items[{number}]"
            if not isinstance(item, dict):
                raise Malformed(f"{place}: {_called(item)} is not an object")
            yield Document(object=_checked(item, place), place=place)
        return
    place = f"{source}:{tree.line}"
    yield Document(object=_checked(value, place), place=place)


def _checked(value: dict[str, Any], place: str) -> Object:
    """Give the object when it says what it is and how it is called; Malformed names all that is missing."""
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
        raise Malformed("\n".join(f"{place}: {fault}" for fault in faults))
    return value


def _fault(value: dict[str, Any], field: str, example: str, *, prefix: str = "") -> str:
    if value.get(field) is not None:
        return f"{prefix}{field}: {_called(value[field])} is not allowed; write {_wanted(field)}, {example}"
    close = difflib.get_close_matches(field.lower(), [key.lower() for key in value if key not in TOP_LEVEL], n=1)
    meant = next((key for key in value if close and key.lower() == close[0]), "")
    if meant:
        return f"{prefix}{field} is missing; did you mean {field} where you wrote {meant}?"
    return f"{prefix}{field} is missing; add it, {example}"


def _wanted(field: str) -> str:
    return "a mapping" if field == "metadata" else "a text"


def _called(value: object) -> str:
    """Say what a YAML value is, as a person would."""
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


def _instead(value: object) -> str:
    if isinstance(value, list):
        return "separate several objects by a line with ---, without the leading dashes"
    return "it should be a mapping that begins with apiVersion, kind and metadata"
