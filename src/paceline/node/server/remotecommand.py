"""How exec and attach talk over a WebSocket: every message is one channel's, whose number is its first byte.

0 input, 1 output, 2 errors, 3 how it ended (a Status), 4 the terminal's size. In version 5 a client ends a channel by
naming it after the number 255; before that, input ends only with the connection. The forms whose names say base64 are
the same as text, with the channel's number as a digit.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from paceline.apimachinery.meta import Object
from paceline.errors import BadRequest
from paceline.node.runtime.exec_types import STDERR, STDOUT, ExecError, ExecProcess

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What a client asks of an exec or attach."""

    command: tuple[str, ...] = ()
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def shows(self, output: int) -> bool:
        """Tell whether the client wants to have an output."""
        return self.stdout if output == STDOUT else self.stderr and not self.tty


def stream_request(pairs: list[tuple[str, str]]) -> StreamRequest:
    """Read the query of an exec or attach; BadRequest says what is wrong with it."""
    # As Kubernetes reads flags: whatever does not say no says yes.
    flags = {name: value.lower() not in {"0", "false"} for name, value in pairs}
    asked = StreamRequest(
        command=tuple(value for name, value in pairs if name == "command"),
        stdin=flags.get("stdin", False),
        stdout=flags.get("stdout", False),
        stderr=flags.get("stderr", False),
        tty=flags.get("tty", False),
    )
    if not (asked.stdin or asked.stdout or asked.stderr):
        raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
    return asked


def choose_protocol(offered: list[str]) -> str | None:
    """Choose how to talk: the newest way that the client offers too; one who offers none is talked to the old way."""
    if not offered:
        return ""
    return next((each for each in PROTOCOLS if each in offered), None)


class ChannelSocket:
    """A client's WebSocket, seen as channels."""

    def __init__(self, receive: Receive, send: Send, protocol: str) -> None:
        self._receive = receive
        self._send = send
        self._is_text = "base64" in protocol
        self._can_close = protocol.startswith("v5.")
        self._has_status = protocol.startswith(("v4.", "v5."))

    async def open(self, protocol: str, asked: StreamRequest) -> None:
        """Accept the client, and let it know that it is heard; one that is gone is heard of when it is listened to."""
        with suppress(OSError):
            await self._open(protocol, asked)

    async def _open(self, protocol: str, asked: StreamRequest) -> None:
        await self._send({"type": "websocket.accept", "subprotocol": protocol or None})
        await self.write(STDOUT if asked.stdout else STDERR if asked.shows(STDERR) else ERROR, b"")

    async def write(self, channel: int, data: bytes) -> None:
        """Send a piece of one channel."""
        if self._is_text:
            text = f"{channel}{base64.b64encode(data).decode()}"
            await self._send({"type": "websocket.send", "text": text})
        else:
            await self._send({"type": "websocket.send", "bytes": bytes((channel,)) + data})

    async def end(self, status: Object) -> None:
        """Say how it ended, and hang up; a client that is gone need not know."""
        said = json.dumps(status) if self._has_status else str(status.get("message") or "")
        with suppress(OSError):
            if said:
                await self.write(ERROR, said.encode())
            await self._send({"type": "websocket.close", "code": NORMAL})

    async def pieces(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Give what the client sends, by channel, until it hangs up; the end of a channel has the number CLOSE."""
        while (message := await self._receive())["type"] == "websocket.receive":
            piece = self._piece(message)
            if piece is None:
                continue
            channel, data = piece
            if channel == CLOSE and not self._can_close:
                continue
            yield channel, data

    def _piece(self, message: Message) -> tuple[int, bytes] | None:
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
    """Something whose output can be shown and that has an end."""

    def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Give pieces, with the output each belongs to, to the end."""
        ...


async def serve_command(line: ChannelSocket, command: ExecProcess, asked: StreamRequest) -> None:
    """Connect a client and a command until one of them ends; the command never outlives the client."""
    try:
        async with asyncio.TaskGroup() as group:
            showing = group.create_task(send_output(line, command, asked))
            hearing = group.create_task(_hear(line, command))
            await asyncio.wait((showing, hearing), return_when=asyncio.FIRST_COMPLETED)
            hearing.cancel()
            if not showing.done():
                showing.cancel()
                return
        await line.end(exit_status(await command.code(), asked.command))
    finally:
        command.close()


async def send_output(line: ChannelSocket, source: OutputSource, asked: StreamRequest) -> None:
    """Pass output on to its end, or until the client is gone."""
    output = source.output()
    try:
        async for channel, data in output:
            if asked.shows(channel):
                await line.write(channel, data)
    except OSError:
        return  # The client is gone, as its line will say.
    finally:
        await output.aclose()


async def wait_for_close(line: ChannelSocket) -> None:
    """Wait until the client hangs up, whatever it says."""
    async for _ in line.pieces():
        pass


async def _hear(line: ChannelSocket, command: ExecProcess) -> None:
    async for channel, data in line.pieces():
        if channel == STDIN:
            await command.write(data)
        elif channel == CLOSE and data[:1] == bytes((STDIN,)):
            command.end_input()
        elif channel == RESIZE and (size := _size(data)) is not None:
            command.resize(*size)


def _size(data: bytes) -> tuple[int, int] | None:
    try:
        said = json.loads(data)
        width, height = int(said["Width"]), int(said["Height"])
    except (ValueError, KeyError, TypeError):
        return None
    return (width, height) if 0 <= width <= MAX_SIDE and 0 <= height <= MAX_SIDE else None


SUCCESS: Mapping[str, Any] = {"metadata": {}, "status": "Success"}


def exit_status(code: int, command: tuple[str, ...]) -> Object:
    """Say how a command ended, as Kubernetes says it."""
    if code == 0:
        return dict(SUCCESS)
    said = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {said}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def exec_failure_status(error: ExecError) -> Object:
    """Say that a command was not run, as Kubernetes says it."""
    return _internal(f"error executing command in container: failed to exec in container: {error}")


def upgrade_failure_status(why: str) -> Object:
    """Say that there is nobody at the other end, as Kubernetes says it."""
    return _internal(f"unable to upgrade connection: {why}")


def _internal(said: str) -> Object:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {said}",
        "reason": "InternalError",
        "details": {"causes": [{"message": said}]},
        "code": 500,
    }
