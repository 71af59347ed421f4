"""A line to a command in a container: Kubernetes' channels over a WebSocket. One thread may read, another write.

Neither touches the socket: OpenSSL must not be read and written by two threads at once, so a third one does both.
"""

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import CancelledError
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

from paceline.apimachinery.meta import Object
from paceline.client.http.transport import Unreachable, tls_context, translate_errors
from paceline.client.requests import Pairs, Response
from paceline.client.responses import error_of, error_of_status
from paceline.client.rest_config import Access

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOL = Subprotocol("v5.channel.k8s.io")
CONNECT_SECONDS = 30.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


T = TypeVar("T")


class LoopThread:
    """A thread with an event loop, which does one thing after the other for those who wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="line", daemon=True)
        self._thread.start()

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Have something done, and give what came of it; CancelledError when it was not done any more."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
        except RuntimeError as error:
            coroutine.close()
            raise CancelledError from error

    def stop(self) -> None:
        """Do nothing any more."""
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._loop.close()

    def _end(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        # Once more around, in which those who wait for them are told.
        self._loop.call_soon(self._loop.call_soon, self._loop.stop)


class ExecStream:
    """An open line; leaving it hangs up, which ends the command."""

    def __init__(self, socket: ClientConnection, hand: LoopThread) -> None:
        self._socket = socket
        self._hand = hand
        self._status: Object | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hand.do(self._socket.close())
        self._hand.stop()

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Yield what the command writes, each piece with its channel, to its end."""
        try:
            while True:
                message = self._hand.do(self._socket.recv())
                data = message.encode() if isinstance(message, str) else message
                if data[:1] == bytes((ERROR,)):
                    self._status = json.loads(data[1:]) if len(data) > 1 else self._status
                elif len(data) > 1:
                    yield data[0], data[1:]
        except ConnectionClosedOK:
            return
        except ConnectionClosed as error:
            raise Unreachable(f"the line to the command was cut: {error}") from error

    def code(self) -> int:
        """Return the command's exit code, once all pieces were read; what kept it from running is raised."""
        status = self._status
        if status is None:
            raise Unreachable("the line ended before the command did")
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [cause.get("message", "") for cause in causes if cause.get("reason") == "ExitCode"]
        if codes and codes[0].isdigit():
            return int(codes[0])
        raise error_of_status(status, 500)

    def write(self, data: bytes) -> None:
        """Return the command something to read; one that has ended reads nothing."""
        self._send(bytes((STDIN,)) + data)

    def end_input(self) -> None:
        """Let the command read the end of its input."""
        self._send(bytes((CLOSE, STDIN)))

    def resize(self, width: int, height: int) -> None:
        """Send the size of the terminal."""
        self._send(bytes((RESIZE,)) + json.dumps({"Width": width, "Height": height}).encode())

    def _send(self, data: bytes) -> None:
        try:
            self._hand.do(self._socket.send(data))
        except (ConnectionClosed, CancelledError):
            return  # Whoever reads the pieces is told.


def open_line(access: Access, path: str, query: Pairs) -> ExecStream:
    """Open a line to a path; what the server says instead is raised as the error that it is."""
    hand = LoopThread()
    try:
        with translate_errors(access.server, InvalidHandshake):
            return ExecStream(hand.do(_connected(access, f"{path}?{urlencode(query)}")), hand)
    except BaseException:
        hand.stop()
        raise


async def _connected(access: Access, path: str) -> ClientConnection:
    try:
        return await _connect(access, path)
    except InvalidStatus as error:
        answer = error.response
        raise error_of(Response(status=answer.status_code, body=bytes(answer.body or b""))) from error


async def _connect(access: Access, path: str) -> ClientConnection:
    return await connect(
        f"ws{access.server.removeprefix('http')}{path}",
        ssl=tls_context(access),
        additional_headers={"Authorization": f"Bearer {access.token}"} if access.token else {},
        subprotocols=[PROTOCOL],
        compression=None,
        open_timeout=CONNECT_SECONDS,
        max_size=MAX_MESSAGE_BYTES,
        user_agent_header="paceline",
        proxy=None,
        server_hostname=access.tls_server_name or None,
    )
