"""A cluster for commands and scripts: synchronous, from the standard library, quick to import."""

import http.client
import select
import socket
import ssl
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, closing, suppress
from typing import Any, Self
from urllib.parse import urlsplit
from weakref import WeakSet

from paceline.apimachinery.meta import Object
from paceline.client import requests, responses
from paceline.client.http.transport import Unreachable, tls_context, translate_errors
from paceline.client.interface import Collection, Page, PatchType, Select, WatchEvent
from paceline.client.requests import Request, Response
from paceline.client.rest_config import Access
from paceline.errors import Expired

ANSWER_SECONDS = 60.0
CHUNK_BYTES = 65536
MOST_HEAD_BYTES = 65536


def ignore_warning(_text: str) -> None:
    """Ignore a server's warning."""


class DirectCluster:
    """The verbs of `client/interface.py` without a loop, for one thread; streams have connections of their own."""

    def __init__(self, access: Access, *, on_warning: Callable[[str], None] = ignore_warning) -> None:
        self._access = access
        self._on_warning = on_warning
        self._tls = tls_context(access)
        self._kept: http.client.HTTPConnection | None = None
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._is_cut = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def access(self) -> Access:
        """Return how the cluster is reached, for a connection of another sort."""
        return self._access

    def close(self) -> None:
        """Hang up."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def hang_up(self) -> None:
        """Cut every connection, from any thread and for good: whoever waits for an answer gets Unreachable."""
        self._is_cut = True
        for connection in tuple(self._sockets):
            with suppress(OSError):
                # Not the method of a TLS socket, which would take its keys from whoever reads just now.
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def get(self, where: Collection, namespace: str, name: str) -> Object:
        """Read one object; Missing when it is not there."""
        return self._object(requests.get(where, namespace, name))

    def list(self, where: Collection, select: Select | None = None, *, limit: int = 500) -> Page:
        """Read all objects that are selected, `limit` at a time, at one revision."""
        select = select or Select()
        first = page = self.page(where, select, limit=limit)
        items = list(first.items)
        while page.next:
            try:
                page = self.page(where, select, limit=limit, after=page.next)
            except Expired:
                # Reading took longer than history is kept; all at once needs no history.
                return self.page(where, select, limit=0)
            items.extend(page.items)
        return Page(items=tuple(items), revision=first.revision)

    def page(self, where: Collection, select: Select, *, limit: int, after: str = "") -> Page:
        """Read one page of a list; Expired when the list it continues is no longer kept."""
        request = requests.page(where, select, limit=limit, after=after)
        return responses.trimmed(responses.read_page(self.send(request)), select)

    def create(self, where: Collection, obj: Object) -> Object:
        """Store a new object; Exists when the name is taken, Invalid when it breaks rules."""
        return self._object(requests.create(where, obj))

    def replace(self, where: Collection, obj: Object, *, subresource: str = "") -> Object:
        """Store a whole object in place of the one it was read from; Conflict when that has changed."""
        return self._object(requests.replace(where, obj, subresource=subresource))

    def patch(
        self,
        where: Collection,
        key: tuple[str, str],
        patch: Any,
        *,
        kind: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        """Change parts of an object; a `metadata.resourceVersion` in a merge patch guards it."""
        request = requests.patch(where, key, patch, kind=kind, subresource=subresource)
        return self._object(request)

    def delete(self, where: Collection, key: tuple[str, str], options: Mapping[str, Any] | None = None) -> None:
        """Ask for an object to go; Missing when it is not there, Conflict when a precondition fails."""
        self._object(requests.delete(where, key, options))

    def post(self, path: str, body: Object) -> Object:
        """Send a body to a subresource that is not an object of its own (binding, eviction)."""
        return self._object(requests.post(path, body))

    def watch(
        self, where: Collection, select: Select, *, since: str, timeout_seconds: int | None = None
    ) -> Generator[WatchEvent, None, None]:
        """Follow what happens after a revision until the server ends the stream; closing it hangs up."""
        request = requests.watch(where, select, since=since, timeout_seconds=timeout_seconds)
        lines = responses.Lines()
        for chunk in self.chunks(request):
            for line in lines.feed(chunk):
                yield responses.trimmed(responses.read_event(line), select)

    def stream(self, path: str, query: Mapping[str, str]) -> Generator[bytes, None, None]:
        """Read a path as it grows (logs); closing it hangs up."""
        yield from self.chunks(requests.stream(path, query))

    def send(self, request: Request) -> Response:
        """Return the whole answer to any request, whatever its status."""
        connection, is_fresh = self._connection()
        try:
            response = self._exchange(connection, request)
        except Unreachable:
            # A kept connection may have been closed meanwhile; reading again is safe, writing is not.
            self.close()
            if is_fresh or not request.is_safe:
                raise
            response = self._exchange(self._connection()[0], request)
        for text in responses.warnings_of(response):
            self._on_warning(text)
        return response

    def upgrade(self, request: Request) -> tuple[bytes, bytes, socket.socket]:
        """Send a request to speak another protocol, such as WebSocket.

        Return the head of the answer as it came, what came after it, and the connection, which is the caller's.
        """
        with self._reaching():
            connection = self._open(ANSWER_SECONDS)
            try:
                connection.connect()
                connection.sock.sendall(self._upgrade_head(request))
                head, tail = _head_and_rest(connection.sock)
            except BaseException:
                connection.close()
                raise
        return head, tail, connection.sock

    def _upgrade_head(self, request: Request) -> bytes:
        where = urlsplit(self._access.server)
        lines = [f"GET {where.path}{request.target} HTTP/1.1", f"Host: {where.netloc}", "User-Agent: paceline"]
        if self._access.token:
            lines.append(f"Authorization: Bearer {self._access.token}")
        lines += [f"{name}: {text}" for name, text in request.headers]
        return "\r\n".join((*lines, "", "")).encode("latin-1")

    def _object(self, request: Request) -> Object:
        return responses.read_object(self.send(request))

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        if self._kept is not None and self._kept.sock is not None and not _is_over(self._kept.sock):
            return self._kept, False
        self.close()
        self._kept = self._open(ANSWER_SECONDS)
        return self._kept, True

    def _open(self, timeout: float | None) -> http.client.HTTPConnection:
        where = urlsplit(self._access.server)
        if self._tls is None:
            return http.client.HTTPConnection(where.netloc, timeout=timeout)
        connection = _NamedConnection(where.netloc, timeout=timeout, context=self._tls)
        connection.server_name = self._access.tls_server_name
        return connection

    def _exchange(self, connection: http.client.HTTPConnection, request: Request) -> Response:
        with self._reaching():
            self._ask(connection, request)
            return _whole(connection.getresponse())

    def chunks(self, request: Request) -> Generator[bytes, None, None]:
        """Read the answer to any request as it comes, over a connection of its own."""
        with closing(self._open(request.silence_seconds)) as connection, self._reaching():
            self._ask(connection, request)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise responses.error_of(_whole(answer))
            while chunk := answer.read1(CHUNK_BYTES):
                yield chunk

    def _ask(self, connection: http.client.HTTPConnection, request: Request) -> None:
        headers = dict(request.headers)
        headers["User-Agent"] = "paceline"
        if self._access.token:
            headers["Authorization"] = f"Bearer {self._access.token}"
        prefix = urlsplit(self._access.server).path
        connection.request(request.method, prefix + request.target, request.body or None, headers)
        if connection.sock is not None:
            self._sockets.add(connection.sock)
        # After the socket was noted: `hang_up` in another thread has cut it, or is seen here.
        if self._is_cut:
            raise Unreachable(f"{self._access.server}: this side has hung up")

    def _reaching(self) -> AbstractContextManager[None]:
        return translate_errors(self._access.server, http.client.HTTPException)


class _NamedConnection(http.client.HTTPSConnection):
    """Asks for the certificate of another name than the one it connects to, if one is set."""

    server_name = ""

    def connect(self) -> None:
        if not self.server_name:
            super().connect()
            return
        plain = socket.create_connection((self.host, self.port), self.timeout)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(plain, server_hostname=self.server_name)


def _head_and_rest(sock: socket.socket) -> tuple[bytes, bytes]:
    """Read the head of an answer, and whatever came with it."""
    data = b""
    while b"\r\n\r\n" not in data and len(data) < MOST_HEAD_BYTES:
        piece = sock.recv(CHUNK_BYTES)
        if not piece:
            raise http.client.RemoteDisconnected("the server hung up before it had answered")
        data += piece
    head, end, tail = data.partition(b"\r\n\r\n")
    return head + end, tail


def _is_over(connection: socket.socket) -> bool:
    """Return whether an idle connection has something to say: then it is the server's goodbye."""
    return bool(select.select([connection], [], [], 0)[0])


def _whole(answer: http.client.HTTPResponse) -> Response:
    body = answer.read()
    headers = tuple((name.lower(), value) for name, value in answer.getheaders())
    return Response(status=answer.status, headers=headers, body=body)
