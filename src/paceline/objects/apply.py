"""Server-side apply: what somebody says about an object, made true without taking from others what is theirs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from paceline.errors import Malformed
from paceline.objects.fieldset import Path, Paths, covers, decode, minus, minus_all, nested, shared, spell
from paceline.objects.managed import (
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
from paceline.objects.merge import ABSENT, compare, merged, paths_of, said_in, without
from paceline.objects.meta import Object
from paceline.objects.typed import PIECE, Sort, Type

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Whoever applies under this name takes over what `kubectl apply` without a server's help wrote before.
KUBECTL = "kubectl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A field that somebody else owns and has another value in."""

    author: Author
    path: Path


class Clashes(Exception):
    """Raised when what is said would take fields from others, all of which are named."""

    def __init__(self, clashes: tuple[Clash, ...]) -> None:
        super().__init__(said_of(clashes))
        self.clashes = clashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What an author says about an object."""

    author: Author
    obj: Object
    force: bool = False
    # Paths that this door does not change: saying something about them owns nothing.
    ignored: tuple[Path, ...] = ()


def apply(known: Type, live: Object | None, managed: Managed, *, said: Said, now: str) -> tuple[Object, Managed]:
    """Give the object as it becomes and its entries; Clashes when others own what would change."""
    if live is not None and not managed:
        # Nobody was written down yet: it was somebody, before.
        someone = replace(said.author, name=BEFORE_APPLY, operation=UPDATE, subresource="")
        managed = updated({}, someone, compared(known, None, live), now=now)
    if said.force or said.author.name != KUBECTL or live is None:
        return _apply(known, live, managed, said=said, now=now)
    try:
        return _apply(known, live, managed, said=said, now=now)
    except Clashes as error:
        allowed = _applied_before(known, live)
        left = tuple(clash for clash in error.clashes if clash.path not in allowed)
        if left:
            raise Clashes(left) from error
        return _apply(known, live, managed, said=replace(said, force=True), now=now)


def _apply(known: Type, live: Object | None, managed: Managed, *, said: Said, now: str) -> tuple[Object, Managed]:
    there = ABSENT if live is None else without_entries(live)
    new = merged(known, there, said.obj)
    identity = said.author.identity
    last = managed.get(identity)
    every = said_in(known, said.obj) or {}
    mine = Entry(author=said.author, time=now, fields=owned(minus_all(every, said.ignored)))
    managed = {**managed, identity: mine}
    if last is not None and not covers(every, last.fields):
        # Something that is said to be empty stays, though all that was in it goes.
        pruned = _pruned(known, new, managed, last=decode(last.fields), said=frozenset(paths_of(known, said.obj)))
        new = merged(known, pruned, said.obj)
    found = compare(known, there, new).without(said.ignored)
    changed = (*found.modified, *found.added)
    others = {each: entry for each, entry in managed.items() if each != identity}
    if not said.force and (clashes := tuple(_clashes(others, frozenset(changed)))):
        raise Clashes(clashes)
    taken = frozenset((*changed, *found.removed))
    left = {each: replace(entry, fields=minus(entry.fields, taken)) for each, entry in others.items()}
    entries = {each: entry for each, entry in (*left.items(), (identity, mine)) if entry.fields}
    if new == there and identity in entries:
        # The time is that of the last change; saying what is so already is none.
        entries[identity] = replace(mine, time=last.time if last else "")
    return new, entries


def _clashes(others: Managed, changed: Paths) -> Iterator[Clash]:
    for _, entry in sorted(others.items(), key=lambda each: each[1].author.name):
        for path in sorted(shared(entry.fields, changed)):
            yield Clash(author=entry.author, path=path)


def _pruned(known: Type, new: Object, managed: Managed, *, last: Paths, said: Paths) -> Object:
    """Take out what the author said last time and neither they nor anybody else says now."""
    before = _named(known, last)
    rest = without(known, new, nested(before))
    whole = _named(known, paths_of(known, new))
    owned = frozenset(path for entry in managed.values() for path in decode(entry.fields))
    # What is said counts even where nobody can own it, as with the name.
    kept = _paths_left(known, rest) | _named(known, owned | said)
    rest = without(known, new, nested(whole - kept))
    gone = (whole - _paths_left(known, rest)) & before
    return new if not gone else _whole(without(known, new, nested(gone)))


def _paths_left(known: Type, rest: Any) -> Paths:
    return frozenset() if rest is ABSENT else _named(known, paths_of(known, rest))


def _whole(obj: Any) -> Object:
    return {} if obj is ABSENT else obj


def _named(known: Type, paths: Any) -> Paths:
    """Add the fields by name that lie on the way to something owned."""
    named: set[Path] = set()
    ways: set[Path] = set()
    for path in paths:
        named.add(path)
        if path[:-1] in ways:
            continue
        ways.add(path[:-1])
        here = known
        for depth, step in enumerate(path[:-1], start=1):
            if step[0] == "f" and here.sort is Sort.MAP and step[2:] in here.fields:
                named.add(path[:depth])
            here = (here.below(step[2:]) if step[0] == "f" else here.items) or PIECE
    return frozenset(named)


def _applied_before(known: Type, live: Object) -> Paths:
    """Give what `kubectl apply` without a server's help has said and is still so."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    try:
        before = orjson.loads(text or "null")
        if not isinstance(before, dict):
            return frozenset()
        differs = compare(known, before, without_entries(live))
        return frozenset(paths_of(known, before)).difference(differs.added, differs.modified, differs.removed)
    except (orjson.JSONDecodeError, Malformed):
        return frozenset()


def note_last_applied(obj: Object, said: Said) -> Object:
    """Keep the note of `kubectl apply` true, where there is one."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if said.author.name != KUBECTL or LAST_APPLIED not in annotations:
        return obj
    text = orjson.dumps(said.obj, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def named_author(author: Author) -> str:
    """Name an author as conflicts do."""
    name = orjson.dumps(author.name).decode()
    door = f" with subresource {orjson.dumps(author.subresource).decode()}" if author.subresource else ""
    return f"{name}{door} using {author.api_version}" if author.operation == UPDATE else f"{name}{door}"


def said_of(clashes: tuple[Clash, ...]) -> str:
    """Say what clashes, in the words that kubectl prints."""
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
