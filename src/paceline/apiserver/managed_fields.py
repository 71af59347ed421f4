"""Tracks the manager of every field in `metadata.managedFields`."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from paceline.apimachinery.builtin.go_json import complete
from paceline.apimachinery.builtin.go_types import struct_of
from paceline.apimachinery.fields.fieldset import Path, keys_step
from paceline.apimachinery.fields.managed_fields import (
    UPDATE,
    Author,
    Entry,
    Managed,
    compared,
    fields_of_new,
    sent_or_stored,
    to_wire,
    updated,
)
from paceline.apimachinery.fields.merge import Comparison
from paceline.apimachinery.fields.typed import Type
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apimachinery.timestamps import to_wire as time_to_wire
from paceline.apiserver.admission.asked_by import without_caller
from paceline.apiserver.config import Server
from paceline.apiserver.http_types import HttpRequest
from paceline.apiserver.paths import Target
from paceline.errors import BadRequest

MAX_NAME = 128
_STATUS: Path = ("f:status",)
_SPEC: Path = ("f:spec",)
_METADATA: Path = ("f:metadata",)
_PORTS: Path = ("f:spec", "f:ports")
# Fields that the server sets in new objects; they belong to no manager.
_SERVER_SET: dict[tuple[str, str], tuple[Path, ...]] = {
    ("", "Namespace"): (_SPEC,),
    ("", "Node"): ((*_SPEC, "f:taints"),),
    ("", "PersistentVolumeClaim"): (("f:metadata", "f:finalizers"), (*_SPEC, "f:storageClassName")),
    ("", "PersistentVolume"): (("f:metadata", "f:finalizers"),),
    ("", "Pod"): tuple(
        (*_SPEC, f"f:{name}")
        for name in ("preemptionPolicy", "priority", "serviceAccount", "serviceAccountName", "tolerations")
    ),
    ("", "Service"): tuple(
        (*_SPEC, f"f:{name}") for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    ),
}
# Synonyms.
_ACCOUNT_FIELDS: tuple[Path, Path] = ((*_SPEC, "f:serviceAccount"), (*_SPEC, "f:serviceAccountName"))
_SYNONYMS: dict[Path, tuple[Path, ...]] = dict.fromkeys(_ACCOUNT_FIELDS, _ACCOUNT_FIELDS)
_POD_STATUS = (_SPEC, ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences"))


def author_of(request: HttpRequest, target: Target, *, operation: str = UPDATE) -> Author:
    """Return the manager of a request: the `fieldManager` parameter, or the name of the program."""
    name = request.query.get("fieldManager") or _program(request.headers.get("user-agent", ""))
    return Author(
        name=name or "unknown",
        api_version=target.written.api_version if target.written else target.resource.api_version,
        subresource=target.subresource,
        operation=operation,
    )


def _program(agent: str) -> str:
    return "".join(char for char in agent.partition("/")[0] if char.isprintable())[:MAX_NAME]


def ignored_paths(target: Target) -> tuple[Path, ...]:
    """Return the fields that a subresource does not change."""
    resource = target.resource
    if target.subresource == "status":
        if resource.is_builtin and resource.kind == "CustomResourceDefinition":
            return (_METADATA, _SPEC)
        return _POD_STATUS if resource.kind == "Pod" else (_SPEC,)
    return (_STATUS,) if resource.has_status else ()


@cache
def _zero(struct: str) -> Object:
    """Return the fields that every object of a built-in kind has; do not modify it."""
    zero: Object = {}
    if struct:
        complete(zero, struct)
    return zero


def _port_paths(obj: Object, resource: Resource) -> Iterator[Path]:
    """Yield the node ports that a Service leaves to the allocator."""
    if (resource.group, resource.kind) != ("", "Service"):
        return
    for port in (obj.get("spec") or {}).get("ports") or ():
        if not port.get("nodePort"):
            keys = {"port": port.get("port"), "protocol": port.get("protocol") or "TCP"}
            yield (*_PORTS, keys_step(keys), "f:nodePort")


def _is_set(obj: Object, path: Path) -> bool:
    value: Any = obj
    for step in path:
        value = value.get(step[2:]) if isinstance(value, dict) else None
    return bool(value)


def _as_sent(new: Object, sent: Object | None, target: Target) -> Object:
    """Return the object to compare: Kubernetes tracks labels and annotations sent with a status, but drops them."""
    if sent is None or target.subresource != "status" or target.resource.is_builtin:
        return new
    extra = {part: sent["metadata"][part] for part in ("annotations", "labels") if part in sent["metadata"]}
    return {**new, "metadata": {**new["metadata"], **extra}}


class FieldTracker:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def scheme(self) -> Scheme:
        return self._server.scheme

    @property
    def now(self) -> str:
        return time_to_wire(self._server.clock.now())

    def type_of(self, resource: Resource) -> Type:
        return self._server.kinds.schemas.types.of(resource)

    def unset_paths(self, obj: Object, resource: Resource) -> tuple[Path, ...]:
        """Return the paths that the author of a new object leaves to the server."""
        server_set = (*_SERVER_SET.get((resource.group, resource.kind), ()), *_port_paths(obj, resource))
        return tuple(
            # The parent of an unset field belongs to no manager, too.
            path if _is_set(obj, path[:1]) else path[:1]
            for path in server_set
            if len(path) > len(_PORTS) or not any(_is_set(obj, synonym) for synonym in (path, *_SYNONYMS.get(path, ())))
        )

    def track_create(self, new: Object, target: Target, author: Author, *, unset: tuple[Path, ...]) -> None:
        """Set the managed fields of a new object in place; `unset` belongs to no manager."""
        resource, metadata = target.resource, new["metadata"]
        entries = metadata.pop("managedFields", None)
        zero = _zero(struct_of(resource.group, resource.version, resource.kind) if resource.is_builtin else "")
        ignored = (*ignored_paths(target), *unset)
        managed = sent_or_stored(entries, None)
        if managed:
            comparison = self._compared(resource, zero, new).without(ignored)
            managed = updated(managed, author, comparison, now=self.now)
        else:
            managed = self._created_fields(new, author, target, zero=zero, ignored=ignored)
        if managed:
            metadata["managedFields"] = to_wire(managed)

    def _created_fields(
        self, new: Object, author: Author, target: Target, *, zero: Object, ignored: tuple[Path, ...]
    ) -> Managed:
        new = without_caller(target.resource, new)
        try:
            fields = fields_of_new(self.type_of(target.resource), new, zero=zero, ignored=ignored)
        except BadRequest:
            return {}
        if target.written:
            fields = {target.written.names.get(step, step): below for step, below in fields.items()}
        return {author.identity: Entry(author=author, time=self.now, fields=fields)} if fields else {}

    def track_update(
        self, old: Object, new: Object, author: Author, *, target: Target, sent: Object | None = None
    ) -> None:
        metadata = new["metadata"]
        old_entries = old["metadata"].get("managedFields")
        # Managed fields sent to a subresource are ignored.
        sent_entries = None if target.subresource else metadata.get("managedFields")
        managed = sent_or_stored(sent_entries, old_entries)
        if not managed:
            # An update does not start the tracking.
            metadata.pop("managedFields", None)
            return
        comparison = self._compared(target.resource, old, _as_sent(new, sent, target))
        new_managed = updated(managed, author, comparison, now=self.now)
        is_unchanged = sent_entries is None or sent_entries == old_entries
        entries = old_entries if new_managed is managed and is_unchanged else to_wire(new_managed)
        if entries:
            metadata["managedFields"] = entries
        else:
            metadata.pop("managedFields", None)

    def _compared(self, resource: Resource, old: Object, new: Object) -> Comparison:
        old, new = without_caller(resource, old), without_caller(resource, new)
        try:
            return compared(self.type_of(resource), old, new)
        except BadRequest:
            # List items with equal keys; the validation reports them if necessary.
            return Comparison()
