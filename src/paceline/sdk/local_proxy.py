"""A local reverse proxy for one page of a cluster: a browser needs no token, and can access nothing but that page.

Every proxy has its own origin, so its page can access neither the API server nor the page of another pod.
"""

import contextlib
import select
import socket
import ssl
import threading
from dataclasses import dataclass
from hmac import compare_digest
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from paceline.client.requests import Request
from paceline.client.sync import DirectCluster
from paceline.errors import HostError, PacelineError
from paceline.model.interactive import proxy_path
from paceline.sdk.connection import ClusterConnection

LOOPBACK = "127.0.0.1"
# Hop-by-hop headers, and those that would identify the browser to the cluster.
NOT_PASSED = frozenset(
    {"authorization", "connection", "content-length", "cookie", "host", "keep-alive", "origin", "referer"}
)
NOT_RETURNED = frozenset(
    {"connection", "content-length", "date", "keep-alive", "server", "set-cookie", "transfer-encoding"}
)
# Fetch metadata headers. The cluster treats requests that have them as coming from a page.
MARKS = "sec-fetch-"
MAX_BODY = 16 << 20
# Longest Content-Length that is parsed.
LENGTH_DIGITS = 18
# Values of Sec-Fetch-Site for requests by the page itself or by the user.
SAME = ("same-origin", "none")
STARTING = b"<!doctype html><meta http-equiv=refresh content=2><p>Starting; this page reloads automatically.</p>"
CHUNK_BYTES = 65536
# Time limit for sending to one side of a WebSocket.
SEND_SECONDS = 60.0
KEY, TOKEN = "key", "token"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedSite:
    """A page of the cluster and the secrets that protect it from other users of this machine."""

    # The path of the page, such as /t9k/notebooks/projects/NAMESPACE/name/NAME/lab.
    page: str
    # The token of the program, added to every request.
    token: str = ""
    # The key in the printed URL that a browser must send; if empty, every user of this machine has access.
    key: str = ""

    @property
    def is_at_root(self) -> bool:
        """Return True if the page is served at `/`, because its program does not know its own path."""
        route = proxy_path(self.page)
        return route is not None and bool(route[1])

    @property
    def proxy_prefix(self) -> str:
        """Return the path of the service proxy, the prefix of all paths of the page."""
        route = proxy_path(self.page)
        return route[0].partition("/proxy/")[0] + "/proxy" if route else ""

    def target(self, path: str) -> str | None:
        """Return the cluster's path for a path of the browser; None if it is not part of the page."""
        if ".." in unquote(urlsplit(path).path).split("/"):
            return None
        route = proxy_path(f"{self.page}{path.removeprefix('/')}" if self.is_at_root else path)
        if route is None or not route[0].startswith(f"{self.proxy_prefix}/"):
            return None
        if not self.token:
            return route[0]
        return f"{route[0]}{'&' if '?' in path else '?'}{TOKEN}={quote(self.token, safe='')}"

    def browser_location(self, location: str) -> str:
        """Return the browser's location for a redirect of the program, without the program's token."""
        parts = urlsplit(location)
        query = urlencode([(name, text) for name, text in parse_qsl(parts.query) if name != TOKEN or not self.token])
        path = parts.path if self.is_at_root else parts.path.removeprefix(self.proxy_prefix)
        return urlunsplit(("", "", path, query, parts.fragment)) if not parts.netloc else location


class LocalProxy:
    """Serves one page on a loopback port until it is closed."""

    def __init__(self, dial: ClusterConnection, site: ProxiedSite, port: int) -> None:
        try:
            self._server = _Server((LOOPBACK, port), dial, site)
        except OSError as error:
            raise HostError(f"port {port} cannot be had: {error.strerror}; choose another with --port") from error

    @property
    def url(self) -> str:
        """Return the URL to open in a browser."""
        key = self._server.site.key
        return f"http://{LOOPBACK}:{self._server.server_port}/{f'?{KEY}={key}' if key else ''}"

    def serve(self) -> None:
        """Forward requests until interrupted."""
        self._server.serve_forever()

    def close(self) -> None:
        """Close the port."""
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """The HTTP server of one page; every thread has its own connection to the cluster."""

    daemon_threads = True
    # A page may load dozens of files at once.
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], dial: ClusterConnection, site: ProxiedSite) -> None:
        super().__init__(address, _PageHandler)
        self.site = site
        self._dial = dial
        self._lines = threading.local()

    def line(self) -> DirectCluster:
        """Return this thread's connection to the cluster."""
        if not hasattr(self._lines, "cluster"):
            self._lines.cluster = self._dial()
        cluster: DirectCluster = self._lines.cluster
        return cluster

    @property
    def cookie(self) -> str:
        """Return the name of the cookie, with the port, because browsers share cookies between the ports of a host."""
        return f"paceline-{self.server_port}"


class _PageHandler(BaseHTTPRequestHandler):
    """Handles the requests of a browser."""

    protocol_version = "HTTP/1.1"
    server: _Server
    _is_read = False

    def do_GET(self) -> None:
        """Serve the page and nothing else."""
        self._is_read = False
        refused = self._refusal()
        if refused:
            self._answer(HTTPStatus.FORBIDDEN, (), f"{refused}\n".encode())
        elif self._has_key_in_url():
            # Remove the key from the address bar and the browser history.
            cookie = f"{self.server.cookie}={self.server.site.key}; Path=/; HttpOnly; SameSite=Strict"
            self._answer(HTTPStatus.FOUND, (("Location", self._front()), ("Set-Cookie", cookie)), b"")
        elif not self._is_authorized():
            self._answer(HTTPStatus.UNAUTHORIZED, (), b"open the whole address that the command has printed\n")
        elif (target := self.server.site.target(self.path)) is not None:
            self._forward(target)
        elif urlsplit(self.path).path == "/":
            self._answer(HTTPStatus.FOUND, (("Location", self._front()),), b"")
        else:
            self._answer(HTTPStatus.NOT_FOUND, (), f"the only page here is {self._front()}\n".encode())

    do_POST = do_HEAD = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that http.server calls

    def _refusal(self) -> str:
        """Return why a request from another site or host name is rejected; empty if it is allowed."""
        host = self.headers.get("Host") or ""
        # A host name that resolves to this address may belong to another site (DNS rebinding).
        if host.rpartition(":")[0] not in (LOOPBACK, "localhost"):
            return "requests must use the printed address"
        is_reading = self.command in ("GET", "HEAD") and not self._is_upgrade()
        if self.headers.get("Origin", f"http://{host}") != f"http://{host}":
            return "requests from other sites are not allowed"
        if not is_reading and self.headers.get("Sec-Fetch-Site", SAME[0]) not in SAME:
            return "requests from other sites are not allowed"
        return ""

    def _has_key_in_url(self) -> bool:
        """Return True if the request has the key of the printed URL."""
        key, parts = self.server.site.key, urlsplit(self.path)
        presented = parse_qs(parts.query).get(KEY, [""])[0]
        return bool(key) and parts.path == "/" and compare_digest(presented.encode(), key.encode())

    def _is_authorized(self) -> bool:
        """Return True if the browser has sent the key as a cookie."""
        if not self.server.site.key:
            return True
        try:
            cookies = SimpleCookie(self.headers.get("Cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(self.server.cookie)
        return cookie is not None and compare_digest(cookie.value.encode(), self.server.site.key.encode())

    def _front(self) -> str:
        return "/" if self.server.site.is_at_root else self.server.site.page

    def _is_upgrade(self) -> bool:
        return (self.headers.get("Upgrade") or "").lower() == "websocket"

    def _forwarded_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the headers to forward to the program."""
        pairs = ((name, text) for name, text in self.headers.items() if name.lower() not in NOT_PASSED)
        return tuple((name, text) for name, text in pairs if not name.lower().startswith(MARKS))

    def _size(self) -> int | None:
        """Return the length of the body; None if it is unknown, as with chunks."""
        lengths = self.headers.get_all("Content-Length") or ["0"]
        is_plain = (
            len(lengths) == 1
            and lengths[0].isascii()
            and lengths[0].isdigit()
            and "Transfer-Encoding" not in self.headers
        )
        return int(lengths[0]) if is_plain and len(lengths[0]) <= LENGTH_DIGITS else None

    def _forward(self, target: str) -> None:
        if self._is_upgrade():
            self._forward_websocket(target)
            return
        size = self._size()
        if size is None:
            self._answer(HTTPStatus.BAD_REQUEST, (), b"the request must have its length in Content-Length\n")
            return
        if size > MAX_BODY:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, (), b"")
            return
        body = self.rfile.read(size) if size else b""
        self._is_read = True
        try:
            got = self.server.line().send(
                Request(method=self.command, path=target, headers=self._forwarded_headers(), body=body)
            )
        except PacelineError as error:
            self._answer(HTTPStatus.BAD_GATEWAY, (), f"{error}\n".encode())
            return
        if got.status == HTTPStatus.SERVICE_UNAVAILABLE:
            self._answer(got.status, (("Content-Type", "text/html"),), STARTING)
            return
        headers = tuple((name, text) for name, text in got.headers if name.lower() not in NOT_RETURNED)
        self._answer(got.status, tuple(self._moved(pair) for pair in headers), got.body)

    def _moved(self, pair: tuple[str, str]) -> tuple[str, str]:
        name, text = pair
        return (name, self.server.site.browser_location(text)) if name.lower() == "location" else pair

    def _forward_websocket(self, target: str) -> None:
        """Forward a WebSocket until either side closes it."""
        self.close_connection = True
        headers = (*self._forwarded_headers(), ("Connection", "Upgrade"))
        try:
            head, body, far = self.server.line().upgrade(Request(method="GET", path=target, headers=headers))
        except PacelineError as error:
            self._answer(HTTPStatus.BAD_GATEWAY, (), f"{error}\n".encode())
            return
        with far, contextlib.suppress(OSError):
            self.connection.settimeout(SEND_SECONDS)
            self.connection.sendall(head + body)
            _relay(self.connection, far)

    def _answer(self, code: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        self.send_response(code)
        for name, text in headers:
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        if not self._is_read and self._size() != 0:
            # A body that nobody read would be taken for the next request, with headers that its author chose.
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as http.server calls it
        """Log nothing: the command prints its own messages."""


def _relay(near: socket.socket, far: socket.socket) -> None:
    """Copy data in both directions in one thread, because two threads must not use one OpenSSL connection."""
    while True:
        # A TLS socket may have buffered decrypted data, which select does not see.
        has_more = isinstance(far, ssl.SSLSocket) and far.pending() > 0
        ready = [far] if has_more else select.select([near, far], [], [])[0]
        for source, sink in ((near, far), (far, near)):
            if source not in ready:
                continue
            source.settimeout(0)
            try:
                piece = source.recv(CHUNK_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                # A TLS record without data arrived, such as a new session ticket.
                continue
            if not piece:
                return
            sink.settimeout(SEND_SECONDS)
            sink.sendall(piece)
