"""How every verb is spelled in HTTP, without doing any HTTP."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.client.interface import NODES, Collection, PatchType, Select
from paceline.errors import BadRequest

Pairs = tuple[tuple[str, str], ...]

# The client's patience must outlast the server's, or it would cut streams that are only quiet.
SPARE_SECONDS = 30.0

# JSON is YAML, too.
APPLY = "application/apply-patch+yaml"
# What stands for itself in a path and in a query.
_PLAIN = re.compile(r"[A-Za-z0-9_.~-]*")
_STRICT: Pairs = (("fieldValidation", "Strict"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, ready to be sent by any transport."""

    method: str
    path: str
    query: Pairs = ()
    headers: Pairs = (("Accept", "application/json"),)
    body: bytes = b""
    # How long the server may be silent in a stream before it counts as dead; None waits for ever.
    silence_seconds: float | None = None

    @property
    def target(self) -> str:
        """Return path and query as they stand in the request line."""
        return f"{self.path}?{_query(self.query)}" if self.query else self.path

    @property
    def is_safe(self) -> bool:
        """Return whether sending it twice does the same as sending it once."""
        return self.method == "GET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One HTTP answer, read to its end. Header names are in lower case."""

    status: int
    headers: Pairs = ()
    body: bytes = b""


def get(where: Collection, namespace: str, name: str) -> Request:
    """Ask for one object."""
    return Request(method="GET", path=_object_path(where, namespace, name))


def page(where: Collection, select: Select, *, limit: int, after: str = "") -> Request:
    """Ask for one page of a list; a limit of 0 asks for everything at once."""
    query = _selection(select)
    if limit:
        query += (("limit", str(limit)),)
    if after:
        query += (("continue", after),)
    return Request(
        method="GET", path=where.path(_quoted(select.namespace)), query=query, headers=_accepting(select, "List")
    )


def watch(where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None) -> Request:
    """Ask for what happens after a revision, with bookmarks."""
    query = (("watch", "true"), ("allowWatchBookmarks", "true"), *_selection(select))
    if since:
        query += (("resourceVersion", since),)
    if timeout_seconds is not None:
        query += (("timeoutSeconds", str(timeout_seconds)),)
    return Request(
        method="GET",
        path=where.path(_quoted(select.namespace)),
        query=query,
        headers=_accepting(select),
        silence_seconds=None if timeout_seconds is None else timeout_seconds + SPARE_SECONDS,
    )


def create(where: Collection, obj: Object, *, author: str = "") -> Request:
    """Ask to store a new object."""
    namespace = namespace_of(obj)
    _need_namespace(where, namespace, name_of(obj))
    request = _write("POST", where.path(_quoted(namespace)), obj)
    return replace_fields(request, query=(*request.query, ("fieldManager", author))) if author else request


def replace(where: Collection, obj: Object, *, subresource: str = "") -> Request:
    """Ask to store a whole object in place of the one it was read from."""
    path = _object_path(where, namespace_of(obj), name_of(obj), subresource)
    return _write("PUT", path, obj)


def patch(
    where: Collection,
    key: tuple[str, str],
    body: Any,
    *,
    kind: PatchType = PatchType.MERGE,
    subresource: str = "",
) -> Request:
    """Ask to change parts of an object."""
    return _write("PATCH", _object_path(where, *key, subresource), body, kind.value)


def apply(where: Collection, obj: Object, *, author: str, force: bool = False) -> Request:
    """Ask for an object to be as its author wants it."""
    path = _object_path(where, namespace_of(obj), name_of(obj))
    request = _write("PATCH", path, obj, APPLY)
    forced: Pairs = (("force", "true"),) if force else ()
    return replace_fields(request, query=(*request.query, ("fieldManager", author), *forced))


def delete(where: Collection, key: tuple[str, str], options: Mapping[str, Any] | None = None) -> Request:
    """Ask for an object to go."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
    return Request(
        method="DELETE",
        path=_object_path(where, *key),
        headers=_headers("application/json"),
        body=orjson.dumps(body),
    )


def post(path: str, body: Object) -> Request:
    """Send a body to a subresource that is not an object of its own."""
    return _write("POST", path, body)


def stream(path: str, query: Mapping[str, str]) -> Request:
    """Ask for a path that is read as it grows."""
    # Logs are text: an Accept of JSON would be refused by a strict server.
    return Request(method="GET", path=path, query=tuple(query.items()), headers=(("Accept", "*/*"),))


def history_path(node: str, namespace: str, pod: str = "") -> str:
    """Return the path of the pods that a node has archived, or of the log of one of them."""
    root = f"{NODES.path('', _quoted(node), 'proxy')}/history/{_quoted(namespace)}"
    return f"{root}/{_quoted(pod)}/log" if pod else root


def _write(method: str, path: str, body: Any, content_type: str = "application/json") -> Request:
    return Request(
        method=method,
        path=path,
        query=_STRICT,
        headers=_headers(content_type),
        body=orjson.dumps(body),
    )


def _headers(content_type: str) -> Pairs:
    return (("Accept", "application/json"), ("Content-Type", content_type))


def _accepting(select: Select, many: str = "") -> Pairs:
    form = f";as=PartialObjectMetadata{many};g=meta.k8s.io;v=v1" if select.only_ties else ""
    return (("Accept", f"application/json{form}"),)


def _selection(select: Select) -> Pairs:
    named = (("labelSelector", select.labels), ("fieldSelector", select.fields))
    return tuple((name, value) for name, value in named if value)


def _object_path(where: Collection, namespace: str, name: str, subresource: str = "") -> str:
    _need_namespace(where, namespace, name)
    if not name:
        raise BadRequest(f"one of the {where.plural} is meant, but metadata.name is empty; name it")
    return where.path(_quoted(namespace), _quoted(name), subresource)


def _need_namespace(where: Collection, namespace: str, name: str) -> None:
    if where.namespaced and not namespace:
        message = f"{where.plural} {name!r}: metadata.namespace is empty; these live in a namespace"
        raise BadRequest(message)


def _quoted(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else quote(part, safe="")


def _query(pairs: Pairs) -> str:
    """Write a query; most are of words that mean themselves, and spelling each out takes as long as all the rest."""
    if _PLAIN.fullmatch("".join([part for pair in pairs for part in pair])):
        return "&".join([f"{name}={value}" for name, value in pairs])
    return urlencode(pairs)
