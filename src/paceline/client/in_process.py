"""A cluster in the same process: requests go straight into the server's ASGI app, bytes and all."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import aclosing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

from paceline.apimachinery.meta import Object, name_of
from paceline.client.http.cluster import HttpTransport
from paceline.client.http.http1 import Address, Broken
from paceline.client.http.reverse_proxy import ProxyRequest, Receive, Send, join, kept, pass_on
from paceline.client.http.transport import Unreachable
from paceline.client.requests import Request, Response, stream
from paceline.client.responses import error_of, read_object
from paceline.client.rest import OnWarning, Verbs, log_warning
from paceline.client.rest_config import Access
from paceline.effects import Random
from paceline.errors import BadRequest, ServiceUnavailable

Message = MutableMapping[str, Any]
App = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]

# The Host such requests carry: no name that a browser could reach.
IN_PROCESS = "in-process"

# A reader that is slower than the server makes the server wait, as a full socket would.
MAX_CHUNKS = 64


class LocalTransport:
    """Carries requests into an ASGI app. Streams run in `group`, which is their parent."""

    def __init__(self, app: App, group: asyncio.TaskGroup, *, token: str = "") -> None:
        self._app = app
        self._group = group
        self._token = token
        self._streams: set[asyncio.Task[None]] = set()

    async def send(self, request: Request) -> Response:
        """Return the whole answer; it is worked out in the caller's own task."""
        call = _Call(request)
        await self._app(_scope(request, self._token), call.receive, call.collect)
        return Response(status=call.status, headers=call.headers, body=b"".join(call.body))

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; closing the generator disconnects."""
        call = _Call(request)
        task = self._group.create_task(self._run(request, call), name=f"stream {request.target}")
        self._streams.add(task)
        task.add_done_callback(self._streams.discard)
        try:
            async for chunk in call.chunks():
                if call.status >= 400:
                    call.body.append(chunk)
                else:
                    yield chunk
            if call.status >= 400:
                raise error_of(Response(status=call.status, body=b"".join(call.body)))
        finally:
            call.hang_up()

    def close(self) -> None:
        """End the streams that are still open."""
        for task in self._streams:
            task.cancel()

    async def _run(self, request: Request, call: "_Call") -> None:
        try:
            await self._app(_scope(request, self._token), call.receive, call.pass_on)
        finally:
            call.end()


class LocalCluster(Verbs):
    """A cluster in this process. Use it as `async with LocalCluster(...) as cluster`.

    A bug in the server while it streams is raised where the cluster was entered.
    """

    def __init__(self, app: App, *, token: str = "", on_warning: OnWarning = log_warning) -> None:
        self._group = asyncio.TaskGroup()
        self._local = LocalTransport(app, self._group, token=token)
        super().__init__(self._local, on_warning=on_warning)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._local.close()
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            # An error of the body is no error of a stream: it leaves as it is, not wrapped into a group.
            await self._group.__aexit__(None, None, None)


class _Call:
    """One request under way, seen from the app: what it receives and where it sends to."""

    def __init__(self, request: Request) -> None:
        self.status = 0
        self.headers: tuple[tuple[str, str], ...] = ()
        self.body: list[bytes] = []
        self._request_body: bytes | None = request.body
        self._gone = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_CHUNKS)
        self._is_ended = False

    async def receive(self) -> Message:
        body, self._request_body = self._request_body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def collect(self, message: Message) -> None:
        if self._start(message):
            return
        self.body.append(bytes(message.get("body", b"")))

    async def pass_on(self, message: Message) -> None:
        if self._gone.is_set() or self._start(message):
            return
        body = bytes(message.get("body", b""))
        if body:
            await self._chunks.put(body)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        while True:
            if self._chunks.empty() and self._is_ended:
                return
            chunk = await self._chunks.get()
            if chunk is not None:
                yield chunk

    def end(self) -> None:
        """Let the reader come to its end once it has read what is there."""
        self._is_ended = True
        if self._chunks.empty():
            self._chunks.put_nowait(None)

    def hang_up(self) -> None:
        self._gone.set()
        # The app may wait for room that no reader will make any more.
        while not self._chunks.empty():
            self._chunks.get_nowait()

    def _start(self, message: Message) -> bool:
        if message["type"] != "http.response.start":
            return False
        self.status = int(message["status"])
        self.headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in message.get("headers", ())
        )
        return True


def _scope(request: Request, token: str) -> Message:
    path, _, query = request.target.partition("?")
    headers = [(name.lower().encode(), value.encode()) for name, value in request.headers]
    headers += [
        (b"host", IN_PROCESS.encode()),
        (b"user-agent", b"paceline"),
        (b"content-length", str(len(request.body)).encode()),
    ]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "https",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 0),
        "server": (IN_PROCESS, 443),
    }


class AgentSocket:
    """Reaches the node agent of this machine."""

    def __init__(self, path: Path, chance: Random) -> None:
        self._path = path
        self._transport = HttpTransport(Access(server="http://node-agent"), chance, socket=path)

    async def logs(self, namespace: str, pod: Object, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Read the log of one container of a pod, as it grows if `query` says follow."""
        container = query.get("container") or _only_container(pod)
        parts = (quote(part, safe="") for part in (namespace, name_of(pod), container))
        parameters = {name: value for name, value in query.items() if name != "container"}
        request = stream("/".join(("/containerLogs", *parts)), parameters)
        with self._reaching():
            async with aclosing(self._transport.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def pass_on(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or a WebSocket that has arrived, to the path that the scope names."""
        query = scope["query_string"].decode("latin-1")
        headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        passing = ProxyRequest(
            method=scope.get("method", "GET"),
            target=scope["raw_path"].decode("ascii") + ("?" if query else "") + query,
            headers=kept(headers),
            protocols=tuple(scope.get("subprotocols") or ()),
        )
        relay = join if scope["type"] == "websocket" else pass_on
        with self._reaching():
            await relay(Address(socket=self._path), passing, receive, send)

    async def stats(self) -> Object:
        """Read what the node and its pods use."""
        with self._reaching():
            return read_object(await self._transport.send(Request(method="GET", path="/stats/summary")))

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Say what an agent that cannot be reached means for the caller."""
        try:
            yield
        except Unreachable as error:
            message = f"the node agent is not running: nothing answers on {self._path}; `paceline up` starts it"
            if isinstance(error.__cause__, Broken):
                message = "the node agent broke off its answer; if it does so again, the cluster's log says why"
            raise ServiceUnavailable(message) from error

    async def close(self) -> None:
        """Hang up all connections."""
        await self._transport.close()


def _only_container(pod: Object) -> str:
    containers = (pod.get("spec") or {}).get("containers") or []
    names = [str(container.get("name")) for container in containers]
    if len(names) != 1:
        choices = ", ".join(names) or "none"
        raise BadRequest(f"pod {name_of(pod)} has several containers; name one of: {choices}")
    return names[0]
