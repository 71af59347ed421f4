"""A console before a cluster, as browsers reach it: real sockets on both sides."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.client import HTTPConnection

from websockets.asyncio.client import connect

from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.client.rest_config import Access
from paceline.cluster.console.seal import AesSeal
from paceline.console.app import build_app
from paceline.console.auth import Gate
from paceline.console.config import ConsoleConfig
from paceline.console.sessions import Login
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.effects import real_world
from tests.contract.subjects import our_app

# The console's own credential, and that of another person.
OWN, ADA = "own-token", "ada-token"
TOKENS = {hash_token(OWN): "admin", hash_token(ADA): "ada"}


class MovedClock:
    """The real clock, some seconds later."""

    def __init__(self, real):
        self.real = real
        self.seconds = 0.0

    def now(self):
        return self.real.now() + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.real.monotonic() + self.seconds


@dataclass
class Recorder:
    """A cluster that answers as the test says, and keeps what reached it."""

    code: int = 200
    headers: list = field(default_factory=lambda: [(b"content-type", b"application/json")])
    pieces: list = field(default_factory=lambda: [b"{}"])
    heads: list = field(default_factory=list)
    body: bytes = b""

    async def __call__(self, scope, receive, send):
        self.heads.append(
            {
                "method": scope.get("method", "WEBSOCKET"),
                "path": scope["raw_path"].decode(),
                "query": scope["query_string"].decode(),
                "headers": {name.decode(): text.decode() for name, text in scope["headers"]},
                "protocols": scope.get("subprotocols"),
            }
        )
        if scope["type"] == "websocket":
            await self._echo(receive, send)
            return
        while (message := await receive())["type"] == "http.request":
            self.body += message["body"]
            if not message["more_body"]:
                break
        await send({"type": "http.response.start", "status": self.code, "headers": self.headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _echo(self, receive, send):
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "v5.channel.k8s.io"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "bytes": b"pod:" + message["bytes"]})


@dataclass(frozen=True, kw_only=True)
class Answer:
    code: int
    headers: list
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    def all(self, name):
        return [text for header, text in self.headers if header.lower() == name]

    def one(self, name):
        return ", ".join(self.all(name))


@dataclass(frozen=True, kw_only=True)
class Site:
    gate: Gate
    port: int
    clock: MovedClock
    cluster: object

    @property
    def host(self):
        return f"paceline.localhost:{self.port}"

    @property
    def origin(self):
        return f"http://{self.host}"

    @property
    def page(self):
        """The headers that a browser sends with a request of the console's own page."""
        return {"Host": self.host, "Origin": self.origin, "Sec-Fetch-Site": "same-origin", "X-Paceline": "1"}

    def cookie(self, name="admin", token="", host=""):
        """Return the Cookie header of a session."""
        sessions = self.gate.runtime.sessions
        session = sessions.begin(Login(name=name, token=token))
        set_cookies = sessions.cookies(session, host or self.host)
        return "; ".join(cookie.partition(";")[0] for cookie in set_cookies)

    async def ask(self, method, path, headers, body=b""):
        """Send a request with exactly these headers."""
        return await asyncio.to_thread(self._ask, method, path, headers, body)

    def _ask(self, method, path, headers, body):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            pairs = headers.items() if isinstance(headers, dict) else headers
            for name, text in pairs:
                connection.putheader(name, text)
            if body and "Transfer-Encoding" not in headers:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            got = connection.getresponse()
            return Answer(code=got.status, headers=got.getheaders(), body=got.read())
        finally:
            connection.close()

    async def as_page(self, method, path, body=None, **headers):
        """Send a request as the console's page does, with a session."""
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return await self.ask(method, path, {**self.page, "Cookie": self.cookie(), **named}, data)

    async def log_in(self, **body):
        return await self.ask("POST", "/api/login", self.page, json.dumps(body).encode())

    async def code(self, token=OWN):
        headers = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {token}"}
        return await self.ask("POST", "/api/codes", headers)

    def socket(self, path, *, origin, protocols=("v5.channel.k8s.io",), **headers):
        """Return a WebSocket to the console."""
        return connect(
            f"ws://{self.host}{path}",
            host="127.0.0.1",
            port=self.port,
            proxy=None,
            origin=origin,
            subprotocols=protocols,
            additional_headers=headers,
        )


@asynccontextmanager
async def console_site(bundle, cluster, **changes):
    """Serve a console before a cluster, which is an ASGI application, until the end of the test."""
    world = real_world()
    clock, behind, front = MovedClock(world.clock), loopback_socket(0), loopback_socket(0)
    port, tls = front.getsockname()[1], changes.pop("tls", None)
    scheme = "https" if tls else "http"
    access = Access(server=f"{scheme}://127.0.0.1:{behind.getsockname()[1]}", token=OWN)
    async with asyncio.TaskGroup() as group:
        config = ConsoleConfig(
            access=replace(access, **changes.pop("access", {})),
            clock=clock,
            ids=world.ids,
            chance=world.chance,
            seal=AesSeal(b"key"),
            tasks=group,
            bundle=bundle,
            hosts=frozenset(f"{name}:{port}" for name in ("paceline.localhost", "127.0.0.1", "localhost")),
            apps_host=f"paceline.localhost:{port}",
            **changes,
        )
        gate = build_app(config)
        clients = gate.runtime.clients
        serving = [
            group.create_task(serve(cluster, behind, tls=tls, started=asyncio.Event())),
            group.create_task(serve(gate, front, tls=None, started=asyncio.Event())),
        ]
        yield Site(gate=gate, port=port, clock=clock, cluster=cluster)
        for task in serving:
            task.cancel()
        await clients.close()


@asynccontextmanager
async def real_cluster_site(bundle, **changes):
    """Serve a console before our own API server."""
    gate = Authenticator(tokens=TOKENS, hosts=_AnyHost())
    async with our_app(gate) as api, console_site(bundle, api, **changes) as site:
        yield site


class _AnyHost(frozenset):
    """The port is not known before the console is."""

    __slots__ = ()

    def __contains__(self, host):
        return str(host).startswith("127.0.0.1:")
