"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from typing import Any

import orjson

from paceline.errors import BadRequest

MAX_OPERATIONS = 10_000
# Of a path; no object nests as deeply.
MAX_STEPS = 200
# Total size of all copies: copies of copies double with every operation.
MAX_COPIED_BYTES = 3 * 1024 * 1024

# The object is the only field of a holder, so that the empty path is not special.
_ROOT = "object"
Path = tuple[str, ...]


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
    """Return `target` with a JSON patch applied; `target` and the patch are not changed."""
    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise BadRequest(f"a JSON patch may have at most {MAX_OPERATIONS} operations")
    patch = _Patch(target)
    for number, operation in enumerate(operations):
        try:
            patch.apply(operation)
        except PatchFailed as error:
            raise PatchFailed(f"operation {number} of the patch: {error}") from error
    return patch.holder[_ROOT]


class _Patch:
    """A copy of an object, which operations change in place."""

    def __init__(self, target: Any) -> None:
        self.holder = {_ROOT: _copied(target)[0]}
        self._room = MAX_COPIED_BYTES

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise PatchFailed("it is not an object")
        path = _path(operation, "path")
        # A missing value counts as null, as in Kubernetes.
        value = operation.get("value")
        match operation.get("op"):
            case "add":
                self._add(path, _copied(value)[0])
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, _copied(value)[0])
            case "move":
                start = _path(operation, "from")
                value = self._find(start)
                self._remove(start)
                self._add(path, value)
            case "copy":
                self._add(path, self._copy_of(_path(operation, "from")))
            case "test":
                if self._find(path) != value:
                    raise PatchFailed(f"the value at {operation['path']!r} differs")
            case other:
                raise PatchFailed(f"op must be add, remove, replace, move, copy or test, not {other!r}")

    def _find(self, path: Path) -> Any:
        target: Any = self.holder
        for step in path:
            if isinstance(target, dict) and step in target:
                target = target[step]
            elif isinstance(target, list):
                target = target[_index(target, step)]
            else:
                raise PatchFailed(f"there is nothing at {_spelled(path)!r}")
        return target

    def _parent(self, path: Path) -> Any:
        """Return the object or list that contains the value at a path."""
        parent = self._find(path[:-1])
        if not isinstance(parent, (dict, list)):
            raise PatchFailed(f"there is nothing at {_spelled(path)!r}")
        return parent

    def _add(self, path: Path, value: Any) -> None:
        parent, step = self._parent(path), path[-1]
        if isinstance(parent, dict):
            parent[step] = value
        else:
            parent.insert(len(parent) if step == "-" else _index(parent, step, end=1), value)

    def _replace(self, path: Path, value: Any) -> None:
        """Replace a value; the field of an object may be missing, but not the item of a list."""
        parent, step = self._parent(path), path[-1]
        parent[step if isinstance(parent, dict) else _index(parent, step)] = value

    def _remove(self, path: Path) -> None:
        if len(path) == 1:
            raise PatchFailed("it would remove the whole object")
        self._find(path)
        parent, step = self._parent(path), path[-1]
        del parent[step if isinstance(parent, dict) else _index(parent, step)]

    def _copy_of(self, path: Path) -> Any:
        """Return a copy of a value; null for a missing field, as in Kubernetes but unlike RFC 6902."""
        parent, step = self._parent(path), path[-1]
        copy, size = _copied(parent.get(step) if isinstance(parent, dict) else parent[_index(parent, step)])
        self._room -= size
        if self._room < 0:
            raise PatchFailed(f"copies may have at most {MAX_COPIED_BYTES} bytes together")
        return copy


def _copied(value: Any) -> tuple[Any, int]:
    """Return a deep copy of a value, and its size."""
    try:
        data = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise PatchFailed("the copied value is nested too deeply") from error
    return orjson.loads(data), len(data)


def _path(operation: dict[str, Any], field: str) -> Path:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchFailed(f"{field} must be a JSON pointer like /metadata/labels, not {text!r}")
    parts = text.split("/", MAX_STEPS + 1)[1:]
    if len(parts) > MAX_STEPS:
        raise PatchFailed(f"{field} may have at most {MAX_STEPS} steps")
    return (_ROOT, *(part.replace("~1", "/").replace("~0", "~") for part in parts))


def _index(target: list[Any], step: str, *, end: int = 0) -> int:
    # A plain number without sign or leading zeros, as RFC 6901 has it.
    if step.isascii() and step.isdigit() and len(step) < 10 and str(int(step)) == step:
        at = int(step)
        if at < len(target) + end:
            return at
    raise PatchFailed(f"{step!r} is not an index of a list of {len(target)} items")


def _spelled(path: Path) -> str:
    return "/" + "/".join(path[1:])
