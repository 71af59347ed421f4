"""Sets of fields: which parts of an object somebody owns, in the form that `managedFields` keeps (fieldsV1).

A path is a tuple of steps: `f:NAME` is a field, `k:{"KEY":…}` an item of a list by its keys, `v:VALUE` an item of a set
by its value, `i:INDEX` one by its place. In fieldsV1 every step is a key of a nested object. A step without anything
below is owned itself; one with something below is owned itself if `.` is in it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from paceline.errors import Malformed

Path = tuple[str, ...]
Paths = frozenset[Path]
# The nested form. Nobody changes one in place: parts are shared.
Fields = dict[str, Any]

SELF = "."
# More changes than this are quicker made to the whole set at once.
FEW = 16
_INDEX_DIGITS = 10
# Around one key and one value that are both words.
_QUOTES = 4


def field_step(name: str) -> str:
    """Write the step to a field."""
    return f"f:{name}"


def value_step(value: Any) -> str:
    """Write the step to an item of a set."""
    return f"v:{_dumped(value)}"


def keys_step(keys: Mapping[str, Any]) -> str:
    """Write the step to an item of a list whose items have keys."""
    return f"k:{_dumped(keys)}"


def _dumped(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def encode(paths: Iterable[Path]) -> Fields:
    """Write a set in its nested form, every level in order."""
    fields = nested(paths)
    fields.pop(SELF, None)
    return _tidy(fields)


def nested(paths: Iterable[Path]) -> Fields:
    """Give a set to look into: in no order, and whatever is owned says so itself."""
    fields: Fields = {}
    for path in paths:
        node = fields
        for step in path:
            node = node.setdefault(step, {})
        node[SELF] = {}
    return fields


def _tidy(fields: Fields) -> Fields:
    """Give a level in order, and what is owned without anything below as Kubernetes writes it."""
    return {
        step: {} if len(below) == 1 and SELF in below else _tidy(below)
        for step, below in (fields.items() if len(fields) < 2 else _sorted(fields))
    }


def in_order(fields: Fields) -> Fields:
    """Give one level of a set in order."""
    return dict(_sorted(fields))


def _sorted(fields: Fields) -> list[tuple[str, Any]]:
    # As text, what is owned itself and fields by name stand in the right order, before all else.
    last = max(fields)
    is_text = last[0] in "f." or (last.endswith('"}') and all(map(_has_one_word, fields)))
    return sorted(fields.items()) if is_text else sorted(fields.items(), key=_place)


def _has_one_word(step: str) -> bool:
    """Tell whether a step has its place by its text: it names an item by one key that is a word."""
    return step == SELF or (step.endswith('"}') and step.startswith("k:") and step.count('"') == _QUOTES)


def decode(fields: Fields) -> Paths:
    """Read a set that `encode` or `read` made."""
    return frozenset(_decoded(fields, ()))


def _decoded(fields: Fields, path: Path) -> Iterable[Path]:
    for step, below in fields.items():
        if step == SELF:
            yield path
        elif below:
            yield from _decoded(below, (*path, step))
        else:
            yield (*path, step)


def read(fields: Any) -> Fields:
    """Read a nested form that a stranger wrote; Malformed when it is none."""
    if not isinstance(fields, dict):
        raise Malformed("a set of fields is an object")
    return encode(frozenset(_strange(fields, ())))


def _strange(fields: Any, path: Path) -> Iterable[Path]:
    if not isinstance(fields, dict):
        raise Malformed(f"there is no object at {path}")
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
    sort, _, rest = step.partition(":")
    if sort == "f":
        return step
    if sort == "i" and len(rest) < _INDEX_DIGITS and rest.removeprefix("-").isdigit():
        return step
    if sort not in {"k", "v"}:
        raise Malformed(f"{step!r} is no step of a path")
    try:
        value = orjson.loads(rest)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"{step!r} is no step of a path: {error}") from error
    if sort == "v":
        return value_step(value)
    if not isinstance(value, dict):
        raise Malformed(f"{step!r} is no step of a path: its keys are not an object")
    return keys_step(value)


def _place(item: tuple[str, Any]) -> tuple[Any, ...]:
    """Say where a step stands among its neighbours: the level itself, fields, keys, values, places."""
    step = item[0]
    if step == SELF:
        return (-1,)
    sort, _, rest = step.partition(":")
    if sort == "f":
        return (0, rest)
    if sort == "k":
        return (1, *((name, _rank(value)) for name, value in orjson.loads(rest).items()))
    return (2, _rank(orjson.loads(rest))) if sort == "v" else (3, int(rest))


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (0, value)
    return (1, value) if isinstance(value, str) else (2, _dumped(value))


def has(fields: Fields, path: Path) -> bool:
    """Tell whether a path is in a set."""
    for step in path:
        found = fields.get(step)
        if found is None:
            return False
        fields = found
    return not fields or SELF in fields


def covers(fields: Fields, others: Fields) -> bool:
    """Tell whether a set has all that another one has."""
    return all(step in fields and _covers(fields[step], below) for step, below in others.items())


def _covers(fields: Fields, others: Fields) -> bool:
    """Tell the same of what lies below a step, where nothing means that the step itself is owned."""
    if fields == others:
        return True
    is_owned = not fields or SELF in fields
    return all(
        is_owned if step == SELF else step in fields and _covers(fields[step], below)
        for step, below in (others or {SELF: {}}).items()
    )


def plus(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Give a set and some more paths; if they are few, without looking at the rest of it."""
    more = [path for path in paths if path and not has(fields, path)]
    if len(more) > FEW:
        return encode(decode(fields).union(more))
    for path in more:
        fields = _put(fields, path)
    return fields


def _put(fields: Fields, path: Path) -> Fields:
    step, rest = path[0], path[1:]
    there = fields.get(step)
    if there is None:
        return in_order({**fields, step: encode((rest,))})
    if not rest:
        return fields if not there or SELF in there else {**fields, step: {SELF: {}, **there}}
    # What has nothing below is owned itself, and stays so.
    below = _put(there or {SELF: {}}, rest)
    return {**fields, step: below}


def minus(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Give a set without some paths; what lies below them stays."""
    less = shared(fields, paths)
    if len(less) > FEW:
        return encode(decode(fields).difference(less))
    for path in less:
        fields = _drop(fields, path)
    return fields


def shared(fields: Fields, paths: Iterable[Path]) -> list[Path]:
    """Return those paths that are in a set; of many, in the time that the smaller of both takes."""
    if isinstance(paths, frozenset) and len(paths) > FEW:
        return [path for path in decode(fields) if path and path in paths]
    return [path for path in dict.fromkeys(paths) if path and has(fields, path)]


def _drop(fields: Fields, path: Path) -> Fields:
    step, rest = path[0], path[1:]
    there = fields[step]
    below = _drop(there, rest) if rest else {name: each for name, each in there.items() if name != SELF}
    if not below:
        return {name: each for name, each in fields.items() if name != step}
    return {**fields, step: {} if len(below) == 1 and SELF in below else below}


def minus_all(fields: Fields, paths: Iterable[Path]) -> Fields:
    """Give a set without some paths and all that lies below them."""
    for path in paths:
        fields = _cut(fields, path)
    return fields


def _cut(fields: Fields, path: Path) -> Fields:
    step, rest = path[0], path[1:]
    if step not in fields:
        return fields
    below = _cut(fields[step], rest) if rest else {}
    if rest and below is fields[step]:
        return fields
    if not below:
        return {name: each for name, each in fields.items() if name != step}
    return {**fields, step: {} if len(below) == 1 and SELF in below else below}


def is_below(path: Path, tops: Iterable[Path]) -> bool:
    """Tell whether a path is one of `tops` or lies below one."""
    return any(path[: len(top)] == top for top in tops)


def spell(path: Path) -> str:
    """Spell a path as conflicts name it: .spec.containers[name="main"].image."""
    return "".join(_spelled(step) for step in path)


def _spelled(step: str) -> str:
    sort, _, rest = step.partition(":")
    if sort == "f":
        return f".{rest}"
    if sort == "k":
        keys = orjson.loads(rest).items()
        return f"[{','.join(f'{name}={_dumped(value)}' for name, value in keys)}]"
    return f"[={rest}]" if sort == "v" else f"[{rest}]"
