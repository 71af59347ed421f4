"""The entries of `metadata.managedFields`: which manager owns which fields, and how a write changes them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from paceline.apimachinery.fields.fieldset import SELF, Fields, Path, encode, minus, minus_all, plus, read, union
from paceline.apimachinery.fields.merge import ABSENT, Comparison, compare, whole
from paceline.apimachinery.fields.typed import Type
from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest

APPLY = "Apply"
UPDATE = "Update"
ANCIENT = "ancient-changes"
BEFORE_APPLY = "before-first-apply"
# Maximum number of updaters; the fields of the oldest ones beyond it are merged into one entry.
MAX_WRITERS = 10

# Fields that no manager owns: they belong to the server, or identify the object.
_HEAD = frozenset({"apiVersion", "kind"})
_SERVERS = frozenset(
    {
        *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"),
        *("generation", "managedFields", "resourceVersion"),
    }
)
_METADATA = "f:metadata"
_UNOWNED: frozenset[Path] = frozenset(
    ((_METADATA,), *((f"f:{name}",) for name in _HEAD), *((_METADATA, f"f:{name}") for name in _SERVERS))
)

Identity = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """A field manager: its name, operation, API version and subresource."""

    name: str
    api_version: str
    subresource: str = ""
    operation: str = UPDATE

    @property
    def identity(self) -> Identity:
        """The key of the manager's entry; an applier has one entry for all API versions."""
        version = "" if self.operation == APPLY else self.api_version
        return self.operation, self.name, version, self.subresource


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The fields of one manager."""

    author: Author
    time: str
    fields: Fields = field(default_factory=dict)

    def to_wire(self) -> Object:
        """Return the entry in wire form."""
        author = self.author
        wire: Object = {"manager": author.name, "operation": author.operation, "apiVersion": author.api_version}
        if self.time:
            wire["time"] = self.time
        wire |= {"fieldsType": "FieldsV1", "fieldsV1": self.fields}
        return {**wire, "subresource": author.subresource} if author.subresource else wire


Managed = dict[Identity, Entry]


def owned_paths(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths that a manager can own."""
    return frozenset(paths) - _UNOWNED


def owned(fields: Fields) -> Fields:
    """Return the part of a field set that a manager can own."""
    return minus(fields, _UNOWNED)


def from_wire(entries: Any) -> Managed:
    """Return the decoded entries; they must have been written by this server."""
    managed: Managed = {}
    for entry in entries or ():
        author = Author(
            name=entry.get("manager", ""),
            api_version=entry["apiVersion"],
            subresource=entry.get("subresource", ""),
            operation=entry["operation"],
        )
        managed[author.identity] = Entry(author=author, time=entry.get("time", ""), fields=entry["fieldsV1"])
    return managed


def from_client(entries: Any) -> Managed:
    """Return the decoded entries of a client; raise BadRequest if they are invalid."""
    if not isinstance(entries, list):
        raise BadRequest("managedFields must be a list")
    checked = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("operation") not in {APPLY, UPDATE}:
            raise BadRequest("operation must be `Apply` or `Update`")
        texts = (entry.get(part, "") for part in ("manager", "apiVersion", "subresource", "time"))
        if not all(isinstance(text, str) for text in texts) or not entry.get("apiVersion"):
            raise BadRequest("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise BadRequest(f"invalid fieldsType in managed fields entry {index}")
        checked.append({**entry, "fieldsV1": read(entry.get("fieldsV1") or {})})
    return from_wire(checked)


def to_wire(managed: Managed) -> list[Object]:
    """Return all entries in wire form: appliers first, then by time."""
    listed = sorted(managed.values(), key=_place)
    return [entry.to_wire() for entry in listed]


def _place(entry: Entry) -> tuple[str, ...]:
    author = entry.author
    return author.operation, entry.time, author.name, author.api_version, author.subresource


def sent_or_stored(sent: Any, stored: Any) -> Managed:
    """Return the entries that a write starts with: those of the client if they are valid, else the stored ones."""
    if sent is None or sent == stored:
        return from_wire(stored)
    if removes_entries(sent):
        return {}
    try:
        return from_client(sent) or from_wire(stored)
    except BadRequest:
        return from_wire(stored)


def removes_entries(sent: Any) -> bool:
    """Return whether a client removes all entries, by sending a single empty one."""
    return bool(sent == [{}])


def updated(managed: Managed, author: Author, comparison: Comparison, *, now: str) -> Managed:
    """Return the entries after an update: its author now owns the changed fields, and nobody else does."""
    changed = (*comparison.added, *comparison.modified)
    taken, removed = frozenset((*changed, *comparison.removed)), frozenset(comparison.removed)
    if not taken:
        return managed
    remaining: Managed = {}
    for identity, entry in managed.items():
        # A field that the author already owns and changes again stays in the entry.
        fields = minus(entry.fields, removed if identity == author.identity else taken)
        if fields:
            remaining[identity] = entry if fields is entry.fields else replace(entry, fields=fields)
    if owned_now := owned_paths(changed):
        entry_of_author = remaining.get(author.identity)
        fields = plus(entry_of_author.fields, owned_now) if entry_of_author else encode(owned_now)
        remaining[author.identity] = Entry(author=author, time=now, fields=fields)
    return capped(remaining)


def fields_of_new(value_type: Type, new: Object, *, zero: Object, ignored: tuple[Path, ...]) -> Fields:
    """Return the fields that the author of a new object owns: all except default values and ignored paths."""
    metadata = {name: value for name, value in new["metadata"].items() if name not in _SERVERS}
    body = {name: value for name, value in new.items() if name not in _HEAD}
    fields = whole(value_type, {**body, "metadata": metadata})
    fields.pop(SELF, None)
    fields[_METADATA].pop(SELF, None)
    if not fields[_METADATA]:
        del fields[_METADATA]
    fields = minus_all(fields, ignored)
    return minus(fields, _same(zero, new, (), fields))


def _same(zero: Any, new: Any, path: Path, fields: Any) -> Iterator[Path]:
    """Yield the paths of zero values that the new object has not set to something else."""
    for name, value in zero.items():
        here, other, owned = (*path, f"f:{name}"), new.get(name), fields.get(f"f:{name}") or {}
        if isinstance(value, dict) and isinstance(other, dict):
            yield from _same(value, other, here, owned)
        # An atomic value is either set or not; a map that is owned by its members exists in any case.
        is_set = other is not None and not owned and (value is None or (isinstance(value, dict) and other != value))
        if not is_set and (value is None or isinstance(value, dict) or value == other):
            yield here


def capped(managed: Managed) -> Managed:
    """Return the entries with the oldest updaters merged into one, if there are too many."""
    writers = sorted((entry for entry in managed.values() if entry.author.operation == UPDATE), key=_place)
    many = len(writers)
    if many <= MAX_WRITERS:
        return managed
    entries = dict(managed)
    groups: dict[str, list[Entry]] = {}
    for entry in writers:
        if many <= MAX_WRITERS:
            break
        group = groups.setdefault(entry.author.api_version, [])
        many -= bool(group)
        group.append(entry)
    for version, group in groups.items():
        if len(group) == 1:
            continue
        bucket = Author(name=ANCIENT, api_version=version)
        for entry in group:
            del entries[entry.author.identity]
        if bucket.identity in entries:
            group.append(entries.pop(bucket.identity))
        fields = union(entry.fields for entry in group)
        entries[bucket.identity] = Entry(author=bucket, time=group[-1].time, fields=fields)
    return entries


def without_entries(obj: Object) -> Object:
    """Return an object without managedFields and resourceVersion, for comparing."""
    metadata = obj.get("metadata") or {}
    reduced = {name: value for name, value in metadata.items() if name not in {"managedFields", "resourceVersion"}}
    return {**obj, "metadata": reduced}


def compared(value_type: Type, old: Object | None, new: Object) -> Comparison:
    """Return what a write changes."""
    old_value = ABSENT if old is None else without_entries(old)
    return compare(value_type, old_value, without_entries(new))
