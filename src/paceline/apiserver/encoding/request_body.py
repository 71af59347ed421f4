"""Request bodies and options: decodes untrusted bytes, or raises a StatusError."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import orjson

from paceline.apimachinery.builtin.go_json import read_struct
from paceline.apimachinery.field_errors import FieldFault, Problem, forbidden, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apiserver.http_types import JSON, YAML, HttpRequest, WriteOptions
from paceline.apiserver.status_errors import bad_request, invalid, unsupported_media_type
from paceline.errors import BadRequest, TooLarge

# Deeper than the schema of a CustomResourceDefinition, and too shallow to overflow a stack.
MAX_DEPTH = 128
MAX_MANAGER_BYTES = 128

APPLY_YAML = "application/apply-patch+yaml"
OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"

_CONTAINERS = frozenset({dict, list})
_SPACED = re.compile(rb'"[ \t\r\n]+:')
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def read_json(body: bytes, subject: str) -> Any:
    """Decode JSON: strict UTF-8, no NaN, no lone surrogates, bounded depth. Errors start with the subject."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"{subject} is not valid JSON: {error}") from error
    check_depth(value, body.count(b"{") + body.count(b"["), subject)
    return value


def check_depth(value: Any, brackets: int, subject: str) -> None:
    """Reject a value that is nested too deeply; `brackets` is a cheap upper bound of its depth."""
    if brackets <= MAX_DEPTH:
        return
    # Level by level instead of recursively: this is fast, and every patch needs it.
    level: list[Any] = [value] if type(value) in _CONTAINERS else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        children = (item.values() if type(item) is dict else item for item in level)
        level = [child for group in children for child in group if type(child) in _CONTAINERS]
    if level:
        raise bad_request(f"{subject} is nested deeper than {MAX_DEPTH} levels")


def check_object(value: Any, subject: str) -> None:
    if not isinstance(value, dict):
        raise bad_request(f"{subject} must be an object")


def check_type(obj: Object, api_version: str, kind: str) -> None:
    """Raise BadRequest if an object has another apiVersion or kind; it may omit them."""
    if (obj.get("apiVersion") or api_version, obj.get("kind") or kind) != (api_version, kind):
        raise bad_request(f"the body must be a {api_version} {kind}")


def decode_struct(obj: Object, struct: str, kind: str) -> Object:
    try:
        return read_struct(obj, struct)
    except BadRequest as error:
        raise bad_request(f"{kind}: {error}") from error


def read_object(request: HttpRequest, kind: str) -> Object:
    return read_with_warnings(request, kind)[0]


def read_with_warnings(request: HttpRequest, kind: str, *, needs_kind: bool = False) -> tuple[Object, tuple[str, ...]]:
    """Return the object in a JSON or YAML body, and a warning for each duplicate field."""
    media_type, subject = content_type(request) or JSON, f"the body (expected: {kind})"
    value, duplicates = read_document(request, subject)
    if value is not None:
        check_object(value, subject)
        for field in ("apiVersion", "kind"):
            if value.get(field) is not None and not isinstance(value[field], str):
                raise bad_request(f"{subject} is invalid: {field} must be a string")
    if needs_kind and not (value or {}).get("kind"):
        raise bad_request(f"{subject} has no kind")
    if media_type == JSON and value is not None:
        duplicates = duplicate_warnings(request.body, value)
    return value or {}, duplicates


def read_document(request: HttpRequest, subject: str) -> tuple[Any, tuple[str, ...]]:
    """Return the value of a JSON or YAML body, and the duplicate keys of YAML."""
    media_type = content_type(request) or JSON
    if media_type not in {JSON, YAML}:
        raise unsupported_media_type(OFFERED)
    return read_yaml(request.body, subject) if media_type == YAML else (read_json(request.body, subject), ())


def read_applied(body: bytes) -> tuple[Object, tuple[str, ...]]:
    """Return an applied configuration in YAML or JSON, and a warning for each duplicate key."""
    subject = "the applied configuration"
    duplicates: tuple[str, ...] = ()
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value, duplicates = read_yaml(body, subject)
    else:
        check_depth(value, body.count(b"{") + body.count(b"["), subject)
        if isinstance(value, dict) and duplicate_fields(body, value):
            value, duplicates = read_yaml(body, subject)
    if value is None:
        value = {}
    check_object(value, subject)
    return value, duplicates


def read_yaml(body: bytes, subject: str) -> tuple[Any, tuple[str, ...]]:
    """Return the first YAML document, bounded in spite of aliases, and a warning for each duplicate key."""
    # Imported with the first YAML: every process of a cluster would wait for the parser at its start.
    read_documents = import_module("paceline.apimachinery.yaml_reader").read_documents
    duplicates: list[str] = []
    try:
        trees = [tree.value for tree in read_documents(body.decode(), "yaml", duplicates=duplicates)]
    except UnicodeDecodeError as error:
        raise bad_request(f"{subject} is not valid YAML: it is not UTF-8") from error
    except (BadRequest, TooLarge) as error:
        raise bad_request(f"{subject} is not valid YAML: {error}") from error
    return (trees[0] if trees else None), tuple(duplicates)


def duplicate_warnings(body: bytes, value: Any) -> tuple[str, ...]:
    return tuple(f'duplicate field "{path}"' for path in duplicate_fields(body, value))


def duplicate_fields(body: bytes, value: Any) -> tuple[str, ...]:
    """Return the paths of fields that a JSON body contains twice."""
    if _has_all(body, orjson.dumps(value)):
        return ()
    repeated: dict[int, list[str]] = {}
    # Keeps the objects alive, so that their ids stay unique.
    alive: list[Object] = []

    def build(pairs: list[tuple[str, Any]]) -> Object:
        built = dict(pairs)
        if len(built) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated[id(built)] = [name for name in built if counts[name] > 1]
            alive.append(built)
        return built

    # Numbers do not matter here, and json rejects huge ones.
    parsed = json.loads(body, object_pairs_hook=build, parse_int=len, parse_float=len)
    return tuple(_paths(parsed, repeated, "")) if repeated else ()


def _has_all(body: bytes, encoded: bytes) -> bool:
    """Return whether a decoded object has every field of its body, by the number of fields when encoded again."""
    # Count quotes before a colon. Those inside strings are equal in both, except for \u escapes.
    is_plain = b"\\u" not in body and _SPACED.search(body) is None
    return is_plain and encoded.count(b'":') == body.count(b'":')


def _paths(value: Any, repeated: dict[int, list[str]], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        start = f"{path}." if path else ""
        yield from (f"{start}{name}" for name in repeated.get(id(value), ()))
        for name, inner in value.items():
            yield from _paths(inner, repeated, f"{start}{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, repeated, f"{path}[{index}]")


def read_options(request: HttpRequest, kind: str) -> WriteOptions:
    validation = request.query.get("fieldValidation", "")
    dry_run = request.query.get("dryRun")
    faults: list[FieldFault] = []
    if validation not in _VALIDATIONS:
        faults.append(unsupported("fieldValidation", validation, _VALIDATIONS))
    if dry_run not in {None, "All"}:
        faults.append(unsupported("dryRun", [dry_run], ("All",)))
    faults.extend(_manager_faults(request.query.get("fieldManager", "")))
    if kind == "PatchOptions":
        faults.extend(_apply_faults(request))
    if faults:
        raise invalid(kind, "", faults, group="meta.k8s.io")
    # Like Kubernetes, treat unknown values as true.
    force = request.query.get("force", "").lower() not in {"", "false", "0"}
    size = len(request.body)
    return WriteOptions(
        dry_run=bool(dry_run), validation=validation or "Warn", force=force, size=size, caller=request.caller
    )


def _manager_faults(name: str) -> Iterator[FieldFault]:
    if len(name.encode()) > MAX_MANAGER_BYTES:
        yield FieldFault("fieldManager", "", f"may not be more than {MAX_MANAGER_BYTES} bytes", Problem.TOO_LONG)
    for position, char in enumerate(name):
        if not char.isprintable():
            yield FieldFault("fieldManager", name, f"invalid character U+{ord(char):04X} (at position {position})")


def _apply_faults(request: HttpRequest) -> Iterator[FieldFault]:
    if is_apply(request):
        if not request.query.get("fieldManager"):
            yield required("fieldManager", "is required for apply patch")
    elif "force" in request.query:
        yield forbidden("force", "may not be specified for non-apply patch")


def is_apply(request: HttpRequest) -> bool:
    return content_type(request) == APPLY_YAML


def content_type(request: HttpRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
