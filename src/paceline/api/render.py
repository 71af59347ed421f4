"""The form an answer takes: objects as they are, their metadata alone, or a table."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import orjson

from paceline.api.change import read
from paceline.api.exchange import Request
from paceline.api.refusal import bad_request, not_acceptable
from paceline.objects.meta import Object
from paceline.objects.scheme import Resource
from paceline.objects.table import cells_of, columns_of, definition_of
from paceline.objects.times import to_wire
from paceline.store.store import Stored
from paceline.world import Clock

META_API = "meta.k8s.io/v1"
_OFFERED = "application/json, application/json;stream=watch"
_PLAIN = frozenset({"application/json", "application/*", "*/*"})
_INCLUDES = ("", "None", "Metadata", "Object")


class Form(StrEnum):
    """How a client wants to see objects."""

    OBJECT = "Object"
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


def form_of(request: Request) -> Form:
    """Tell which form the Accept header asks for, the first one that is offered."""
    accept = request.headers.get("accept", "")
    if not accept or accept in _PLAIN:
        return Form.OBJECT
    for clause in accept.split(","):
        sort, *parameters = (part.strip() for part in clause.split(";"))
        if sort.lower() not in _PLAIN:
            continue
        said = dict(part.partition("=")[::2] for part in parameters)
        wanted = said.get("as", "").removesuffix("List")
        if not wanted:
            return Form.OBJECT
        if said.get("g") == "meta.k8s.io" and said.get("v") == "v1" and wanted in {"Table", "PartialObjectMetadata"}:
            return Form(wanted)
    raise not_acceptable(_OFFERED)


def one_of(request: Request, resource: Resource, stored: Stored, *, clock: Clock) -> bytes:
    """Write one object in the form that was asked for."""
    match form_of(request):
        case Form.OBJECT:
            return stored.value
        case Form.METADATA:
            return orjson.dumps(partial_of(read(stored.value)))
        case Form.TABLE:
            revision = str(read(stored.value)["metadata"].get("resourceVersion") or "")
            return Tables(request, resource, clock).of((stored.value,), {"resourceVersion": revision})


def partial_of(obj: Object) -> Object:
    """Give the metadata of an object alone, as an object."""
    return {"kind": Form.METADATA.value, "apiVersion": META_API, "metadata": obj["metadata"]}


def list_of(resource: Resource, values: Iterable[bytes], metadata: Object) -> bytes:
    """Write a list of stored objects without reading them."""
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
    return b"".join((orjson.dumps(head)[:-1], b',"items":[', b",".join(values), b"]}"))


def partial_list_of(values: Iterable[bytes], metadata: Object) -> bytes:
    """Write a list of the metadata of stored objects."""
    whole = {
        "kind": f"{Form.METADATA.value}List",
        "apiVersion": META_API,
        "metadata": metadata,
        "items": [partial_of(read(value)) for value in values],
    }
    return orjson.dumps(whole)


class Tables:
    """Tables of one kind, as one request wants them."""

    def __init__(self, request: Request, resource: Resource, clock: Clock) -> None:
        self._resource = resource
        self._clock = clock
        self._include = request.query.get("includeObject", "")
        if self._include not in _INCLUDES:
            raise bad_request(f'includeObject must be None, Metadata or Object, not "{self._include}"')
        self._has_head = False

    def of(self, values: Iterable[bytes], metadata: Object) -> bytes:
        """Write a table with one row per stored object; only the first table has the columns."""
        now = to_wire(self._clock.now())
        table: Object = {"kind": Form.TABLE.value, "apiVersion": META_API, "metadata": metadata}
        table["columnDefinitions"] = [] if self._has_head else self._head()
        self._has_head = True
        table["rows"] = [self._row(read(value), now) for value in values]
        return orjson.dumps(table)

    def _head(self) -> list[Object]:
        return [definition_of(column) for column in columns_of(self._resource)]

    def _row(self, obj: Object, now: str) -> Object:
        row: Object = {"cells": list(cells_of(self._resource, obj, now))}
        shown: Any = {"None": None, "Object": obj}.get(self._include, partial_of(obj))
        return {**row, "object": shown}
