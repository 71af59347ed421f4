"""The ASGI application: authenticate, route, handle, respond. A failed request never affects another one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import parse_qsl

from paceline.apimachinery.builtin.registry import METRICS_GROUP
from paceline.apimachinery.metrics import CONTENT_TYPE
from paceline.apiserver import status_errors
from paceline.apiserver.admission.chain import Admission, ServiceAccountAdmission
from paceline.apiserver.auth.authentication import (
    MAX_BODY_BYTES,
    PUBLIC,
    ClientDisconnected,
    StreamAuthorization,
    finishes_before,
    read_body,
)
from paceline.apiserver.auth.authorization import attributes_of, denial_message
from paceline.apiserver.config import Server
from paceline.apiserver.crd.lifecycle import CrdReconciler
from paceline.apiserver.encoding import events_v1
from paceline.apiserver.encoding.openapi_v3 import OpenApi
from paceline.apiserver.encoding.protobuf import as_json, is_protobuf
from paceline.apiserver.handlers import access_reviews
from paceline.apiserver.handlers.access_reviews import request_token
from paceline.apiserver.handlers.create_update import WriteHandler
from paceline.apiserver.handlers.delete import DeleteHandler
from paceline.apiserver.handlers.discovery import Discovery, health
from paceline.apiserver.handlers.get_list import ReadHandler
from paceline.apiserver.handlers.metrics import MetricsHandler
from paceline.apiserver.handlers.pod_subresources import PodHandler
from paceline.apiserver.handlers.proxy import (
    NODE_PREFIX_PARTS,
    ProxyHandler,
    is_node_proxy,
    open_exec,
    open_node_proxy,
)
from paceline.apiserver.handlers.scale import ScaleHandler
from paceline.apiserver.handlers.watch import EventCache, WatchStream
from paceline.apiserver.http_types import (
    App,
    ClientStalled,
    HttpRequest,
    HttpResponse,
    ProxiedResponse,
    Receive,
    ResponseWriter,
    Scope,
    Send,
    Stream,
    WebSocketRejection,
    attach_warnings,
    deprecation_warnings,
    error_response,
    status_response,
    with_warnings,
)
from paceline.apiserver.managed_fields import FieldTracker
from paceline.apiserver.paths import Target, find_target, split_path
from paceline.apiserver.request_metrics import RequestMetrics
from paceline.apiserver.routes import DISCOVERY, HEALTH, PROXIED, VERBS, rewrite_page_url, route_of
from paceline.apiserver.slicing import offload
from paceline.apiserver.status_errors import StatusError
from paceline.errors import PacelineError

log = logging.getLogger(__name__)

MAX_QUERY = 64 * 1024
MAX_FIELDS = 100
# Index of the subresource in /api/v1/namespaces/NAMESPACE/PLURAL/NAME/SUBRESOURCE.
SUBRESOURCE = 6

Handler = Callable[[HttpRequest, Target], Awaitable[HttpResponse | Stream]]


def make_app(server: Server) -> App:
    api = Api(server)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await _lifespan(receive, send)
            case "websocket":
                await api.handle_websocket(rewrite_page_url(scope), receive, send)
            case "http":
                await api.handle(rewrite_page_url(scope), receive, send)

    return app


async def _lifespan(receive: Receive, send: Send) -> None:
    """Complete the lifespan messages; the caller starts and stops the server."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


class Api:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._proxies, self._metrics = ProxyHandler(server), MetricsHandler(server)
        self._requests = RequestMetrics()
        server.metrics.put("apiserver", self._requests)
        self._tracking = FieldTracker(server)
        self._admission = admission = Admission(server.kinds, server.store)
        writes, by_accounts = WriteHandler(server, admission), WriteHandler(server, ServiceAccountAdmission(admission))
        reads, deletes = ReadHandler(server), DeleteHandler(server, writes.record)
        self._verbs: Mapping[str, Handler] = {
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
        scales, pods = ScaleHandler(server, writes), PodHandler(server)
        self._subresources: Mapping[str, Handler] = {
            "binding": pods.bind,
            "eviction": deletes.evict,
            "log": pods.log,
            "scale": scales.serve,
            "token": partial(request_token, server=server),
        }
        self._crds = CrdReconciler(server, deletes)
        self._event_cache = EventCache()
        self._discovery = Discovery(server.kinds)
        self._openapi = OpenApi(server.kinds)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request and count it."""
        writer = ResponseWriter(send)
        with self._requests.measure(scope, writer):
            await self._respond(scope, receive, writer)

    async def _respond(self, scope: Scope, receive: Receive, writer: ResponseWriter) -> None:
        """Respond to one request; this is the only place that catches bugs."""
        try:
            try:
                request = self._request(scope)
                seat = await self._server.fairness.enter(request.caller)
                try:
                    response = await self._answer(request, scope, receive)
                    if isinstance(response, HttpResponse):
                        await writer.send_response(response)
                        return
                finally:
                    self._server.fairness.leave(seat)
                await self._stream(request, scope, response, receive, writer)
            except ClientDisconnected:
                return
            except ClientStalled:
                await _cut_off(scope)
            except (StatusError, PacelineError) as error:
                await writer.send_response(error_response(error))
        except Exception:
            log.exception("a request was not answered", extra={"method": scope["method"], "path": scope["path"]})
            await writer.send_response(status_response(status_errors.internal_error()))

    async def _stream(
        self,
        request: HttpRequest,
        scope: Scope,
        response: Stream | ProxiedResponse,
        receive: Receive,
        writer: ResponseWriter,
    ) -> None:
        """Send a stream for as long as its caller is authorized."""
        authorization = StreamAuthorization(self._server.gate, scope, request)
        with self._server.fairness.stream(request.caller):
            if not isinstance(response, ProxiedResponse):
                await _serve(response, receive, writer, authorization)
            elif not await authorization.run_while_valid(partial(response.run, receive, writer.pass_on)):
                # A partial response of a pod can only be aborted.
                raise ClientStalled

    async def handle_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Proxy a WebSocket to a container or port, or reject it with a Status."""
        await receive()
        writer = WebSocketRejection(send)
        try:
            try:
                request = self._request(scope)
                response = self._proxied(request, scope)
                if not isinstance(response, ProxiedResponse):
                    raise status_errors.bad_request("WebSockets are supported for exec, attach and proxy only")
                with self._server.fairness.stream(request.caller):
                    authorization = StreamAuthorization(self._server.gate, scope, request)
                    if not await authorization.run_while_valid(partial(response.run, receive, writer.pass_on)):
                        raise status_errors.unauthorized()
            except (StatusError, PacelineError) as error:
                await writer.send_response(error_response(error))
        except Exception:
            log.exception("a WebSocket was not served", extra={"path": scope["path"]})
            await writer.send_response(status_response(status_errors.internal_error()))

    async def _answer(
        self, request: HttpRequest, scope: Scope, receive: Receive
    ) -> HttpResponse | Stream | ProxiedResponse:
        if scope["path"] in PUBLIC:
            if scope["method"] not in VERBS[HEALTH]:
                raise status_errors.method_not_allowed()
            self._allow(request, HEALTH, "get")
            has_token = self._server.gate.knows(scope, request.headers)
            return health(request, self._server.store.failure, has_token=has_token)
        if (proxied := self._proxied(request, scope)) is not None:
            return proxied
        if scope["method"] in {"GET", "HEAD"}:
            return await self._route(request)
        # Without either header there is no body. A chunked body may have any size.
        default_size = MAX_BODY_BYTES if "transfer-encoding" in request.headers else 0
        size = int(request.headers.get("content-length") or default_size)
        with self._server.fairness.body(request.caller, size):
            request = replace(request, body=await read_body(receive))
            if is_protobuf(request):
                request = await offload(self._server.blocking, len(request.body), partial(as_json, request))
            return await self._route(request)

    def _request(self, scope: Scope) -> HttpRequest:
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

    def _proxied(self, request: HttpRequest, scope: Scope) -> ProxiedResponse | HttpResponse | None:
        """Return the proxied response of exec, attach and proxy, with the body unread; None for other paths."""
        parts = request.parts
        if is_node_proxy(parts):
            target = find_target(self._server.scheme, parts[:NODE_PREFIX_PARTS])
            self._allow(request, "proxy", _verb_of(request, target), target)
            return open_node_proxy(self._server, request, target, scope)
        if len(parts) <= SUBRESOURCE or parts[0] != "api" or parts[SUBRESOURCE] not in PROXIED:
            return None
        target = find_target(self._server.scheme, parts[:SUBRESOURCE])
        subresource = parts[SUBRESOURCE]
        served = {*target.resource.subresources, *({"portforward"} if target.resource.kind == "Pod" else ())}
        if subresource not in served or (len(parts) > SUBRESOURCE + 1 and subresource != "proxy"):
            raise status_errors.no_such_path()
        target = replace(target, subresource=subresource)
        self._allow(request, subresource, _verb_of(request, target), target)
        if subresource == "proxy":
            return self._proxies.open(request, target, scope)
        return open_exec(self._server, request, target, scope)

    def _allow(self, request: HttpRequest, route: str, verb: str, target: Target | None = None) -> None:
        if self._server.gate.allows(request.caller, route, verb, target):
            return
        if target is None or request.caller.account is None:
            raise status_errors.access_denied(f"{request.caller.name} may not {verb} this")
        reason = denial_message(request.caller.name, attributes_of(verb, target))
        raise status_errors.forbidden(target.resource, target.name, reason)

    async def _route(self, request: HttpRequest) -> HttpResponse | Stream:
        parts = request.parts
        if parts[:1] == ("openapi",) and request.method == "GET":
            self._allow(request, DISCOVERY, "get")
            return self._openapi.respond(request)
        if parts == ("metrics",):
            self._allow(request, DISCOVERY, "get")
            if request.method != "GET":
                raise status_errors.method_not_allowed()
            return HttpResponse(content_type=CONTENT_TYPE, body=self._server.metrics.write())
        is_about_objects = len(parts) > {"api": 2, "apis": 3}.get(parts[0] if parts else "", len(parts))
        if is_about_objects:
            return await self._verb(request, find_target(self._server.scheme, request.parts))
        self._allow(request, DISCOVERY, "get")
        document = self._discovery.respond(request)
        if request.method != "GET":
            raise status_errors.method_not_allowed()
        return document

    async def _verb(self, request: HttpRequest, target: Target) -> HttpResponse | Stream:
        verb = _verb_of(request, target)
        self._allow(request, route_of(target), verb, target)
        await self._crds.finish_earlier()
        if subresource := self._subresources.get(target.subresource):
            return await subresource(request, target)
        if verb not in target.resource.verbs:
            raise status_errors.method_not_allowed()
        if target.resource.is_builtin and target.resource.group == METRICS_GROUP:
            return await self._metrics.serve(request, target)
        if target.resource.is_builtin and target.resource.group in access_reviews.GROUPS:
            review = partial(access_reviews.review, request, target, self._server.clock, tracking=self._tracking)
            return await offload(self._server.blocking, len(request.body), review)
        deprecated = deprecation_warnings(target.resource)
        with attach_warnings(deprecated):
            response = await self._act(verb, request, target)
        if deprecated and isinstance(response, HttpResponse):
            response = replace(response, warnings=(*deprecated, *response.warnings))
        if verb in {"get", "list", "watch"}:
            return response
        await self._crds.after_write(target.resource)
        if target.subresource:
            return response
        # A dry run creates no claim that a job in the same folder needs, so it warns of none.
        lookup = None if request.query.get("dryRun") else self._admission.names
        return with_warnings(response, target.resource, lookup)

    async def _act(self, verb: str, request: HttpRequest, target: Target) -> HttpResponse | Stream:
        verbs = self._verbs if request.caller.account is None else self._verbs_of_accounts
        if target.resource.group == events_v1.GROUP and target.resource.is_builtin:
            core = self._server.scheme.find("", "v1", "events")
            if core is not None:
                return await events_v1.call_core(verbs[verb], request, target, core, blocking=self._server.blocking)
        return await verbs[verb](request, target)

    async def _watch(self, request: HttpRequest, target: Target) -> Stream:
        return WatchStream(request, self._server, target, cache=self._event_cache)


def _verb_of(request: HttpRequest, target: Target) -> str:
    verb = VERBS[route_of(target)].get(request.method)
    if verb == "list" and request.flag("watch"):
        verb = "watch"
    if verb is None:
        raise status_errors.method_not_allowed()
    return verb


async def _serve(stream: Stream, receive: Receive, writer: ResponseWriter, authorization: StreamAuthorization) -> None:
    """Send a stream until it ends, the client disconnects, or the caller is no longer authorized."""

    async def write(chunk: bytes) -> None:
        await writer.send_chunk(stream.content_type, chunk)

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    if await finishes_before(partial(authorization.run_while_valid, partial(stream.run, write)), until_gone()):
        await writer.end()


async def _cut_off(scope: Scope) -> None:
    """Abort the connection of a client that does not read: a clean end would wait for it."""
    log.debug("a client does not read and was cut off", extra={"path": scope["path"]})
    abort = scope.get("state", {}).get("abort")
    if abort is not None:
        abort()
        # The server notices it in the next iteration of the event loop.
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
            # Fast path for queries without escapes.
            return {name: value for name, _, value in (field.partition("=") for field in text.split("&") if field)}
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except ValueError as error:
        raise status_errors.bad_request("the query cannot be read") from error
