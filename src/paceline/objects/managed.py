"""Who owns which fields of an object: the entries of `metadata.managedFields`, and what a write makes of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.errors import Malformed
from paceline.objects.fieldset import SELF, Fields, Path, decode, encode, minus, minus_all, plus, read
from paceline.objects.merge import ABSENT, Comparison, compare, whole
from paceline.objects.meta import Object
from paceline.objects.typed import Type

APPLY = "Apply"
UPDATE = "Update"
ANCIENT = "ancient-changes"
BEFORE_APPLY = "before-first-apply"
# So many writers are told apart; what the oldest beyond them wrote is kept under one name.
MAX_WRITERS = 10

# What belongs to the server, or tells which object it is: nobody owns it.
_HEAD = frozenset({"apiVersion", "kind"})
_SERVERS = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
_METADATA = "f:metadata"
_NOBODYS: frozenset[Path] = frozenset(
    ((_METADATA,), *((f"f:{name}",) for name in _HEAD), *((_METADATA, f"f:{name}") for name in _SERVERS))
)

Identity = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who writes, and through which door."""

    name: str
    api_version: str
    subresource: str = ""
    operation: str = UPDATE

    @property
    def identity(self) -> Identity:
        """Tell one entry from another: whoever applies has one, whatever version they use."""
        version = "" if self.operation == APPLY else self.api_version
        return self.operation, self.name, version, self.subresource


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What one author owns."""

    author: Author
    time: str
    fields: Fields = field(default_factory=dict)

    def to_wire(self) -> Object:
        """Write it as Kubernetes does."""
        author = self.author
        wire: Object = {"manager": author.name, "operation": author.operation, "apiVersion": author.api_version}
        if self.time:
            wire["time"] = self.time
        wire |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields}
        return {**wire, "subresource": author.subresource} if author.subresource else wire


Managed = dict[Identity, Entry]


def owned_paths(paths: Iterable[Path]) -> frozenset[Path]:
    """Give those paths that somebody can own."""
    return frozenset(paths) - _NOBODYS


def owned(fields: Fields) -> Fields:
    """Give that part of a set that somebody can own."""
    return minus(fields, _NOBODYS)


def from_wire(entries: Any) -> Managed:
    """Read entries that this server wrote."""
    managed: Managed = {}
    for each in entries or ():
        author = Author(
            name=each.get("manager", ""),
            api_version=each["apiVersion"],
            subresource=each.get("subresource", ""),
            operation=each["operation"],
        )
        managed[author.identity] = Entry(author=author, time=each.get("time", ""), fields=each["fieldsV1"])
    return managed


def from_stranger(entries: Any) -> Managed:
    """Read entries that a client wrote; Malformed when they are none."""
    if not isinstance(entries, list):
        raise Malformed("managedFields is a list")
    checked = []
    for index, each in enumerate(entries):
        if not isinstance(each, dict) or each.get("operation") not in {APPLY, UPDATE}:
            raise Malformed("operation must be `Apply` or `Update`")
        texts = (each.get(part, "") for part in ("manager", "apiVersion", "subresource", "time"))
        if not all(isinstance(text, str) for text in texts) or not each.get("apiVersion"):
            raise Malformed("apiVersion must not be empty")
        if each.get("fieldsType") != "FieldsV1":
            raise Malformed(f"invalid fieldsType in managed fields entry {index}")
        checked.append({**each, "fieldsV1": read(each.get("fieldsV1") or {})})
    return from_wire(checked)


def to_wire(managed: Managed) -> list[Object]:
    """Write all entries: appliers first, then the one that wrote longest ago."""
    listed = sorted(managed.values(), key=_place)
    return [entry.to_wire() for entry in listed]


def _place(entry: Entry) -> tuple[str, ...]:
    author = entry.author
    return author.operation, entry.time, author.name, author.api_version, author.subresource


def said_or_there(said: Any, there: Any) -> Managed:
    """Give the entries a write begins with: those that its author says, if they say any that can be read."""
    if said is None or said == there:
        return from_wire(there)
    if entries_are_gone(said):
        return {}
    try:
        return from_stranger(said) or from_wire(there)
    except Malformed:
        return from_wire(there)


def entries_are_gone(said: Any) -> bool:
    """Tell whether a client wants nobody to own anything, which one empty entry says."""
    return bool(said == [{}])


def updated(managed: Managed, author: Author, found: Comparison, *, now: str) -> Managed:
    """Give the entries after a plain write: what it changed is its author's, and nobody else's."""
    changed = (*found.added, *found.modified)
    taken, removed = frozenset((*changed, *found.removed)), frozenset(found.removed)
    if not taken:
        return managed
    left: Managed = {}
    for identity, entry in managed.items():
        # What an author has already and changes again stays theirs.
        fields = minus(entry.fields, removed if identity == author.identity else taken)
        if fields:
            left[identity] = entry if fields is entry.fields else replace(entry, fields=fields)
    if mine := owned_paths(changed):
        own = left.get(author.identity)
        fields = plus(own.fields, mine) if own else encode(mine)
        left[author.identity] = Entry(author=author, time=now, fields=fields)
    return capped(left)


def newborn(known: Type, new: Object, *, zero: Object, ignored: tuple[Path, ...]) -> Fields:
    """Give what the author of a new object owns: all of it, but for what every new object has and what is ignored."""
    metadata = {name: value for name, value in new["metadata"].items() if name not in _SERVERS}
    rest = {name: value for name, value in new.items() if name not in _HEAD}
    fields = whole(known, {**rest, "metadata": metadata})
    fields.pop(SELF, None)
    fields[_METADATA].pop(SELF, None)
    if not fields[_METADATA]:
        del fields[_METADATA]
    fields = minus_all(fields, ignored)
    return minus(fields, _same(zero, new, (), fields))


def _same(zero: Any, new: Any, path: Path, fields: Any) -> Iterator[Path]:
    """Give the paths to what an object has that says nothing, unless the new one says something else."""
    for name, value in zero.items():
        here, other, owned = (*path, f"f:{name}"), new.get(name), fields.get(f"f:{name}") or {}
        if isinstance(value, dict) and isinstance(other, dict):
            yield from _same(value, other, here, owned)
        # What is owned as a whole is said or not; what is owned by its members is there in any case.
        is_said = other is not None and not owned and (value is None or (isinstance(value, dict) and other != value))
        if not is_said and (value is None or isinstance(value, dict) or value == other):
            yield here


def capped(managed: Managed) -> Managed:
    """Put what the oldest writers wrote under one name, when there are too many."""
    writers = sorted((entry for entry in managed.values() if entry.author.operation == UPDATE), key=_place)
    many = len(writers)
    if many <= MAX_WRITERS:
        return managed
    kept = dict(managed)
    together: dict[str, list[Entry]] = {}
    for entry in writers:
        if many <= MAX_WRITERS:
            break
        entries = together.setdefault(entry.author.api_version, [])
        many -= bool(entries)
        entries.append(entry)
    for version, entries in together.items():
        if len(entries) == 1:
            continue
        bucket = Author(name=ANCIENT, api_version=version)
        for entry in entries:
            del kept[entry.author.identity]
        if bucket.identity in kept:
            entries.append(kept.pop(bucket.identity))
        fields = union(*(entry.fields for entry in entries))
        kept[bucket.identity] = Entry(author=bucket, time=entries[-1].time, fields=fields)
    return kept


def union(*sets: Fields) -> Fields:
    """Give what is in any of some sets."""
    return encode(frozenset().union(*map(decode, sets)))


def without_entries(obj: Object) -> Object:
    """Give an object without its entries and revision, for comparing."""
    metadata = obj.get("metadata") or {}
    kept = {name: value for name, value in metadata.items() if name not in {"managedFields", "resourceVersion"}}
    return {**obj, "metadata": kept}


def compared(known: Type, old: Object | None, new: Object) -> Comparison:
    """Find what a write changes."""
    before = ABSENT if old is None else without_entries(old)
    return compare(known, before, without_entries(new))
