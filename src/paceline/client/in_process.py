"""A cluster in the same process: requests go straight into the server's ASGI app, bytes and all."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from paceline.client.requests import Request, Response
from paceline.client.responses import error_of
from paceline.client.rest import OnWarning, Verbs, log_warning

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
