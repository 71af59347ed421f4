"""The page and its assets: files that the front end's build has put into a folder."""

import base64
import re
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from paceline.console.config import PAGE_FILE, ConsoleConfig
from paceline.console.runtime import runtime_of
from paceline.errors import NotFound

# The build's placeholder for the nonce of each answer.
NONCE = "__NONCE__"
# Everything below these paths belongs to the back end; every other path is a place in the page.
BACK_END = ("/api", "/k8s")
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)
ASSET = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".png": "image/png",
}
# Names of assets contain a hash of their content.
FOREVER = "public, max-age=31536000, immutable"
MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Paceline</title>
<h1>The console's page has not been built</h1>
<p>Build it with <code>make setup</code> in the source folder, or install a released package, which contains it.</p>
<p>Then reload this page.</p></html>
"""


def page(request: Request) -> Response:
    """Return the page, which reads the URL itself; every answer has a nonce of its own."""
    path = request.url.path
    if "." in path or is_back_end(path) or path.startswith("/assets"):
        raise NotFound(f"there is nothing at {path}")
    config = runtime_of(request).config
    nonce = config.ids.secret()
    try:
        text = (config.bundle / PAGE_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return HTMLResponse(MISSING, status_code=503)
    headers = {"content-security-policy": page_policy(config, request.headers["host"], nonce, inline_hashes(text))}
    return HTMLResponse(text.replace(NONCE, nonce), headers=headers)


def is_back_end(path: str) -> bool:
    """Return whether a path belongs to the back end, whether or not it exists."""
    return any(path == root or path.startswith(f"{root}/") for root in BACK_END)


def asset(request: Request) -> Response:
    """Return a file of the bundle, compressed if the browser takes it so."""
    name = request.path_params["name"]
    path = runtime_of(request).config.bundle / "assets" / name
    media_type = TYPES.get(path.suffix, "")
    if not ASSET.fullmatch(name) or not media_type:
        raise NotFound(f"there is no asset {name!r}")
    headers = {"cache-control": FOREVER, "vary": "accept-encoding"}
    packed = path.with_name(f"{name}.gz")
    try:
        if "gzip" in request.headers.get("accept-encoding", "") and packed.exists():
            headers["content-encoding"] = "gzip"
            return Response(packed.read_bytes(), headers=headers, media_type=media_type)
        return Response(path.read_bytes(), headers=headers, media_type=media_type)
    except FileNotFoundError as error:
        raise NotFound(f"there is no asset {name!r}; reload the page if it has been built again") from error


def inline_hashes(page: str) -> str:
    """Return the page's own inline scripts as sources of a Content-Security-Policy; no other one may run."""
    digests = [sha256(script.encode()).digest() for script in INLINE.findall(page)]
    return "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def page_policy(config: ConsoleConfig, host: str, nonce: str, scripts: str = "") -> str:
    """Return the Content-Security-Policy of the page."""
    socket = "wss" if config.scheme == "https" else "ws"
    frames = f"{config.scheme}://*.{config.apps_host}" if config.apps_host else "'none'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self'{scripts}",
            f"style-src 'self' 'nonce-{nonce}'",
            "img-src 'self' data:",
            "font-src 'self'",
            # Some browsers do not count WebSockets as 'self'.
            f"connect-src 'self' {socket}://{host}",
            "worker-src 'self'",
            f"frame-src {frames}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types default",
        )
    )


ROUTES = (Route("/assets/{name}", asset),)
# After all other routes: every other path is a place in the page.
PAGE_ROUTES = (Route("/{path:path}", page),)
