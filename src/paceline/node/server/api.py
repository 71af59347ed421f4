"""The agent's API, shaped like a kubelet's: pods, logs, exec, attach, port proxy and stats."""

import json
import logging
from collections.abc import AsyncGenerator, Mapping, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import container_statuses_of, containers_of
from paceline.client.http.reverse_proxy import Receive, Send
from paceline.effects import Effects
from paceline.errors import BadRequest, HostError, MethodNotAllowed, NotFound, PacelineError
from paceline.node.agent import Agent
from paceline.node.host_info import Folders, Host
from paceline.node.lifecycle.state_files import attempt_numbers
from paceline.node.logs.archive import ArchivedLogs
from paceline.node.logs.logs import LogQuery, log_query, read_log
from paceline.node.network.pod_ports import Listens, PodPortProxy
from paceline.node.runtime import shim
from paceline.node.runtime.exec_types import RunExec
from paceline.node.server.remotecommand import ends_first
from paceline.node.server.stats import Stats
from paceline.node.server.streaming import ContainerNotFound, StreamingServer
from paceline.node.usage.series import SeriesServer

log = logging.getLogger(__name__)

PLAIN, JSON = b"text/plain; charset=utf-8", b"application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubelet:
    """An ASGI app over the agent's pods and their folders."""

    world: Effects
    host: Host
    folders: Folders
    pods: Mapping[Key, Object]
    streaming: StreamingServer
    proxy: PodPortProxy
    stats: Stats
    archived: ArchivedLogs
    series: SeriesServer

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; an error before the first byte becomes a Status, as Kubernetes writes it."""
        if scope["type"] not in {"http", "websocket"}:
            return
        # Not scope["path"]: a quoted slash in a name must not be taken for a separator.
        parts = [unquote(part) for part in scope["raw_path"].decode("latin-1").split("/")[1:]]
        has_started = False

        async def tracked_send(message: MutableMapping[str, Any]) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            if scope["type"] == "websocket":
                await receive()
                await self._serve_websocket(parts, scope, receive, tracked_send)
            else:
                await self._serve(parts, scope, receive, tracked_send)
        except ContainerNotFound as error:
            await _answer(send, error.code, str(error).encode(), PLAIN, is_denial=scope["type"] == "websocket")
        except PacelineError as error:
            body = json.dumps(_status(error)).encode()
            await _answer(send, error.code, body, JSON, is_denial=scope["type"] == "websocket")
        except Exception:
            if has_started:
                # The connection is cut, so that the client does not take a part for the whole.
                raise
            log.exception("request failed", extra={"path": scope["path"]})
            body = json.dumps(_status(HostError("the node agent failed; its log says why"))).encode()
            await _answer(send, HostError.code, body, JSON, is_denial=scope["type"] == "websocket")

    async def _serve(self, parts: list[str], scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        match scope["method"], parts:
            case _, ["proxy", _, _, _, _, *_]:
                await self.proxy.forward(scope, receive, send)
            case _, ["exec" | "attach", _, _, _]:
                self.streaming.check(parts, scope)
                raise BadRequest(_not_upgraded(scope))
            case "GET", ["healthz"]:
                await _answer(send, 200, b"ok", PLAIN)
            case "GET", ["pods"]:
                mine = [pod for pod in self.pods.values() if pod["spec"].get("nodeName") == self.host.name]
                pod_list = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": mine}
                await _answer(send, 200, json.dumps(pod_list).encode(), JSON)
            case "GET", ["stats", "summary" | "series" as form]:
                stats = self.stats.summary() if form == "summary" else await self.series.answer(_query(scope))
                await _answer(send, 200, json.dumps(stats).encode(), JSON)
            case "GET", ["containerLogs", _, _, _] | ["history", _, _, "log"]:
                await _stream(receive, send, self._log(parts, _query(scope)))
            case "GET", ["history", namespace]:
                await _answer(send, 200, json.dumps(self.archived.list(namespace, _query(scope))).encode(), JSON)
            case "GET", _:
                raise NotFound(f"the node agent has no {scope['path']}")
            case method, _:
                raise MethodNotAllowed(f"the node agent does not answer {method}")

    async def _serve_websocket(self, parts: list[str], scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        match parts:
            case ["proxy", _, _, _, _, *_]:
                await self.proxy.forward(scope, receive, send)
            case ["exec" | "attach", _, _, _]:
                await self.streaming.open(parts, scope, receive, send)
            case _:
                raise NotFound(f"the node agent has no WebSocket at {scope['path']}")

    def _log(self, parts: list[str], query: Mapping[str, str]) -> AsyncGenerator[bytes]:
        """Return the log of a container, of an existing or an archived pod."""
        source, namespace, pod, container = parts
        options = log_query(query, self.world.clock.now())
        if source == "history":
            # An archived log does not grow, so following it would never end.
            folder = self.archived.folder(namespace, pod, query)
            return read_log(self.world.files, folder, replace(options, follow=False))
        return read_log(self.world.files, self.log_folder((namespace, pod), container, options), options)

    def log_folder(self, key: Key, container: str, query: LogQuery) -> Path:
        """Return the folder of the attempt whose log is requested; BadRequest if there is none."""
        pod = self.pods.get(key)
        if pod is None:
            raise NotFound(f'pods "{key[1]}" not found')
        names = [str(spec["name"]) for spec in containers_of(pod)]
        if container not in names:
            raise BadRequest(f"container {container} is not valid for pod {key[1]}; it has: {', '.join(names)}")
        numbers = attempt_numbers(self.world, self.folders, uid_of(pod), container)
        attempts = [self.folders.attempt(uid_of(pod), container, number) for number in numbers]
        started = [folder for folder in attempts if self.world.files.exists(folder / shim.STARTED)]
        if query.previous and len(started) < 2:
            raise BadRequest(f'previous terminated container "{container}" in pod "{key[1]}" not found')
        if not started:
            reason = _waiting_reason(pod, container)
            raise BadRequest(f'container "{container}" in pod "{key[1]}" is waiting to start: {reason}')
        return self.archived.archive.check_log(started[-2 if query.previous else -1], key[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFunctions:
    """The functions of the machine that the agent's API needs beside `Effects`."""

    run: RunExec
    listens: Listens
    stats: Stats


def make_port_proxy(agent: Agent, machine: HostFunctions) -> PodPortProxy:
    return PodPortProxy(
        world=agent.world,
        folders=agent.folders,
        pods=agent.pods.cache,
        address=agent.hosts.address,
        listens=machine.listens,
        has_network=agent.hosts.has_network,
    )


def make_app(agent: Agent, machine: HostFunctions) -> Kubelet:
    world, folders, pods = agent.world, agent.folders, agent.pods.cache
    return Kubelet(
        world=world,
        host=agent.host,
        folders=folders,
        pods=pods,
        streaming=StreamingServer(
            world=world, host=agent.host, folders=folders, pods=pods, launch=agent.starter.config_of, run=machine.run
        ),
        proxy=make_port_proxy(agent, machine),
        stats=machine.stats,
        archived=ArchivedLogs(archive=agent.starter.archive),
        series=SeriesServer(
            clock=world.clock,
            host=agent.host,
            archive=agent.starter.archive,
            pods=pods,
            blocking=agent.blocking,
        ),
    )


def _query(scope: Mapping[str, Any]) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


def _not_upgraded(scope: Mapping[str, Any]) -> str:
    upgrade = next((value for name, value in scope["headers"] if name.lower() == b"upgrade"), b"")
    if upgrade.lower().startswith(b"spdy"):
        return "SPDY is not supported; use a client with WebSocket support, such as kubectl 1.31 or later"
    return "Upgrade request required"


def _waiting_reason(pod: Object, container: str) -> str:
    for status in container_statuses_of(pod):
        if status["name"] == container and "waiting" in status["state"]:
            return str(status["state"]["waiting"]["reason"])
    return "ContainerCreating"


def _status(error: PacelineError) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": error.reason,
        "code": error.code,
    }


async def _answer(send: Send, code: int, body: bytes, kind: bytes, *, is_denial: bool = False) -> None:
    prefix = "websocket." if is_denial else ""
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": f"{prefix}http.response.start", "status": code, "headers": headers})
    await send({"type": f"{prefix}http.response.body", "body": body})


async def _stream(receive: Receive, send: Send, chunks: AsyncGenerator[bytes]) -> None:
    """Send chunks until they end or the client disconnects, which only `receive` reports."""
    await ends_first(_pump(send, chunks), _wait_for_disconnect(receive))


async def _pump(send: Send, chunks: AsyncGenerator[bytes]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", PLAIN)]})
    async with aclosing(chunks) as opened:
        async for chunk in opened:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
