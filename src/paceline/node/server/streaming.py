"""Serve exec and attach: connect a client to a command in a container, or to the container's own output."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import container_named
from paceline.client.http.reverse_proxy import Receive, Send
from paceline.effects import Effects, Files, ProcessHandle
from paceline.errors import BadRequest, HostError, NotFound
from paceline.node.host_info import CannotStart, Folders, Host
from paceline.node.lifecycle.state_files import latest_folder, read_attempt
from paceline.node.logs.logs import HEAD, TAG, RotatedLog, end_of_log, entries
from paceline.node.runtime.exec_types import STDERR, STDOUT, ExecError, RunExec
from paceline.node.runtime.sandbox import ContainerConfig, exec_request
from paceline.node.server.remotecommand import (
    PROTOCOLS,
    SUCCESS,
    ChannelSocket,
    StreamRequest,
    choose_protocol,
    ends_first,
    internal_error_status,
    send_output,
    serve_command,
    stream_request,
    wait_for_close,
)


class ContainerNotFound(HostError):
    """No such container runs. A kubelet answers this in plain text, which kubectl prints as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingServer:
    world: Effects
    host: Host
    folders: Folders
    pods: Mapping[Key, Object]
    launch: Callable[[Object, Object], Awaitable[ContainerConfig]]
    run: RunExec

    async def open(self, parts: list[str], scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a WebSocket after its `websocket.connect`; errors of the request are raised before it is accepted."""
        request, key, container = self._read(parts, scope)
        protocol = choose_protocol(scope["subprotocols"])
        if protocol is None:
            raise BadRequest(f"none of the offered protocols is supported; use one of: {', '.join(PROTOCOLS)}")
        client = ChannelSocket(receive, send, protocol)
        try:
            # Opened before the client is accepted, so that the client sees all output from then on.
            output = ContainerOutput(self.world.files, self._running(key, container)[-1])
        except ContainerNotFound as error:
            # The connection is accepted all the same, as the API server between client and kubelet requires.
            await client.open(protocol, request)
            await client.end(internal_error_status(f"unable to upgrade connection: {error}"))
            return
        await client.open(protocol, request)
        if parts[0] == "exec":
            await self._exec(client, request, key, container)
        else:
            await _attach(client, request, output)

    def check(self, parts: list[str], scope: Mapping[str, Any]) -> None:
        """Raise the error of a request that is invalid, or whose container does not run."""
        _, key, container = self._read(parts, scope)
        self._running(key, container)

    def _read(self, parts: list[str], scope: Mapping[str, Any]) -> tuple[StreamRequest, Key, str]:
        verb, namespace, pod, container = parts
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        request, key = stream_request(pairs), (namespace, pod)
        if verb == "exec" and not request.command:
            raise BadRequest("you must specify at least one command for the container")
        if verb == "attach" and request.stdin:
            raise BadRequest(f"container {container} has no stdin to attach to; leave out -i, or use exec")
        return request, key, container

    async def _exec(self, client: ChannelSocket, request: StreamRequest, key: Key, container: str) -> None:
        try:
            pod, spec, shim, _ = self._running(key, container)
            launch = await self.launch(pod, spec)
            order = exec_request(launch, self.host, shim=shim, argv=request.command, has_terminal=request.tty)
            command = await self.run(replace(order, has_input=request.stdin))
        except (CannotStart, ExecError, ContainerNotFound) as error:
            problem = f"error executing command in container: failed to exec in container: {error}"
            await client.end(internal_error_status(problem))
        else:
            await serve_command(client, command, request)

    def _running(self, key: Key, container: str) -> tuple[Object, Object, ProcessHandle, Path]:
        pod = self.pods.get(key)
        if pod is None:
            raise NotFound(f'pods "{key[1]}" not found')
        spec = container_named(pod, container)
        folder = latest_folder(self.world, self.folders, uid_of(pod), container) if spec else None
        attempt = read_attempt(self.world.files, self.world.processes, folder) if folder else None
        if spec is None or folder is None or attempt is None or not attempt.is_running or attempt.shim is None:
            raise ContainerNotFound(f'container not found ("{container}")')
        return pod, spec, attempt.shim, folder


async def _attach(client: ChannelSocket, request: StreamRequest, output: "ContainerOutput") -> None:
    if await ends_first(send_output(client, output, request), wait_for_close(client)):
        await client.end(dict(SUCCESS))


class ContainerOutput:
    """The output of a container from now to its end, by channel."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._start = end_of_log(RotatedLog(files, folder))

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield channel and data, joining subsequent lines of the same channel."""
        async for chunk in entries(self._files, self._folder, self._start, follow=True):
            channel, data = 0, b""
            for entry in chunk.split(b"\n")[:-1]:
                target = STDOUT if entry[31:37] == b"stdout" else STDERR
                if target != channel and data:
                    yield channel, data
                    data = b""
                channel = target
                data += entry[HEAD:] + b"\n" * (entry[TAG : TAG + 1] == b"F")
            if data:
                yield channel, data
