"""A client's connection: uvicorn's protocol with a limit on the request head, deadlines and proper error responses."""

import asyncio
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

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

# How much is fed to the parser at once: it joins the pieces of a header itself, without a limit.
STEP_BYTES = HEAD_BYTES
# The largest ratio of a chunked body's framing to its payload: a chunk of one byte takes six.
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
    """One connection, which a request can also abort, without waiting for a client that does not read."""

    def __init__(self, *, slot: ConnectionSlot, **options: Any) -> None:
        super().__init__(**options)
        self._slot = slot
        # Whether the next bytes belong to a head, how many bytes of it were fed, and the size of its parsed fields.
        self._is_in_head = True
        self._fed = self._size = 0
        self._url: list[bytes] = []
        # The bytes of the current body on the wire, and its payload.
        self._wire = self._carried = 0
        self._trailers = 0
        self._dropped = 0
        # The error response that was sent, and the one for which a callback stopped the parser.
        self._status: Status | None = None
        self._stopped: Status | None = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make `abort` available to every request of the connection."""
        self.app_state = {"abort": self._abort, "release": self._slot.release}
        self._slot.close = transport.abort
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BYTES)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._slot.release()
        self._deadline = None
        self._unset_keepalive_if_required()
        for timer in (self._timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        # Break reference cycles, so that memory is freed without a garbage collection.
        self.app_state = {}
        self._slot.close = self._slot.release

    def _abort(self) -> None:
        """Abort the connection; uvicorn then does not log the incomplete response."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Feed the parser in steps, which limit what it buffers."""
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
                self._set_deadline()
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
        # A WebSocket may be silent for long without being an idle connection.
        self._unset_keepalive_if_required()
        self.handle_websocket_upgrade()
        if not getattr(self.transport.get_protocol(), "handshake_initiated", False):
            # The WebSocket parser accepts less than the HTTP parser, and reports nothing that it rejects.
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
        """Store a field, and stop if the head is too large; all in one function, because it is called so often."""
        self._size += len(name) + len(value)
        headers = self.headers
        if len(headers) >= HEAD_FIELDS or self._size > HEAD_BYTES:
            self._stop(_TOO_LARGE)
        if not self._is_in_head:
            # A trailer after a chunked body, which came too late for the checks on the head.
            self._trailers += 1
            if self._trailers > HEAD_FIELDS:
                self._stop(_TOO_LARGE)
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers.append((name, value))

    def on_message_begin(self) -> None:
        """Start counting; the head may start after another request in the same data."""
        if not self._fed:
            self._fed = 1
            self._set_deadline()
        self._size = 0
        self._url = []
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start the request, whose own limits apply from here on."""
        self.url = b"".join(self._url)
        if len(self.pipeline) >= PIPELINED:
            self._stop(_MALFORMED)
        self._is_in_head, self._deadline = False, None
        self._wire = self._carried = self._dropped = self._trailers = 0
        self._slot.busy()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._carried += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect another head."""
        self._is_in_head, self._fed, self._deadline = True, 0, None
        super().on_message_complete()
        if self._is_answered():
            self._set_keepalive()

    def on_response_complete(self) -> None:
        """Mark the connection idle; the remainder of an unread body must arrive before the deadline."""
        super().on_response_complete()
        if self._is_answered():
            self._slot.idle()
            if not self._is_in_head:
                self._set_deadline()

    def pause_writing(self) -> None:
        """Start the timer for a client that does not read."""
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        """Cancel the timer: the client reads."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: any client could fill the log."""

    def _watch_writing(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(WRITE_SECONDS, self._check_writing, size)

    def _check_writing(self, last_size: int) -> None:
        if self.transport.get_write_buffer_size() < last_size:
            self._watch_writing()
        else:
            self.transport.abort()

    def _set_keepalive(self) -> None:
        """Wait for another request, which may never come."""
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def _set_deadline(self) -> None:
        """Set the deadline for a head; there is at most one timer, which checks the current deadline."""
        self._deadline = self.loop.time() + HEAD_SECONDS
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None or self.transport.is_closing():
            return
        if self.loop.time() < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)
        elif self._is_in_head and self._fed and self._status is None:
            self._refuse(_TOO_SLOW)
        else:
            self.transport.abort()

    def _is_answered(self) -> bool:
        """Return whether no request is in progress."""
        return bool(getattr(self.cycle, "response_complete", True))

    def _stop(self, status: Status) -> None:
        self._stopped = status
        raise _Refused

    def _drop(self, size: int) -> None:
        self._dropped += size
        if self._dropped > LINGER_BYTES:
            self.transport.abort()

    def _refuse(self, status: Status) -> None:
        """Send an error response, and close the connection once the client had time to read it."""
        self._status, self._deadline = status, None
        if not self._is_answered():
            # Another response is in progress and must not be mixed with this one.
            self.transport.abort()
            return
        answer = status_response(status)
        head = f"content-type: {answer.content_type}\r\ncontent-length: {len(answer.body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status.code] + head.encode() + answer.body)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)
