"""A door on this machine to one page of a cluster: a browser needs no token, and sees nothing but that page."""

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from paceline.client.direct import DirectCluster
from paceline.client.requests import Request
from paceline.errors import PacelineError, Unavailable
from paceline.objects.window import proxy_path
from paceline.sdk.dial import Dial

LOOPBACK = "127.0.0.1"
# What concerns one connection only, or would tell the cluster whose browser this is.
NOT_PASSED = frozenset(
    {"authorization", "connection", "content-length", "cookie", "host", "keep-alive", "origin", "referer"}
)
NOT_RETURNED = frozenset({"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"})
MAX_BODY = 16 << 20
# What browsers say of requests that the page itself makes, or a person.
SAME = ("same-origin", "none")
STARTING = b"<!doctype html><meta http-equiv=refresh content=2><p>It is starting; this page looks again by itself.</p>"


class Front:
    """Serves one page at `/` of a loopback port, until it is closed."""

    def __init__(self, dial: Dial, page: str, port: int) -> None:
        try:
            self._server = _Server((LOOPBACK, port), dial, page)
        except OSError as error:
            raise Unavailable(f"port {port} cannot be had: {error.strerror}; choose another with --port") from error

    @property
    def url(self) -> str:
        """Give what is typed into a browser."""
        return f"http://{LOOPBACK}:{self._server.server_port}/"

    def serve(self) -> None:
        """Pass requests on until somebody interrupts."""
        self._server.serve_forever()

    def close(self) -> None:
        """Let the port go."""
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A port, and the page behind it; each thread has a line of its own to the cluster."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], dial: Dial, page: str) -> None:
        super().__init__(address, _Visit)
        self.page = page
        self._dial = dial
        self._lines = threading.local()

    def line(self) -> DirectCluster:
        """Give this thread's line to the cluster."""
        if not hasattr(self._lines, "cluster"):
            self._lines.cluster = self._dial()
        found: DirectCluster = self._lines.cluster
        return found


class _Visit(BaseHTTPRequestHandler):
    """One browser's requests."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        """Let the browser see the page, and nothing else."""
        # A page of another name that leads here is somebody else's.
        if (self.headers.get("Host") or "").rpartition(":")[0] not in (LOOPBACK, "localhost"):
            self._answer(HTTPStatus.FORBIDDEN, (), b"this door is opened by its own address only\n")
            return
        if self.command == "POST" and self.headers.get("Sec-Fetch-Site", "same-origin") not in SAME:
            self._answer(HTTPStatus.FORBIDDEN, (), b"another page may look here, and change nothing\n")
            return
        found = proxy_path(f"{self.server.page}{self.path.removeprefix('/')}")
        if found is None or ".." in unquote(urlsplit(self.path).path).split("/"):
            self._answer(HTTPStatus.NOT_FOUND, (), b"there is one page here, at /\n")
        else:
            self._pass_on(found[0])

    do_POST = do_HEAD = do_GET  # noqa: N815 - the names that http.server calls

    def _pass_on(self, way: str) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if size > MAX_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, (), b"")
            return
        headers = tuple((name, text) for name, text in self.headers.items() if name.lower() not in NOT_PASSED)
        body = self.rfile.read(size) if size else b""
        try:
            got = self.server.line().send(Request(method=self.command, path=way, headers=headers, body=body))
        except PacelineError as error:
            self._answer(HTTPStatus.BAD_GATEWAY, (), f"{error}\n".encode())
            return
        if got.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._answer(got.status, (("Content-Type", "text/html"),), STARTING)
            return
        kept = tuple((name, text) for name, text in got.headers if name.lower() not in NOT_RETURNED)
        self._answer(got.status, kept, got.body)

    def _answer(self, code: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        self.send_response(code)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server calls it
        """Say nothing: the command's own lines are enough."""
