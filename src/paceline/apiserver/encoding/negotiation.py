"""Content negotiation: objects, PartialObjectMetadata or Table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apimachinery.table import cells_of, columns_of, definition_of
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver.http_types import HttpRequest, HttpResponse
from paceline.apiserver.object_strategy import in_version, read
from paceline.apiserver.slicing import in_slices
from paceline.apiserver.status_errors import bad_request, not_acceptable
from paceline.effects import Clock
from paceline.store.store import Stored

META_API = "meta.k8s.io/v1"
_META_VERSIONS = ("v1", "v1beta1")
_OFFERED = "application/json, application/json;stream=watch"
_PLAIN = frozenset({"application/json", "*/*"})
# Objects per part of a long list.
SOME = 128
_INCLUDES = ("", "None", "Metadata", "Object")


# Row conditions of finished pods.
_COMPLETED = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


class Representation(StrEnum):
    OBJECT = "Object"
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


def representation_of(request: HttpRequest, *, many: bool | None = None) -> Representation:
    """Return the first supported representation in the Accept header; `many` is None if both forms are allowed."""
    return _chosen(request, many=many)[0]


def _chosen(request: HttpRequest, *, many: bool | None) -> tuple[Representation, str]:
    """Return the representation, and the version of meta.k8s.io."""
    accept = request.headers.get("accept", "")
    if not accept or accept in _PLAIN:
        return Representation.OBJECT, META_API
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        if media_type.lower() not in _PLAIN:
            continue
        values = dict(part.partition("=")[::2] for part in parameters)
        requested = values.get("as", "")
        if not requested:
            return Representation.OBJECT, META_API
        if values.get("g") == "meta.k8s.io" and values.get("v") in _META_VERSIONS:
            version = f"meta.k8s.io/{values['v']}"
            if requested == Representation.TABLE:
                return Representation.TABLE, version
            if requested in _PARTIAL[many]:
                return Representation.METADATA, version
    raise not_acceptable(_OFFERED)


_PARTIAL: Mapping[bool | None, tuple[str, ...]] = {
    True: (f"{Representation.METADATA}List",),
    False: (Representation.METADATA,),
    None: (Representation.METADATA, f"{Representation.METADATA}List"),
}


def render_object(request: HttpRequest, resource: Resource, stored: Stored, *, clock: Clock) -> bytes:
    value = in_version(resource, stored.value)
    match representation_of(request, many=False):
        case Representation.OBJECT:
            return value
        case Representation.METADATA:
            return orjson.dumps(partial_metadata(read(value), _chosen(request, many=False)[1]))
        case Representation.TABLE:
            revision = read(value)["metadata"].get("resourceVersion")
            metadata = {"resourceVersion": revision} if revision else {}
            return TableRenderer(request, resource, clock).render((value,), metadata)


def partial_metadata(obj: Object, version: str = META_API) -> Object:
    return {"kind": Representation.METADATA.value, "apiVersion": version, "metadata": obj["metadata"]}


def list_response(resource: Resource, values: list[bytes], metadata: Object) -> HttpResponse:
    """Return a list of stored objects without decoding them; a long one is built while it is sent."""
    head = {"kind": resource.list_name, "apiVersion": resource.api_version, "metadata": metadata}
    opened = orjson.dumps(head)[:-1] + b',"items":['
    if not values:
        return HttpResponse(body=opened + b"]}")
    cut = 1
    if resource.is_builtin:
        # Items of built-in kinds have no apiVersion and kind.
        start = b'{"apiVersion":"%b","kind":"%b",' % (resource.api_version.encode(), resource.kind.encode())
        cut = len(start)
        values = [value if value.startswith(start) else start + _inside(value) for value in values]
    if len(values) <= SOME:
        return HttpResponse(body=b"%b{%b]}" % (opened, b",{".join([value[cut:] for value in values])))
    # Each item gets a brace for what is cut off, and a comma or the closing characters.
    size = sum(map(len, values)) - len(values) * (cut - 1) + len(values) + 1
    return HttpResponse(body=opened, tail=_parts(values, cut), tail_bytes=size)


def _parts(values: list[bytes], cut: int) -> Iterator[bytes]:
    for start in range(0, len(values), SOME):
        some = b",{".join([value[cut:] for value in values[start : start + SOME]])
        yield (b",{" if start else b"{") + some
    yield b"]}"


def _inside(value: bytes) -> bytes:
    """Return an object without its kind and without the first brace."""
    fields = {part: inner for part, inner in read(value).items() if part not in {"apiVersion", "kind"}}
    return orjson.dumps(fields)[1:]


async def partial_list_response(request: HttpRequest, values: list[bytes], metadata: Object) -> HttpResponse:
    version = _chosen(request, many=True)[1]
    head = {"kind": f"{Representation.METADATA.value}List", "apiVersion": version, "metadata": metadata}
    return await _sliced(head, "items", values, lambda value: partial_metadata(read(value), version))


async def _sliced(head: Object, name: str, values: list[bytes], convert: Callable[[bytes], Object]) -> HttpResponse:
    """Return a response with a long list, encoded slice by slice; each slice is sent separately."""
    parts = [orjson.dumps([convert(value) for value in some])[1:-1] async for some in in_slices(values, len)]
    opened = orjson.dumps(head)[:-1] + b',"%b":[' % name.encode()
    if len(parts) <= 1:
        return HttpResponse(body=b"%b%b]}" % (opened, parts[0] if parts else b""))
    tail = [part if not index else b"," + part for index, part in enumerate(parts)]
    tail[-1] += b"]}"
    return HttpResponse(body=opened, tail=tail, tail_bytes=sum(map(len, tail)))


class TableRenderer:
    def __init__(self, request: HttpRequest, resource: Resource, clock: Clock) -> None:
        self._resource = resource
        self._clock = clock
        self._version = _chosen(request, many=None)[1]
        self._include = request.query.get("includeObject", "")
        if self._include not in _INCLUDES:
            raise bad_request("includeObject must be Metadata, Object, None or empty")
        self._has_head = False

    def render(self, values: Iterable[bytes], metadata: Object) -> bytes:
        """Return a table with one row per stored object; only the first table has column definitions."""
        now = to_wire(self._clock.now())
        return orjson.dumps({**self._table(metadata), "rows": [self._row(read(value), now) for value in values]})

    async def response(self, values: list[bytes], metadata: Object) -> HttpResponse:
        now = to_wire(self._clock.now())
        return await _sliced(self._table(metadata), "rows", values, lambda value: self._row(read(value), now))

    def _table(self, metadata: Object) -> Object:
        table: Object = {"kind": Representation.TABLE.value, "apiVersion": self._version, "metadata": metadata}
        table["columnDefinitions"] = None if self._has_head else self._head()
        self._has_head = True
        return table

    def _head(self) -> list[Object]:
        return [definition_of(column) for column in columns_of(self._resource)]

    def _row(self, obj: Object, now: str) -> Object:
        row: Object = {"cells": list(cells_of(self._resource, obj, now))}
        is_pod = self._resource.is_builtin and self._resource.kind == "Pod"
        if is_pod and (done := _COMPLETED.get(str((obj.get("status") or {}).get("phase")))):
            reason, message = done
            row["conditions"] = [{"type": "Completed", "status": "True", "reason": reason, "message": message}]
        shown: Any = {"None": None, "Object": obj}.get(self._include, partial_metadata(obj, self._version))
        return {**row, "object": shown}
