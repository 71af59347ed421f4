"""A tab without a screen: it keeps what it is sent as the page does, and comes back after every cut."""

import gzip
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.sync.client import ClientConnection, connect

from tests.e2e.console.browser import Browser

STEP_SECONDS = 0.2
CUTS = (ConnectionClosed, InvalidHandshake, InvalidMessage, OSError, EOFError)


@dataclass
class LiveTab:
    """One tab with its subscriptions."""

    browser: Browser
    subscriptions: dict[int, dict[str, Any]] = field(default_factory=dict)
    rows: dict[int, dict[str, list[Any]]] = field(default_factory=dict)
    lines: dict[int, list[bytes]] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    cuts: int = 0
    socket: ClientConnection | None = None
    sockets: ExitStack = field(default_factory=ExitStack)
    _partial: dict[int, bytes] = field(default_factory=dict)
    _to_skip: dict[int, tuple[bytes, int]] = field(default_factory=dict)

    def subscribe(self, number: int, **request: Any) -> None:
        """Ask for something, now and after every cut."""
        self.subscriptions[number] = request
        if self.socket is not None:
            self._ask(number)

    def until(self, condition: Callable[[], Any], seconds: float = 120.0) -> None:
        """Read until a condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, (self.messages[-5:], self.cuts)
            self._step()

    def close(self) -> None:
        self.sockets.close()

    def _step(self) -> None:
        try:
            if self.socket is None:
                self._open()
            assert self.socket is not None
            self._take(self.socket.recv(timeout=STEP_SECONDS))
        except TimeoutError:
            return
        except CUTS:
            self.socket = None
            self.cuts += 1
            time.sleep(STEP_SECONDS)

    def connect(self) -> ClientConnection:
        """Return a connection from which nothing is read yet."""
        host = self.browser.host
        cookie = "; ".join(f"{name}={text}" for name, text in self.browser.cookies.items() if text)
        opening = connect(
            f"ws://{host}/api/live",
            address=("127.0.0.1", int(host.rpartition(":")[2])),
            proxy=None,
            origin=f"http://{host}",  # type: ignore[arg-type]
            additional_headers={"Cookie": cookie},
            max_size=None,
            compression=None,
        )
        return self.sockets.enter_context(opening)

    def _open(self) -> None:
        self.socket = self.connect()
        for number in self.subscriptions:
            self._ask(number)

    def _ask(self, number: int) -> None:
        assert self.socket is not None
        lines = self.lines.get(number)
        resumed: dict[str, Any] = {}
        self._partial.pop(number, None)
        if lines:
            stamp = lines[-1].split(b" ")[0]
            self._to_skip[number] = (stamp, sum(line.startswith(stamp) for line in lines))
            resumed = {"after": stamp.decode()}
        elif revision := self.subscriptions[number].get("revision"):
            resumed = {"since": revision}
        request = {name: value for name, value in self.subscriptions[number].items() if name != "revision"}
        self.socket.send(json.dumps({"id": number, **request, **resumed}))

    def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes) and frame[4] == 0:
            self._take_log(int.from_bytes(frame[:4], "big"), frame[5:])
            return
        message = json.loads(frame if isinstance(frame, str) else gzip.decompress(frame[5:]))
        self.messages.append(message)
        rows = self.rows.setdefault(message.get("id", 0), {})
        if message["type"] == "reset":
            rows.clear()
        rows.update({row[0]: row for row in message.get("rows") or ()})
        for uid in message.get("deleted") or ():
            rows.pop(uid, None)
        if message.get("more") is False:
            self.subscriptions[message["id"]]["revision"] = message["revision"]

    def _take_log(self, number: int, data: bytes) -> None:
        *lines, self._partial[number] = (self._partial.get(number, b"") + data).split(b"\n")
        for line in lines:
            stamp, count = self._to_skip.get(number, (b"", 0))
            if line.startswith(stamp) and count:
                # It is here already: a log begins again with all lines of the last stamp.
                self._to_skip[number] = (stamp, count - 1)
            else:
                self.lines.setdefault(number, []).append(line)
        assert self.socket is not None
        self.socket.send(json.dumps({"id": number, "type": "credit", "bytes": len(data)}))
