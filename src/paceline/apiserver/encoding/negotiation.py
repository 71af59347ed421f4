"""The form an answer takes: objects as they are, their metadata alone, or a table."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Resource
from paceline.apimachinery.table import cells_of, columns_of, definition_of
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver.crd.conversion import in_version
from paceline.apiserver.http_types import HttpRequest, HttpResponse
from paceline.apiserver.object_strategy import read
from paceline.apiserver.slicing import in_slices
from paceline.apiserver.status_errors import bad_request, not_acceptable
from paceline.effects import Clock
from paceline.store.store import Stored

META_API = "meta.k8s.io/v1"
_META_VERSIONS = ("v1", "v1beta1")
_OFFERED = "application/json, application/json;stream=watch"
_PLAIN = frozenset({"application/json", "*/*"})
# Objects of a long list that are sent together.
SOME = 128
_INCLUDES = ("", "None", "Metadata", "Object")


# How the row of a pod says that it has run to its end.
_COMPLETED = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


class Representation(StrEnum):
    """How a client wants to see objects."""

    OBJECT = "Object"
    METADATA = "PartialObjectMetadata"
    TABLE = "Table"


def representation_of(request: HttpRequest, *, many: bool | None = None) -> Representation:
    """Tell which form the Accept header asks for, the first one that is offered; for a list, for one, or for either."""
    return _chosen(request, many=many)[0]


def _chosen(request: HttpRequest, *, many: bool | None) -> tuple[Representation, str]:
    """Give the form that is asked for, and the version of the group that has tables and bare metadata."""
    accept = request.headers.get("accept", "")
    if not accept or accept in _PLAIN:
        return Representation.OBJECT, META_API
    for clause in accept.split(","):
        sort, *parameters = (part.strip() for part in clause.split(";"))
        if sort.lower() not in _PLAIN:
            continue
        said = dict(part.partition("=")[::2] for part in parameters)
        wanted = said.get("as", "")
        if not wanted:
            return Representation.OBJECT, META_API
        if said.get("g") == "meta.k8s.io" and said.get("v") in _META_VERSIONS:
            version = f"meta.k8s.io/{said['v']}"
            if wanted == Representation.TABLE:
                return Representation.TABLE, version
            if wanted in _PARTIAL[many]:
                return Representation.METADATA, version
    raise not_acceptable(_OFFERED)


_PARTIAL: Mapping[bool | None, tuple[str, ...]] = {
    True: (f"{Representation.METADATA}List",),
    False: (Representation.METADATA,),
    None: (Representation.METADATA, f"{Representation.METADATA}List"),
}


def render_object(request: HttpRequest, resource: Resource, stored: Stored, *, clock: Clock) -> bytes:
    """Write one object in the form that was asked for."""
    value = in_version(resource, stored.value)
    match representation_of(request, many=False):
        case Representation.OBJECT:
            return value
        case Representation.METADATA:
            return orjson.dumps(partial_metadata(read(value), _chosen(request, many=False)[1]))
        case Representation.TABLE:
            revision = read(value)["metadata"].get("resourceVersion")
            metadata = {"resourceVersion": revision} if revision else {}
            return TableRenderer(request, resource, clock).of((value,), metadata)


def partial_metadata(obj: Object, version: str = META_API) -> Object:
    """Give the metadata of an object alone, as an object."""
    return {"kind": Representation.METADATA.value, "apiVersion": version, "metadata": obj["metadata"]}


def render_list(resource: Resource, values: Iterable[bytes], metadata: Object) -> bytes:
    """Write a list of stored objects without reading them."""
    return list_response(resource, list(values), metadata).whole


def list_response(resource: Resource, values: list[bytes], metadata: Object) -> HttpResponse:
    """Answer with a list of stored objects without reading them; of a long one only a part is in memory at a time."""
    head = {"kind": resource.list_name, "apiVersion": resource.api_version, "metadata": metadata}
    opened = orjson.dumps(head)[:-1] + b',"items":['
    if not values:
        return HttpResponse(body=opened + b"]}")
    cut = 1
    if resource.is_builtin:
        # The list says it for all, as it does for Kubernetes' own kinds.
        start = b'{"apiVersion":"%b","kind":"%b",' % (resource.api_version.encode(), resource.kind.encode())
        cut = len(start)
        values = [value if value.startswith(start) else start + _inside(value) for value in values]
    if len(values) <= SOME:
        return HttpResponse(body=b"%b{%b]}" % (opened, b",{".join([value[cut:] for value in values])))
    # A brace in place of what is cut off, and all but the last are followed by a comma or the end.
    size = sum(map(len, values)) - len(values) * (cut - 1) + len(values) + 1
    return HttpResponse(body=opened, rest=_parts(values, cut), rest_bytes=size)


def _parts(values: list[bytes], cut: int) -> Iterator[bytes]:
    for start in range(0, len(values), SOME):
        some = b",{".join([value[cut:] for value in values[start : start + SOME]])
        yield (b",{" if start else b"{") + some
    yield b"]}"


def _inside(value: bytes) -> bytes:
    """Give an object, after its first brace, without its kind."""
    kept = {part: inner for part, inner in read(value).items() if part not in {"apiVersion", "kind"}}
    return orjson.dumps(kept)[1:]


async def partial_list_response(request: HttpRequest, values: list[bytes], metadata: Object) -> HttpResponse:
    """Answer with a list of the metadata of stored objects."""
    version = _chosen(request, many=True)[1]
    head = {"kind": f"{Representation.METADATA.value}List", "apiVersion": version, "metadata": metadata}
    return await _sliced(head, "items", values, lambda value: partial_metadata(read(value), version))


async def _sliced(head: Object, name: str, values: list[bytes], shown: Callable[[bytes], Object]) -> HttpResponse:
    """Answer with a head and a long list, written slice by slice; every slice is sent by itself."""
    parts = [orjson.dumps([shown(value) for value in some])[1:-1] async for some in in_slices(values, len)]
    opened = orjson.dumps(head)[:-1] + b',"%b":[' % name.encode()
    if len(parts) <= 1:
        return HttpResponse(body=b"%b%b]}" % (opened, parts[0] if parts else b""))
    rest = [part if not index else b"," + part for index, part in enumerate(parts)]
    rest[-1] += b"]}"
    return HttpResponse(body=opened, rest=rest, rest_bytes=sum(map(len, rest)))


class TableRenderer:
    """Tables of one kind, as one request wants them."""

    def __init__(self, request: HttpRequest, resource: Resource, clock: Clock) -> None:
        self._resource = resource
        self._clock = clock
        self._version = _chosen(request, many=None)[1]
        self._include = request.query.get("includeObject", "")
        if self._include not in _INCLUDES:
            why = "must be 'Metadata', 'Object', 'None', or empty"
            raise bad_request(
                f'Unable to convert to Table as requested: includeObject: Invalid value: "{self._include}": {why}'
            )
        self._has_head = False

    def of(self, values: Iterable[bytes], metadata: Object) -> bytes:
        """Write a table with one row per stored object; only the first table has the columns."""
        now = to_wire(self._clock.now())
        return orjson.dumps({**self._table(metadata), "rows": [self._row(read(value), now) for value in values]})

    async def answer(self, values: list[bytes], metadata: Object) -> HttpResponse:
        """Answer with a table with one row per stored object, which may be many."""
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
