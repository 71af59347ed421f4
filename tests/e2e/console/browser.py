"""A browser without a screen: it keeps cookies, and sends what a page of the console sends."""

import json
from dataclasses import dataclass, field
from http.client import HTTPConnection
from socket import create_connection
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

ANSWER_SECONDS = 60.0


@dataclass
class Browser:
    """One browser at one console."""

    # Such as paceline.localhost:16080, which resolves to this machine in browsers only.
    host: str
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Send a request as the console's page does; return the code and the body of the answer."""
        page_headers = {"Host": self.host, "Sec-Fetch-Site": "same-origin", "Cookie": self.cookie_header}
        if method != "GET":
            page_headers |= {"Origin": f"http://{self.host}", "X-Paceline": "1", "Content-Type": "application/json"}
        connection = HTTPConnection("127.0.0.1", int(self.host.rpartition(":")[2]), timeout=ANSWER_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {**page_headers, **headers})
            answer = connection.getresponse()
            for cookie in answer.headers.get_all("Set-Cookie") or ():
                name, _, text = cookie.partition(";")[0].partition("=")
                self.cookies[name] = text
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """Return the JSON of an answer that must be good."""
        code, data = self.send(method, path, body)
        assert code in (200, 201), (code, data)
        return json.loads(data)

    def open(self, url: str) -> None:
        """Open an address that `paceline ui` has printed, and log in as the page does."""
        parts = urlsplit(url)
        assert parts.netloc == self.host
        assert not parts.query
        self.json("POST", "/api/login", {"code": parts.fragment.removeprefix("code=")})

    def socket(self, path: str, protocol: str) -> ClientConnection:
        """Open a WebSocket as the console's page does."""
        return connect(
            f"ws://{self.host}{path}",
            sock=create_connection(("127.0.0.1", int(self.host.rpartition(":")[2]))),
            proxy=None,
            origin=Origin(f"http://{self.host}"),
            subprotocols=[Subprotocol(protocol)],
            additional_headers={"Cookie": self.cookie_header},
        )

    @property
    def cookie_header(self) -> str:
        """Return the cookies as they are sent."""
        return "; ".join(f"{name}={text}" for name, text in self.cookies.items() if text)
