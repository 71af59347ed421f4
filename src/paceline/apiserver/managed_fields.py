"""Who wrote what: the entries of `metadata.managedFields`, kept up with every write."""

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
    newborn,
    said_or_there,
    to_wire,
    updated,
)
from paceline.apimachinery.fields.merge import Comparison
from paceline.apimachinery.fields.typed import Type
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apimachinery.timestamps import to_wire as time_to_wire
from paceline.apiserver.config import Server
from paceline.apiserver.http_types import HttpRequest
from paceline.apiserver.paths import Target
from paceline.errors import BadRequest

MAX_NAME = 128
_STATUS: Path = ("f:status",)
_SPEC: Path = ("f:spec",)
_METADATA: Path = ("f:metadata",)
_PORTS: Path = ("f:spec", "f:ports")
# What the server itself gives a new object whose author does not say it: nobody owns that.
_GIVEN: dict[tuple[str, str], tuple[Path, ...]] = {
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
# Whoever says the one says the other.
_ACCOUNT: tuple[Path, Path] = ((*_SPEC, "f:serviceAccount"), (*_SPEC, "f:serviceAccountName"))
_SAME: dict[Path, tuple[Path, ...]] = dict.fromkeys(_ACCOUNT, _ACCOUNT)
_POD_STATUS = (_SPEC, ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences"))


def author_of(request: HttpRequest, target: Target, *, operation: str = UPDATE) -> Author:
    """Tell who writes: whoever the query names, or the program that sent the request."""
    name = request.query.get("fieldManager") or _program(request.headers.get("user-agent", ""))
    return Author(
        name=name or "unknown",
        api_version=target.written.api_version if target.written else target.resource.api_version,
        subresource=target.subresource,
        operation=operation,
    )


def _program(agent: str) -> str:
    return "".join(each for each in agent.partition("/")[0] if each.isprintable())[:MAX_NAME]


def ignored_paths(target: Target) -> tuple[Path, ...]:
    """Give what a door does not change, so that nobody owns anything of it by writing there."""
    resource = target.resource
    if target.subresource == "status":
        if resource.is_builtin and resource.kind == "CustomResourceDefinition":
            return (_METADATA, _SPEC)
        return _POD_STATUS if resource.kind == "Pod" else (_SPEC,)
    return (_STATUS,) if resource.has_status else ()


@cache
def _zero(struct: str) -> Object:
    """Give what every object of a kind of Kubernetes has, whatever its author says; not to be changed."""
    zero: Object = {}
    if struct:
        complete(zero, struct)
    return zero


def _port_paths(obj: Object, resource: Resource) -> Iterator[Path]:
    """Give the ports of machines that a service leaves to the server."""
    if (resource.group, resource.kind) != ("", "Service"):
        return
    for port in (obj.get("spec") or {}).get("ports") or ():
        if not port.get("nodePort"):
            keys = {"port": port.get("port"), "protocol": port.get("protocol") or "TCP"}
            yield (*_PORTS, keys_step(keys), "f:nodePort")


def _is_said(obj: Object, path: Path) -> bool:
    value: Any = obj
    for step in path:
        value = value.get(step[2:]) if isinstance(value, dict) else None
    return bool(value)


def _as_told(new: Object, said: Object | None, target: Target) -> Object:
    """Give what counts as written: labels told with a status are not kept, but they are noted, as in Kubernetes."""
    if said is None or target.subresource != "status" or target.resource.is_builtin:
        return new
    told = {part: said["metadata"][part] for part in ("annotations", "labels") if part in said["metadata"]}
    return {**new, "metadata": {**new["metadata"], **told}}


class FieldTracker:
    """The entries of all objects of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def scheme(self) -> Scheme:
        """What is served now."""
        return self._server.scheme

    @property
    def now(self) -> str:
        """The time that entries get."""
        return time_to_wire(self._server.clock.now())

    def type_of(self, resource: Resource) -> Type:
        """Give how objects of a kind are made up."""
        return self._server.kinds.schemas.type_of(resource)

    def unsaid(self, obj: Object, resource: Resource) -> tuple[Path, ...]:
        """Give what the author of a new object leaves to the server."""
        given = (*_GIVEN.get((resource.group, resource.kind), ()), *_port_paths(obj, resource))
        return tuple(
            # Where nothing is said of the whole part, nobody owns that either.
            path if _is_said(obj, path[:1]) else path[:1]
            for path in given
            if len(path) > len(_PORTS) or not any(_is_said(obj, each) for each in (path, *_SAME.get(path, ())))
        )

    def born(self, new: Object, target: Target, author: Author, *, unsaid: tuple[Path, ...]) -> None:
        """Write down, in place, that all of a new object is its author's, but for what they left to the server."""
        resource, metadata = target.resource, new["metadata"]
        said = metadata.pop("managedFields", None)
        zero = _zero(struct_of(resource.group, resource.version, resource.kind) if resource.is_builtin else "")
        ignored = (*ignored_paths(target), *unsaid)
        managed = said_or_there(said, None)
        if managed:
            found = self._compared(resource, zero, new).without(ignored)
            managed = updated(managed, author, found, now=self.now)
        else:
            managed = self._born(new, author, target, zero=zero, ignored=ignored)
        if managed:
            metadata["managedFields"] = to_wire(managed)

    def _born(self, new: Object, author: Author, target: Target, *, zero: Object, ignored: tuple[Path, ...]) -> Managed:
        try:
            fields = newborn(self.type_of(target.resource), new, zero=zero, ignored=ignored)
        except BadRequest:
            return {}
        if target.written:
            fields = {target.written.names.get(step, step): below for step, below in fields.items()}
        return {author.identity: Entry(author=author, time=self.now, fields=fields)} if fields else {}

    def changed(self, old: Object, new: Object, author: Author, *, target: Target, said: Object | None = None) -> None:
        """Write down, in place, whose the changes of an object are."""
        metadata = new["metadata"]
        there = old["metadata"].get("managedFields")
        # What a subresource is told about entries does not count.
        entries_said = None if target.subresource else metadata.get("managedFields")
        managed = said_or_there(entries_said, there)
        if not managed:
            # Nobody was written down so far, and a change is not the time to begin.
            metadata.pop("managedFields", None)
            return
        found = self._compared(target.resource, old, _as_told(new, said, target))
        after = updated(managed, author, found, now=self.now)
        is_as_before = entries_said is None or entries_said == there
        entries = there if after is managed and is_as_before else to_wire(after)
        if entries:
            metadata["managedFields"] = entries
        else:
            metadata.pop("managedFields", None)

    def _compared(self, resource: Resource, old: Object, new: Object) -> Comparison:
        try:
            return compared(self.type_of(resource), old, new)
        except BadRequest:
            # An item of a list that cannot be told from others: the check of the object says so, if it matters.
            return Comparison()
