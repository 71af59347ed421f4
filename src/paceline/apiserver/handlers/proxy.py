"""proxy: any request, a WebSocket too, to a port of a pod, or of a ready pod behind a service.

A request reaches the pod without whatever concerns this server only: the token, our own cookies, what says who the
caller is. The answer comes back as it is, but for the places that it redirects to. Which port of which address is
dialled is the agent's to decide (node/network/pod_ports.py), never that of a status that somebody wrote.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from posixpath import join
from typing import Any
from urllib.parse import quote, urlunsplit

from paceline.apimachinery.meta import Key, Object
from paceline.apimachinery.pods import port_number
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.auth import authentication
from paceline.apiserver.config import Server
from paceline.apiserver.handlers.exec import without_token_protocol
from paceline.apiserver.http_types import HttpRequest, HttpResponse, ProxiedResponse, Receive, Scope, Send
from paceline.apiserver.paths import Target, key_for
from paceline.apiserver.url_rewrite import PAGE_PREFIX
from paceline.model.interactive import is_front

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65535
OUR_COOKIES = "paceline"
# /api/v1/namespaces/NAMESPACE/PLURAL/NAME/proxy: what comes after it is the pod's.
PREFIX_PARTS = 7
_PRIVATE = frozenset({"authorization", "cookie", "expect", "sec-websocket-protocol"})
_PRIVATE_STARTS = ("impersonate-", "x-remote-", "x-forwarded-")

Pairs = list[tuple[bytes, bytes]]
Pass = Callable[[Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A port of a pod."""

    scheme: str
    pod: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyTarget:
    """What a name in the path says: `[SCHEME:]NAME[:PORT]`."""

    scheme: str
    name: str
    port: str


class ProxyHandler:
    """Finds the pods that requests are passed on to."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def open(self, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse | HttpResponse:
        """Find the way to a pod's port; on a wrong one say what Kubernetes says."""
        asked = parse_proxy_name(target)
        prefix, tail = split_proxy_path(scope.get("raw_path") or scope["path"].encode())
        is_pod = target.resource.kind == "Pod"
        door = self._pod(asked, target) if is_pod else self._service(asked, target, is_opening=_is_opening(scope, tail))
        if PAGE_PREFIX in scope:
            # It came by a page's own path, of which the pod may know a part.
            prefix = scope[PAGE_PREFIX]
        query = scope["query_string"]
        if not tail and request.method in {"GET", "HEAD"} and scope["type"] == "http":
            where = f"{prefix}/{'?' if query else ''}{query.decode('latin-1')}"
            return HttpResponse(code=301, body=b"", content_type="text/plain", headers=(("location", where),))
        parts = ("proxy", door.scheme, target.namespace, door.pod, str(door.port))
        onward = {
            **scope,
            "raw_path": ("".join(f"/{quote(part, safe='')}" for part in parts) + (tail or "/")).encode(),
            "headers": onward_headers(scope, prefix + tail),
            "subprotocols": without_token_protocol(scope),
        }
        passing = partial(self._pass_on, onward, prefix)
        return ProxiedResponse(
            run=passing if is_pod else partial(self._counted, passing, (target.namespace, asked.name))
        )

    async def _counted(self, passing: Pass, service: Key, receive: Receive, send: Send) -> None:
        """Pass on to a service, and count it as used meanwhile."""
        visits = self._server.visits
        with visits.under_way(*service) if visits else nullcontext():
            await passing(receive, send)

    async def _pass_on(self, scope: Scope, prefix: str, receive: Receive, send: Send) -> None:
        host = _header(scope, b"host")

        async def rewrite(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [_moved(pair, prefix, host) for pair in message["headers"]]}
            await send(message)

        await self._server.nodes.pass_on(scope, receive, rewrite)

    def _pod(self, asked: ProxyTarget, target: Target) -> Backend:
        pod = self._read(target, asked.name)
        if not pod["spec"].get("nodeName"):
            raise status_errors.bad_request("address not allowed")
        containers = pod["spec"]["containers"]
        if asked.port:
            port = port_number(asked.port, containers)
        else:
            ports = [port["containerPort"] for container in containers for port in container.get("ports") or ()]
            port = ports[0] if ports else DEFAULT_PORTS[asked.scheme]
        return Backend(scheme=asked.scheme, pod=asked.name, port=_number(port, asked))

    def _service(self, asked: ProxyTarget, target: Target, *, is_opening: bool) -> Backend:
        service = self._read(target, asked.name)
        if self._server.visits is not None:
            # Also when nobody answers yet: by this, what sleeps is woken.
            self._server.visits.note(target.namespace, asked.name, is_opening=is_opening)
        ports = list(service["spec"].get("ports") or ())
        name = asked.port
        if name.isdecimal():
            names = [str(port.get("name") or "") for port in ports if port["port"] == int(name)]
            if not names:
                raise status_errors.service_unavailable(f'no service port {name} found for service "{asked.name}"')
            name = names[0]
        elif not name and len(ports) == 1:
            name = str(ports[0].get("name") or "")
        found = next(self._endpoints(target, asked.name, name), None)
        if found is None:
            raise status_errors.service_unavailable(f'no endpoints available for service "{asked.name}"')
        return Backend(scheme=asked.scheme, pod=found[0], port=found[1])

    def _endpoints(self, target: Target, name: str, port: str) -> Iterator[tuple[str, int]]:
        """Give the ready pods behind a service's port, with their own port."""
        resource = self._server.scheme.find("", "v1", "endpoints")
        stored = self._server.store.get(key_for(resource, target.namespace, name)) if resource else None
        for subset in object_strategy.read(stored.value).get("subsets") or () if stored else ():
            for each in subset.get("ports") or ():
                if (each.get("name") or "") == port:
                    for address in subset.get("addresses") or ():
                        pod = address.get("targetRef") or {}
                        # Only a pod of the same namespace: an address that somebody wrote leads nowhere.
                        is_here = (
                            pod.get("kind") == "Pod" and pod.get("namespace", target.namespace) == target.namespace
                        )
                        if is_here and self._is_there(target.namespace, str(pod["name"])):
                            yield str(pod["name"]), int(each["port"])

    def _is_there(self, namespace: str, pod: str) -> bool:
        """Tell whether a pod still exists: endpoints are written a moment after one has gone."""
        resource = self._server.scheme.find("", "v1", "pods")
        return resource is not None and self._server.store.get(key_for(resource, namespace, pod)) is not None

    def _read(self, target: Target, name: str) -> Object:
        stored = self._server.store.get(key_for(target.resource, target.namespace, name))
        if stored is None:
            raise status_errors.not_found(target.resource, name)
        return object_strategy.read(stored.value)


def parse_proxy_name(target: Target) -> ProxyTarget:
    """Read the name of a pod or service with what stands before and after it."""
    parts = target.name.split(":")
    scheme, name, port = {1: ["", *parts, ""], 2: ["", *parts], 3: parts}.get(len(parts), ["?", "", ""])
    if scheme not in {"", *DEFAULT_PORTS} or not name:
        raise status_errors.bad_request(f'invalid {target.resource.kind.lower()} request "{target.name}"')
    return ProxyTarget(scheme=scheme or "http", name=name, port=port)


def split_proxy_path(raw: bytes) -> tuple[str, str]:
    """Cut a path into what leads to the pod and what is the pod's own, both as they were sent."""
    text = raw.decode("latin-1").partition("?")[0]
    parts = text.split("/", PREFIX_PARTS + 1)
    if not all(parts[1 : PREFIX_PARTS + 1]):
        raise status_errors.no_such_path()
    return "/".join(parts[: PREFIX_PARTS + 1]), "".join(f"/{rest}" for rest in parts[PREFIX_PARTS + 1 :])


def onward_headers(scope: Scope, path: str) -> Pairs:
    """Leave out what concerns this server only, and say where the request came in."""
    kept = [(name, value) for name, value in scope["headers"] if not _is_private(name)]
    cookies = [
        cookie
        for name, value in scope["headers"]
        if name.lower() == b"cookie"
        for cookie in value.decode("latin-1").split("; ")
        if not cookie.strip().startswith(OUR_COOKIES)
    ]
    if cookies:
        kept.append((b"cookie", "; ".join(cookies).encode("latin-1")))
    client = scope.get("client") or ("", 0)
    said = str(scope.get("scheme") or "https")
    scheme = {"ws": "http", "wss": "https"}.get(said, said)
    if authentication.is_local_page(_header(scope, b"origin"), _header(scope, b"sec-fetch-site")):
        # A program holds the page's address against that of the request: a proxy on the way has changed only one.
        kept = [(name, value) for name, value in kept if name.lower() != b"origin"]
        kept.append((b"origin", f"{scheme}://{_header(scope, b'host')}".encode("latin-1")))
    return [
        *kept,
        (b"x-forwarded-for", str(client[0]).encode()),
        (b"x-forwarded-host", _header(scope, b"host").encode("latin-1")),
        (b"x-forwarded-proto", scheme.encode()),
        (b"x-forwarded-uri", path.encode("latin-1")),
    ]


def _is_opening(scope: Scope, tail: str) -> bool:
    """Tell whether a person opens a page; a page that is open asks for other things, and for other types."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return is_front(tail) or "text/html" in _header(scope, b"accept")


def _is_private(name: bytes) -> bool:
    text = name.decode("latin-1").lower()
    return text in _PRIVATE or text.startswith(_PRIVATE_STARTS)


def _moved(pair: tuple[bytes, bytes], prefix: str, host: str) -> tuple[bytes, bytes]:
    """Let a redirection within the pod lead through the proxy again."""
    name, value = pair
    if name.lower() != b"location":
        return pair
    parts = authentication.split(value.decode("latin-1"))
    is_elsewhere = parts.netloc not in {"", host}
    is_there = not parts.path.startswith("/") or parts.path.startswith(f"{prefix}/")
    if is_elsewhere or (is_there and not parts.netloc):
        return pair
    path = parts.path if parts.path.startswith(f"{prefix}/") else join(prefix, parts.path.lstrip("/"))
    return name, urlunsplit(("", "", path, parts.query, parts.fragment)).encode("latin-1")


def _header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted), "")


def _number(port: Any, asked: ProxyTarget) -> int:
    text = str(port)
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= MAX_PORT):
        raise status_errors.bad_request(
            f"pod {asked.name} has no port {asked.port!r}: give a number or a containerPort's name"
        )
    return int(text)
