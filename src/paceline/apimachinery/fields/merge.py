"""Operations on typed values: compare, list the fields, merge, and remove fields (structured-merge-diff)."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.fields.fieldset import (
    SELF,
    Fields,
    Path,
    Paths,
    decode,
    field_step,
    in_order,
    is_below,
    union,
)
from paceline.apimachinery.fields.typed import ATOMIC, DEDUCED, Structure, Type, step_to


class Absent:
    """Type of ABSENT, the sentinel for a missing value; null is a value."""


ABSENT = Absent()
_EMPTY: tuple[Any, ...] = (ABSENT, None, {}, [])


@dataclass(slots=True)
class Comparison:
    """The paths that were added, removed and modified between two objects."""

    added: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)
    modified: list[Path] = field(default_factory=list)

    def without(self, tops: tuple[Path, ...]) -> "Comparison":
        """Return the comparison without the paths at or below one of `tops`."""
        if not tops:
            return self
        parts = (self.added, self.removed, self.modified)
        return Comparison(*([path for path in part if not is_below(path, tops)] for part in parts))


def compare(value_type: Type, old: Any, new: Any) -> Comparison:
    """Return the differences; equal parts are not descended into."""
    comparison = Comparison()
    _compare(value_type, (old, new), (), comparison)
    return comparison


def _compare(value_type: Type, pair: tuple[Any, Any], path: Path, comparison: Comparison) -> None:
    old, new = pair
    if old is ABSENT:
        _collect(value_type, new, path, comparison.added)
    elif new is ABSENT:
        _collect(value_type, old, path, comparison.removed)
    elif old != new:
        structure = value_type.structure_of(old, new)
        if structure is Structure.ATOMIC or not (old or new) or not _is_fit(structure, old, new):
            comparison.modified.append(path)
        elif structure is Structure.MAP:
            _compare_maps(value_type, (old or {}, new or {}), path, comparison)
        else:
            _compare_lists(value_type, (old or (), new or ()), path, comparison)


def _collect(value_type: Type, value: Any, path: Path, paths: list[Path]) -> None:
    """Add the path of a value that was added or removed, and those of all its parts."""
    structure = value_type.structure_of(value)
    if structure is Structure.ATOMIC or not value or not _is_fit(structure, value):
        pass
    elif structure is Structure.MAP:
        fields, others = value_type.fields, value_type.values or DEDUCED
        for name, inner in value.items():
            _collect(fields.get(name) or others, inner, (*path, "f:" + name), paths)
    else:
        for step, items in _by_step(value_type, value).items():
            if len(items) == 1:
                _collect(value_type.items or ATOMIC, items[0], (*path, step), paths)
            else:
                paths.append((*path, step))
    if path:
        paths.append(path)


def _is_fit(structure: Structure, *values: Any) -> bool:
    expected = dict if structure is Structure.MAP else list
    return all(value is ABSENT or value is None or isinstance(value, expected) for value in values)


def _compare_maps(value_type: Type, pair: tuple[Any, Any], path: Path, comparison: Comparison) -> None:
    old, new = pair
    for name, value in old.items():
        _compare(value_type.below(name), (value, new.get(name, ABSENT)), (*path, field_step(name)), comparison)
    for name, value in new.items():
        if name not in old:
            _compare(value_type.below(name), (ABSENT, value), (*path, field_step(name)), comparison)


def _compare_lists(value_type: Type, pair: tuple[Any, Any], path: Path, comparison: Comparison) -> None:
    old, new = (_by_step(value_type, items) for items in pair)
    inner = value_type.items or ATOMIC
    for step in (*old, *(step for step in new if step not in old)):
        old_items, new_items = old.get(step, ()), new.get(step, ())
        here = (*path, step)
        if len(old_items) < 2 and len(new_items) < 2:
            _compare(inner, ((*old_items, ABSENT)[0], (*new_items, ABSENT)[0]), here, comparison)
        elif old_items != new_items:
            # Items with the same key cannot be distinguished, and are owned together.
            part = comparison.added if not old_items else comparison.removed if not new_items else comparison.modified
            part.append(here)


def whole(value_type: Type, value: Any) -> Fields:
    """Return the field set of a new value and all its parts, in nested form."""
    structure = value_type.structure_of(value)
    if (
        structure is Structure.ATOMIC
        or not value
        or not isinstance(value, dict if structure is Structure.MAP else list)
    ):
        return {}
    fields: Fields = {SELF: {}}
    if structure is Structure.MAP:
        named, others = value_type.fields, value_type.values or DEDUCED
        for name in sorted(value):
            inner = value[name]
            # Most values are scalars, for which a call would take most of the time.
            is_composite = isinstance(inner, (dict, list))
            fields["f:" + name] = whole(named.get(name) or others, inner) if is_composite else {}
        return fields
    items = value_type.items or ATOMIC
    for step, item in _by_step(value_type, value).items():
        fields[step] = whole(items, item[0]) if len(item) == 1 else {}
    return in_order(fields)


def _by_step(value_type: Type, items: Any) -> dict[str, list[Any]]:
    by_step: dict[str, list[Any]] = {}
    for item in items:
        by_step.setdefault(step_to(value_type, item), []).append(item)
    return by_step


def owned_fields(value_type: Type, value: Any) -> Fields | None:
    """Return the field set that an applied value owns, in nested form; None if it owns nothing."""
    structure = value_type.structure_of(value)
    if structure is Structure.ATOMIC or not _is_fit(structure, value):
        return {}
    fields: Fields = {}
    if structure is Structure.MAP:
        for name in sorted(value or ()):
            inner, is_named = value[name], name in value_type.fields
            below = owned_fields(value_type.below(name), inner) if isinstance(inner, (dict, list)) else {}
            if below is not None or inner == {} or not is_named:
                fields["f:" + name] = {SELF: {}, **below} if below and not is_named else below or {}
        return fields or None
    for step, items in _by_step(value_type, value or ()).items():
        inner = value_type.items or ATOMIC
        # Items with the same key cannot be distinguished, and are owned together.
        below = (
            union(owned_fields(inner, item) or {} for item in items)
            if len(items) > 1
            else owned_fields(inner, items[0])
        )
        fields[step] = {SELF: {}, **below} if below else {}
    return in_order(fields) if fields else None


def paths_of(value_type: Type, value: Any) -> Paths:
    """Return the paths that an applied value owns."""
    return decode(owned_fields(value_type, value) or {})


def merged(value_type: Type, live: Any, applied: Any) -> Any:
    """Return the live value merged with an applied one; neither is changed, parts may be shared."""
    if applied is ABSENT:
        return live
    if live is ABSENT:
        return applied
    structure = value_type.structure_of(live, applied)
    if structure is Structure.ATOMIC or not _is_fit(structure, live, applied) or (live in _EMPTY and applied in _EMPTY):
        return applied
    if structure is Structure.MAP:
        live_map, applied_map = live or {}, applied or {}
        both = {**live_map, **applied_map}
        # Strings have no parts to merge.
        deep = [name for name, value in applied_map.items() if name in live_map and not isinstance(value, str)]
        return both | {name: merged(value_type.below(name), live_map[name], applied_map[name]) for name in deep}
    return _merged_lists(value_type, live or [], applied or [])


def _merged_lists(value_type: Type, live: list[Any], applied: list[Any]) -> list[Any]:
    """Return two lists merged by item, in the applied order; other live items keep their positions in between."""
    live_items, applied_items = [(step_to(value_type, item), item) for item in live], _by_step(value_type, applied)
    live_by_step = _by_step(value_type, live)
    # Both queues are in the applied order, and only their first step is ever removed.
    shared = deque(step for step in applied_items if step in live_by_step)
    inner, result = value_type.items or ATOMIC, []
    pending, placed = deque(applied_items), set[str]()

    def take(step: str) -> None:
        placed.add(pending.popleft())
        if shared and shared[0] == step:
            shared.popleft()
        # Of several items with the same key, it is unknown which one is meant.
        live_item = live_by_step[step][0] if len(live_by_step.get(step, ())) == 1 else ABSENT
        result.append(merged(inner, live_item, applied_items[step][0]))

    for step, item in live_items:
        if step not in applied_items:
            result.append(item)
            continue
        if step in placed or (shared and shared[0] != step):
            # It is placed already, or comes later in the applied order.
            continue
        while pending and pending[0] != step:
            take(pending[0])
        take(step)
    while pending:
        take(pending[0])
    return result


def without(value_type: Type, value: Any, fields: Fields) -> Any:
    """Return a value without the fields of a set; ABSENT if nothing remains."""
    structure = value_type.structure_of(value)
    if structure is Structure.ATOMIC or not value or not _is_fit(structure, value):
        return value if structure is Structure.ATOMIC and not isinstance(value, (dict, list)) else ABSENT
    remaining: Any
    if structure is Structure.MAP:
        pairs = (
            (name, _remaining(value_type.below(name), inner, fields.get(field_step(name))))
            for name, inner in value.items()
        )
        remaining = {name: inner for name, inner in pairs if inner is not ABSENT}
    else:
        inner = value_type.items or ATOMIC
        items = (_remaining(inner, item, fields.get(step_to(value_type, item))) for item in value)
        remaining = [item for item in items if item is not ABSENT]
    return remaining or ABSENT


def _remaining(value_type: Type, value: Any, fields: Fields | None) -> Any:
    if fields is None:
        return value
    if not fields or SELF in fields:
        return ABSENT
    return without(value_type, value, fields)
