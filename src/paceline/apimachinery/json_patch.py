"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from typing import Any

import orjson

from paceline.errors import BadRequest

MAX_OPERATIONS = 10_000
# Of a path; no object nests as deeply.
MAX_STEPS = 200
# Total size of all copies: copies of copies double with every operation.
MAX_COPIED_BYTES = 3 * 1024 * 1024

# The containers that a patch has copied and may change in place, by id; the reference keeps the id from reuse.
Copies = dict[int, Any]


class PatchFailed(BadRequest):
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
        raise BadRequest("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest(f"a JSON patch may have at most {MAX_OPERATIONS} operations")
    room = MAX_COPIED_BYTES
    copies: Copies = {}
    for number, operation in enumerate(operations):
        try:
            room = _room_after(room, target, operation)
            target = _apply(target, operation, copies)
        except PatchFailed as error:
            raise PatchFailed(f"operation {number} of the patch: {error}") from error
    return target


def _room_after(room: int, target: Any, operation: Any) -> int:
    if not isinstance(operation, dict) or operation.get("op") != "copy":
        return room
    try:
        room -= len(orjson.dumps(_found(target, _steps(operation, "from"))))
    except orjson.JSONEncodeError as error:
        raise PatchFailed("the copied value is nested too deeply") from error
    if room < 0:
        raise PatchFailed(f"copies may have at most {MAX_COPIED_BYTES} bytes together")
    return room


def _apply(target: Any, operation: Any, copies: Copies) -> Any:
    if not isinstance(operation, dict):
        raise PatchFailed("it is not an object")
    # A missing value counts as null, as in Kubernetes.
    path, value = _steps(operation, "path"), operation.get("value")
    match operation.get("op"):
        case "add":
            return _put(target, path, value, copies)
        case "remove":
            return _drop(target, path, copies)
        case "replace":
            return _replace(target, path, value, copies) if path else value
        case "move":
            start = _steps(operation, "from")
            value = _find(target, start)
            return _put(_drop(target, start, copies), path, value, copies)
        case "copy":
            # A deep copy, because the original may be changed in place.
            value = orjson.loads(orjson.dumps(_found(target, _steps(operation, "from"))))
            return _put(target, path, value, copies)
        case "test":
            if _find(target, path) != value:
                raise PatchFailed(f"the value at {operation['path']!r} differs")
            return target
        case other:
            raise PatchFailed(f"op must be add, remove, replace, move, copy or test, not {other!r}")


def _steps(operation: dict[str, Any], field: str) -> tuple[str, ...]:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchFailed(f"{field} must be a JSON pointer like /metadata/labels, not {text!r}")
    parts = text.split("/", MAX_STEPS + 1)[1:]
    if len(parts) > MAX_STEPS:
        raise PatchFailed(f"{field} may have at most {MAX_STEPS} steps")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def _find(target: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(target, dict) and step in target:
            target = target[step]
        elif isinstance(target, list):
            target = target[_index(target, step)]
        else:
            raise PatchFailed(f"there is nothing at {_spelled(path)!r}")
    return target


def _found(target: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path; null for a missing field, as in Kubernetes but unlike RFC 6902."""
    holder = _find(target, path[:-1])
    is_gap = bool(path) and isinstance(holder, dict) and path[-1] not in holder
    return None if is_gap else _find(target, path)


def _editable(target: Any, copies: Copies) -> Any:
    """Return a container that may be changed in place: the copy that an earlier operation made, or a new one."""
    if id(target) in copies:
        return target
    copy = target.copy()
    copies[id(copy)] = copy
    return copy


def _put(target: Any, path: tuple[str, ...], value: Any, copies: Copies) -> Any:
    """Return `target` with a value added at a path; only the parents are copied, once for all operations."""
    if not path:
        return value
    step, remaining = path[0], path[1:]
    if isinstance(target, dict):
        if remaining and step not in target:
            raise PatchFailed(f"there is nothing at {_spelled(path)!r}")
        inner = _put(target.get(step), remaining, value, copies)
        target = _editable(target, copies)
        target[step] = inner
        return target
    if isinstance(target, list):
        if remaining:
            position = _index(target, step)
            inner = _put(target[position], remaining, value, copies)
            target = _editable(target, copies)
            target[position] = inner
        else:
            position = len(target) if step == "-" else _index(target, step, end=1)
            target = _editable(target, copies)
            target.insert(position, value)
        return target
    raise PatchFailed(f"there is nothing at {_spelled(path)!r}")


def _replace(target: Any, path: tuple[str, ...], value: Any, copies: Copies) -> Any:
    """Return `target` with a value replaced; the field may be missing, but its parent must exist."""
    holder = _find(target, path[:-1])
    if isinstance(holder, dict):
        return _put(target, path, value, copies)
    _find(target, path)
    return _put(_drop(target, path, copies), path, value, copies)


def _drop(target: Any, path: tuple[str, ...], copies: Copies) -> Any:
    if not path:
        raise PatchFailed("it would remove the whole object")
    step, remaining = path[0], path[1:]
    if isinstance(target, dict) and step in target:
        return _dropped(target, step, remaining, copies)
    if isinstance(target, list):
        return _dropped(target, _index(target, step), remaining, copies)
    raise PatchFailed(f"there is nothing at {_spelled(path)!r}")


def _dropped(target: Any, position: str | int, remaining: tuple[str, ...], copies: Copies) -> Any:
    inner = _drop(target[position], remaining, copies) if remaining else None
    target = _editable(target, copies)
    if remaining:
        target[position] = inner
    else:
        del target[position]
    return target


def _index(target: list[Any], step: str, *, end: int = 0) -> int:
    # A plain number without sign or leading zeros, as RFC 6901 has it.
    if step.isascii() and step.isdigit() and len(step) < 10 and str(int(step)) == step:
        at = int(step)
        if at < len(target) + end:
            return at
    raise PatchFailed(f"{step!r} is not an index of a list of {len(target)} items")


def _spelled(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)
