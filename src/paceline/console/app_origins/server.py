"""Answers requests and WebSockets to the host of one app."""

import asyncio
from collections.abc import Callable, Iterable

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import Message, Receive, Scope, Send

from paceline.client.http.reverse_proxy import ProxyRequest, join, pass_on
from paceline.client.http.transport import Unreachable
from paceline.console.app_origins import pages
from paceline.console.app_origins.headers import ISOLATION, BrowserRequest, Headers, passed_on, returned
from paceline.console.app_origins.origin import OWN_PAGES, EmbeddedApp
from paceline.console.app_origins.tickets import NO_ACCESS
from paceline.console.people import Person
from paceline.console.responses import error_response, json_response, known_error_of
from paceline.console.runtime import Runtime
from paceline.errors import BadRequest, Forbidden, NotFound, PacelineError, TooLarge, Unauthorized

OPEN_PAGE, PING_PAGE = f"{OWN_PAGES}open", f"{OWN_PAGES}ping"
MAX_TICKET_BYTES = 32 * 1024
UNAVAILABLE = 503

MakePage = Callable[[str, str], pages.OpenPage]


class AppServer:
    """One request or WebSocket to the host of an app."""

    def __init__(self, runtime: Runtime, label: str, scope: Scope) -> None:
        self._runtime = runtime
        self._label = label
        self._scope = scope
        self._connection = HTTPConnection(scope)
        self._is_websocket = scope["type"] == "websocket"

    async def answer(self, receive: Receive, send: Send) -> None:
        """Answer it: with a page of ours, or by the pod of the app."""
        try:
            self._check_sender()
            is_own = self._scope["path"].startswith(OWN_PAGES)
            response = await (self._own_page(receive) if is_own else self._app_page(receive, send))
        except (PacelineError, ExceptionGroup) as error:
            reported = known_error_of(error)
            if reported is None:
                raise
            response = self._error(reported)
        if response is not None:
            await response(self._scope, receive, send)

    def _check_sender(self) -> None:
        config = self._runtime.config
        request = BrowserRequest(
            method=self._scope.get("method", "GET"), headers=self._connection.headers, is_websocket=self._is_websocket
        )
        if refusal := request.refusal(f"{config.scheme}://{self._label}.{config.apps_host}"):
            raise Forbidden(refusal)

    async def _own_page(self, receive: Receive) -> Response:
        """Return the page that the console itself serves at this path."""
        place = (self._scope.get("method", ""), self._scope["path"])
        if place == ("POST", OPEN_PAGE):
            return await self._redeem(receive)
        if place == ("GET", OPEN_PAGE):
            return self._page(pages.open_page)
        if place == ("GET", PING_PAGE):
            return self._page(pages.ping_page)
        raise NotFound(f"there is nothing at {self._scope['path']}")

    async def _redeem(self, receive: Receive) -> Response:
        """Exchange a ticket for the cookie of the app."""
        if self._connection.headers.get("x-paceline") != "1":
            raise Forbidden("the request must have the header X-Paceline: 1")
        tickets = self._runtime.tickets
        access = tickets.redeem(await _ticket_in(receive), self._label)
        response = json_response({"front": access.app.front})
        for cookie in tickets.cookies(access):
            response.headers.append("set-cookie", cookie)
        response.headers["cache-control"] = "no-store"
        return response

    async def _app_page(self, receive: Receive, send: Send) -> Response | None:
        """Pass the request on to the pod of the app; return an answer if it comes from here instead."""
        access = self._runtime.tickets.read(self._connection.cookies, self._label)
        if self._scope["path"] == "/" and access.app.front != "/" and not self._is_websocket:
            return RedirectResponse(access.app.front, 302, {"cache-control": "no-store"})
        person = self._runtime.clients.person(access.session)
        token = await self._runtime.notebook_tokens.of(person, access.app)
        target = self._target(access.app, token)
        answer = _AppAnswer(self._rules(access.app, token), send, can_wait=self._is_navigation)
        try:
            # WebSockets end with the access; the server closes what is still open.
            async with asyncio.timeout(access.expires - self._runtime.config.clock.now().timestamp()):
                await self._forward(person, target, receive, answer.send)
        except (PacelineError, ExceptionGroup, TimeoutError) as error:
            if not answer.has_begun:
                raise Unauthorized(NO_ACCESS) if isinstance(error, TimeoutError) else error from None
            # The browser must not take a part of an answer for the whole.
            if abort := self._scope.get("state", {}).get("abort"):
                abort()
        return self._page(pages.starting_page, UNAVAILABLE) if answer.is_withheld else None

    def _rules(self, app: EmbeddedApp, token: str) -> Callable[[Iterable[tuple[str, str]]], Headers]:
        return lambda headers: returned(headers, app, self._console, token)

    async def _forward(self, person: Person, target: str, receive: Receive, send: Send) -> None:
        """Pass the request or WebSocket on to the service proxy, with the person's credential."""
        pairs = passed_on((name.decode("latin-1"), value.decode("latin-1")) for name, value in self._scope["headers"])
        upstream = person.upstream
        request = ProxyRequest(
            method=self._scope.get("method", "GET"),
            target=f"{upstream.endpoint.prefix}{target}",
            headers=(*upstream.headers, *pairs),
            protocols=tuple(self._scope.get("subprotocols") or ()),
        )
        if not self._is_websocket:
            await pass_on(upstream.endpoint.address, request, receive, send, upstream.tls)
        elif (await receive())["type"] == "websocket.connect":
            await join(upstream.endpoint.address, request, receive, send, upstream.tls)

    def _target(self, app: EmbeddedApp, token: str) -> str:
        """Return the path and query of the request at the service proxy."""
        raw: bytes = self._scope.get("raw_path") or self._scope["path"].encode()
        path = raw.decode("latin-1").partition("?")[0]
        target = app.target(path, self._scope["query_string"].decode("latin-1"), token)
        if target is None:
            raise NotFound("there is no such page")
        return target

    @property
    def _console(self) -> str:
        """Return the origin of the console, which alone may show the app in a frame."""
        config = self._runtime.config
        return f"{config.scheme}://{config.apps_host}"

    @property
    def _is_navigation(self) -> bool:
        """Return whether a person sees the answer as a page."""
        headers = self._connection.headers
        mode = headers.get("sec-fetch-mode", "navigate" if "text/html" in headers.get("accept", "") else "")
        return not self._is_websocket and self._scope["method"] == "GET" and mode == "navigate"

    def _page(self, make: MakePage, code: int = 200) -> Response:
        page = make(self._console, self._runtime.config.ids.secret())
        return Response(page.body, code, dict((*ISOLATION, *page.headers)))

    def _error(self, error: PacelineError) -> Response:
        if self._is_navigation and isinstance(error, Unauthorized):
            return self._page(pages.no_access_page, error.code)
        if self._is_navigation and isinstance(error, Unreachable):
            return self._page(pages.starting_page, UNAVAILABLE)
        response = error_response(error)
        response.headers.update({"cache-control": "no-store", "content-security-policy": "default-src 'none'"})
        return response


class _AppAnswer:
    """The answer of a pod on its way to the browser."""

    def __init__(self, rules: Callable[[Iterable[tuple[str, str]]], Headers], send: Send, *, can_wait: bool) -> None:
        self._rules = rules
        self._send = send
        self._can_wait = can_wait
        self.has_begun = False
        # Whether the cluster has answered that the app does not run yet; a page of ours then replaces its answer.
        self.is_withheld = False

    async def send(self, message: Message) -> None:
        """Send a message of the answer, with the headers that may reach the browser."""
        if message["type"].endswith("response.start"):
            self.is_withheld = self._can_wait and message["status"] == UNAVAILABLE
            pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"])
            headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._rules(pairs)]
            message = {**message, "headers": headers}
        if not self.is_withheld:
            self.has_begun = True
            await self._send(message)


async def _ticket_in(receive: Receive) -> str:
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the request was cut off")
        body += bytes(message.get("body", b""))
        if len(body) > MAX_TICKET_BYTES:
            raise TooLarge(f"a ticket has at most {MAX_TICKET_BYTES} bytes")
        if not message.get("more_body"):
            return body.decode("latin-1")
