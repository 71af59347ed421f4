"""`python -m bench.sink`: as little of an object store as a client of S3 is content with; it forgets what it takes.

A real one does more for each request, and would hide what a client does.
"""

import re
import socket
import sys
import threading

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
UPLOAD = b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
COMPLETE = b"<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>"
MISSING = b"<Error><Code>NoSuchKey</Code><Message>there is nothing</Message></Error>"


def answer(request: bytes) -> tuple[bytes, bytes]:
    method, path = request.split(b" ", 2)[:2]
    if method == b"GET":
        return b"404 Not Found", MISSING
    if method == b"POST":
        return b"200 OK", UPLOAD if path.endswith((b"?uploads", b"?uploads=")) else COMPLETE
    return b"200 OK", b""


def serve(connection: socket.socket) -> None:
    room = memoryview(bytearray(1 << 20))
    with connection:
        held = b""
        while True:
            while b"\r\n\r\n" not in held:
                if not (more := connection.recv(65536)):
                    return
                held += more
            head, _, held = held.partition(b"\r\n\r\n")
            found = LENGTH.search(head)
            left = int(found[1]) if found else 0
            taken, held = min(left, len(held)), held[left:]
            left -= taken
            while left:
                left -= connection.recv_into(room, min(left, len(room)))
            status, body = answer(head)
            told = b'HTTP/1.1 %s\r\nETag: "1"\r\nContent-Length: %d\r\n\r\n' % (status, len(body))
            connection.sendall(told + body)


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
