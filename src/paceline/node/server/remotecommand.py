"""The WebSocket protocol of exec and attach: the first byte of every message is the number of its channel.

0 stdin, 1 stdout, 2 stderr, 3 the result (a Status), 4 the terminal's size. In version 5 a client closes a channel by
a message of 255 and the channel's number; before that, stdin ends only with the connection. The protocols with base64
in their names are the same as text, with the channel's number as a digit.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from paceline.apimachinery.meta import Object
from paceline.client.http.reverse_proxy import Message, Receive, Send
from paceline.errors import BadRequest
from paceline.node.runtime.exec_types import STDERR, STDOUT, ExecProcess

STDIN, ERROR, RESIZE, CLOSE = 0, 3, 4, 255
PROTOCOLS = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
)
NORMAL, UNSUPPORTED = 1000, 1003
MAX_SIDE = 65535
SUCCESS: Mapping[str, Any] = {"metadata": {}, "status": "Success"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def wants(self, output: int) -> bool:
        return self.stdout if output == STDOUT else self.stderr and not self.tty


def stream_request(pairs: list[tuple[str, str]]) -> StreamRequest:
    """Read the query of an exec or attach; BadRequest says what is wrong with it."""
    # As Kubernetes reads flags: everything except 0 and false is true.
    flags = {name: value.lower() not in {"0", "false"} for name, value in pairs}
    request = StreamRequest(
        command=tuple(value for name, value in pairs if name == "command"),
        stdin=flags.get("stdin", False),
        stdout=flags.get("stdout", False),
        stderr=flags.get("stderr", False),
        tty=flags.get("tty", False),
    )
    if not (request.stdin or request.stdout or request.stderr):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    return request


def choose_protocol(offered: list[str]) -> str | None:
    """Return the newest protocol that the client offers; empty, the oldest form, if it offers none."""
    if not offered:
        return ""
    return next((protocol for protocol in PROTOCOLS if protocol in offered), None)


class ChannelSocket:
    def __init__(self, receive: Receive, send: Send, protocol: str) -> None:
        self._receive = receive
        self._send = send
        self._is_text = "base64" in protocol
        self._can_close = protocol.startswith("v5.")
        self._has_status = protocol.startswith(("v4.", "v5."))

    async def open(self, protocol: str, request: StreamRequest) -> None:
        """Accept the client and send a first, empty message; a lost connection is noticed at the next receive."""
        with suppress(OSError):
            await self._open(protocol, request)

    async def _open(self, protocol: str, request: StreamRequest) -> None:
        await self._send({"type": "websocket.accept", "subprotocol": protocol or None})
        await self.write(STDOUT if request.stdout else STDERR if request.wants(STDERR) else ERROR, b"")

    async def write(self, channel: int, data: bytes) -> None:
        if self._is_text:
            text = f"{channel}{base64.b64encode(data).decode()}"
            await self._send({"type": "websocket.send", "text": text})
        else:
            await self._send({"type": "websocket.send", "bytes": bytes((channel,)) + data})

    async def end(self, status: Object) -> None:
        """Send the result and close the connection, if the client is still there."""
        result = json.dumps(status) if self._has_status else str(status.get("message") or "")
        with suppress(OSError):
            if result:
                await self.write(ERROR, result.encode())
            await self._send({"type": "websocket.close", "code": NORMAL})

    async def messages(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield channel and data until the client disconnects; CLOSE is the channel of a closed channel's number."""
        while (message := await self._receive())["type"] == "websocket.receive":
            decoded = self._decode(message)
            if decoded is None:
                continue
            channel, data = decoded
            if channel == CLOSE and not self._can_close:
                continue
            yield channel, data

    def _decode(self, message: Message) -> tuple[int, bytes] | None:
        data, text = message.get("bytes"), message.get("text")
        if data is None and text is not None:
            if not self._is_text:
                data = text.encode()
            elif text[:1].isdecimal():
                try:
                    return int(text[0]), base64.b64decode(text[1:])
                except binascii.Error:
                    return None
        return (data[0], bytes(data[1:])) if data else None


class OutputSource(Protocol):
    """Anything with output that ends."""

    def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield data with its channel (stdout or stderr) to the end."""
        ...


async def serve_command(client: ChannelSocket, command: ExecProcess, request: StreamRequest) -> None:
    """Connect a client and a command until one of them ends; the command never outlives the client."""
    try:
        if await ends_first(send_output(client, command, request), _receive_input(client, command)):
            await client.end(exit_status(await command.code(), request.command))
    finally:
        command.close()


async def ends_first(work: Coroutine[Any, Any, None], other: Coroutine[Any, Any, None]) -> bool:
    """Run both until one of them ends, and cancel the other; return whether the first one has ended."""
    async with asyncio.TaskGroup() as group:
        tasks = group.create_task(work), group.create_task(other)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        has_ended = tasks[0].done()
        for task in tasks:
            task.cancel()
    return has_ended


async def send_output(client: ChannelSocket, source: OutputSource, request: StreamRequest) -> None:
    """Send the output to its end, or until the client disconnects."""
    output = source.output()
    try:
        async for channel, data in output:
            if request.wants(channel):
                await client.write(channel, data)
    except OSError:
        return  # The client disconnected, which the next receive reports.
    finally:
        await output.aclose()


async def wait_for_close(client: ChannelSocket) -> None:
    """Ignore what the client sends, until it disconnects."""
    async for _ in client.messages():
        pass


async def _receive_input(client: ChannelSocket, command: ExecProcess) -> None:
    async for channel, data in client.messages():
        if channel == STDIN:
            await command.write(data)
        elif channel == CLOSE and data[:1] == bytes((STDIN,)):
            command.end_input()
        elif channel == RESIZE and (size := _size(data)) is not None:
            command.resize(*size)


def _size(data: bytes) -> tuple[int, int] | None:
    try:
        size = json.loads(data)
        width, height = int(size["Width"]), int(size["Height"])
    except (ValueError, KeyError, TypeError):
        return None
    return (width, height) if 0 <= width <= MAX_SIDE and 0 <= height <= MAX_SIDE else None


def exit_status(code: int, command: tuple[str, ...]) -> Object:
    """Return the Status for a command's exit code, as Kubernetes writes it."""
    if code == 0:
        return dict(SUCCESS)
    message = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {message}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def internal_error_status(message: str) -> Object:
    """Return the Status for a command or container that does not run, as Kubernetes writes it."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
