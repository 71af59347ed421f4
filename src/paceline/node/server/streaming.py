"""exec and attach: a client's line to a command in a container, or to the container's own output."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import container_named
from paceline.effects import Effects, Files, ProcessHandle
from paceline.errors import BadRequest, HostError, NotFound
from paceline.node.host_info import CannotStart, Folders, Host
from paceline.node.lifecycle.state_files import latest_folder, read_attempt
from paceline.node.lifecycle.view import ContainerAttempt
from paceline.node.logs.logs import HEAD, TAG, RotatedLog, end_of_log, entries
from paceline.node.runtime.exec_types import STDERR, STDOUT, ExecError, RunExec, exec_request
from paceline.node.runtime.sandbox import ContainerConfig
from paceline.node.server.remotecommand import (
    PROTOCOLS,
    SUCCESS,
    ChannelSocket,
    Receive,
    Send,
    StreamRequest,
    choose_protocol,
    exec_failure_status,
    send_output,
    serve_command,
    stream_request,
    upgrade_failure_status,
    wait_for_close,
)


class ContainerNotFound(HostError):
    """No such container runs. A kubelet says it in plain text, and kubectl shows it so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingServer:
    """Opens the lines that clients ask for."""

    world: Effects
    host: Host
    folders: Folders
    pods: Mapping[Key, Object]
    launch: Callable[[Object, Object], Awaitable[ContainerConfig]]
    run: RunExec

    async def open(self, parts: list[str], scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a WebSocket whose `websocket.connect` has been received; what is wrong with it is raised before."""
        asked, key, container = self._read(parts, scope)
        protocol = choose_protocol(scope["subprotocols"])
        if protocol is None:
            raise BadRequest(f"none of the offered protocols is spoken here; those are: {', '.join(PROTOCOLS)}")
        line = ChannelSocket(receive, send, protocol)
        try:
            # Found before the client knows that it is heard: it is to see all that comes after.
            output = ContainerOutput(self.world.files, self._running(key, container)[-1])
        except ContainerNotFound as error:
            # The line is opened all the same, as a server in between a client and a kubelet has to.
            await line.open(protocol, asked)
            await line.end(upgrade_failure_status(str(error)))
            return
        await line.open(protocol, asked)
        if parts[0] == "exec":
            await self._exec(line, asked, key, container)
        else:
            await _attach(line, asked, output)

    def check(self, parts: list[str], scope: Mapping[str, Any]) -> tuple[StreamRequest, Key, str]:
        """Read what is asked for, and see that its container runs."""
        asked, key, container = self._read(parts, scope)
        self._running(key, container)
        return asked, key, container

    def _read(self, parts: list[str], scope: Mapping[str, Any]) -> tuple[StreamRequest, Key, str]:
        what, namespace, pod, container = parts
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        asked, key = stream_request(pairs), (namespace, pod)
        if what == "exec" and not asked.command:
            raise BadRequest("you must specify at least one command for the container")
        if what == "attach" and asked.stdin:
            said = f"container {container} has no input to attach to: containers are given none here"
            raise BadRequest(f"{said}; leave out -i, or use exec")
        return asked, key, container

    async def _exec(self, line: ChannelSocket, asked: StreamRequest, key: Key, container: str) -> None:
        try:
            pod, spec, who, _ = self._running(key, container)
            launch = await self.launch(pod, spec)
            order = exec_request(launch, self.host, shim=who, argv=asked.command, has_terminal=asked.tty)
            command = await self.run(replace(order, has_input=asked.stdin))
        except CannotStart as error:
            await line.end(exec_failure_status(ExecError(str(error))))
        except (ExecError, ContainerNotFound) as error:
            await line.end(exec_failure_status(ExecError(str(error))))
        else:
            await serve_command(line, command, asked)

    def _running(self, key: Key, container: str) -> tuple[Object, Object, ProcessHandle, Path]:
        pod = self.pods.get(key)
        if pod is None:
            raise NotFound(f'pods "{key[1]}" not found')
        spec = container_named(pod, container)
        folder = latest_folder(self.world, self.folders, uid_of(pod), container) if spec else None
        found = read_attempt(self.world.files, self.world.processes, folder) if folder else None
        who = _keeper(found)
        if spec is None or folder is None or who is None:
            raise ContainerNotFound(f'container not found ("{container}")')
        return pod, spec, who, folder


def _keeper(found: ContainerAttempt | None) -> ProcessHandle | None:
    """Find the shim of a container that runs."""
    if found is None or found.ended is not None or not found.has_shim or found.started is None:
        return None
    return found.started.identity


async def _attach(line: ChannelSocket, asked: StreamRequest, output: "ContainerOutput") -> None:
    async with asyncio.TaskGroup() as group:
        showing = group.create_task(send_output(line, output, asked))
        hearing = group.create_task(wait_for_close(line))
        await asyncio.wait((showing, hearing), return_when=asyncio.FIRST_COMPLETED)
        hearing.cancel()
        if not showing.done():
            showing.cancel()
            return
    await line.end(dict(SUCCESS))


class ContainerOutput:
    """What a container writes from now on to its end, told apart by where it writes it to."""

    def __init__(self, files: Files, folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._start = end_of_log(RotatedLog(files, folder))

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Give the pieces, several lines in one where they go to the same place."""
        async for whole in entries(self._files, self._folder, self._start, follow=True):
            channel, pieces = 0, b""
            for entry in whole.split(b"\n")[:-1]:
                goes_to = STDOUT if entry[31:37] == b"stdout" else STDERR
                if goes_to != channel and pieces:
                    yield channel, pieces
                    pieces = b""
                channel = goes_to
                pieces += entry[HEAD:] + b"\n" * (entry[TAG : TAG + 1] == b"F")
            if pieces:
                yield channel, pieces
