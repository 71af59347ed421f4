"""Changing parts of an object: JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from typing import Any

import orjson

from paceline.errors import Malformed

MAX_OPERATIONS = 10_000
# Copies of copies double with every operation; all of them together may have this much.
MAX_COPIED_BYTES = 3 * 1024 * 1024

# The containers that a patch has copied and may change in place, by id; held, so that no other gets the id.
Ours = dict[int, Any]


class Unfit(Malformed):
    """A patch that can be read but does not fit the object it is for."""


def merge(target: Any, patch: Any) -> Any:
    """Give `target` with a merge patch applied; neither is changed, parts may be shared."""
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
    """Give `target` with a JSON patch applied; `target` itself is not changed."""
    if not isinstance(operations, list):
        raise Malformed("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise Malformed(f"a JSON patch may have at most {MAX_OPERATIONS} operations")
    room = MAX_COPIED_BYTES
    ours: Ours = {}
    for number, operation in enumerate(operations):
        try:
            room = _room_after(room, target, operation)
            target = _apply(target, operation, ours)
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


def _apply(target: Any, operation: Any, ours: Ours) -> Any:
    if not isinstance(operation, dict):
        raise Unfit("it is not an object")
    path = _steps(operation, "path")
    match operation.get("op"):
        case "add":
            return _put(target, path, _value(operation), ours)
        case "remove":
            return _drop(target, path, ours)
        case "replace":
            value = _value(operation)
            if not path:
                return value
            return _replace(target, path, value, ours)
        case "move":
            start = _steps(operation, "from")
            value = _find(target, start)
            return _put(_drop(target, start, ours), path, value, ours)
        case "copy":
            # Apart from what it is a copy of, which may be changed in place.
            value = orjson.loads(orjson.dumps(_found(target, _steps(operation, "from"))))
            return _put(target, path, value, ours)
        case "test":
            if _find(target, path) != _value(operation):
                raise Unfit(f"the value at {operation['path']!r} is another one")
            return target
        case other:
            known = "add, remove, replace, move, copy or test"
            raise Unfit(f"op is {other!r}, which is none of {known}")


def _value(operation: dict[str, Any]) -> Any:
    # What is not said counts as null, as in Kubernetes.
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
    """Give what lies at a path; null for a field that is not there, as in Kubernetes, whatever RFC 6902 says."""
    holder = _find(target, path[:-1])
    is_gap = bool(path) and isinstance(holder, dict) and path[-1] not in holder
    return None if is_gap else _find(target, path)


def _our(target: Any, ours: Ours) -> Any:
    """Return a container that may be changed in place: the copy that an earlier operation made, or one made now."""
    if id(target) in ours:
        return target
    copy = target.copy()
    ours[id(copy)] = copy
    return copy


def _put(target: Any, path: tuple[str, ...], value: Any, ours: Ours) -> Any:
    """Give `target` with a value at a path; what lies on the path is copied, once for all operations."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(target, dict):
        if rest and step not in target:
            raise Unfit(f"there is nothing at {_spelled(path)!r}")
        inner = _put(target.get(step), rest, value, ours)
        target = _our(target, ours)
        target[step] = inner
        return target
    if isinstance(target, list):
        if rest:
            at = _index(target, step)
            inner = _put(target[at], rest, value, ours)
            target = _our(target, ours)
            target[at] = inner
        else:
            at = len(target) if step == "-" else _index(target, step, end=1)
            target = _our(target, ours)
            target.insert(at, value)
        return target
    raise Unfit(f"there is nothing at {_spelled(path)!r}")


def _replace(target: Any, path: tuple[str, ...], value: Any, ours: Ours) -> Any:
    """Give `target` with another value at a path; a field need not be there, but what holds it must."""
    holder = _find(target, path[:-1])
    if isinstance(holder, dict):
        return _put(target, path, value, ours)
    _find(target, path)
    return _put(_drop(target, path, ours), path, value, ours)


def _drop(target: Any, path: tuple[str, ...], ours: Ours) -> Any:
    if not path:
        raise Unfit("it would remove the whole object")
    step, rest = path[0], path[1:]
    if isinstance(target, dict) and step in target:
        return _dropped(target, step, rest, ours)
    if isinstance(target, list):
        return _dropped(target, _index(target, step), rest, ours)
    raise Unfit(f"there is nothing at {_spelled(path)!r}")


def _dropped(target: Any, place: str | int, rest: tuple[str, ...], ours: Ours) -> Any:
    inner = _drop(target[place], rest, ours) if rest else None
    target = _our(target, ours)
    if rest:
        target[place] = inner
    else:
        del target[place]
    return target


def _index(target: list[Any], step: str, *, end: int = 0) -> int:
    # A plain number without sign or leading zeros, as RFC 6901 has it.
    if step.isascii() and step.isdigit() and len(step) < 10 and str(int(step)) == step:
        at = int(step)
        if at < len(target) + end:
            return at
    raise Unfit(f"{step!r} is no place in a list of {len(target)}")


def _spelled(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)
