"""The ASGI application: gate, route, handle, answer; and nothing that goes wrong in one request reaches another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from paceline.apiserver import status_errors
from paceline.apiserver.admission.chain import Admission
from paceline.apiserver.admission.confinement import ServiceAccountAdmission
from paceline.apiserver.auth.authentication import MAX_BODY_BYTES, PUBLIC, ClientDisconnected, read_body
from paceline.apiserver.auth.authorization import attributes_of, denial_message
from paceline.apiserver.auth.stream_expiry import StreamAuthorization
from paceline.apiserver.config import Nodes, Server
from paceline.apiserver.crd.lifecycle import CrdReconciler
from paceline.apiserver.encoding import events_v1
from paceline.apiserver.encoding.openapi_v3 import OpenApi
from paceline.apiserver.encoding.protobuf import as_json, is_protobuf
from paceline.apiserver.handlers import access_reviews, metrics
from paceline.apiserver.handlers.create_update import WriteHandler
from paceline.apiserver.handlers.delete import DeleteHandler
from paceline.apiserver.handlers.discovery import Discovery
from paceline.apiserver.handlers.exec import ExecHandler
from paceline.apiserver.handlers.get_list import ReadHandler
from paceline.apiserver.handlers.health import health
from paceline.apiserver.handlers.metrics import MetricsHandler
from paceline.apiserver.handlers.node_proxy import PREFIX_PARTS, NodeProxyHandler, is_node_proxy
from paceline.apiserver.handlers.pod_subresources import PodHandler
from paceline.apiserver.handlers.proxy import ProxyHandler
from paceline.apiserver.handlers.scale import ScaleHandler
from paceline.apiserver.handlers.token_requests import request_token
from paceline.apiserver.handlers.watch import STALL_SECONDS, EventCache, WatchStream
from paceline.apiserver.http_types import (
    App,
    ClientStalled,
    HttpRequest,
    HttpResponse,
    ProxiedResponse,
    Receive,
    Scope,
    Send,
    Stream,
    status_response,
)
from paceline.apiserver.managed_fields import FieldTracker
from paceline.apiserver.paths import Target, find_target, split_path
from paceline.apiserver.routes import DISCOVERY, HEALTH, PROXIED, VERBS, route_of
from paceline.apiserver.slicing import offload
from paceline.apiserver.status_errors import StatusError
from paceline.apiserver.url_rewrite import rewrite_page_url
from paceline.apiserver.warnings import attach_warnings, deprecation_warnings, with_deprecation, with_warnings
from paceline.errors import PacelineError

log = logging.getLogger(__name__)

MAX_QUERY = 64 * 1024
MAX_FIELDS = 100
# Of all warnings of an answer, and of the one that is cut where they are more.
MAX_WARNING_CHARS, MAX_CUT_WARNING_CHARS = 4096, 256
# Where in /api/v1/namespaces/NAMESPACE/PLURAL/NAME/PART the part stands.
PART = 6

__all__ = ["Nodes", "Server", "make_app"]


def make_app(server: Server) -> App:
    """Make the application that serves a server's objects."""
    api = Api(server)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await _live(receive, send)
            case "websocket":
                await api.meet(rewrite_page_url(scope), receive, send)
            case "http":
                await api.handle(rewrite_page_url(scope), receive, send)

    return app


async def _live(receive: Receive, send: Send) -> None:
    """Say yes to starting and stopping; whoever built the server does both."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


class Api:
    """Every verb of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._pods, self._sessions, self._proxies = PodHandler(server), ExecHandler(server), ProxyHandler(server)
        self._metrics, self._node_proxies = MetricsHandler(server), NodeProxyHandler(server)
        self._tracking = FieldTracker(server)
        reads, deletes = ReadHandler(server), DeleteHandler(server)
        self._deletes = deletes
        admission = Admission(server.kinds, server.store)
        writes, by_accounts = WriteHandler(server, admission), WriteHandler(server, ServiceAccountAdmission(admission))
        self._verbs: Mapping[str, Callable[[HttpRequest, Target], Awaitable[HttpResponse | Stream]]] = {
            "get": reads.get,
            "list": reads.list,
            "watch": self._watch,
            "create": writes.create,
            "update": writes.replace,
            "patch": writes.patch,
            "delete": deletes.delete,
            "deletecollection": deletes.delete_all,
        }
        self._verbs_of_accounts = {
            **self._verbs,
            "create": by_accounts.create,
            "update": by_accounts.replace,
            "patch": by_accounts.patch,
        }
        self._scales = ScaleHandler(server, writes)
        self._definitions = CrdReconciler(server, deletes)
        self._sent = EventCache()
        self._discovery = Discovery(server.kinds)
        self._openapi = OpenApi(server.kinds)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; this is the one place where a bug is caught, told and survived."""
        reply = ResponseWriter(send)
        try:
            try:
                request = self._request(scope)
                seat = await self._server.fairness.enter(request.caller)
                try:
                    answered = await self._answer(request, scope, receive)
                    if isinstance(answered, HttpResponse):
                        await reply.whole(answered)
                        return
                finally:
                    self._server.fairness.leave(seat)
                await self._stream(request, scope, answered, receive, reply)
            except ClientDisconnected:
                return
            except ClientStalled:
                await _cut_off(scope)
            except StatusError as error:
                await reply.whole(status_response(error.status, warnings=error.warnings))
            except PacelineError as error:
                await reply.whole(status_response(status_errors.status_of(error)))
        except Exception:
            log.exception("a request was not answered", extra={"method": scope["method"], "path": scope["path"]})
            await reply.whole(status_response(status_errors.internal_error()))

    async def _stream(
        self,
        request: HttpRequest,
        scope: Scope,
        answered: Stream | ProxiedResponse,
        receive: Receive,
        reply: "ResponseWriter",
    ) -> None:
        """Serve what may last, for as long as its caller may have it."""
        welcome = StreamAuthorization(self._server.gate, scope, request)
        with self._server.fairness.stream(request.caller):
            if not isinstance(answered, ProxiedResponse):
                await _serve(answered, receive, reply, welcome)
            elif not await welcome.during(answered.run(receive, reply.pass_on)):
                # Half of somebody else's answer can only be cut off.
                raise ClientStalled

    async def meet(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a WebSocket through to a container or a port; one that is refused is told why, as a request would be."""
        await receive()
        reply = WebSocketRejection(send)
        try:
            try:
                request = self._request(scope)
                passage = self._through(request, scope)
                if not isinstance(passage, ProxiedResponse):
                    raise status_errors.bad_request("a WebSocket leads to exec, attach and proxy only")
                with self._server.fairness.stream(request.caller):
                    welcome = StreamAuthorization(self._server.gate, scope, request)
                    if not await welcome.during(passage.run(receive, reply.pass_on)):
                        raise status_errors.unauthorized()
            except StatusError as error:
                await reply.whole(status_response(error.status))
            except PacelineError as error:
                await reply.whole(status_response(status_errors.status_of(error)))
        except Exception:
            log.exception("a WebSocket was not served", extra={"path": scope["path"]})
            await reply.whole(status_response(status_errors.internal_error()))

    async def _answer(
        self, request: HttpRequest, scope: Scope, receive: Receive
    ) -> HttpResponse | Stream | ProxiedResponse:
        if scope["path"] in PUBLIC:
            if scope["method"] not in VERBS[HEALTH]:
                raise status_errors.method_not_allowed()
            self._allow(request, HEALTH, "get")
            return health(request, self._server.store.failure, is_known=self._server.gate.knows(scope, request.headers))
        if (through := self._through(request, scope)) is not None:
            return through
        if scope["method"] in {"GET", "HEAD"}:
            return await self._route(request)
        # Without either header there is no body; what comes in chunks may be of any size.
        unsaid = MAX_BODY_BYTES if "transfer-encoding" in request.headers else 0
        size = int(request.headers.get("content-length") or unsaid)
        with self._server.fairness.body(request.caller, size):
            request = replace(request, body=await read_body(receive))
            if is_protobuf(request):
                request = await offload(self._server.blocking, len(request.body), partial(as_json, request))
            return await self._route(request)

    def _request(self, scope: Scope) -> HttpRequest:
        """Read the head of a request that passes the gate."""
        headers = _headers(scope)
        caller = self._server.gate.admit(scope, headers)
        return HttpRequest(
            method=scope.get("method", "GET"),
            path=scope["path"],
            parts=split_path(scope.get("raw_path") or scope["path"].encode()),
            query=_query(scope),
            headers=headers,
            caller=caller,
        )

    def _through(self, request: HttpRequest, scope: Scope) -> ProxiedResponse | HttpResponse | None:
        """Find the way for what is passed on, its body unread; None for everything else."""
        parts = request.parts
        if is_node_proxy(parts):
            target = find_target(self._server.scheme, parts[:PREFIX_PARTS])
            self._allow(request, "proxy", _verb_of(request, target), target)
            return self._node_proxies.open(request, target, scope)
        if len(parts) <= PART or parts[0] != "api" or parts[PART] not in PROXIED:
            return None
        target = find_target(self._server.scheme, parts[:PART])
        part = parts[PART]
        is_known = part in target.resource.subresources or (part == "portforward" and target.resource.kind == "Pod")
        if not is_known or (len(parts) > PART + 1 and part != "proxy"):
            raise status_errors.no_such_path()
        target = replace(target, subresource=part)
        self._allow(request, part, _verb_of(request, target), target)
        opener = self._proxies if part == "proxy" else self._sessions
        return opener.open(request, target, scope)

    def _allow(self, request: HttpRequest, sort: str, verb: str, target: Target | None = None) -> None:
        """Ask the gate, which knows every route and who may call it."""
        if self._server.gate.allows(request.caller, sort, verb, target):
            return
        if target is None or request.caller.account is None:
            raise status_errors.access_denied(f"{request.caller.name} may not {verb} this")
        raise status_errors.not_allowed(
            target.resource, target.name, denial_message(request.caller.name, attributes_of(verb, target))
        )

    async def _route(self, request: HttpRequest) -> HttpResponse | Stream:
        parts = request.parts
        if parts[:1] == ("openapi",) and request.method == "GET":
            self._allow(request, DISCOVERY, "get")
            return self._openapi.answer(request)
        is_about_objects = len(parts) > {"api": 2, "apis": 3}.get(parts[0] if parts else "", len(parts))
        if is_about_objects:
            return await self._verb(request, find_target(self._server.scheme, request.parts))
        self._allow(request, DISCOVERY, "get")
        told = self._discovery.answer(request)
        if request.method != "GET":
            raise status_errors.method_not_allowed()
        return told

    async def _verb(self, request: HttpRequest, target: Target) -> HttpResponse | Stream:
        verb = _verb_of(request, target)
        self._allow(request, route_of(target), verb, target)
        await self._definitions.begin()
        if target.subresource == "scale":
            return await self._scales.serve(request, target)
        if target.subresource in {"binding", "eviction", "log", "token"}:
            return await self._special(request, target, verb)
        if verb not in target.resource.verbs:
            raise status_errors.method_not_allowed()
        if target.resource.is_builtin and target.resource.group == metrics.GROUP:
            return await self._metrics.serve(request, target)
        if target.resource.is_builtin and target.resource.group in access_reviews.GROUPS:
            asked = partial(access_reviews.review, request, target, self._server.clock, tracking=self._tracking)
            return await offload(self._server.blocking, len(request.body), asked)
        if said := deprecation_warnings(target.resource):
            with attach_warnings(said):
                answered = with_deprecation(await self._act(verb, request, target), target.resource)
        else:
            answered = await self._act(verb, request, target)
        if verb in {"get", "list", "watch"}:
            return answered
        await self._definitions.after_write(target.resource)
        return with_warnings(answered, target.resource)

    async def _act(self, verb: str, request: HttpRequest, target: Target) -> HttpResponse | Stream:
        verbs = self._verbs if request.caller.account is None else self._verbs_of_accounts
        if target.resource.group == events_v1.GROUP and target.resource.is_builtin:
            core = self._server.scheme.find("", "v1", "events")
            if core is not None:
                return await events_v1.call_core(verbs[verb], request, target, core, blocking=self._server.blocking)
        return await verbs[verb](request, target)

    async def _watch(self, request: HttpRequest, target: Target) -> Stream:
        return WatchStream(request, self._server, target, sent=self._sent)

    async def _special(self, request: HttpRequest, target: Target, verb: str) -> HttpResponse | Stream:
        match target.subresource, verb:
            case "binding", "create":
                return await self._pods.bind(request, target)
            case "eviction", "create":
                return await self._deletes.evict(request, target)
            case "log", "get":
                return await self._pods.log(request, target)
            case "token", "create":
                return await request_token(request, target, self._server)
            case _:
                raise status_errors.method_not_allowed()


def _verb_of(request: HttpRequest, target: Target) -> str:
    verb = VERBS[route_of(target)].get(request.method)
    if verb == "list" and request.flag("watch"):
        verb = "watch"
    if verb is None:
        raise status_errors.method_not_allowed()
    return verb


class ResponseWriter:
    """The one answer to a request. Once its head is sent, a later one can only end it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False
        self._is_foreign = False

    async def whole(self, answered: HttpResponse) -> None:
        """Send everything at once; if a stream has begun already, end that."""
        if self._is_foreign:
            return  # Left unfinished, so that the client knows that something is missing.
        if self._started:
            await self.end()
            return
        headers = [(b"content-length", str(len(answered.body) + answered.rest_bytes).encode())]
        headers.extend((b"warning", _warning(text)) for text in _bounded(answered.warnings))
        headers.extend((name.encode(), value.encode("latin-1")) for name, value in answered.headers)
        await self._head(answered.code, answered.content_type, headers)
        more = answered.rest_bytes > 0
        await self._send({"type": "http.response.body", "body": answered.body, "more_body": more})
        if more:
            await self._rest(answered.rest)

    async def _rest(self, parts: Iterable[bytes]) -> None:
        """Send a large answer bit by bit, at the pace of the client."""
        try:
            for part in parts:
                async with asyncio.timeout(STALL_SECONDS):
                    await self._send({"type": "http.response.body", "body": part, "more_body": True})
        except TimeoutError:
            raise ClientStalled from None
        await self.end()

    async def pass_on(self, message: MutableMapping[str, Any]) -> None:
        """Send what somebody else answers."""
        self._started = self._is_foreign = True
        await self._send(message)

    async def part(self, content_type: str, chunk: bytes) -> None:
        """Send a part of a stream."""
        if not self._started:
            await self._head(200, content_type, [])
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        """End a stream."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _head(self, code: int, content_type: str, headers: list[tuple[bytes, bytes]]) -> None:
        self._started = True
        known = [
            (b"content-type", content_type.encode()),
            (b"cache-control", b"no-cache, private"),
            (b"x-content-type-options", b"nosniff"),
        ]
        await self._send({"type": "http.response.start", "status": code, "headers": [*known, *headers]})


class WebSocketRejection:
    """The answer to a WebSocket: a whole one until it is accepted, a close after that."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False

    async def whole(self, answered: HttpResponse) -> None:
        """Refuse with a whole answer, or hang up where that comes too late; a client that is gone need not know."""
        headers = [(b"content-type", answered.content_type.encode()), (b"cache-control", b"no-cache, private")]
        with suppress(OSError):
            if self._started:
                await self._send({"type": "websocket.close", "code": 1011})
                return
            await self._send({"type": "websocket.http.response.start", "status": answered.code, "headers": headers})
            await self._send({"type": "websocket.http.response.body", "body": answered.body})

    async def pass_on(self, message: MutableMapping[str, Any]) -> None:
        """Send what somebody else answers."""
        self._started = True
        await self._send(message)


async def _serve(stream: Stream, receive: Receive, reply: ResponseWriter, welcome: StreamAuthorization) -> None:
    """Run a stream until it ends, the client is gone, or it may not have it any more, whichever comes first."""

    async def write(chunk: bytes) -> None:
        await reply.part(stream.content_type, chunk)

    async def run() -> StatusError | PacelineError | ClientStalled | None:
        try:
            await stream.run(write)
        except (StatusError, PacelineError, ClientStalled) as error:
            return error
        return None

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async with asyncio.TaskGroup() as group:
        running, gone = group.create_task(run()), group.create_task(until_gone())
        is_over = group.create_task(welcome.is_over()) if welcome.may_end else gone
        await asyncio.wait({running, gone, is_over}, return_when=asyncio.FIRST_COMPLETED)
        has_left = gone.done()
        for task in (running, gone, is_over):
            task.cancel()
    if running.cancelled():
        if not has_left:
            await reply.end()
        return
    if (error := running.result()) is not None:
        raise error
    await reply.end()


async def _cut_off(scope: Scope) -> None:
    """End the connection of a client that does not read: a polite end would wait until it does."""
    log.debug("a client does not read and was cut off", extra={"path": scope["path"]})
    abort = scope.get("state", {}).get("abort")
    if abort is not None:
        abort()
        # The server learns of it in its next turn.
        await asyncio.sleep(0)


def _headers(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _query(scope: Scope) -> Mapping[str, str]:
    raw: bytes = scope.get("query_string") or b""
    if not raw:
        return {}
    if len(raw) > MAX_QUERY:
        raise status_errors.bad_request(f"the query is longer than {MAX_QUERY} bytes")
    try:
        text = raw.decode("ascii")
        if "%" not in text and "+" not in text and text.count("&") < MAX_FIELDS:
            # Most stand for themselves, and are read in a fraction of the time.
            return {name: value for name, _, value in (part.partition("=") for part in text.split("&") if part)}
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError as error:
        raise status_errors.bad_request("the query cannot be read") from error


def _bounded(warnings: Iterable[str]) -> Iterator[str]:
    """Yield the first warnings, as Kubernetes does: a body may give cause for thousands, and headers have bounds."""
    room = MAX_WARNING_CHARS
    for text in warnings:
        room -= len(text)
        if room < 0:
            yield text[:MAX_CUT_WARNING_CHARS]
            return
        yield text


def _warning(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(each if each.isprintable() else "?" for each in escaped)
    return f'299 - "{shown}"'.encode("ascii", "replace")
