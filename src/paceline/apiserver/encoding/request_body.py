"""Bodies: from untrusted bytes to an object in memory, or a refusal; never a crash."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from paceline.apimachinery.field_errors import FieldFault, Problem
from paceline.apimachinery.meta import Object
from paceline.apimachinery.yaml_reader import read_trees
from paceline.apiserver.encoding.json_errors import what_is_wrong
from paceline.apiserver.http_types import JSON, YAML, HttpRequest, WriteOptions
from paceline.apiserver.status_errors import StatusError, bad_request, invalid, unsupported_media_type
from paceline.errors import BadRequest, TooLarge

# Deeper than any schema of a schema; shallower than anything that could overflow a stack.
MAX_DEPTH = 128
MAX_AUTHOR_BYTES = 128

APPLY_YAML = "application/apply-patch+yaml"

OFFERED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"

_GO_NAMES = {list: "array", dict: "object", str: "string", bool: "bool", type(None): "null"}
_HEAD = {"APIVersion": "apiVersion", "Kind": "kind"}
_PARSE_ERROR = "couldn't get version/kind; json parse error"
_SHOWN_BYTES = 30
_MAX_SHOWN = 20_000
_HOLDERS = frozenset({dict, list})
_SPACED = re.compile(rb'"[ \t\r\n]+:')
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def read_json(body: bytes, what: str) -> Any:
    """Read JSON: strict UTF-8, no NaN, no lone surrogates, bounded depth. `what` begins the refusal."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"{what}{': ' if what else ''}{what_is_wrong(body)}") from error
    check_depth(value, body.count(b"{") + body.count(b"["), what)
    return value


def check_depth(value: Any, brackets: int, what: str) -> None:
    """Refuse what nests too deeply; `brackets` is an upper bound that often settles it."""
    if brackets <= MAX_DEPTH:
        return
    # Level by level, without a call for each value: every patch comes through here.
    level: list[Any] = [value] if type(value) in _HOLDERS else []
    for _ in range(MAX_DEPTH):
        if not level:
            return
        inside = (each.values() if type(each) is dict else each for each in level)
        level = [inner for each in inside for inner in each if type(inner) in _HOLDERS]
    if not level:
        return
    raise bad_request(f"{what}: it nests deeper than {MAX_DEPTH} levels")


def read_object(request: HttpRequest, kind: str) -> Object:
    """Read the object that a body holds."""
    return read_with_warnings(request, kind)[0]


def read_with_warnings(request: HttpRequest, kind: str, *, needs_kind: bool = False) -> tuple[Object, tuple[str, ...]]:
    """Read the object that a body holds, in JSON or YAML, and say which fields stand there twice."""
    sort, body = content_type(request) or JSON, request.body
    if sort not in {JSON, YAML}:
        raise unsupported_media_type(OFFERED)
    start = f"the object provided is unrecognized (must be of type {kind})"
    try:
        twice: list[str] = []
        parse = f"{start}: {_PARSE_ERROR}"
        value = read_yaml(body, start, twice=twice) if sort == YAML else read_json(body, parse)
    except StatusError as error:
        raise bad_request(f"{error.status.message} ({_summary(body)})") from error
    if value is not None:
        _check_head(value, f"{start}: {_PARSE_ERROR}", _summary(body))
    if needs_kind and not (value or {}).get("kind"):
        text = body.decode(errors="replace")
        raise bad_request(f"{start}: Object 'Kind' is missing in '{text[:_MAX_SHOWN]}' ({_summary(body)})")
    if value is None:
        return {}, ()
    return value, tuple(twice) or tuple(
        f'duplicate field "{path}"' for path in duplicate_fields(body, value, sort=sort)
    )


def _check_head(value: Any, start: str, summary: str) -> None:
    if not isinstance(value, dict):
        raise bad_request(f"{start}: {not_a_head(value)} ({summary})")
    for field in ("apiVersion", "kind"):
        if value.get(field) is not None and not isinstance(value[field], str):
            why = f"json: cannot unmarshal {go_name(value[field])} into Go struct field .{field} of type string"
            raise bad_request(f"{start}: {why} ({summary})")


def _summary(body: bytes) -> str:
    """Show how a body begins."""
    if not body:
        return "<empty>"
    shown, more = body[:_SHOWN_BYTES], " ..." if len(body) > _SHOWN_BYTES else ""
    return f"{shown.decode(errors='replace') if body.startswith(b'{') else shown.hex()}{more}"


def read_applied(body: bytes) -> tuple[Object, tuple[str, ...]]:
    """Read what somebody applies, in YAML or JSON, and say which keys stand there twice."""
    start = "error decoding YAML"
    twice: list[str] = []
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = read_yaml(body, f"{start}: error converting YAML to JSON", twice=twice)
    else:
        check_depth(value, body.count(b"{") + body.count(b"["), start)
        if isinstance(value, dict) and duplicate_fields(body, value):
            value = read_yaml(body, start, twice=twice)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise bad_request(f"{start}: error unmarshaling JSON: while decoding JSON: {not_a_map(value)}")
    return value, tuple(twice)


def read_yaml(body: bytes, what: str, *, twice: list[str]) -> Any:
    """Read one YAML document: bounded, whatever its aliases say, and only what JSON has. `what` begins the refusal."""
    try:
        text = body.decode()
        trees = [tree.value for tree in read_trees(text, "yaml", twice=twice)]
    except UnicodeDecodeError as error:
        raise bad_request(f"{what}: yaml: invalid UTF-8") from error
    except (BadRequest, TooLarge) as error:
        raise bad_request(f"{what}: {error}") from error
    return trees[0] if trees else None


def not_a_head(value: Any) -> str:
    """Say that a value is nothing that has a kind, as Go does."""
    words = (f'{name} string "json:\\"{field},omitempty\\""' for name, field in _HEAD.items())
    return f"json: cannot unmarshal {go_name(value)} into Go value of type struct {{ {'; '.join(words)} }}"


def not_a_map(value: Any) -> str:
    """Say that a value is not an object, as Go does."""
    return f"json: cannot unmarshal {go_name(value)} into Go value of type map[string]interface {{}}"


def go_name(value: Any) -> str:
    """Name the type of a JSON value as Go does."""
    return _GO_NAMES.get(type(value), "number")


def duplicate_fields(body: bytes, value: Any, *, sort: str = JSON) -> tuple[str, ...]:
    """Give the paths of fields that stand in a body twice; YAML is asked elsewhere."""
    if sort != JSON or _has_all(body, orjson.dumps(value)):
        return ()
    twice: dict[int, list[str]] = {}
    kept: list[Object] = []

    def build(pairs: list[tuple[str, Any]]) -> Object:
        built = dict(pairs)
        if len(built) != len(pairs):
            times = Counter(name for name, _ in pairs)
            twice[id(built)] = [name for name in built if times[name] > 1]
            kept.append(built)
        return built

    # Numbers do not matter here, and huge ones would be refused.
    parsed = json.loads(body, object_pairs_hook=build, parse_int=len, parse_float=len)
    return tuple(_paths(parsed, twice, "")) if twice else ()


def _has_all(body: bytes, again: bytes) -> bool:
    """Tell whether an object has every field of the body that it was read from, by how it is written again."""
    # By the ends of names, quotes before a colon: those inside of texts are the same in both, unless somebody wrote
    # them as numbers of characters.
    is_plain = b"\\u" not in body and _SPACED.search(body) is None
    return is_plain and again.count(b'":') == body.count(b'":')


def _paths(value: Any, twice: dict[int, list[str]], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        start = f"{path}." if path else ""
        yield from (f"{start}{name}" for name in twice.get(id(value), ()))
        for name, inner in value.items():
            yield from _paths(inner, twice, f"{start}{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, twice, f"{path}[{index}]")


def read_options(request: HttpRequest, kind: str) -> WriteOptions:
    """Read what the query of a write asks for."""
    validation = request.query.get("fieldValidation", "")
    dry_run = request.query.get("dryRun")
    faults: list[FieldFault] = []
    if validation not in _VALIDATIONS:
        listed = ", ".join(f'"{each}"' for each in _VALIDATIONS)
        hint = f"supported values: {listed}"
        faults.append(FieldFault("fieldValidation", validation, hint, Problem.UNSUPPORTED))
    if dry_run not in {None, "All"}:
        faults.append(FieldFault("dryRun", [dry_run], 'supported values: "All"', Problem.UNSUPPORTED))
    faults.extend(_author_faults(request.query.get("fieldManager", "")))
    if kind == "PatchOptions":
        faults.extend(_apply_faults(request))
    if faults:
        raise invalid(kind, "", faults, group="meta.k8s.io")
    force = request.query.get("force", "")
    return WriteOptions(dry_run=bool(dry_run), validation=validation or "Warn", force=_is_yes(force))


def _author_faults(name: str) -> Iterator[FieldFault]:
    if len(name.encode()) > MAX_AUTHOR_BYTES:
        yield FieldFault("fieldManager", "", f"may not be more than {MAX_AUTHOR_BYTES} bytes", Problem.TOO_LONG)
    for at, each in enumerate(name):
        if not each.isprintable():
            yield FieldFault("fieldManager", name, f"invalid character U+{ord(each):04X} (at position {at})")


def _apply_faults(request: HttpRequest) -> Iterator[FieldFault]:
    if is_apply(request):
        if not request.query.get("fieldManager"):
            yield FieldFault("fieldManager", None, "is required for apply patch", Problem.REQUIRED)
    elif "force" in request.query:
        yield FieldFault("force", None, "may not be specified for non-apply patch", Problem.FORBIDDEN)


def is_apply(request: HttpRequest) -> bool:
    """Tell whether a patch says what its author wants, and not what shall change."""
    return content_type(request) == APPLY_YAML


def content_type(request: HttpRequest) -> str:
    """Give the type of a body, without what is said about it."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_yes(text: str) -> bool:
    # A word that nobody knows counts as yes, as in Kubernetes.
    return text.lower() not in {"", "false", "0"}
