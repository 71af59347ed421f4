"""The ASGI application: gate, route, handle, answer; and nothing that goes wrong in one request reaches another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from paceline.api import refusal
from paceline.api.admission import Admission
from paceline.api.delete import Deletes
from paceline.api.discovery import Discovery
from paceline.api.exchange import Answer, App, Receive, Request, Scope, Send, Stream, refuse
from paceline.api.gate import PUBLIC, Gone, read_body
from paceline.api.openapi import OpenApi
from paceline.api.paths import Target, find_target, split_path
from paceline.api.pods import Pods
from paceline.api.read import Reads
from paceline.api.refusal import Refusal
from paceline.api.server import Nodes, Server
from paceline.api.watch import Changes
from paceline.api.write import Writes
from paceline.errors import PacelineError

log = logging.getLogger(__name__)

MAX_QUERY = 64 * 1024

__all__ = ["Nodes", "Server", "make_app"]


def make_app(server: Server) -> App:
    """Make the application that serves a server's objects."""
    api = Api(server)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "lifespan":
                await _live(receive, send)
            case "websocket":
                await api.meet(scope, receive, send)
            case "http":
                await api.handle(scope, receive, send)

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
        self._pods = Pods(server)
        reads, deletes = Reads(server), Deletes(server)
        writes = Writes(server, Admission(server.scheme, server.store))
        self._verbs: Mapping[str, Callable[[Request, Target], Awaitable[Answer | Stream]]] = {
            "get": reads.get,
            "list": reads.list,
            "watch": self._watch,
            "create": writes.create,
            "update": writes.replace,
            "patch": writes.patch,
            "delete": deletes.delete,
            "deletecollection": deletes.delete_all,
        }
        self._discovery = Discovery(server.scheme)
        self._openapi = OpenApi(server.scheme)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; this is the one place where a bug is caught, told and survived."""
        reply = Reply(send)
        try:
            try:
                answered = await self._answer(scope, receive)
                if isinstance(answered, Answer):
                    await reply.whole(answered)
                else:
                    await _serve(answered, receive, reply)
            except Gone:
                return
            except Refusal as error:
                await reply.whole(refuse(error.status))
            except PacelineError as error:
                await reply.whole(refuse(refusal.status_of(error)))
        except Exception:
            log.exception("a request was not answered", extra={"method": scope["method"], "path": scope["path"]})
            await reply.whole(refuse(refusal.broken()))

    async def meet(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Turn a WebSocket away: it passes the same gate, but nothing is offered behind it yet."""
        await receive()
        try:
            self._server.gate.admit(scope, _headers(scope))
        except Refusal as error:
            log.info("a WebSocket was refused", extra={"path": scope["path"], "reason": error.status.reason})
        await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer | Stream:
        headers = _headers(scope)
        caller = self._server.gate.admit(scope, headers)
        path = scope["path"]
        if path in PUBLIC:
            return Answer(body=b"ok", content_type="text/plain; charset=utf-8")
        raw = scope.get("raw_path") or path.encode()
        request = Request(
            method=scope["method"],
            path=path,
            parts=split_path(raw),
            query=_query(scope),
            headers=headers,
            caller=caller,
            body=b"" if scope["method"] in {"GET", "HEAD"} else await read_body(receive),
        )
        return await self._route(request)

    async def _route(self, request: Request) -> Answer | Stream:
        parts = request.parts
        if parts[:1] == ("openapi",) and request.method == "GET":
            return self._openapi.answer(request)
        is_about_objects = len(parts) > {"api": 2, "apis": 3}.get(parts[0] if parts else "", len(parts))
        if is_about_objects:
            return await self._verb(request, find_target(self._server.scheme, parts))
        if request.method != "GET":
            raise refusal.not_offered()
        return self._discovery.answer(request)

    async def _verb(self, request: Request, target: Target) -> Answer | Stream:
        verb = _verb_of(request, target)
        if target.subresource in {"binding", "log"}:
            return await self._special(request, target, verb)
        if verb not in target.resource.verbs:
            raise refusal.not_offered()
        return await self._verbs[verb](request, target)

    async def _watch(self, request: Request, target: Target) -> Stream:
        return Changes(request, self._server, target)

    async def _special(self, request: Request, target: Target, verb: str) -> Answer | Stream:
        match target.subresource, verb:
            case "binding", "create":
                return await self._pods.bind(request, target)
            case "log", "get":
                return await self._pods.log(request, target)
            case _:
                raise refusal.not_offered()


# What a method means on a collection, on an object, and on a part of an object.
_ON_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_PART = {
    "binding": {"POST": "create"},
    "finalize": {"PUT": "update"},
    "log": {"GET": "get"},
    "status": {"GET": "get", "PUT": "update", "PATCH": "patch"},
}


def _verb_of(request: Request, target: Target) -> str:
    if target.subresource:
        verb = _ON_PART[target.subresource].get(request.method)
    elif target.name:
        verb = _ON_OBJECT.get(request.method)
    else:
        verb = _ON_COLLECTION.get(request.method)
        if verb == "list" and request.flag("watch"):
            verb = "watch"
    if verb is None:
        raise refusal.not_offered()
    return verb


class Reply:
    """The one answer to a request. Once its head is sent, a later one can only end it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False

    async def whole(self, answered: Answer) -> None:
        """Send everything at once; if a stream has begun already, end that."""
        if self._started:
            await self.end()
            return
        headers = [(b"content-length", str(len(answered.body)).encode())]
        headers.extend((b"warning", _warning(text)) for text in answered.warnings)
        await self._head(answered.code, answered.content_type, headers)
        await self._send({"type": "http.response.body", "body": answered.body})

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


async def _serve(stream: Stream, receive: Receive, reply: Reply) -> None:
    """Run a stream until it ends or the client is gone, whichever comes first."""

    async def write(chunk: bytes) -> None:
        await reply.part(stream.content_type, chunk)

    async def run() -> Refusal | PacelineError | None:
        try:
            await stream.run(write)
        except (Refusal, PacelineError) as error:
            return error
        return None

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async with asyncio.TaskGroup() as group:
        running, gone = group.create_task(run()), group.create_task(until_gone())
        await asyncio.wait((running, gone), return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        gone.cancel()
    if running.cancelled():
        return
    if (error := running.result()) is not None:
        raise error
    await reply.end()


def _headers(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _query(scope: Scope) -> Mapping[str, str]:
    raw: bytes = scope.get("query_string") or b""
    if len(raw) > MAX_QUERY:
        raise refusal.bad_request(f"the query is longer than {MAX_QUERY} bytes")
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as error:
        raise refusal.bad_request("the query cannot be read") from error
    return dict(pairs)


def _warning(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    shown = "".join(each if each.isprintable() else "?" for each in escaped)
    return f'299 - "{shown}"'.encode("ascii", "replace")
