"""Proxies requests and WebSockets to pods, to Services, to containers (exec, attach) and to node agents.

The pod gets the request without the headers that are for this server only: the token, our cookies, the caller. The
response is unchanged except for redirects. The agent decides which address it connects to
(node/network/pod_ports.py): the status of a pod is not trusted.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from posixpath import join
from typing import Any
from urllib.parse import quote, unquote, urlunsplit

from paceline.apimachinery.meta import Key
from paceline.apimachinery.pods import port_number
from paceline.apiserver import status_errors
from paceline.apiserver.auth import authentication
from paceline.apiserver.config import Server
from paceline.apiserver.handlers.pod_subresources import container_of
from paceline.apiserver.http_types import HttpRequest, HttpResponse, ProxiedResponse, Receive, Scope, Send
from paceline.apiserver.object_strategy import lookup
from paceline.apiserver.paths import Target, key_for
from paceline.apiserver.routes import PAGE_PREFIX
from paceline.errors import MethodNotAllowed
from paceline.model.interactive import is_front

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65535
OUR_COOKIES = "paceline"
# Length of /api/v1/namespaces/NAMESPACE/PLURAL/NAME/proxy, which the pod's path follows.
PREFIX_PARTS = 7
_PRIVATE = frozenset({"authorization", "cookie", "expect", "sec-websocket-protocol"})
_PRIVATE_STARTS = ("impersonate-", "x-remote-", "x-forwarded-")
# Headers for the agent; the others are for this server.
_KEPT = frozenset({b"host", b"upgrade", b"user-agent"})
# Length of /api/v1/nodes/NAME/proxy, which the agent's path follows.
NODE_PREFIX_PARTS = 5
# Readable paths of an agent; the others have subresources of their own, with their own authorization.
READABLE_PATHS = frozenset({"healthz", "history", "pods", "stats"})

Pairs = list[tuple[bytes, bytes]]
Pass = Callable[[Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyTarget:
    """The parsed name in a proxy path: `[SCHEME:]NAME[:PORT]`."""

    scheme: str
    name: str
    port: str


class ProxyHandler:
    def __init__(self, server: Server) -> None:
        self._server = server

    def open(self, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse | HttpResponse:
        proxy_target = parse_proxy_name(target)
        prefix, tail = split_proxy_path(scope.get("raw_path") or scope["path"].encode())
        is_pod = target.resource.kind == "Pod"
        if is_pod:
            pod, port = self._pod(proxy_target, target)
        else:
            pod, port = self._service(proxy_target, target, is_opening=_is_opening(scope, tail))
        if PAGE_PREFIX in scope:
            # The request came by the page's own path; the pod may know a part of it.
            prefix = scope[PAGE_PREFIX]
        query = scope["query_string"]
        if not tail and request.method in {"GET", "HEAD"} and scope["type"] == "http":
            where = f"{prefix}/{'?' if query else ''}{query.decode('latin-1')}"
            return HttpResponse(code=301, body=b"", content_type="text/plain", headers=(("location", where),))
        path = _quoted_path("proxy", proxy_target.scheme, target.namespace, pod, str(port))
        onward = {
            **scope,
            "raw_path": f"{path}{tail or '/'}".encode(),
            "headers": onward_headers(scope, prefix + tail),
            "subprotocols": without_token_protocol(scope),
        }
        passing = partial(self._pass_on, onward, prefix)
        counted = partial(self._counted, passing, (target.namespace, proxy_target.name))
        return ProxiedResponse(run=passing if is_pod else counted)

    async def _counted(self, passing: Pass, service: Key, receive: Receive, send: Send) -> None:
        """Proxy to a Service, and count it as used meanwhile."""
        activity = self._server.activity
        with activity.under_way(*service) if activity else nullcontext():
            await passing(receive, send)

    async def _pass_on(self, scope: Scope, prefix: str, receive: Receive, send: Send) -> None:
        host = _header(scope, b"host")

        async def rewrite(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [_rewritten_redirect(pair, prefix, host) for pair in message["headers"]]
                message = {**message, "headers": headers}
            await send(message)

        await self._server.nodes.pass_on(scope, receive, rewrite)

    def _pod(self, proxy_target: ProxyTarget, target: Target) -> tuple[str, int]:
        pod = self._server.read(replace(target, name=proxy_target.name))
        if not pod["spec"].get("nodeName"):
            raise status_errors.bad_request(f"pod {proxy_target.name} is not scheduled yet")
        containers = pod["spec"]["containers"]
        if proxy_target.port:
            port = port_number(proxy_target.port, containers)
        else:
            ports = [port["containerPort"] for container in containers for port in container.get("ports") or ()]
            port = ports[0] if ports else DEFAULT_PORTS[proxy_target.scheme]
        return proxy_target.name, _number(port, proxy_target)

    def _service(self, proxy_target: ProxyTarget, target: Target, *, is_opening: bool) -> tuple[str, int]:
        service = self._server.read(replace(target, name=proxy_target.name))
        if self._server.activity is not None:
            # Even if there is no endpoint yet: this wakes a sleeping TensorBoard.
            self._server.activity.note(target.namespace, proxy_target.name, is_opening=is_opening)
        ports = list(service["spec"].get("ports") or ())
        name = proxy_target.port
        if name.isdecimal():
            names = [str(port.get("name") or "") for port in ports if port["port"] == int(name)]
            if not names:
                raise status_errors.service_unavailable(f'service "{proxy_target.name}" has no port {name}')
            name = names[0]
        elif not name and len(ports) == 1:
            name = str(ports[0].get("name") or "")
        endpoint = next(self._endpoints(target, proxy_target.name, name), None)
        if endpoint is None:
            raise status_errors.service_unavailable(f'no endpoints available for service "{proxy_target.name}"')
        return endpoint

    def _endpoints(self, target: Target, name: str, port: str) -> Iterator[tuple[str, int]]:
        """Yield the ready pods of a Service port, with the target port."""
        endpoints = lookup(self._server.store, self._server.scheme.find("", "v1", "endpoints"), target.namespace, name)
        for subset in (endpoints or {}).get("subsets") or ():
            for endpoint_port in subset.get("ports") or ():
                if (endpoint_port.get("name") or "") == port:
                    for address in subset.get("addresses") or ():
                        pod = address.get("targetRef") or {}
                        # Only pods of the same namespace: other addresses in Endpoints are not trusted.
                        namespace = pod.get("namespace", target.namespace)
                        is_ours = pod.get("kind") == "Pod" and namespace == target.namespace
                        if is_ours and self._pod_exists(target.namespace, str(pod["name"])):
                            yield str(pod["name"]), int(endpoint_port["port"])

    def _pod_exists(self, namespace: str, pod: str) -> bool:
        """Return whether a pod exists: endpoints are updated a moment after its deletion."""
        resource = self._server.scheme.find("", "v1", "pods")
        return resource is not None and self._server.store.get(key_for(resource, namespace, pod)) is not None


def parse_proxy_name(target: Target) -> ProxyTarget:
    parts = target.name.split(":")
    scheme, name, port = {1: ["", *parts, ""], 2: ["", *parts], 3: parts}.get(len(parts), ["?", "", ""])
    if scheme not in {"", *DEFAULT_PORTS} or not name:
        raise status_errors.bad_request(f'invalid {target.resource.kind.lower()} request "{target.name}"')
    return ProxyTarget(scheme=scheme or "http", name=name, port=port)


def split_proxy_path(raw: bytes) -> tuple[str, str]:
    """Split a raw path into the prefix of the proxy and the path of the pod."""
    text = raw.decode("latin-1").partition("?")[0]
    parts = text.split("/", PREFIX_PARTS + 1)
    if not all(parts[1 : PREFIX_PARTS + 1]):
        raise status_errors.no_such_path()
    return "/".join(parts[: PREFIX_PARTS + 1]), "".join(f"/{tail}" for tail in parts[PREFIX_PARTS + 1 :])


def onward_headers(scope: Scope, path: str) -> Pairs:
    """Return the headers for the pod: without those for this server, with X-Forwarded-*."""
    headers = [(name, value) for name, value in scope["headers"] if not _is_private(name)]
    cookies = [
        cookie
        for name, value in scope["headers"]
        if name.lower() == b"cookie"
        for cookie in value.decode("latin-1").split("; ")
        if not cookie.strip().startswith(OUR_COOKIES)
    ]
    if cookies:
        headers.append((b"cookie", "; ".join(cookies).encode("latin-1")))
    client = scope.get("client") or ("", 0)
    scope_scheme = str(scope.get("scheme") or "https")
    scheme = {"ws": "http", "wss": "https"}.get(scope_scheme, scope_scheme)
    if authentication.is_local_page(_header(scope, b"origin"), _header(scope, b"sec-fetch-site")):
        # Programs compare Origin with Host, and a proxy on the way has changed only one of them.
        headers = [(name, value) for name, value in headers if name.lower() != b"origin"]
        headers.append((b"origin", f"{scheme}://{_header(scope, b'host')}".encode("latin-1")))
    return [
        *headers,
        (b"x-forwarded-for", str(client[0]).encode()),
        (b"x-forwarded-host", _header(scope, b"host").encode("latin-1")),
        (b"x-forwarded-proto", scheme.encode()),
        (b"x-forwarded-uri", path.encode("latin-1")),
    ]


def _is_opening(scope: Scope, tail: str) -> bool:
    """Return whether a user opens a page, as opposed to the requests of an open page."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    return is_front(tail) or "text/html" in _header(scope, b"accept")


def _is_private(name: bytes) -> bool:
    text = name.decode("latin-1").lower()
    return text in _PRIVATE or text.startswith(_PRIVATE_STARTS)


def _rewritten_redirect(pair: tuple[bytes, bytes], prefix: str, host: str) -> tuple[bytes, bytes]:
    """Rewrite a redirect within the pod to go through the proxy."""
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


def _header(scope: Scope, header_name: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == header_name), "")


def _number(port: Any, proxy_target: ProxyTarget) -> int:
    text = str(port)
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= MAX_PORT):
        raise status_errors.bad_request(
            f"pod {proxy_target.name} has no port {proxy_target.port!r}: give a number or a containerPort's name"
        )
    return int(text)


def open_exec(server: Server, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse:
    """Return the response of exec or attach, by the node agent."""
    pod = server.read(target)
    container = container_of(pod, request.query.get("container", ""), target.name)
    if not pod["spec"].get("nodeName"):
        raise status_errors.bad_request(f"pod {target.name} does not have a host assigned")
    if target.subresource == "portforward":
        path = f"/api/v1/namespaces/{target.namespace}/pods/{target.name}:PORT/proxy/"
        raise status_errors.bad_request(f"port-forward is not supported; use kubectl proxy and {path}")
    onward = {
        **scope,
        "raw_path": _quoted_path(target.subresource, target.namespace, target.name, container).encode(),
        "headers": [(name, value) for name, value in scope["headers"] if name.lower() in _KEPT],
        "subprotocols": without_token_protocol(scope),
    }
    return ProxiedResponse(run=partial(server.nodes.pass_on, onward))


def _quoted_path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def without_token_protocol(scope: Scope) -> list[str]:
    """Return the offered subprotocols without the one that contains a token."""
    offered: list[str] = scope.get("subprotocols") or []
    return [protocol for protocol in offered if not protocol.startswith("base64url.bearer.authorization.k8s.io.")]


def is_node_proxy(parts: tuple[str, ...]) -> bool:
    return parts[:3] == ("api", "v1", "nodes") and parts[4:NODE_PREFIX_PARTS] == ("proxy",)


def open_node_proxy(server: Server, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse:
    """Return the response of a node agent to a request for one of its readable paths."""
    server.find(target)
    tail = authentication.raw_path(scope).lstrip("/").split("/")[NODE_PREFIX_PARTS:]
    if request.method != "GET" or scope["type"] != "http":
        raise MethodNotAllowed("an agent is only read through the proxy of its node")
    if not tail or unquote(tail[0]) not in READABLE_PATHS:
        raise status_errors.no_such_path()
    onward = {**scope, "raw_path": f"/{'/'.join(tail)}".encode(), "headers": []}
    return ProxiedResponse(run=partial(server.nodes.pass_on, onward))
