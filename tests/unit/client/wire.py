"""A scripted HTTP server on a real socket, to hold the transports against."""

import socket
import threading
from dataclasses import dataclass, field
from queue import SimpleQueue

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
DROP = b""


def answer(body, *, status="200 OK", headers=()):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*chunks, ends=True):
    """A streamed answer; one that does not end is cut off by closing the connection."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) + (b"0\r\n\r\n" if ends else b"")


@dataclass(frozen=True)
class Stays:
    """An answer after which the server stays, silent, until the other side hangs up."""

    said: bytes = b""


@dataclass(frozen=True)
class Ignores:
    """An answer after which the server stays and does not even notice that the other side hangs up."""

    said: bytes


@dataclass(frozen=True)
class Closes:
    """An answer after which the server closes without having said so."""

    said: bytes


@dataclass
class Wire:
    """Answers requests in the order told, and keeps them as text; DROP hangs up without a word."""

    listener: socket.socket
    tls: object = None
    answers: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    connections: int = 0
    # Gets an item whenever the other side has hung up on a server that stayed.
    hung_up: SimpleQueue = field(default_factory=SimpleQueue)
    # Gets an item whenever a connection has been closed from this side.
    closed: SimpleQueue = field(default_factory=SimpleQueue)
    # Set when the test is over.
    over: threading.Event = field(default_factory=threading.Event)

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        try:
            with self.tls.wrap_socket(connection, server_side=True) if self.tls else connection as conn:
                while self._exchange(conn):
                    pass
            self.closed.put("closed")
        except OSError:
            return

    def _exchange(self, conn):
        request = self._read(conn)
        if not request:
            return False
        self.requests.append(request.decode())
        said = self.answers.pop(0)
        if isinstance(said, Stays):
            conn.sendall(said.said)
            conn.recv(1)
            self.hung_up.put("hung up")
            return False
        if isinstance(said, Closes | Ignores):
            conn.sendall(said.said)
            if isinstance(said, Ignores):
                self.over.wait()
            return False
        conn.sendall(said)
        # A stream that has not ended is cut off.
        return b"Content-Length" in said and b"Connection: close" not in said

    def _read(self, conn):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = conn.recv(65536)
            if not piece:
                return b""
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                wanted = int(line.split(b":")[1])
                while len(body) < wanted:
                    body += conn.recv(65536)
        return head + b"\r\n\r\n" + body
