"""Objects by their types: what differs between two, which fields one has, two made one, parts taken out."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from paceline.objects.fieldset import SELF, Fields, Path, encode, field_step, in_order, is_below
from paceline.objects.typed import FREE, PIECE, Sort, Type, step_to


class Absent:
    """What stands where nothing is; null is something."""


ABSENT = Absent()
_EMPTY: tuple[Any, ...] = (ABSENT, None, {}, [])


@dataclass(slots=True)
class Comparison:
    """How a new object differs from an old one, by paths."""

    added: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    modified: list[Path] = field(default_factory=list)

    def without(self, tops: tuple[Path, ...]) -> "Comparison":
        """Give the same, but for what is one of `tops` or lies below one."""
        if not tops:
            return self
        kept = ([path for path in part if not is_below(path, tops)] for part in self._parts())
        added, removed, modified = kept
        return Comparison(added=added, removed=removed, modified=modified)

    def _parts(self) -> tuple[list[Path], list[Path], list[Path]]:
        return self.added, self.removed, self.modified


def compare(known: Type, old: Any, new: Any) -> Comparison:
    """Find what differs; whatever is equal costs one comparison."""
    found = Comparison()
    _compare(known, (old, new), (), found)
    return found


def _compare(known: Type, pair: tuple[Any, Any], path: Path, found: Comparison) -> None:
    old, new = pair
    if old is ABSENT:
        _collect(known, new, path, found.added)
    elif new is ABSENT:
        _collect(known, old, path, found.removed)
    elif old != new:
        sort = known.like(old, new)
        if sort is Sort.PIECE or not (old or new) or not _is_fit(sort, old, new):
            found.modified.append(path)
        elif sort is Sort.MAP:
            _compare_maps(known, (old or {}, new or {}), path, found)
        else:
            _compare_lists(known, (old or (), new or ()), path, found)


def _collect(known: Type, value: Any, path: Path, paths: list[Path]) -> None:
    """Add the path to a value that came or went as a whole, and those to all its parts."""
    sort = known.sort if known.sort is not Sort.FREE else known.like(value)
    if sort is Sort.PIECE or not value or not _is_fit(sort, value):
        pass
    elif sort is Sort.MAP:
        fields, others = known.fields, known.values or FREE
        for name, inner in value.items():
            _collect(fields.get(name) or others, inner, (*path, "f:" + name), paths)
    else:
        for step, items in _by_step(known, value).items():
            if len(items) == 1:
                _collect(known.items or PIECE, items[0], (*path, step), paths)
            else:
                paths.append((*path, step))
    if path:
        paths.append(path)


def _is_fit(sort: Sort, *values: Any) -> bool:
    wanted = dict if sort is Sort.MAP else list
    return all(each is ABSENT or each is None or isinstance(each, wanted) for each in values)


def _compare_maps(known: Type, pair: tuple[Any, Any], path: Path, found: Comparison) -> None:
    old, new = pair
    for name, value in old.items():
        _compare(known.below(name), (value, new.get(name, ABSENT)), (*path, field_step(name)), found)
    for name, value in new.items():
        if name not in old:
            _compare(known.below(name), (ABSENT, value), (*path, field_step(name)), found)


def _compare_lists(known: Type, pair: tuple[Any, Any], path: Path, found: Comparison) -> None:
    old, new = (_by_step(known, each) for each in pair)
    inner = known.items or PIECE
    for step in (*old, *(step for step in new if step not in old)):
        before, after = old.get(step, ()), new.get(step, ())
        here = (*path, step)
        if len(before) < 2 and len(after) < 2:
            _compare(inner, ((*before, ABSENT)[0], (*after, ABSENT)[0]), here, found)
        elif before != after:
            # Twins cannot be told apart: they are owned together.
            part = found.added if not before else found.removed if not after else found.modified
            part.append(here)


def whole(known: Type, value: Any) -> Fields:
    """Give the set of a value that is new as a whole and of all its parts, in its nested form."""
    sort = known.sort if known.sort is not Sort.FREE else known.like(value)
    if sort is Sort.PIECE or not value or not isinstance(value, dict if sort is Sort.MAP else list):
        return {}
    fields: Fields = {SELF: {}}
    if sort is Sort.MAP:
        named, others = known.fields, known.values or FREE
        for name in sorted(value):
            inner = value[name]
            # Most are neither, and a call for each of them would take most of the time.
            is_made_up = isinstance(inner, (dict, list))
            fields["f:" + name] = whole(named.get(name) or others, inner) if is_made_up else {}
        return fields
    items = known.items or PIECE
    for step, item in _by_step(known, value).items():
        fields[step] = whole(items, item[0]) if len(item) == 1 else {}
    return in_order(fields)


def _by_step(known: Type, items: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(step_to(known, item), []).append(item)
    return found


def said_in(known: Type, value: Any) -> Fields | None:
    """Give what somebody owns who says exactly this value, in its nested form; None when that is nothing."""
    sort = known.like(value)
    if sort is Sort.PIECE or not _is_fit(sort, value):
        return {}
    fields: Fields = {}
    if sort is Sort.MAP:
        for name in sorted(value or ()):
            inner, is_named = value[name], name in known.fields
            below = said_in(known.below(name), inner) if isinstance(inner, (dict, list)) else {}
            if below is not None or inner == {} or not is_named:
                fields["f:" + name] = {SELF: {}, **below} if below and not is_named else below or {}
        return fields or None
    for step, items in _by_step(known, value or ()).items():
        below = said_in(known.items or PIECE, items[0]) if len(items) == 1 else _said_in_twins(known, items)
        fields[step] = {SELF: {}, **below} if below else {}
    return in_order(fields) if fields else None


def _said_in_twins(known: Type, items: list[Any]) -> Fields:
    return encode(path for item in items for path in paths_of(known.items or PIECE, item) if path)


def paths_of(known: Type, value: Any, path: Path = ()) -> Iterator[Path]:
    """Give the paths that somebody owns who says exactly this value."""
    sort = known.like(value)
    if sort is Sort.PIECE or not _is_fit(sort, value):
        yield path
    elif sort is Sort.MAP:
        for name, inner in (value or {}).items():
            here = (*path, field_step(name))
            if not isinstance(inner, (dict, list)):
                yield here
                continue
            yield from paths_of(known.below(name), inner, here)
            if inner == {} or name not in known.fields:
                yield here
    else:
        for item in value or ():
            here = (*path, step_to(known, item))
            yield from paths_of(known.items or PIECE, item, here)
            yield here


def merged(known: Type, live: Any, said: Any) -> Any:
    """Give what is there with what somebody says about it; neither is changed, parts may be shared."""
    if said is ABSENT:
        return live
    if live is ABSENT:
        return said
    sort = known.like(live, said)
    if sort is Sort.PIECE or not _is_fit(sort, live, said) or (live in _EMPTY and said in _EMPTY):
        return said
    if sort is Sort.MAP:
        there, wanted = live or {}, said or {}
        both = {**there, **wanted}
        # Only what is made up of parts has something to merge.
        deep = [name for name, value in wanted.items() if name in there and not isinstance(value, str)]
        return both | {name: merged(known.below(name), there[name], wanted[name]) for name in deep}
    return _merged_lists(known, live or [], said or [])


def _merged_lists(known: Type, live: list[Any], said: list[Any]) -> list[Any]:
    """Merge items that are the same one; the order is what is said, and others keep their place between those."""
    left, wanted = [(step_to(known, item), item) for item in live], _by_step(known, said)
    there = _by_step(known, live)
    # Both are taken from the front only, in the order of what is said.
    shared = deque(step for step in wanted if step in there)
    inner, result = known.items or PIECE, []
    waiting, taken = deque(wanted), set[str]()

    def take(step: str) -> None:
        taken.add(waiting.popleft())
        if shared and shared[0] == step:
            shared.popleft()
        # One of several twins is not known to be the one that is meant.
        before = there[step][0] if len(there.get(step, ())) == 1 else ABSENT
        result.append(merged(inner, before, wanted[step][0]))

    for step, item in left:
        if step not in wanted:
            result.append(item)
            continue
        if step in taken or (shared and shared[0] != step):
            # Placed already, or its turn comes where it is said.
            continue
        while waiting and waiting[0] != step:
            take(waiting[0])
        take(step)
    while waiting:
        take(waiting[0])
    return result


def without(known: Type, value: Any, fields: Fields) -> Any:
    """Give a value without the parts that a set names; ABSENT when nothing is left of a part of it."""
    sort = known.like(value)
    if sort is Sort.PIECE or not value or not _is_fit(sort, value):
        return value if sort is Sort.PIECE and not isinstance(value, (dict, list)) else ABSENT
    left: Any
    if sort is Sort.MAP:
        pairs = ((name, _left(known.below(name), inner, fields.get(field_step(name)))) for name, inner in value.items())
        left = {name: inner for name, inner in pairs if inner is not ABSENT}
    else:
        inner = known.items or PIECE
        each_left = (_left(inner, item, fields.get(step_to(known, item))) for item in value)
        left = [item for item in each_left if item is not ABSENT]
    return left or ABSENT


def _left(known: Type, value: Any, fields: Fields | None) -> Any:
    if fields is None:
        return value
    if not fields or SELF in fields:
        return ABSENT
    return without(known, value, fields)
