"""One connection of a client: uvicorn's protocol with a bounded head, deadlines and clean refusals."""

import asyncio
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from paceline.apiserver.http_types import status_response
from paceline.apiserver.status_errors import Status
from paceline.host.connection_limits import (
    HEAD_BYTES,
    HEAD_FIELDS,
    HEAD_SECONDS,
    LINGER_BYTES,
    LINGER_SECONDS,
    PIPELINED,
    WRITE_BYTES,
    WRITE_SECONDS,
    ConnectionSlot,
)

# What is given to the parser at once: it joins the pieces of a header by itself, without a bound.
STEP_BYTES = HEAD_BYTES
# The framing of chunks may be larger than what they carry, but not by more than this: one byte takes six.
FRAMING = 8

_TOO_LARGE = Status(
    code=431,
    reason="RequestHeaderFieldsTooLarge",
    message=f"the head of the request is larger than {HEAD_BYTES} bytes or has more than {HEAD_FIELDS} fields",
)
_TOO_LONG = Status(
    code=414, reason="RequestURITooLong", message=f"the URL of the request is longer than {HEAD_BYTES} bytes"
)
_TOO_SLOW = Status(
    code=408, reason="Timeout", message=f"the head of the request did not arrive within {HEAD_SECONDS:g} seconds"
)
_MALFORMED = Status(code=400, reason="BadRequest", message="the request is not valid HTTP/1.1")


class _Refused(Exception):
    """Stops the parser from within one of its callbacks."""


class ServerConnection(HttpToolsProtocol):
    """One connection, which a request can also end at once, without waiting for a client that does not read."""

    def __init__(self, *, place: ConnectionSlot, **given: Any) -> None:
        super().__init__(**given)
        self._place = place
        # Whether the bytes that come next are part of a head, how many did, and what they amount to.
        self._is_in_head = True
        self._fed = self._size = 0
        self._url: list[bytes] = []
        # Of the body under way: what it takes on the wire beside what it carries.
        self._wire = self._carried = 0
        self._trailers = 0
        self._dropped = 0
        # Why the connection was refused, and why a callback stopped the parser.
        self._status: Status | None = None
        self._stopped: Status | None = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let every request of the connection know how to end it."""
        self.app_state = {"abort": self._abort, "leave": self._place.leave}
        self._place.close = transport.abort
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BYTES)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back, and leave no timer."""
        self._place.leave()
        self._deadline = None
        self._unset_keepalive_if_required()
        for timer in (self._timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        # Nothing is left that leads back here: memory is given back without a search for it.
        self.app_state = {}
        self._place.close = self._place.leave

    def _abort(self) -> None:
        """End the connection, so that nobody finds fault with an answer that is not whole."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on, in steps that bound what the parser holds."""
        self._unset_keepalive_if_required()
        if len(data) <= STEP_BYTES:
            self._feed(data)
            return
        view = memoryview(data)
        for at in range(0, len(view), STEP_BYTES):
            self._feed(view[at : at + STEP_BYTES])
            if self.transport.is_closing():
                return

    def _feed(self, data: bytes | memoryview) -> None:
        if self._status is not None:
            self._drop(len(data))
            return
        if self._is_in_head:
            if not self._fed:
                self._wait()
            self._fed += len(data)
        else:
            self._wire += len(data)
            if self._is_answered():
                self._drop(len(data))
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade:
            if self._should_upgrade():
                self._upgrade()
            return
        except HttpParserError:
            self._refuse(self._stopped or _MALFORMED)
            return
        if self._is_in_head and self._fed > HEAD_BYTES:
            self._refuse(self._overrun())
        elif not self._is_in_head and self._wire > HEAD_BYTES + FRAMING * self._carried:
            self._refuse(_MALFORMED)

    def _upgrade(self) -> None:
        # A WebSocket may be silent for long: it is no connection that waits for another request.
        self._unset_keepalive_if_required()
        self.handle_websocket_upgrade()
        if not getattr(self.transport.get_protocol(), "handshake_initiated", False):
            # What reads WebSockets takes less than what reads HTTP, and says nothing of what it does not take.
            self._refuse(_MALFORMED)

    def _overrun(self) -> Status:
        is_url = not self.headers and sum(map(len, self._url)) * 2 > HEAD_BYTES
        return _TOO_LONG if is_url else _TOO_LARGE

    def on_url(self, url: bytes) -> None:
        """Collect the pieces: joining them one by one is quadratic."""
        self._url.append(url)
        self._size += len(url)
        if self._size > HEAD_BYTES:
            self._stop(_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field, and stop where the head has too much; all of it here, as every request has several."""
        self._size += len(name) + len(value)
        headers = self.headers
        if len(headers) >= HEAD_FIELDS or self._size > HEAD_BYTES:
            self._stop(_TOO_LARGE)
        if not self._is_in_head:
            # A trailer, behind a body in chunks: whoever let the head in has not seen it.
            self._trailers += 1
            if self._trailers > HEAD_FIELDS:
                self._stop(_TOO_LARGE)
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers.append((name, value))

    def on_message_begin(self) -> None:
        """Begin to count; the head may begin behind another request in what has just come."""
        if not self._fed:
            self._fed = 1
            self._wait()
        self._size = 0
        self._url = []
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start the request; from here on its own limits hold."""
        self.url = b"".join(self._url)
        if len(self.pipeline) >= PIPELINED:
            self._stop(_MALFORMED)
        self._is_in_head, self._deadline = False, None
        self._wire = self._carried = self._dropped = self._trailers = 0
        self._place.busy()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count what a body carries."""
        self._carried += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect another head."""
        self._is_in_head, self._fed, self._deadline = True, 0, None
        super().on_message_complete()
        if self._is_answered():
            self._rest()

    def on_response_complete(self) -> None:
        """Let the connection give way to others; what is left of a body that nobody read has to come soon."""
        super().on_response_complete()
        if self._is_answered():
            self._place.idle()
            if not self._is_in_head:
                self._wait()

    def pause_writing(self) -> None:
        """Notice since when the client takes nothing."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: anyone could fill the log."""

    def _watch_writing(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self._look_at_writing, size)

    def _look_at_writing(self, before: int) -> None:
        if self.transport.get_write_buffer_size() < before:
            self._watch_writing()
        else:
            self.transport.abort()

    def _rest(self) -> None:
        """Wait for another request, which may never come."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _wait(self) -> None:
        """Give the client its time for a head; one timer at most, which finds out by itself when it is due."""
        self._deadline = self.loop.time() + HEAD_SECONDS
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._deadline is None or self.transport.is_closing():
            return
        if self.loop.time() < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._look)
        elif self._is_in_head and self._fed and self._status is None:
            self._refuse(_TOO_SLOW)
        else:
            self.transport.abort()

    def _is_answered(self) -> bool:
        """Tell whether no request is under way; there may have been none."""
        return bool(getattr(self.cycle, "response_complete", True))

    def _stop(self, status: Status) -> None:
        self._stopped = status
        raise _Refused

    def _drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > LINGER_BYTES:
            self.transport.abort()

    def _refuse(self, status: Status) -> None:
        """Answer what is no request, and end the connection once the client could read that."""
        self._status, self._deadline = status, None
        if not self._is_answered():
            # Another answer is under way, into which this one must not be written.
            self.transport.abort()
            return
        answer = status_response(status)
        head = f"content-type: {answer.content_type}\r\ncontent-length: {len(answer.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status.code] + head.encode() + answer.body)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)


class WebSocket(WebSocketsSansIOProtocol):
    """uvicorn's own, to which a refusal is an answer too: otherwise anyone could fill the log with errors."""

    async def send(self, message: Any) -> None:
        """Send a message; the last of a refusal ends the handshake."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the connection's place back."""
        self.app_state["leave"]()
        super().connection_lost(exc)
