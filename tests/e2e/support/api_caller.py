"""A caller of the API server, by hand."""

import contextlib
import http.client
import os
import ssl
from base64 import b64decode
from collections.abc import Iterator

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol
from yaml import safe_load

from paceline.testing.embedded import Embedded

SECONDS = 30.0


def own_loopback(number: int = 0) -> str:
    """Give an address of this machine that no other process of the tests uses: tests of one module may run in two."""
    place = os.getpid() * 8 + number
    return f"127.{64 + (place >> 16) % 128}.{place >> 8 & 255}.{place & 255}"


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

    def line(self, path: str, *protocols: str, **headers: str) -> ClientConnection:
        given = {"Authorization": f"Bearer {self.token}", **headers}
        offered = [Subprotocol(name) for name in protocols] or None
        uri = f"wss://{self.host}{path}"
        return connect(uri, ssl=self.tls, additional_headers=given, subprotocols=offered, proxy=None)
