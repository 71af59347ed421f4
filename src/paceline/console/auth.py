"""The gate before every route: Host, size and time, the page that asks, the session; and headers on every answer.

A page of a TensorBoard or notebook has a host name below the console's, so browsers count it as the same site. Only the
same origin may send requests.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from enum import Enum

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.console.embedded_apps import serve_app
from paceline.console.responses import error_response, known_error_of
from paceline.console.runtime import Runtime
from paceline.console.sessions import LoginSession
from paceline.console.token_login import proxied_token
from paceline.errors import BadRequest, Forbidden, HostError, PacelineError, ServiceUnavailable, TooLarge, Unauthorized

log = logging.getLogger(__name__)

HEALTH = "/healthz"
MAX_BODY_BYTES = 16 * 1024 * 1024
BODY_SECONDS = 60.0
SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
# A custom header, which pages of other origins cannot add.
REQUEST_HEADER = "x-paceline"
SAME_ORIGIN = frozenset({"", "same-origin"})
# An address that the person typed, or a bookmark.
TYPED = "none"
# The answers of the back end are data and never a page.
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
HEADERS: Mapping[str, str] = {
    "content-security-policy": DATA_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}
BUG = "this is a bug in Paceline: the request could not be answered; the console's log says more"


class Audience(Enum):
    """Who may use a route. Every route of the application has one."""

    # Open to every client that reaches the port: the page itself, which has no data in it.
    PUBLIC = "public"
    # The page before the login.
    LOGIN = "login"
    # A program with a bearer token, never a browser.
    PROGRAM = "program"
    # A person with a session.
    SESSION = "session"


class Gate:
    """Lets requests and WebSockets pass to the application, or answers them with a Status."""

    def __init__(self, app: ASGIApp, runtime: Runtime, audience_of: Callable[[Scope], Audience]) -> None:
        self._app = app
        self.runtime = runtime
        self._audience_of = audience_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or WebSocket."""
        answer = _Answer(send)
        try:
            if self._is_probe(scope):
                await PlainTextResponse("ok")(scope, receive, answer.send)
                return
            label = self._label_of(host_of(scope))
            if label:
                await serve_app(self.runtime, label, scope, receive, send)
            else:
                await self._admit(scope, receive, answer.send)
        except Exception as error:
            reported = known_error_of(error)
            if reported is None:
                log.exception("a request failed", extra={"path": scope["path"]})
            await self._fail(scope, receive, answer, reported or HostError(BUG))

    def _is_probe(self, scope: Scope) -> bool:
        """Return whether a kubelet or load balancer asks if the process answers; it does so by any host name."""
        if scope["type"] != "http" or scope["path"] != HEALTH or scope["method"] not in SAFE_METHODS:
            return False
        apps_host = self.runtime.config.apps_host
        return not (apps_host and host_of(scope).endswith(f".{apps_host}"))

    def _label_of(self, host: str) -> str:
        """Return the label of an embedded application's host name, or nothing; raise Forbidden for another host."""
        config = self.runtime.config
        if host in config.hosts:
            return ""
        label, _, parent = host.partition(".")
        if label and config.apps_host and parent == config.apps_host:
            return label
        # Against DNS rebinding: a page of another site that resolves to this machine sends its own host name.
        raise Forbidden(f"the console is not at this address; open {config.scheme}://{min(config.hosts)}")

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection, audience = HTTPConnection(scope), self._audience_of(scope)
        check_length(connection)
        self._check_page(connection, audience)
        state = scope.setdefault("state", {})
        state["runtime"], scope["app"] = self.runtime, self._app
        if audience is not Audience.SESSION:
            await self._app(scope, limited(scope, receive), send)
            return
        session = await self._session_of(connection)
        state["session"], state["person"] = session, self.runtime.clients.person(session)
        try:
            # Streams and WebSockets end with their session.
            async with asyncio.timeout(self.runtime.sessions.seconds_left(session)) as timeout:
                await self._app(scope, limited(scope, receive), send)
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise Unauthorized("the session has expired") from error

    async def _session_of(self, connection: HTTPConnection) -> LoginSession:
        """Return the session of a trusted proxy's token, or else of the cookie."""
        if token := proxied_token(connection, self.runtime.config):
            return await self.runtime.proxied_sessions.of(token)
        return self.runtime.sessions.read(connection.cookies, host_of(connection.scope))

    def _check_page(self, connection: HTTPConnection, audience: Audience) -> None:
        """Raise Forbidden for a request by a page of another origin."""
        scope, headers = connection.scope, connection.headers
        is_websocket = scope["type"] == "websocket"
        method = "GET" if is_websocket else scope["method"]
        if method not in METHODS:
            raise BadRequest(f"the console does not answer {method} requests")
        site, origin = headers.get("sec-fetch-site", ""), headers.get("origin", "")
        if audience is Audience.PROGRAM:
            if site or origin:
                raise Forbidden("web pages may not ask for login codes; run `paceline ui`")
            return
        is_reading = method in SAFE_METHODS and not is_websocket
        if audience is Audience.PUBLIC and is_reading:
            return
        console_origin = f"{self.runtime.config.scheme}://{host_of(scope)}"
        if site not in SAME_ORIGIN and not (site == TYPED and is_reading):
            raise Forbidden("pages of other sites may not use the console")
        if origin != console_origin and (origin or not is_reading):
            raise Forbidden(f"only pages of {console_origin} may use the console")
        if not is_reading and not is_websocket and headers.get(REQUEST_HEADER) != "1":
            raise Forbidden("requests that change something must have the header X-Paceline: 1")

    async def _fail(self, scope: Scope, receive: Receive, answer: "_Answer", error: PacelineError) -> None:
        if not answer.has_begun:
            await error_response(error)(scope, receive, answer.send)
        elif abort := scope.get("state", {}).get("abort"):
            # The client must not take a part for the whole.
            abort()


class _Answer:
    """Adds the headers to the answer, and knows whether it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
        if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
            self.has_begun = True
        if message["type"].endswith("http.response.start"):
            present = {name.lower() for name, _ in message.get("headers", ())}
            missing = [(name, text) for name, text in HEADERS.items() if name.encode() not in present]
            headers = [*message.get("headers", ()), *((name.encode(), text.encode()) for name, text in missing)]
            message = {**message, "headers": headers}
        await self._send(message)


def check_length(connection: HTTPConnection) -> None:
    """Raise TooLarge if the body of a request is announced as too long."""
    length = connection.headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(f"Content-Length must be a number, not {length!r}")
    if len(length) > 10 or int(length) > MAX_BODY_BYTES:
        raise _too_large()


def limited(scope: Scope, receive: Receive) -> Receive:
    """Return a `receive` that bounds the size of a request's body and the time that it takes."""
    if scope["type"] != "http":
        return receive
    size, is_whole = 0, False
    deadline = asyncio.get_running_loop().time() + BODY_SECONDS

    async def bounded() -> Message:
        nonlocal size, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError as error:
            raise ServiceUnavailable(f"the body did not arrive within {BODY_SECONDS:.0f} seconds") from error
        size += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if size > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return bounded


def _too_large() -> TooLarge:
    return TooLarge(f"the body of a request may have {MAX_BODY_BYTES} bytes")


def host_of(scope: Scope) -> str:
    """Return the Host header; nothing unless there is exactly one."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return hosts[0].decode("latin-1").lower() if len(hosts) == 1 else ""
