"""Server-side apply: merge an applied configuration, and detect conflicts with other field managers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from paceline.apimachinery.fields.fieldset import Path, Paths, covers, decode, minus, minus_all, nested, shared, spell
from paceline.apimachinery.fields.managed_fields import (
    BEFORE_APPLY,
    UPDATE,
    Author,
    Entry,
    Managed,
    compared,
    owned,
    updated,
    without_entries,
)
from paceline.apimachinery.fields.merge import ABSENT, compare, merged, owned_fields, paths_of, without
from paceline.apimachinery.fields.typed import ATOMIC, Structure, Type
from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A manager of this name takes over the fields that client-side `kubectl apply` has set before.
KUBECTL = "kubectl"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldConflict:
    """A field that another manager owns with a different value."""

    author: Author
    path: Path


class ApplyConflict(Exception):
    """Raised when an applied configuration conflicts with other managers; it lists all conflicts."""

    def __init__(self, conflicts: tuple[FieldConflict, ...]) -> None:
        super().__init__(conflict_message(conflicts))
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedConfig:
    """An applied configuration and its author."""

    author: Author
    obj: Object
    force: bool = False
    # Paths that this subresource does not change, and that are therefore not owned.
    ignored: tuple[Path, ...] = ()


def apply(
    value_type: Type, live: Object | None, managed: Managed, *, config: AppliedConfig, now: str
) -> tuple[Object, Managed]:
    """Return the resulting object and its entries; raise ApplyConflict if other managers own changed fields."""
    if live is not None and not managed:
        # The object has no entries yet: its fields get a manager of their own.
        before_apply = replace(config.author, name=BEFORE_APPLY, operation=UPDATE, subresource="")
        managed = updated({}, before_apply, compared(value_type, None, live), now=now)
    if config.force or config.author.name != KUBECTL or live is None:
        return _apply(value_type, live, managed, config=config, now=now)
    try:
        return _apply(value_type, live, managed, config=config, now=now)
    except ApplyConflict as error:
        allowed = _applied_before(value_type, live)
        conflicts = tuple(conflict for conflict in error.conflicts if conflict.path not in allowed)
        if conflicts:
            raise ApplyConflict(conflicts) from error
        return _apply(value_type, live, managed, config=replace(config, force=True), now=now)


def _apply(
    value_type: Type, live: Object | None, managed: Managed, *, config: AppliedConfig, now: str
) -> tuple[Object, Managed]:
    live_value = ABSENT if live is None else without_entries(live)
    new = merged(value_type, live_value, config.obj)
    identity = config.author.identity
    last = managed.get(identity)
    applied_fields = owned_fields(value_type, config.obj) or {}
    entry_of_author = Entry(author=config.author, time=now, fields=owned(minus_all(applied_fields, config.ignored)))
    managed = {**managed, identity: entry_of_author}
    if last is not None and not covers(applied_fields, last.fields):
        # A map that is applied as empty stays, although its fields are removed.
        pruned = _pruned(value_type, new, managed, last=decode(last.fields), applied=paths_of(value_type, config.obj))
        new = merged(value_type, pruned, config.obj)
    comparison = compare(value_type, live_value, new).without(config.ignored)
    changed = (*comparison.modified, *comparison.added)
    others = {key: entry for key, entry in managed.items() if key != identity}
    if not config.force and (conflicts := tuple(_conflicts(others, frozenset(changed)))):
        raise ApplyConflict(conflicts)
    taken = frozenset((*changed, *comparison.removed))
    remaining = {key: replace(entry, fields=minus(entry.fields, taken)) for key, entry in others.items()}
    entries = {key: entry for key, entry in (*remaining.items(), (identity, entry_of_author)) if entry.fields}
    if new == live_value and identity in entries:
        # The time is that of the last change, and applying the same again is not one.
        entries[identity] = replace(entry_of_author, time=last.time if last else "")
    return new, entries


def _conflicts(others: Managed, changed: Paths) -> Iterator[FieldConflict]:
    for _, entry in sorted(others.items(), key=lambda item: item[1].author.name):
        for path in sorted(shared(entry.fields, changed)):
            yield FieldConflict(author=entry.author, path=path)


def _pruned(value_type: Type, new: Object, managed: Managed, *, last: Paths, applied: Paths) -> Object:
    """Return the object without fields that the author applied last time and no manager owns now."""
    last_paths = _named(value_type, last)
    remaining = without(value_type, new, nested(last_paths))
    all_paths = _named(value_type, paths_of(value_type, new))
    owned = frozenset(path for entry in managed.values() for path in decode(entry.fields))
    # Applied fields count even if no manager can own them, such as the name.
    retained = _remaining_paths(value_type, remaining) | _named(value_type, owned | applied)
    remaining = without(value_type, new, nested(all_paths - retained))
    removed_paths = (all_paths - _remaining_paths(value_type, remaining)) & last_paths
    pruned: Any = without(value_type, new, nested(removed_paths)) if removed_paths else new
    return {} if pruned is ABSENT else pruned


def _remaining_paths(value_type: Type, remaining: Any) -> Paths:
    return frozenset() if remaining is ABSENT else _named(value_type, paths_of(value_type, remaining))


def _named(value_type: Type, paths: Any) -> Paths:
    """Return the paths, and those of the named fields that contain them."""
    named: set[Path] = set()
    parents: set[Path] = set()
    for path in paths:
        named.add(path)
        if path[:-1] in parents:
            continue
        parents.add(path[:-1])
        current = value_type
        for depth, step in enumerate(path[:-1], start=1):
            if step[0] == "f" and current.structure is Structure.MAP and step[2:] in current.fields:
                named.add(path[:depth])
            current = (current.below(step[2:]) if step[0] == "f" else current.items) or ATOMIC
    return frozenset(named)


def _applied_before(value_type: Type, live: Object) -> Paths:
    """Return the paths that client-side `kubectl apply` has set and that are unchanged."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last_applied = orjson.loads(text or "null")
        if not isinstance(last_applied, dict):
            return frozenset()
        differs = compare(value_type, last_applied, without_entries(live))
        return paths_of(value_type, last_applied).difference(differs.added, differs.modified, differs.removed)
    except (orjson.JSONDecodeError, BadRequest):
        return frozenset()


def note_last_applied(obj: Object, config: AppliedConfig) -> Object:
    """Return the object with its last-applied annotation updated, if it has one."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if config.author.name != KUBECTL or LAST_APPLIED not in annotations:
        return obj
    text = orjson.dumps(config.obj, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def named_author(author: Author) -> str:
    """Return a manager's name as it appears in conflicts."""
    name = orjson.dumps(author.name).decode()
    subresource = f" with subresource {orjson.dumps(author.subresource).decode()}" if author.subresource else ""
    return f"{name}{subresource} using {author.api_version}" if author.operation == UPDATE else f"{name}{subresource}"


def conflict_message(conflicts: tuple[FieldConflict, ...]) -> str:
    """Return the message about conflicts that kubectl prints."""
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {named_author(only.author)}: {spell(only.path)}"
    lines: list[str] = []
    heads: set[str] = set()
    for conflict in conflicts:
        head = f"conflicts with {named_author(conflict.author)}:"
        if head not in heads:
            heads.add(head)
            lines.append(head)
        lines.append(f"- {spell(conflict.path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
