"""The way to a port of a pod, for the API server's proxy and for callers from outside.

A pod with a network of its own is reached at its address as long as something of it runs: a later pod of the same name
may have the address then. Where pods share the machine's network, each under a loopback address of its own, an address
alone does not fence anything: whatever listens on all of the machine's addresses answers there too. The door therefore
opens only where one of the pod's own processes listens, at the pod's address or at all of them: exactly what could be
reached if the pod had a network of its own, whether the pod declares the port or not. Everything else is refused in
the words of a port on which nobody listens. The address is the one that this agent gave, never what the pod's status
says.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Key, Object, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.client.http.http1 import Address
from paceline.client.http.reverse_proxy import ProxyRequest, Receive, Send, join, kept, pass_on
from paceline.client.http.transport import Unreachable
from paceline.effects import Effects, ProcessHandle
from paceline.errors import BadRequest, NotFound, ServiceUnavailable
from paceline.node.host_info import Folders
from paceline.node.lifecycle.state_files import latest_attempts

SCHEMES = ("http", "https")
MAX_PORT = 65535
# /proxy/SCHEME/NAMESPACE/POD/PORT, and the rest of the path.
PARTS = 6

# Tells whether a process of one of these shims listens at the address and port.
Listens = Callable[[tuple[ProcessHandle, ...], str, int], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPortProxy:
    """Passes requests on to the pods of this machine."""

    world: Effects
    folders: Folders
    pods: Mapping[Key, Object]
    address: Callable[[Object], str]
    listens: Listens
    # Tells whether a pod has a network of its own.
    is_apart: Callable[[Object], bool] = lambda _pod: False

    async def pass_on(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request or a WebSocket on; ServiceUnavailable when nobody there answers."""
        place, target = await self._find(scope)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        passing = ProxyRequest(
            method=scope.get("method", "GET"),
            target=target,
            headers=kept(headers),
            protocols=tuple(scope.get("subprotocols") or ()),
        )
        relay = join if scope["type"] == "websocket" else pass_on
        try:
            await relay(place, passing, receive, send)
        except Unreachable as error:
            raise ServiceUnavailable(f"error trying to reach service: {error}") from error

    async def way_to(self, pod: Object, port: int) -> Address | None:
        """Give where a port of a pod is dialled; None when none of its own programs listens there."""
        place = Address(address=self.address(pod), port=port)
        return place if await self._is_open(pod, place) else None

    async def _find(self, scope: Mapping[str, Any]) -> tuple[Address, str]:
        _, _, scheme, namespace, name, port, *rest = scope["raw_path"].decode("ascii").split("/", PARTS)
        pod = self.pods.get((namespace, name))
        if pod is None:
            raise NotFound(f'pods "{name}" not found')
        if scheme not in SCHEMES or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
            raise BadRequest(f"{scheme}:{port} is no way to a pod: the port is a number from 1 to {MAX_PORT}")
        place = Address(address=self.address(pod), port=int(port), is_tls=scheme == "https")
        if not await self._is_open(pod, place):
            raise ServiceUnavailable(f"error trying to reach service: dial tcp {place}: connect: connection refused")
        query = scope["query_string"].decode("latin-1")
        return place, f"/{''.join(rest)}{'?' if query else ''}{query}"

    async def _is_open(self, pod: Object, place: Address) -> bool:
        shims = self._shims(pod)
        if self.is_apart(pod):
            return bool(shims)
        return await self.listens(shims, place.address, place.port)

    def _shims(self, pod: Object) -> tuple[ProcessHandle, ...]:
        names = [str(each["name"]) for each in containers_of(pod)]
        tries = latest_attempts(self.world, self.folders, uid_of(pod), names).values()
        return tuple(
            each.started.identity for each in tries if each.has_shim and each.started and each.started.identity
        )
