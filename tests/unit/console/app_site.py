"""A console before a cluster whose pods are hostile: real sockets on both sides, no kind of mock between them."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http.client import HTTPConnection
from typing import Any

from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from paceline.client.rest_config import Access
from paceline.cluster.console.seal import AesSeal
from paceline.console.app import build_app
from paceline.console.app_origins.origin import EmbeddedApp
from paceline.console.config import ConsoleConfig
from paceline.console.sessions import Login
from paceline.effects import Clock
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.effects import real_world

CLUSTER_TOKEN, NOTEBOOK_TOKEN = "cluster-secret", "notebook-secret"
BOARD = EmbeddedApp(kind="TensorBoard", namespace="default", name="evil")
OTHER = EmbeddedApp(kind="TensorBoard", namespace="default", name="other")
DESK = EmbeddedApp(kind="Notebook", namespace="default", name="desk")
Headers = list[tuple[bytes, bytes]]


@dataclass
class MovedClock:
    """The real clock, some seconds later."""

    real: Clock
    seconds: float = 0.0

    def now(self) -> datetime:
        return self.real.now() + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.real.monotonic() + self.seconds


@dataclass
class Pods:
    """The API server of the cluster, with the service proxy to pods that answer as the test says."""

    status: dict[str, Any] = field(default_factory=lambda: {"phase": "Running"})
    spec: dict[str, Any] = field(default_factory=dict)
    code: int = 200
    headers: Headers = field(default_factory=list)
    body: bytes = b"page"
    # What the pods and the API server received: path with query, and headers.
    paths: list[str] = field(default_factory=list)
    received: list[dict[str, str]] = field(default_factory=list)
    patches: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path, query = scope["raw_path"].decode(), scope["query_string"].decode()
        if "/proxy/" in path:
            self.paths.append(f"{path}?{query}" if query else path)
            self.received.append({name.decode(): value.decode("latin-1") for name, value in scope["headers"]})
            await (self._echo(receive, send) if scope["type"] == "websocket" else self._page(receive, send))
        else:
            await self._api(scope, path, receive, send)

    async def _page(self, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": self.code, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})

    async def _echo(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "v1.kernel"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": f"pod: {message['text']}"})

    async def _api(self, scope: Any, path: str, receive: Any, send: Any) -> None:
        if dict(scope["headers"]).get(b"authorization") != f"Bearer {CLUSTER_TOKEN}".encode():
            await self._json(send, {"kind": "Status", "message": "who are you"}, 401)
        elif scope["method"] == "PATCH":
            self.patches.append(json.loads((await receive())["body"]))
            self.spec, self.status = {"suspend": False}, {"phase": "Initializing", "waiting": "pod evil-0: pulling"}
            await self._json(send, self._object(path))
        elif path.startswith("/api/v1/namespaces/default/secrets/"):
            await self._json(send, {"data": {"token": b64encode(NOTEBOOK_TOKEN.encode()).decode()}})
        elif b"watch=true" in scope["query_string"]:
            self.status = {"phase": "Running"}
            await self._json(send, {"type": "MODIFIED", "object": self._object(path)})
        else:
            await self._json(send, self._object(path))

    def _object(self, path: str) -> dict[str, Any]:
        status = {**self.status, **({"tokenSecret": "desk-token"} if "/notebooks/" in path else {})}
        metadata = {"name": path.rpartition("/")[2], "namespace": "default", "uid": "u", "resourceVersion": "7"}
        return {"kind": "TensorBoard", "metadata": metadata, "spec": self.spec, "status": status}

    async def _json(self, send: Any, body: Any, code: int = 200) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode() + b"\n"})


@dataclass(frozen=True, kw_only=True)
class Answer:
    code: int
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for header, value in self.headers if header.lower() == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Site:
    """The console as browsers reach it."""

    port: int
    pods: Pods
    clock: MovedClock
    session_cookie: str

    @property
    def console(self) -> str:
        return f"paceline.localhost:{self.port}"

    def host(self, app: EmbeddedApp) -> str:
        return f"{app.label}.{self.console}"

    async def ask(self, host: str, method: str, path: str, body: str = "", **headers: str) -> Answer:
        return await asyncio.to_thread(self._ask, host, (method, path), body, headers)

    def _ask(self, host: str, place: tuple[str, str], body: str, headers: dict[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(*place, body.encode(), {"Host": host, **named})
            got = connection.getresponse()
            return Answer(code=got.status, headers=got.getheaders(), body=got.read())
        finally:
            connection.close()

    async def page_asks(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request as the console's own page does."""
        page_headers = {"Origin": f"http://{self.console}", "Sec-Fetch-Site": "same-origin", "X-Paceline": "1"}
        return await self.ask(
            self.console, method, path, json.dumps(body), Cookie=self.session_cookie, **page_headers, **headers
        )

    async def embed(self, app: EmbeddedApp, **fields: Any) -> Any:
        body = {"kind": app.kind, "namespace": app.namespace, "name": app.name, **fields}
        return (await self.page_asks("POST", "/api/embed", body)).json

    async def redeem(self, app: EmbeddedApp, ticket: str, **headers: str) -> Answer:
        """Exchange a ticket as our page on the app's origin does."""
        page_headers = {"Origin": f"http://{self.host(app)}", "X-Paceline": "1", **headers}
        return await self.ask(self.host(app), "POST", "/.paceline/open", ticket, **page_headers)

    async def cookie(self, app: EmbeddedApp) -> str:
        """Open an app, and return its cookie."""
        answer = await self.redeem(app, (await self.embed(app))["ticket"])
        assert answer.code == 200, answer.body
        return answer.all("set-cookie")[0].partition(";")[0]

    def line(self, host: str, path: str, **headers: str) -> connect:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        origin = named.pop("Origin", None)
        options: dict[str, Any] = {"additional_headers": named, "subprotocols": [Subprotocol("v1.kernel")]}
        uri = f"ws://{host}{path}"
        return connect(uri, host="127.0.0.1", port=self.port, proxy=None, origin=origin, **options)


@asynccontextmanager
async def app_site(tmp_path: Any) -> AsyncIterator[Site]:
    """Serve a console and its cluster until the end of the test."""
    pods, world = Pods(), real_world()
    clock = MovedClock(world.clock)
    cluster, front = loopback_socket(0), loopback_socket(0)
    port = front.getsockname()[1]
    async with asyncio.TaskGroup() as group:
        config = ConsoleConfig(
            access=Access(server=f"http://127.0.0.1:{cluster.getsockname()[1]}", token=CLUSTER_TOKEN),
            clock=clock,
            ids=world.ids,
            chance=world.chance,
            seal=AesSeal(b"key"),
            tasks=group,
            bundle=tmp_path,
            hosts=frozenset({f"paceline.localhost:{port}"}),
            apps_host=f"paceline.localhost:{port}",
        )
        gate = build_app(config)
        tasks = [
            group.create_task(serve(app, sock, tls=None, started=asyncio.Event()))
            for app, sock in ((pods, cluster), (gate, front))
        ]
        session = gate.runtime.sessions.begin(Login(name="ada"))
        cookie = next(gate.runtime.sessions.cookies(session, f"paceline.localhost:{port}")).partition(";")[0]
        yield Site(port=port, pods=pods, clock=clock, session_cookie=cookie)
        for task in tasks:
            task.cancel()
        await gate.runtime.clients.close()
