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
from paceline.apimachinery.fields.typed import PIECE, Sort, Type
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


class Clashes(Exception):
    """Raised when an applied configuration conflicts with other managers; it lists all conflicts."""

    def __init__(self, clashes: tuple[FieldConflict, ...]) -> None:
        super().__init__(said_of(clashes))
        self.clashes = clashes


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedConfig:
    """An applied configuration and its author."""

    author: Author
    obj: Object
    force: bool = False
    # Paths that this subresource does not change, and that are therefore not owned.
    ignored: tuple[Path, ...] = ()


def apply(
    value_type: Type, live: Object | None, managed: Managed, *, said: AppliedConfig, now: str
) -> tuple[Object, Managed]:
    """Return the resulting object and its entries; raise Clashes if other managers own changed fields."""
    if live is not None and not managed:
        # The object has no entries yet: its fields get a manager of their own.
        someone = replace(said.author, name=BEFORE_APPLY, operation=UPDATE, subresource="")
        managed = updated({}, someone, compared(value_type, None, live), now=now)
    if said.force or said.author.name != KUBECTL or live is None:
        return _apply(value_type, live, managed, said=said, now=now)
    try:
        return _apply(value_type, live, managed, said=said, now=now)
    except Clashes as error:
        allowed = _applied_before(value_type, live)
        conflicts = tuple(clash for clash in error.clashes if clash.path not in allowed)
        if conflicts:
            raise Clashes(conflicts) from error
        return _apply(value_type, live, managed, said=replace(said, force=True), now=now)


def _apply(
    value_type: Type, live: Object | None, managed: Managed, *, said: AppliedConfig, now: str
) -> tuple[Object, Managed]:
    live_value = ABSENT if live is None else without_entries(live)
    new = merged(value_type, live_value, said.obj)
    identity = said.author.identity
    last = managed.get(identity)
    applied_fields = owned_fields(value_type, said.obj) or {}
    entry_of_author = Entry(author=said.author, time=now, fields=owned(minus_all(applied_fields, said.ignored)))
    managed = {**managed, identity: entry_of_author}
    if last is not None and not covers(applied_fields, last.fields):
        # A map that is applied as empty stays, although its fields are removed.
        pruned = _pruned(
            value_type, new, managed, last=decode(last.fields), said=frozenset(paths_of(value_type, said.obj))
        )
        new = merged(value_type, pruned, said.obj)
    comparison = compare(value_type, live_value, new).without(said.ignored)
    changed = (*comparison.modified, *comparison.added)
    others = {key: entry for key, entry in managed.items() if key != identity}
    if not said.force and (clashes := tuple(_clashes(others, frozenset(changed)))):
        raise Clashes(clashes)
    taken = frozenset((*changed, *comparison.removed))
    remaining = {key: replace(entry, fields=minus(entry.fields, taken)) for key, entry in others.items()}
    entries = {key: entry for key, entry in (*remaining.items(), (identity, entry_of_author)) if entry.fields}
    if new == live_value and identity in entries:
        # The time is that of the last change, and applying the same again is not one.
        entries[identity] = replace(entry_of_author, time=last.time if last else "")
    return new, entries


def _clashes(others: Managed, changed: Paths) -> Iterator[FieldConflict]:
    for _, entry in sorted(others.items(), key=lambda item: item[1].author.name):
        for path in sorted(shared(entry.fields, changed)):
            yield FieldConflict(author=entry.author, path=path)


def _pruned(value_type: Type, new: Object, managed: Managed, *, last: Paths, said: Paths) -> Object:
    """Return the object without fields that the author applied last time and no manager owns now."""
    last_paths = _named(value_type, last)
    remaining = without(value_type, new, nested(last_paths))
    all_paths = _named(value_type, paths_of(value_type, new))
    owned = frozenset(path for entry in managed.values() for path in decode(entry.fields))
    # Applied fields count even if no manager can own them, such as the name.
    kept_paths = _paths_left(value_type, remaining) | _named(value_type, owned | said)
    remaining = without(value_type, new, nested(all_paths - kept_paths))
    removed_paths = (all_paths - _paths_left(value_type, remaining)) & last_paths
    return new if not removed_paths else _whole(without(value_type, new, nested(removed_paths)))


def _paths_left(value_type: Type, remaining: Any) -> Paths:
    return frozenset() if remaining is ABSENT else _named(value_type, paths_of(value_type, remaining))


def _whole(obj: Any) -> Object:
    return {} if obj is ABSENT else obj


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
            if step[0] == "f" and current.sort is Sort.MAP and step[2:] in current.fields:
                named.add(path[:depth])
            current = (current.below(step[2:]) if step[0] == "f" else current.items) or PIECE
    return frozenset(named)


def _applied_before(value_type: Type, live: Object) -> Paths:
    """Return the paths that client-side `kubectl apply` has set and that are unchanged."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        last_applied = orjson.loads(text or "null")
        if not isinstance(last_applied, dict):
            return frozenset()
        differs = compare(value_type, last_applied, without_entries(live))
        return frozenset(paths_of(value_type, last_applied)).difference(
            differs.added, differs.modified, differs.removed
        )
    except (orjson.JSONDecodeError, BadRequest):
        return frozenset()


def note_last_applied(obj: Object, said: AppliedConfig) -> Object:
    """Return the object with its last-applied annotation updated, if it has one."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if said.author.name != KUBECTL or LAST_APPLIED not in annotations:
        return obj
    text = orjson.dumps(said.obj, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def named_author(author: Author) -> str:
    """Return a manager's name as it appears in conflicts."""
    name = orjson.dumps(author.name).decode()
    door = f" with subresource {orjson.dumps(author.subresource).decode()}" if author.subresource else ""
    return f"{name}{door} using {author.api_version}" if author.operation == UPDATE else f"{name}{door}"


def said_of(clashes: tuple[FieldConflict, ...]) -> str:
    """Return the message about conflicts that kubectl prints."""
    if len(clashes) == 1:
        only = clashes[0]
        return f"Apply failed with 1 conflict: conflict with {named_author(only.author)}: {spell(only.path)}"
    lines: list[str] = []
    heads: set[str] = set()
    for clash in clashes:
        head = f"conflicts with {named_author(clash.author)}:"
        if head not in heads:
            heads.add(head)
            lines.append(head)
        lines.append(f"- {spell(clash.path)}")
    return f"Apply failed with {len(clashes)} conflicts: " + "\n".join(lines)
