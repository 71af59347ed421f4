"""The node agent's own API, shaped like a kubelet's, over its socket."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from paceline.apimachinery.meta import Object, name_of
from paceline.client.http.cluster import HttpTransport
from paceline.client.http.http1 import Address, Broken
from paceline.client.http.reverse_proxy import ProxyRequest, Receive, Send, join, kept, pass_on
from paceline.client.http.transport import Unreachable
from paceline.client.requests import Request, stream
from paceline.client.responses import read_object
from paceline.client.rest_config import Access
from paceline.effects import Random
from paceline.errors import BadRequest, ServiceUnavailable


class AgentSocket:
    """Reaches the node agent of this machine."""

    def __init__(self, path: Path, chance: Random) -> None:
        self._path = path
        self._transport = HttpTransport(Access(server="http://node-agent"), chance, socket=path)

    async def logs(self, namespace: str, pod: Object, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Read the log of one container of a pod, as it grows if `query` says follow."""
        container = query.get("container") or _only_container(pod)
        parts = (quote(part, safe="") for part in (namespace, name_of(pod), container))
        parameters = {name: value for name, value in query.items() if name != "container"}
        request = stream("/".join(("/containerLogs", *parts)), parameters)
        try:
            async with aclosing(self._transport.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except Unreachable as error:
            raise self._absent(error) from error

    async def pass_on(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or a WebSocket that has arrived, to the path that the scope names."""
        query = scope["query_string"].decode("latin-1")
        headers = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        passing = ProxyRequest(
            method=scope.get("method", "GET"),
            target=scope["raw_path"].decode("ascii") + ("?" if query else "") + query,
            headers=kept(headers),
            protocols=tuple(scope.get("subprotocols") or ()),
        )
        relay = join if scope["type"] == "websocket" else pass_on
        try:
            await relay(Address(socket=self._path), passing, receive, send)
        except Unreachable as error:
            raise self._absent(error) from error

    async def stats(self) -> Object:
        """Read what the node and its pods use."""
        try:
            return read_object(await self._transport.send(Request(method="GET", path="/stats/summary")))
        except Unreachable as error:
            raise self._absent(error) from error

    def _absent(self, error: Unreachable) -> ServiceUnavailable:
        if isinstance(error.__cause__, Broken):
            return ServiceUnavailable(
                "the node agent broke off its answer; if it does so again, the cluster's log says why"
            )
        return ServiceUnavailable(
            f"the node agent is not running: nothing answers on {self._path}; `paceline up` starts it"
        )

    async def close(self) -> None:
        """Hang up all connections."""
        await self._transport.close()


def _only_container(pod: Object) -> str:
    containers = (pod.get("spec") or {}).get("containers") or []
    names = [str(container.get("name")) for container in containers]
    if len(names) != 1:
        choices = ", ".join(names) or "none"
        raise BadRequest(f"pod {name_of(pod)} has several containers; name one of: {choices}")
    return names[0]
