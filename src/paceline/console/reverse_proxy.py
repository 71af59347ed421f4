"""`/k8s/…`: the Kubernetes API as it is, with the person's credential.

What comes back is data for the page. A pod behind a service proxy may send HTML and scripts, which must never run in
the console's own origin: their media types are replaced.
"""

import re
from collections.abc import Iterable

from starlette.requests import HTTPConnection
from starlette.routing import Mount
from starlette.types import Message, Receive, Scope, Send

from paceline.client.http.reverse_proxy import Headers, ProxyRequest, join, pass_on
from paceline.console.people import Person, person_of
from paceline.errors import BadRequest, Forbidden

PREFIX = "/k8s"
ROOTS = re.compile(r"/(?:apis?|version|openapi)(?:/|$)")
# What a server behind might read as another path: encoded dots, slashes, backslashes, percent signs and controls.
TRICKS = re.compile(r"%(?:2e|2f|5c|25|0|1|7f)|//|/\.{1,2}(?:/|$)|[\\;\x00-\x20\x7f-\xff]", re.IGNORECASE)
REQUEST_HEADERS = frozenset(
    {"accept", "accept-encoding", "content-length", "content-type", "if-match", "if-none-match"}
)
RESPONSE_HEADERS = frozenset(
    {"audit-id", "content-encoding", "content-length", "content-type", "etag", "retry-after", "warning"}
)
# Media types that no browser renders or runs.
DATA_TYPES = re.compile(r"(?:application/(?:json|yaml|octet-stream|vnd\.kubernetes\.protobuf)|text/plain)\s*(?:;.*)?")
BINARY = "application/octet-stream"
# Commands in containers; pages of pods have an origin of their own.
STREAMS = re.compile(r"/api/v1/namespaces/[^/]+/pods/[^/]+/(?:exec|attach)")
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


async def _serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass a request of the page on to the API server."""
    connection = HTTPConnection(scope)
    if connection.headers.get("sec-fetch-mode") == "navigate":
        raise Forbidden("this is for the console's page; to read it yourself, use `kubectl get --raw`")
    headers = [(name, text) for name, text in connection.headers.items() if name in REQUEST_HEADERS]
    await forward(person_of(connection), scope, headers, receive, data_only(send))


async def _join(scope: Scope, receive: Receive, send: Send) -> None:
    """Pass the WebSocket of a terminal on to the API server."""
    connection = HTTPConnection(scope)
    if not STREAMS.fullmatch(path_of(scope)):
        raise Forbidden("only `exec` and `attach` are WebSockets here")
    offered = [part.strip() for part in connection.headers.get("sec-websocket-protocol", "").split(",")]
    protocols = tuple(protocol for protocol in PROTOCOLS if protocol in offered)
    if not protocols:
        raise BadRequest(f"the WebSocket must offer the protocol {PROTOCOLS[0]}")
    person, message = person_of(connection), await receive()
    if message["type"] != "websocket.connect":
        return
    upstream = person.upstream
    request = ProxyRequest(target=_target(person, scope), headers=upstream.headers, protocols=protocols)
    await join(upstream.endpoint.address, request, receive, send, upstream.tls)


async def forward(
    person: Person, scope: Scope, headers: Iterable[tuple[str, str]], receive: Receive, send: Send
) -> None:
    """Pass a request on with the person's credential; raise Unreachable if the API server does not answer."""
    upstream = person.upstream
    request = ProxyRequest(method=scope["method"], target=_target(person, scope), headers=(*upstream.headers, *headers))
    await pass_on(upstream.endpoint.address, request, receive, send, upstream.tls)


def path_of(scope: Scope) -> str:
    """Return the API server's path, encoded as it was sent; raise BadRequest if it could be read as another one."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    path = raw.decode("latin-1").partition("?")[0].removeprefix(PREFIX)
    if TRICKS.search(path) or not ROOTS.match(path):
        raise BadRequest(f"{path!r} is not a path of the Kubernetes API")
    return path


def _target(person: Person, scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return f"{person.upstream.endpoint.prefix}{path_of(scope)}{f'?{query}' if query else ''}"


def data_only(send: Send) -> Send:
    """Return a `send` that passes on the headers of an answer that the page needs, and no media type that can run."""

    async def filtered(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in message["headers"]]
            wire = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in data_headers(headers)]
            message = {**message, "headers": wire}
        await send(message)

    return filtered


def data_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers of an answer that are passed on."""
    allowed = [(name, text) for name, text in headers if name in RESPONSE_HEADERS]
    types = [text for name, text in allowed if name == "content-type"]
    if len(types) == 1 and DATA_TYPES.fullmatch(types[0].lower()):
        return tuple(allowed)
    others = [(name, text) for name, text in allowed if name != "content-type"]
    return (*others, ("content-type", BINARY), ("content-disposition", "attachment"))


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request or WebSocket of the page."""
    await (_join if scope["type"] == "websocket" else _serve)(scope, receive, send)


ROUTES = (Mount(PREFIX, app=serve),)
