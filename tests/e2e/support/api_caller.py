"""A caller of the API server, by hand."""

import asyncio
import contextlib
import http.client
import os
import ssl
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Self

from websockets.asyncio.client import connect
from websockets.typing import Subprotocol
from yaml import safe_load

from paceline.testing.embedded import Embedded

SECONDS = 30.0


def own_loopback(number: int = 0) -> str:
    """Give an address of this machine that no other process of the tests uses: tests of one module may run in two."""
    place = os.getpid() * 8 + number
    return f"127.{64 + (place >> 16) % 128}.{place >> 8 & 255}.{place & 255}"


class WebSocketClient:
    """A WebSocket for tests that block.

    The websockets package has one too, but it reads in a second thread, and a TLS connection of Python 3.11 loses what
    two threads read and write at the same moment: one handshake in a hundred was never sent.
    """

    def __init__(self, uri: str, **options: Any) -> None:
        self._runner = asyncio.Runner()

        async def dial() -> Any:
            return await connect(uri, proxy=None, open_timeout=SECONDS, **options)

        try:
            self._connection = self._runner.run(dial())
        except BaseException:
            self._runner.close()
            raise
        self.subprotocol = self._connection.subprotocol

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()

    def send(self, message: str | bytes) -> None:
        self._runner.run(self._connection.send(message))

    def recv(self, seconds: float) -> str | bytes:
        return self._runner.run(asyncio.wait_for(self._connection.recv(), seconds))


class Door:
    """A caller of the API server, by hand: what clients do not offer is done here."""

    def __init__(self, home: Embedded) -> None:
        config = safe_load(home.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.token: str = config["users"][0]["user"]["token"]
        self.host: str = cluster["server"].removeprefix("https://")
        self.tls = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())

    @contextlib.contextmanager
    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(self.host, context=self.tls, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", **headers})
            with connection.getresponse() as answer:
                yield answer

    def read(self, path: str, **headers: str) -> bytes:
        with self.ask("GET", path, **headers) as answer:
            assert answer.status == 200, answer.read()
            return answer.read()

    def line(self, path: str, *protocols: str, **headers: str) -> WebSocketClient:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        offered = [Subprotocol(name) for name in protocols] or None
        uri = f"wss://{self.host}{path}"
        return WebSocketClient(uri, ssl=self.tls, additional_headers=given, subprotocols=offered)
