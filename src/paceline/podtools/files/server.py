"""`python -m paceline.podtools files`: the HTTP server of a volume, which ends when idle."""

import argparse
import contextlib
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl, urlsplit

from paceline.filesystem.handles import closed
from paceline.podtools.files.archive import write_archive
from paceline.podtools.files.curves import MOST_POINTS, CurveReader
from paceline.podtools.files.paths import Refused, open_file_at, refusal_of
from paceline.podtools.files.volume import MOST_LISTED, MOST_PART, UploadPart, VolumeFolder, open_root
from paceline.podtools.reporting import PodStep, Reporter, StepFailed

# The API's proxy passes this header on; `Authorization` is for the API server.
TOKEN_HEADER = "X-Paceline-Token"  # noqa: S105 - a name
BLOCK = 1 << 20
# A client that is silent for so long is cut off.
SILENCE_SECONDS = 60.0
MOST_REQUESTS = 32
RANGE = re.compile(r"bytes=(\d{1,18})-(\d{0,18})")

Query = Mapping[str, str]


class FileServer(ThreadingHTTPServer):
    """Serves one volume."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], root: int, token: str) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, FileHandler)
        self.volume, self.curves, self.token = VolumeFolder(root), CurveReader(root), token
        self.slots = threading.BoundedSemaphore(MOST_REQUESTS)
        self.active = 0
        self._used = threading.Event()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Count a request as use until it ends."""
        with self.slots:
            self.active += 1
            try:
                yield
            finally:
                self.active -= 1
                self._used.set()

    def wait_idle(self, seconds: float) -> None:
        """Return once it has been idle for so long."""
        while self._used.wait(seconds) or self.active:
            self._used.clear()

    def end_when_idle(self, seconds: float) -> None:
        """End `serve_forever` once the server has been idle for so long."""
        self.wait_idle(seconds)
        self.shutdown()


class FileHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE_SECONDS
    server: FileServer

    def do_GET(self) -> None:
        """Answer a request that changes nothing."""
        self._answer(READS)

    def do_PUT(self) -> None:
        """Take a part of a file."""
        self._answer({"/upload": FileHandler.put_part})

    def do_POST(self) -> None:
        """Create a folder, or rename."""
        self._answer(CHANGES)

    def do_DELETE(self) -> None:
        """Remove files."""
        self._answer(REMOVALS)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        """Log nothing: names of files belong to their owners."""

    def _answer(self, routes: Mapping[str, Callable[["FileHandler", Query], None]]) -> None:
        parts = urlsplit(self.path)
        try:
            if parts.path == "/healthz":
                return self.send_json({})
            with self.server.in_use():
                self._dispatch(routes.get(parts.path), query_of(parts.query))
        except Refused as error:
            self.refuse(error)
        except (BrokenPipeError, ConnectionError, TimeoutError):
            self.close_connection = True

    def _dispatch(self, run: Callable[["FileHandler", Query], None] | None, query: Query) -> None:
        token = self.headers.get(TOKEN_HEADER, "")
        if not compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, f"send the token of this Explorer's Secret as {TOKEN_HEADER}")
        if run is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"there is no {self.command} {urlsplit(self.path).path}")
        try:
            run(self, query)
        except (BrokenPipeError, ConnectionError, TimeoutError):
            raise
        except OSError as error:
            raise refusal_of(error, query.get("path", "")) from error

    def refuse(self, error: Refused) -> None:
        """Answer with an error; the body of the request may be unread, so the connection ends."""
        self.close_connection = True
        self.send_json({"message": str(error)}, error.status)

    def send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        """Answer with JSON."""
        body = json.dumps(value).encode()
        self.send_head(status, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def send_head(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        """Send the head of an answer; no browser may take a file for a page."""
        self.send_response(status)
        for name, value in {**headers, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def list(self, query: Query) -> None:
        """Answer with one page of a folder."""
        limit = min(number(query, "limit", MOST_LISTED) or MOST_LISTED, MOST_LISTED)
        self.send_json(self.server.volume.list(path_in(query), limit=limit, after=query.get("after", "")))

    def stat(self, query: Query) -> None:
        """Answer with what a path leads to."""
        self.send_json(self.server.volume.stat(path_in(query)))

    def usage(self, query: Query) -> None:
        """Answer with the bytes of a tree."""
        self.send_json(self.server.volume.usage(path_in(query)))

    def read_curves(self, query: Query) -> None:
        """Answer with the curves beneath a folder."""
        points = number(query, "points", MOST_POINTS)
        self.send_json(self.server.curves.read(path_in(query), points=points, tag=query.get("tag", "")))

    def read_file(self, query: Query) -> None:
        """Answer with a file, or with the range that is asked for."""
        with closed(open_file_at(self.server.volume.root, path_in(query))) as file:
            status = os.fstat(file)
            etag = f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'
            start, end = self._range(status.st_size, etag)
            is_part = (start, end) != (0, status.st_size)
            headers = {
                "Content-Type": "application/octet-stream",
                "Content-Length": str(end - start),
                "Accept-Ranges": "bytes",
                "ETag": etag,
            }
            if is_part:
                headers["Content-Range"] = f"bytes {start}-{end - 1}/{status.st_size}"
            self.send_head(HTTPStatus.PARTIAL_CONTENT if is_part else HTTPStatus.OK, headers)
            self._send_bytes(file, start, end)

    def _range(self, size: int, etag: str) -> tuple[int, int]:
        match = RANGE.fullmatch(self.headers.get("Range", "").strip())
        if match is None or not size or self.headers.get("If-Range", etag) != etag:
            return 0, size
        start, end = int(match[1]), min(int(match[2]) + 1 if match[2] else size, size)
        if start >= end:
            raise Refused(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"the file has {size} bytes")
        return start, end

    def _send_bytes(self, file: int, start: int, end: int) -> None:
        while start < end:
            block = os.pread(file, min(BLOCK, end - start), start)
            if not block:
                # It became shorter: the client must notice that bytes are missing.
                raise ConnectionError("the file became shorter")
            self.wfile.write(block)
            start += len(block)

    def archive(self, query: Query) -> None:
        """Answer with a folder as one file; its length is not known before."""
        path, form = path_in(query), query.get("format", "zip")
        if form not in ("zip", "tar"):
            raise Refused(HTTPStatus.BAD_REQUEST, f"format: {form!r} is neither zip nor tar")
        if self.server.volume.stat(path)["type"] != "folder":
            raise Refused(HTTPStatus.BAD_REQUEST, f"{path}: is not a folder")
        self.send_head(HTTPStatus.OK, {"Content-Type": f"application/{form}", "Transfer-Encoding": "chunked"})
        chunks = ChunkedStream(cast("BinaryIO", self.wfile))
        try:
            write_archive(self.server.volume.root, path, form, cast("BinaryIO", chunks))
        except OSError as error:
            # Without the last chunk, the client knows that something is missing.
            raise ConnectionError("the archive broke off") from error
        chunks.end()

    def uploaded(self, query: Query) -> None:
        """Answer with how much of an upload is here."""
        self.send_json({"offset": self.server.volume.uploaded(part_in(query))})

    def put_part(self, query: Query) -> None:
        """Take a part; it counts once all of it has come."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_PART:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send parts of at most {MOST_PART} bytes")
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            raise ConnectionError("the part broke off")
        self.send_json(self.server.volume.upload(part_in(query, data)))

    def cancel_upload(self, query: Query) -> None:
        """Remove an unfinished upload."""
        self.server.volume.cancel_upload(part_in(query))
        self.send_json({})

    def make_folder(self, query: Query) -> None:
        """Create a folder."""
        self.server.volume.make_folder(path_in(query))
        self.send_json({}, HTTPStatus.CREATED)

    def rename(self, query: Query) -> None:
        """Move a file or folder."""
        self.server.volume.rename(path_in(query), query.get("to", ""))
        self.send_json({})

    def remove(self, query: Query) -> None:
        """Remove a file or folder."""
        self.server.volume.remove(path_in(query), is_recursive=query.get("recursive") == "true")
        self.send_json({})


READS = {
    "/list": FileHandler.list,
    "/stat": FileHandler.stat,
    "/usage": FileHandler.usage,
    "/file": FileHandler.read_file,
    "/archive": FileHandler.archive,
    "/upload": FileHandler.uploaded,
    "/curves": FileHandler.read_curves,
}
CHANGES = {"/folder": FileHandler.make_folder, "/rename": FileHandler.rename}
REMOVALS = {"/file": FileHandler.remove, "/upload": FileHandler.cancel_upload}


class ChunkedStream:
    """Writes the chunks of an answer whose length is not known."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        """Write one chunk."""
        if data:
            self._stream.write(f"{len(data):x}\r\n".encode() + bytes(data) + b"\r\n")
        return len(data)

    def flush(self) -> None:
        """Do nothing: every chunk is sent at once."""

    def end(self) -> None:
        """Write the last chunk."""
        self._stream.write(b"0\r\n\r\n")


def query_of(text: str) -> dict[str, str]:
    """Return the parameters of a request; names of files need not be UTF-8."""
    return dict(parse_qsl(text, keep_blank_values=True, errors="surrogateescape"))


def path_in(query: Query) -> str:
    """Return the path of a request; empty for the volume itself."""
    return query.get("path", "")


def number(query: Query, name: str, default: int) -> int:
    """Return a number of a request."""
    text = query.get(name, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: {text!r} is not a whole number")
    return int(text) if text else default


def part_in(query: Query, data: bytes = b"") -> UploadPart:
    """Return the part of a file that a request is about."""
    return UploadPart(
        path=path_in(query),
        id=query.get("id", ""),
        offset=number(query, "offset", 0),
        size=number(query, "size", 0),
        data=data,
        digest=query.get("sha256", ""),
        is_replacing=query.get("replace") == "true",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the step."""
    parser.add_argument("--root", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--idle-seconds", type=int, default=0)
    parser.add_argument("--secret", type=Path)


def run_server(options: argparse.Namespace, secret: dict[str, str], reporter: Reporter) -> str:
    """Serve until it has been idle for `--idle-seconds`."""
    token = secret.get("token", "")
    if not token:
        raise StepFailed("the Secret with the token is empty; delete it and this pod, so that both are created again")
    with FileServer((options.host, options.port), open_root(options.root), token) as server:
        reporter.log(f"serving {options.root} at port {options.port}")
        if options.idle_seconds:
            threading.Thread(target=server.end_when_idle, args=(options.idle_seconds,), daemon=True).start()
        server.serve_forever()
    return f"unused for {options.idle_seconds} seconds"


STEPS = {"files": PodStep(add_arguments, run_server)}
