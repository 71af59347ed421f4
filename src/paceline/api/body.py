"""Bodies: from untrusted bytes to an object in memory, or a refusal; never a crash."""

import json
from collections.abc import Iterator
from typing import Any

import orjson

from paceline.api.exchange import JSON, Options, Request
from paceline.api.refusal import bad_request, invalid, unreadable
from paceline.objects.faults import FieldFault, Problem
from paceline.objects.meta import Object

# Deeper than any schema of a schema; shallower than anything that could overflow a stack.
MAX_DEPTH = 128

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def read_json(body: bytes, what: str) -> Any:
    """Read JSON: strict UTF-8, no NaN, no lone surrogates, bounded depth. `what` begins the refusal."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        said = "unexpected end of JSON input" if not body.strip() else str(error)
        raise bad_request(f"{what}: {said}") from error
    check_depth(value, body.count(b"{") + body.count(b"["), what)
    return value


def check_depth(value: Any, brackets: int, what: str) -> None:
    """Refuse what nests too deeply; `brackets` is an upper bound that often settles it."""
    if brackets <= MAX_DEPTH:
        return
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return
    raise bad_request(f"{what}: it nests deeper than {MAX_DEPTH} levels")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (each for each in value.values() if isinstance(each, (dict, list)))
    elif isinstance(value, list):
        yield from (each for each in value if isinstance(each, (dict, list)))


def read_object(request: Request, kind: str) -> Object:
    """Read the object that a body holds."""
    if request.headers.get("content-type", JSON).partition(";")[0].strip().lower() != JSON:
        raise unreadable(JSON)
    start = f"the object provided is unrecognized (must be of type {kind})"
    value = read_json(request.body, f"{start}: couldn't get version/kind; json parse error")
    if not isinstance(value, dict):
        raise bad_request(f"{start}: a JSON object is wanted, not {_named(value)}")
    if not isinstance(value.get("metadata", {}), dict):
        raise bad_request(f"{start}: metadata must be an object, not {_named(value['metadata'])}")
    return value


def duplicates(body: bytes, value: Any) -> tuple[str, ...]:
    """Give the paths of fields that stand in a body twice."""
    # Written again without any loss of bytes, nothing can have been there twice: the usual, cheap case.
    if len(orjson.dumps(value)) == len(body):
        return ()
    twice: dict[int, list[str]] = {}
    kept: list[Object] = []

    def build(pairs: list[tuple[str, Any]]) -> Object:
        built = dict(pairs)
        if len(built) != len(pairs):
            names = [name for name, _ in pairs]
            twice[id(built)] = [name for name in built if names.count(name) > 1]
            kept.append(built)
        return built

    # Numbers do not matter here, and huge ones would be refused.
    parsed = json.loads(body, object_pairs_hook=build, parse_int=len, parse_float=len)
    return tuple(_paths(parsed, twice, "")) if twice else ()


def _paths(value: Any, twice: dict[int, list[str]], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        start = f"{path}." if path else ""
        yield from (f"{start}{name}" for name in twice.get(id(value), ()))
        for name, inner in value.items():
            yield from _paths(inner, twice, f"{start}{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, twice, f"{path}[{index}]")


def read_options(request: Request, kind: str) -> Options:
    """Read what the query of a write asks for."""
    validation = request.query.get("fieldValidation", "")
    dry_run = request.query.get("dryRun", "")
    faults = []
    if validation not in _VALIDATIONS:
        listed = ", ".join(f'"{each}"' for each in _VALIDATIONS)
        hint = f"supported values: {listed}"
        faults.append(FieldFault("fieldValidation", validation, hint, Problem.UNSUPPORTED))
    if dry_run not in {"", "All"}:
        faults.append(FieldFault("dryRun", [dry_run], 'supported values: "All"', Problem.UNSUPPORTED))
    if faults:
        raise invalid(kind, "", faults, group="meta.k8s.io")
    return Options(dry_run=bool(dry_run), validation=validation or "Warn")


def _named(value: Any) -> str:
    names = {
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        dict: "an object",
    }
    return names.get(type(value), "null")
