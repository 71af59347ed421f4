"""A line to a command in a container: Kubernetes' channels over a WebSocket. One thread may read, another write."""

import json
import ssl
from collections.abc import Iterator
from typing import Self
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from paceline.client.access import Access
from paceline.client.requests import Pairs, Response
from paceline.client.responses import error_of, error_of_status
from paceline.client.tls import tls_context
from paceline.client.transport import Unreached
from paceline.errors import Unavailable
from paceline.objects.meta import Object

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOL = Subprotocol("v5.channel.k8s.io")
CONNECT_SECONDS = 30.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class Line:
    """An open line; leaving it hangs up, which ends the command."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._status: Object | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Give what the command writes, each piece with its channel, to its end."""
        try:
            for message in self._socket:
                data = message.encode() if isinstance(message, str) else message
                if data[:1] == bytes((ERROR,)):
                    self._status = json.loads(data[1:]) if len(data) > 1 else self._status
                elif len(data) > 1:
                    yield data[0], data[1:]
        except ConnectionClosed as error:
            raise Unreached(f"the line to the command was cut: {error}") from error

    def code(self) -> int:
        """Give the command's exit code, once all pieces were read; what kept it from running is raised."""
        status = self._status
        if status is None:
            raise Unreached("the line ended before the command did")
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [each.get("message", "") for each in causes if each.get("reason") == "ExitCode"]
        if codes and codes[0].isdigit():
            return int(codes[0])
        raise error_of_status(status, 500)

    def write(self, data: bytes) -> None:
        """Give the command something to read; one that has ended reads nothing."""
        self._send(bytes((STDIN,)) + data)

    def end_input(self) -> None:
        """Let the command read the end of its input."""
        self._send(bytes((CLOSE, STDIN)))

    def resize(self, width: int, height: int) -> None:
        """Tell how large the terminal is."""
        self._send(bytes((RESIZE,)) + json.dumps({"Width": width, "Height": height}).encode())

    def _send(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except ConnectionClosed:
            return  # Whoever reads the pieces is told.


def open_line(access: Access, path: str, query: Pairs) -> Line:
    """Open a line to a path; what the server says instead is raised as the error that it is."""
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    tls = tls_context(access)
    try:
        socket = connect(
            f"ws{access.server.removeprefix('http')}{path}?{urlencode(query)}",
            ssl=tls,
            additional_headers=headers,
            subprotocols=[PROTOCOL],
            compression=None,
            open_timeout=CONNECT_SECONDS,
            max_size=MAX_MESSAGE_BYTES,
            user_agent_header="paceline",
            proxy=None,
            server_hostname=access.tls_server_name or None,
        )
    except InvalidStatus as error:
        answer = error.response
        raise error_of(Response(status=answer.status_code, body=bytes(answer.body or b""))) from error
    except ssl.SSLError as error:
        raise Unavailable(f"{access.server} cannot be trusted: {error}; is this the right kubeconfig?") from error
    except (OSError, InvalidHandshake) as error:
        raise Unreached(f"{access.server} does not answer: {error}") from error
    return Line(socket)
