"""A proxy that writes down what a client asks of a real cluster, so that it can be asked again of two.

Ids, revisions and made-up names of one run are replaced by where an earlier answer said them.
"""

import contextlib
import http.client
import json
import re
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from paceline.testing.api_diff import Place, without_protobuf

# A client that reads on when nothing comes would hold the replay up for so long.
WATCH_SECONDS = 1
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_KEPT_HEADERS = ("Accept", "Content-Type")
# The proxy says these anew.
_HOP = frozenset({"host", "accept", "authorization", "accept-encoding", "connection"})
_DISCOVERY = re.compile(r"/api(/v1)?/?|/apis(/[^/]+){0,2}/?")
_VOLATILE = ("uid", "resourceVersion")


class Recording:
    """Requests and their answers, in the order in which the requests came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.rows: list[dict[str, Any]] = []
        self.answers: list[Any] = []

    def begin(self, row: dict[str, Any]) -> int:
        """Write down a request, and give its number."""
        with self._lock:
            self.rows.append(row)
            self.answers.append(None)
            return len(self.rows) - 1

    def answered(self, number: int, body: bytes, *, events: int | None) -> None:
        """Write down what was answered; for a watch, how many events the client waited for."""
        with contextlib.suppress(ValueError):
            self.answers[number] = json.loads(body)
        if events is not None:
            self.rows[number]["events"] = events

    def forget(self) -> None:
        """Begin anew: what came so far was only to prepare."""
        with self._lock:
            self.rows, self.answers = [], []

    def steps(self) -> list[dict[str, Any]]:
        """Give what was recorded as steps that hold on another server, too."""
        answers: dict[str, tuple[int, str]] = {}
        for number, row in enumerate(self.rows):
            for value, (where, path) in answers.items():
                _refer(row, self.rows[where], value, path)
            answers.update({value: (number, path) for value, path in _volatile(self.answers[number], "")})
        return [_finished(row, number) for number, row in enumerate(self.rows)]


def _finished(row: dict[str, Any], number: int) -> dict[str, Any]:
    path = row["path"].partition("?")[0]
    look = "head" if path.startswith(("/openapi", "/version")) else "all"
    if _DISCOVERY.fullmatch(path):
        look = "subset"
    return {"case": f"{number} {row['method']} {unquote(row['path'])}", **row, "look": look}


def _refer(row: dict[str, Any], source: dict[str, Any], value: str, path: str) -> None:
    """Where a request says again what an answer said, let it name the answer instead."""
    pattern = re.compile(rf"(?<![0-9A-Za-z-]){re.escape(value)}(?![0-9A-Za-z-])")
    for part in ("path", "body"):
        text = row.get(part)
        if text and pattern.search(text):
            keep = source.setdefault("keep", {})
            name = next((variable for variable, at in keep.items() if at == path), f"v{value[-6:].replace('-', '')}")
            keep[name] = path
            row[part] = pattern.sub(f"${{{name}}}", text)


def _volatile(document: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(document, list):
        for index, inner in enumerate(document):
            yield from _volatile(inner, f"{path}{index}.")
    elif isinstance(document, dict):
        for key, inner in document.items():
            if key in _VOLATILE and isinstance(inner, str) and len(inner) > 1:
                yield inner, f"{path}{key}"
            yield from _volatile(inner, f"{path}{key}.")


@contextlib.contextmanager
def recorder(place: Place, *, certificate: Path, key: Path) -> Iterator[tuple[str, Recording]]:
    """Serve a proxy to a cluster; gives its URL and what comes by."""
    recording = Recording()
    upstream = ssl.create_default_context(cafile=place.ca_file)
    verbs = {f"do_{method}": _Handler.carry for method in _METHODS}
    bound = type("Bound", (_Handler,), {"place": place, "upstream": upstream, "recording": recording, **verbs})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="recorder")
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", recording
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    place: ClassVar[Place]
    upstream: ClassVar[ssl.SSLContext]
    recording: ClassVar[Recording]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: what came by is in the recording."""

    def carry(self) -> None:
        """Take one request to the cluster and its answer back, and write both down."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        row = self._row(body)
        number = self.recording.begin(row)
        connection = http.client.HTTPSConnection(self.place.host, context=self.upstream, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        headers["Accept"] = without_protobuf(self.headers.get("Accept", "*/*"))
        headers |= {"Authorization": f"Bearer {self.place.token}", "Accept-Encoding": "identity"}
        try:
            connection.request(self.command, self.path, body=body or None, headers=headers)
            self._pass_back(connection.getresponse(), number)
        finally:
            connection.close()

    def _row(self, body: bytes) -> dict[str, Any]:
        path = re.sub(r"timeoutSeconds=\d+", f"timeoutSeconds={WATCH_SECONDS}", self.path)
        path = re.sub(r"timeout=[0-9hms]+", "timeout=32s", path)
        path = re.sub(r"hash=[0-9A-F]+&?", "", path)
        if "watch=" in path and "timeoutSeconds" not in path:
            path += f"&timeoutSeconds={WATCH_SECONDS}"
        row: dict[str, Any] = {"method": self.command, "path": path}
        row["headers"] = {name: self.headers[name] for name in _KEPT_HEADERS if name in self.headers}
        if body:
            row["body"] = body.decode("utf-8", "surrogateescape")
        return row

    def _pass_back(self, response: http.client.HTTPResponse, number: int) -> None:
        self.send_response(response.status)
        for name, value in response.headers.items():
            if name.lower() not in {"transfer-encoding", "connection", "content-length"}:
                self.send_header(name, value)
        if response.headers.get("Content-Length") is None and self.command != "HEAD":
            self._stream(response, number)
            return
        body = response.read()
        self.send_header("Content-Length", response.headers.get("Content-Length") or "0")
        self.end_headers()
        self.recording.answered(number, body, events=None)
        self.wfile.write(body)

    def _stream(self, response: http.client.HTTPResponse, number: int) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        is_watch = "watch=" in self.path
        lines: list[bytes] = []
        # The client may leave at any time: what it has waited for is what was sent before.
        with contextlib.suppress(OSError):
            while line := response.readline():
                lines.append(line)
                self.recording.answered(number, b"".join(lines), events=len(lines) if is_watch else None)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
