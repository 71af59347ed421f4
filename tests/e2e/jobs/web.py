"""A web server such as a notebook or a dashboard: files, uploads, slow answers, redirections, a WebSocket."""

import asyncio
import hashlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from websockets.asyncio.server import serve


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/slow":
            self.stream()
        elif self.path == "/away":
            self.answer(302, b"", ("Location", "/there"))
        elif self.path == "/headers":
            self.answer(200, str(self.headers).encode())
        elif self.path == "/zeros":
            self.answer(200, bytes(8 * 2**20))
        else:
            self.answer(200, f"GET {self.path}".encode())

    def do_PUT(self):
        digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
        while left:
            data = self.rfile.read(min(left, 65536))
            digest.update(data)
            left -= len(data)
        self.answer(201, digest.hexdigest().encode())

    def stream(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(1000):
            line = f"line {number}\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            time.sleep(0.05)

    def answer(self, code, body, *headers):
        self.send_response(code)
        for name, value in (("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def echo(socket):
    async for message in socket:
        await socket.send(message)


async def main(port):
    async with serve(echo, "0.0.0.0", port, subprotocols=["echo.test"]):
        print("up", flush=True)
        await asyncio.Event().wait()


first = int(sys.argv[1])
threading.Thread(target=ThreadingHTTPServer(("0.0.0.0", first), Handler).serve_forever, daemon=True).start()
asyncio.run(main(first + 1))
