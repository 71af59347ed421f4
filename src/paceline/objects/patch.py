"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from typing import Any

import orjson

from paceline.errors import Malformed

MAX_OPERATIONS = 10_000
# Total size of all copies: copies of copies double with every operation.
MAX_COPIED_BYTES = 3 * 1024 * 1024


class Unfit(Malformed):
    """A valid patch that cannot be applied to its object."""


def merge(target: Any, patch: Any) -> Any:
    """Return `target` with a merge patch applied; neither is changed, parts may be shared."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def apply_operations(target: Any, operations: Any) -> Any:
    """Return `target` with a JSON patch applied; `target` itself is not changed."""
    if not isinstance(operations, list):
        raise Malformed("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise Malformed(f"a JSON patch may have at most {MAX_OPERATIONS} operations")
    room = MAX_COPIED_BYTES
    for number, operation in enumerate(operations):
        try:
            room = _room_after(room, target, operation)
            target = _apply(target, operation)
        except Unfit as error:
            raise Unfit(f"operation {number} of the patch: {error}") from error
    return target


def _room_after(room: int, target: Any, operation: Any) -> int:
    if not isinstance(operation, dict) or operation.get("op") != "copy":
        return room
    room -= len(orjson.dumps(_found(target, _steps(operation, "from"))))
    if room < 0:
        raise Unfit(f"copies may have at most {MAX_COPIED_BYTES} bytes together")
    return room


def _apply(target: Any, operation: Any) -> Any:
    if not isinstance(operation, dict):
        raise Unfit("it is not an object")
    path = _steps(operation, "path")
    match operation.get("op"):
        case "add":
            return _put(target, path, _value(operation))
        case "remove":
            return _drop(target, path)
        case "replace":
            value = _value(operation)
            if not path:
                return value
            return _replace(target, path, value)
        case "move":
            start = _steps(operation, "from")
            value = _find(target, start)
            return _put(_drop(target, start), path, value)
        case "copy":
            return _put(target, path, _found(target, _steps(operation, "from")))
        case "test":
            if _find(target, path) != _value(operation):
                raise Unfit(f"the value at {operation['path']!r} is another one")
            return target
        case other:
            operations = "add, remove, replace, move, copy or test"
            raise Unfit(f"op is {other!r}, which is none of {operations}")


def _value(operation: dict[str, Any]) -> Any:
    # A missing value counts as null, as in Kubernetes.
    return operation.get("value")


def _steps(operation: dict[str, Any], field: str) -> tuple[str, ...]:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise Unfit(f"{field} must be a JSON pointer like /metadata/labels, not {text!r}")
    parts = text.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _find(target: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list):
            target = target[_index(target, step)]
        else:
            raise Unfit(f"there is nothing at {_spelled(path)!r}")
    return target


def _found(target: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path; null for a missing field, as in Kubernetes but unlike RFC 6902."""
    holder = _find(target, path[:-1])
    is_gap = bool(path) and isinstance(holder, dict) and path[-1] not in holder
    return None if is_gap else _find(target, path)


def _put(target: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy of `target` with a value added at a path; only the parents are copied."""
    if not path:
        return value
    step, remaining = path[0], path[1:]
    if isinstance(target, dict):
        if remaining and step not in target:
            raise Unfit(f"there is nothing at {_spelled(path)!r}")
        return {**target, step: _put(target.get(step), remaining, value)}
    if isinstance(target, list):
        copy = list(target)
        if remaining:
            position = _index(target, step)
            copy[position] = _put(target[position], remaining, value)
        else:
            position = len(copy) if step == "-" else _index(target, step, end=1)
            copy.insert(position, value)
        return copy
    raise Unfit(f"there is nothing at {_spelled(path)!r}")


def _replace(target: Any, path: tuple[str, ...], value: Any) -> Any:
    """Return a copy of `target` with a value replaced; the field may be missing, but its parent must exist."""
    holder = _find(target, path[:-1])
    if isinstance(holder, dict):
        return _put(target, path, value)
    _find(target, path)
    return _put(_drop(target, path), path, value)


def _drop(target: Any, path: tuple[str, ...]) -> Any:
    if not path:
        raise Unfit("it would remove the whole object")
    step, remaining = path[0], path[1:]
    if isinstance(target, dict) and step in target:
        if remaining:
            return {**target, step: _drop(target[step], remaining)}
        return {name: value for name, value in target.items() if name != step}
    if isinstance(target, list):
        position = _index(target, step)
        if remaining:
            return [*target[:position], _drop(target[position], remaining), *target[position + 1 :]]
        return [*target[:position], *target[position + 1 :]]
    raise Unfit(f"there is nothing at {_spelled(path)!r}")


def _index(target: list[Any], step: str, *, end: int = 0) -> int:
    # A plain number without sign or leading zeros, as RFC 6901 has it.
    if step.isascii() and step.isdigit() and len(step) < 10 and str(int(step)) == step:
        at = int(step)
        if at < len(target) + end:
            return at
    raise Unfit(f"{step!r} is no place in a list of {len(target)}")


def _spelled(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)
