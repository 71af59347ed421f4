"""The program of a hostile notebook: every answer tries to set cookies, to be framed anywhere and to leave its host."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 8888
HEADERS = (
    ("Set-Cookie", "wide=1; Domain=paceline.localhost; Path=/"),
    ("Set-Cookie", "__Host-paceline-app=evil; Secure; Path=/"),
    ("Clear-Site-Data", '"cookies", "storage"'),
    ("Access-Control-Allow-Origin", "*"),
    ("Content-Security-Policy", "frame-ancestors *"),
    ("Service-Worker-Allowed", "/"),
    ("Cross-Origin-Opener-Policy", "unsafe-none"),
)
PAGE = b"<!doctype html><title>hostile</title><h1 id=hostile>hostile</h1>"


class Hostile(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        is_script = path.endswith(".js")
        body = b"self.addEventListener('fetch', () => {})" if is_script else PAGE
        self.send_response(302 if path.endswith("/leave") else 200)
        for name, text in HEADERS:
            self.send_header(name, text)
        if path.endswith("/leave"):
            self.send_header("Location", "http://evil.example/gone")
        self.send_header("Content-Type", "text/javascript" if is_script else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name that http.server calls

    def log_message(self, *_: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer((os.environ["POD_IP"], PORT), Hostile).serve_forever()
