"""Authentication of HTTP requests and WebSockets: size, Host header, web page checks, token; in this order.

Authorization follows after the token (`authorization.py`).

A page of a pod that was loaded through `kubectl proxy` has the origin of a proxy that adds an administrator's token. It
may talk to its own pod and nothing else, not even for reading. Browsers mark the requests of pages (Sec-Fetch-*,
Origin, Referer); programs send none of these headers. See docs/guides/tensorboard.md.
"""

import asyncio
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import SplitResult, urlsplit

from paceline.apiserver.auth.authorization import attributes_of, is_allowed
from paceline.apiserver.http_types import Caller, HttpRequest, Receive, Scope
from paceline.apiserver.paths import Target
from paceline.apiserver.routes import PUBLIC_ROUTES, ROUTES, proxied_object
from paceline.apiserver.status_errors import (
    StatusError,
    access_denied,
    bad_request,
    request_timeout,
    too_large,
    unauthorized,
)
from paceline.model.interactive import proxy_path

# Kubernetes' limit for a whole request.
BODY_SECONDS = 60.0
MAX_BODY_BYTES = 3 * 1024 * 1024
_TOO_LARGE = f"the body of a request may have {MAX_BODY_BYTES} bytes"
# Paths without authentication.
PUBLIC = ("/healthz", "/healthz/ping", "/livez", "/livez/ping", "/readyz", "/readyz/ping")
ANYONE = Caller(name="system:anonymous")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# Prefix of the headers that every browser request has and programs never send.
PAGE_HEADERS = "sec-fetch-"
# Sec-Fetch-Site of an address that the user typed.
TYPED = "none"
# Sec-Fetch-Site of requests to the page's own origin; browsers before 2023 may omit it.
SAME_ORIGINS = frozenset({"", "same-origin"})
USE_INSTEAD = "use kubectl or paceline; `paceline notebook NAME` and `paceline tensorboard NAME` open a page"

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_WEBSOCKET_BEARER = "base64url.bearer.authorization.k8s.io."


class ClientDisconnected(Exception):
    """The client disconnected before it had sent its whole request."""


def hash_token(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def is_local_page(origin: str, site: str) -> bool:
    """Return whether a page has an address of this machine, as one from `kubectl proxy` has."""
    return site in {TYPED, *SAME_ORIGINS} and split(origin).hostname in LOOPBACK


def split(url: str) -> SplitResult:
    """Split an untrusted URL; a malformed one counts as empty."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def raw_path(scope: Scope) -> str:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1").partition("?")[0]


def proxied_target(path: str) -> tuple[str, ...]:
    """Return the pod or Service that serves a page, at its own path or the proxy's; () for other paths."""
    rewritten = proxy_path(path)
    return proxied_object(rewritten[0] if rewritten else path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticator:
    """Authenticates requests. `tokens` maps the hash of a token to the name of its user."""

    tokens: Mapping[str, str]
    hosts: frozenset[str]
    # Returns the caller of a service account token; None if it is invalid.
    account: Callable[[str], Caller | None] = lambda _token: None

    def admit(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        """Return the caller, or raise a StatusError."""
        # Proxied bodies may have any size: they are not buffered here.
        if not proxied_object(raw_path(scope)):
            self._check_length(headers)
        self._check_host(scope)
        self._check_page(scope, headers)
        if scope["type"] == "http" and scope["path"] in PUBLIC:
            return ANYONE
        return self._caller(scope, headers)

    def knows(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Return whether a request that needs no token has a valid one."""
        try:
            self._caller(scope, headers)
        except StatusError:
            return False
        return True

    def allows(self, caller: Caller, route: str, verb: str, target: Target | None) -> bool:
        """Return whether a caller is authorized; the target is None for paths that are not about objects."""
        if (route, verb) in PUBLIC_ROUTES:
            return True
        if (route, verb) not in ROUTES or caller == ANYONE:
            return False
        return target is None or caller.account is None or is_allowed(caller.account, attributes_of(verb, target))

    def _check_length(self, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            raise bad_request(f"Content-Length must be a number, not {length!r}")
        if len(length) > 10 or int(length) > MAX_BODY_BYTES:
            raise too_large(_TOO_LARGE)

    def _check_host(self, scope: Scope) -> None:
        # Against DNS rebinding: such a page sends its own host name.
        values = [value for name, value in scope["headers"] if name == b"host"]
        if len(values) != 1 or values[0].decode("latin-1").lower() not in self.hosts:
            allowed = " or ".join(sorted(self.hosts))
            raise access_denied(f"the Host header must be {allowed}; use the address of the kubeconfig")

    def _check_page(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Reject web pages, except requests to the program that served the page; reject all WebSockets of pages.

        The page that opens a WebSocket is unknown: there is no Referer, and all pages behind one `kubectl proxy` have
        the same origin.
        """
        if not self._is_of_page(headers):
            return
        served_by = proxied_target(raw_path(scope))
        if not served_by:
            raise access_denied(f"web pages may not ask for this; {USE_INSTEAD}")
        if scope["type"] == "websocket":
            raise access_denied(f"web pages may not open a WebSocket here; {USE_INSTEAD}")
        site = headers.get("sec-fetch-site", "")
        is_typed = site == TYPED and scope["method"] in _SAFE
        if not is_typed and not (site in SAME_ORIGINS and self._page_of(headers) == served_by):
            raise access_denied(f"a web page may talk to the program that it came from, and to no other; {USE_INSTEAD}")

    def _is_of_page(self, headers: Mapping[str, str]) -> bool:
        """Return whether a browser sent this; WebSocket libraries send the server's address as the origin."""
        if "referer" in headers or any(name.startswith(PAGE_HEADERS) for name in headers):
            return True
        return "origin" in headers and split(headers["origin"]).netloc.lower() not in self.hosts

    def _page_of(self, headers: Mapping[str, str]) -> tuple[str, ...]:
        """Return the pod or Service that served the page of a request, by Referer and Origin; () if unknown."""
        page = split(headers.get("referer", ""))
        origin = headers.get("origin", f"{page.scheme}://{page.netloc}")
        is_from_proxy = page.hostname in LOOPBACK or page.netloc.lower() in self.hosts
        return proxied_target(page.path) if is_from_proxy and origin == f"{page.scheme}://{page.netloc}" else ()

    def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scope["type"] == "websocket" and not token:
            scheme, token = "bearer", _offered_token(headers)
        if scheme.lower() == "bearer" and token:
            # Tokens are 256 random bits and stored as plain hashes: there is nothing to guess, salt or slow down. The
            # time of the lookup only depends on the hash, which reveals nothing about similar tokens.
            name = self.tokens.get(hash_token(token.strip()))
            if name is not None:
                return Caller(name=name)
            if (caller := self.account(token.strip())) is not None:
                return caller
        raise unauthorized()


def _offered_token(headers: Mapping[str, str]) -> str:
    """Return the token that browsers and kubectl send as a WebSocket subprotocol."""
    for protocol in headers.get("sec-websocket-protocol", "").split(","):
        name = protocol.strip()
        if name.startswith(_WEBSOCKET_BEARER):
            text = name.removeprefix(_WEBSOCKET_BEARER)
            try:
                return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
            except (NotBase64, ValueError):
                return ""
    return ""


async def read_body(receive: Receive, *, seconds: float = BODY_SECONDS) -> bytes:
    """Return the body; raise StatusError if it is too large or arrives too slowly."""
    try:
        async with asyncio.timeout(seconds):
            body = bytearray()
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    raise too_large(_TOO_LARGE)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise request_timeout(f"the body of the request did not arrive within {seconds:g} seconds") from error


# Streams end within five seconds after the authorization is lost; a check takes about 10 µs.
CHECK_SECONDS = 3.0


class StreamAuthorization:
    """Checks again and again whether the caller of an open stream is still authorized."""

    def __init__(self, gate: Authenticator, scope: Scope, request: HttpRequest) -> None:
        self._gate = gate
        self._scope = scope
        self._headers = request.headers
        self._account = request.caller.account

    @property
    def can_expire(self) -> bool:
        """Whether the caller can lose its authorization; users and our own processes cannot."""
        return self._account is not None

    async def wait_until_expired(self) -> None:
        """Return when the token expired, or the account is gone or changed (the client may reconnect)."""
        while self._is_valid():  # noqa: ASYNC110 - nothing announces an expiry
            await asyncio.sleep(CHECK_SECONDS)

    async def run_while_valid(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do some work while the caller is authorized; return False if it was cancelled."""
        if not self.can_expire:
            await work()
            return True
        return await finishes_before(work, self.wait_until_expired())

    def _is_valid(self) -> bool:
        try:
            return self._gate.admit(self._scope, self._headers).account == self._account
        except StatusError:
            return False


async def finishes_before(work: Callable[[], Awaitable[object]], end: Coroutine[Any, Any, None]) -> bool:
    """Do some work until something else ends; return False if it was cancelled because of that."""
    async with asyncio.TaskGroup() as group:
        working, ending = group.create_task(_outcome(work)), group.create_task(end)
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        working.cancel()
        ending.cancel()
    if working.cancelled():
        return False
    if (error := working.result()) is not None:
        raise error
    return True


async def _outcome(work: Callable[[], Awaitable[object]]) -> Exception | None:
    """Return the exception of some work, which begins here: a task group would wrap it."""
    try:
        await work()
    except Exception as error:  # noqa: BLE001 - the caller raises it again
        return error
    return None
