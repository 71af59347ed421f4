"""Field sets: the parts of an object that a manager owns, in the format of `managedFields` (fieldsV1).

A path is a tuple of steps: `f:NAME` is a field, `k:{"KEY":…}` an item of a list by its keys, `v:VALUE` an item of a set
by its value, `i:INDEX` one by its index. In fieldsV1 every step is a key of a nested object. A step with an empty
object is owned itself; one with a non-empty object is owned itself if that contains `.`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from paceline.errors import BadRequest

Path = tuple[str, ...]
Paths = frozenset[Path]
# The nested form. Never changed in place, because parts are shared.
Fields = dict[str, Any]

SELF = "."
# For more changes than this, rebuilding the whole set is faster.
FEW = 16
_INDEX_DIGITS = 10
# Number of quotes around one key and one string value.
_QUOTES = 4


def field_step(name: str) -> str:
    """Return the path step of a field."""
    return f"f:{name}"


def value_step(value: Any) -> str:
    """Return the path step of an item of a set."""
    return f"v:{_dumped(value)}"


def keys_step(keys: Mapping[str, Any]) -> str:
    """Return the path step of a list item that is identified by keys."""
    return f"k:{_dumped(keys)}"


def _dumped(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def encode(paths: Iterable[Path]) -> Fields:
    """Return a set in nested form, with every level sorted."""
    fields = nested(paths)
    fields.pop(SELF, None)
    return _tidy(fields)


def nested(paths: Iterable[Path]) -> Fields:
    """Return a set in nested form for lookups: unsorted, with `.` in every owned step."""
    fields: Fields = {}
    for path in paths:
        node = fields
        for step in path:
            node = node.setdefault(step, {})
        node[SELF] = {}
    return fields


def _tidy(fields: Fields) -> Fields:
    """Return a set sorted, with owned leaves as empty objects, as Kubernetes writes them."""
    return {
        step: {} if len(below) == 1 and SELF in below else _tidy(below)
        for step, below in (fields.items() if len(fields) < 2 else _sorted(fields))
    }


def in_order(fields: Fields) -> Fields:
    """Return one level of a set, sorted."""
    return dict(_sorted(fields))


def _sorted(fields: Fields) -> list[tuple[str, Any]]:
    # `.` and fields sort correctly as strings, before all other steps.
    last = max(fields)
    is_text = last[0] in "f." or (last.endswith('"}') and all(map(_has_one_word, fields)))
    return sorted(fields.items()) if is_text else sorted(fields.items(), key=_place)


def _has_one_word(step: str) -> bool:
    """Return whether a step sorts correctly as a string: it names an item by a single string key."""
    return step == SELF or (step.endswith('"}') and step.startswith("k:") and step.count('"') == _QUOTES)


def decode(fields: Fields) -> Paths:
    """Return the paths of a set that `encode` or `read` returned."""
    return frozenset(_decoded(fields, ()))


def _decoded(fields: Fields, path: Path) -> Iterable[Path]:
    for step, below in fields.items():
        if step == SELF:
            yield path
        elif below:
            yield from _decoded(below, (*path, step))
        else:
            yield (*path, step)


def union(sets: Iterable[Fields]) -> Fields:
    """Return the union of field sets."""
    return encode(frozenset().union(*map(decode, sets)))


def read(fields: Any) -> Fields:
    """Return a nested form that a client sent, normalized; raise BadRequest if it is invalid."""
    if not isinstance(fields, dict):
        raise BadRequest("a set of fields is an object")
    return encode(frozenset(_strange(fields, ())))


def _strange(fields: Any, path: Path) -> Iterable[Path]:
    if not isinstance(fields, dict):
        raise BadRequest(f"there is no object at {path}")
    for step, below in fields.items():
        if step == SELF:
            yield path
            continue
        here = (*path, _checked(step))
        if not below:
            yield here
        else:
            yield from _strange(below, here)


def _checked(step: str) -> str:
    sort, _, content = step.partition(":")
    if sort == "f":
        return step
    if sort == "i" and len(content) < _INDEX_DIGITS and content.removeprefix("-").isdigit():
        return step
    if sort not in {"k", "v"}:
        raise BadRequest(f"{step!r} is no step of a path")
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{step!r} is no step of a path: {error}") from error
    if sort == "v":
        return value_step(value)
    if not isinstance(value, dict):
        raise BadRequest(f"{step!r} is no step of a path: its keys are not an object")
    return keys_step(value)


def _place(item: tuple[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of a step: the level itself, fields, keys, values, indexes."""
    step = item[0]
    if step == SELF:
        return (-1,)
    sort, _, content = step.partition(":")
    if sort == "f":
        return (0, content)
    if sort == "k":
        return (1, *((name, _rank(value)) for name, value in orjson.loads(content).items()))
    return (2, _rank(orjson.loads(content))) if sort == "v" else (3, int(content))


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, _dumped(value))


def has(fields: Fields, path: Path) -> bool:
    """Return whether a path is in a set."""
    for step in path:
        child = fields.get(step)
        if child is None:
            return False
        fields = child
    return not fields or SELF in fields


def covers(fields: Fields, others: Fields) -> bool:
    """Return whether a set contains all paths of another one."""
    return all(step in fields and _covers(fields[step], below) for step, below in others.items())


def _covers(fields: Fields, others: Fields) -> bool:
    """Return the same for the content of a step, where an empty object means that the step itself is owned."""
    if fields == others:
        return True
    is_owned = not fields or SELF in fields
    return all(
        is_owned if step == SELF else step in fields and _covers(fields[step], below)
        for step, below in (others or {SELF: {}}).items()
    )


def plus(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Return a set with paths added; a few are added without visiting the whole set."""
    missing = [path for path in paths if path and not has(fields, path)]
    if len(missing) > FEW:
        return encode(decode(fields).union(missing))
    for path in missing:
        fields = _put(fields, path)
    return fields


def _put(fields: Fields, path: Path) -> Fields:
    step, remaining = path[0], path[1:]
    child = fields.get(step)
    if child is None:
        return in_order({**fields, step: encode((remaining,))})
    if not remaining:
        return fields if not child or SELF in child else {**fields, step: {SELF: {}, **child}}
    # A step with an empty object is owned itself, and stays so.
    below = _put(child or {SELF: {}}, remaining)
    return {**fields, step: below}


def minus(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Return a set without some paths; the paths below them stay."""
    present = shared(fields, paths)
    if len(present) > FEW:
        return encode(decode(fields).difference(present))
    for path in present:
        fields = _drop(fields, path, with_below=False)
    return fields


def shared(fields: Fields, paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are in a set; many paths, given as a frozenset, are looked up in one pass over the set."""
    if isinstance(paths, frozenset) and len(paths) > FEW:
        return [path for path in decode(fields) if path and path in paths]
    return [path for path in dict.fromkeys(paths) if path and has(fields, path)]


def minus_all(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Return a set without some paths and all paths below them."""
    for path in paths:
        fields = _drop(fields, path, with_below=True)
    return fields


def _drop(fields: Fields, path: Path, *, with_below: bool) -> Fields:
    step, remaining = path[0], path[1:]
    child = fields.get(step)
    if child is None:
        return fields
    if remaining:
        below = _drop(child, remaining, with_below=with_below)
        if below is child:
            return fields
    else:
        below = {} if with_below else {name: inner for name, inner in child.items() if name != SELF}
    if not below:
        return {name: child for name, child in fields.items() if name != step}
    return {**fields, step: {} if len(below) == 1 and SELF in below else below}


def is_below(path: Path, tops: Iterable[Path]) -> bool:
    """Return whether a path is at or below one of `tops`."""
    return any(path[: len(top)] == top for top in tops)


def spell(path: Path) -> str:
    """Return a path as it appears in conflicts: .spec.containers[name="main"].image."""
    return "".join(_spelled(step) for step in path)


def _spelled(step: str) -> str:
    sort, _, content = step.partition(":")
    if sort == "f":
        return f".{content}"
    if sort == "k":
        keys = orjson.loads(content).items()
        return f"[{','.join(f'{name}={_dumped(value)}' for name, value in keys)}]"
    return f"[={content}]" if sort == "v" else f"[{content}]"
