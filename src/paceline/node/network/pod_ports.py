"""Forward requests to ports of pods, for the API server's proxy and for the service proxy.

A pod with its own network is reached at its address only while one of its containers runs, because a later pod of the
same name may get the same address. Where pods share the machine's network, each with its own loopback address, the
address alone does not isolate anything: a program that listens on all addresses of the machine answers there too.
The proxy therefore connects only if one of the pod's own processes listens, at the pod's address or at all addresses.
That is exactly what could be reached if the pod had its own network, whether the pod declares the port or not.
Everything else is refused like a closed port. The address is the one that this agent assigned, never the one in the
pod's status.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Key, Object
from paceline.client.http.http1 import Address
from paceline.client.http.reverse_proxy import ProxyRequest, Receive, Send, join, kept, pass_on
from paceline.client.http.transport import Unreachable
from paceline.effects import Effects, ProcessHandle
from paceline.errors import BadRequest, NotFound, ServiceUnavailable
from paceline.node.host_info import Folders
from paceline.node.lifecycle.state_files import running_shims

SCHEMES = ("http", "https")
MAX_PORT = 65535
# /proxy/SCHEME/NAMESPACE/POD/PORT, and the path at the pod.
PARTS = 6

# Returns whether a process below one of these shims listens at the address and port.
Listens = Callable[[tuple[ProcessHandle, ...], str, int], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPortProxy:
    """Forwards requests to the pods of this machine."""

    world: Effects
    folders: Folders
    pods: Mapping[Key, Object]
    address: Callable[[Object], str]
    listens: Listens
    # Returns whether a pod has its own network.
    has_network: Callable[[Object], bool] = lambda _pod: False

    async def forward(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Forward a request or a WebSocket; ServiceUnavailable if the pod does not answer."""
        address, target = await self._target(scope)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        request = ProxyRequest(
            method=scope.get("method", "GET"),
            target=target,
            headers=kept(headers),
            protocols=tuple(scope.get("subprotocols") or ()),
        )
        relay = join if scope["type"] == "websocket" else pass_on
        try:
            await relay(address, request, receive, send)
        except Unreachable as error:
            raise ServiceUnavailable(f"error trying to reach service: {error}") from error

    async def address_of(self, pod: Object, port: int) -> Address | None:
        """Return the address of a port of a pod; None if none of the pod's processes listens there."""
        address = Address(address=self.address(pod), port=port)
        return address if await self._is_open(pod, address) else None

    async def _target(self, scope: Mapping[str, Any]) -> tuple[Address, str]:
        _, _, scheme, namespace, name, port, *path = scope["raw_path"].decode("ascii").split("/", PARTS)
        pod = self.pods.get((namespace, name))
        if pod is None:
            raise NotFound(f'pods "{name}" not found')
        if scheme not in SCHEMES or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
            raise BadRequest(f"{scheme}:{port} is not valid: use http or https and a port from 1 to {MAX_PORT}")
        address = Address(address=self.address(pod), port=int(port), is_tls=scheme == "https")
        if not await self._is_open(pod, address):
            raise ServiceUnavailable(f"error trying to reach service: dial tcp {address}: connect: connection refused")
        query = scope["query_string"].decode("latin-1")
        return address, f"/{''.join(path)}{'?' if query else ''}{query}"

    async def _is_open(self, pod: Object, address: Address) -> bool:
        shims = tuple(running_shims(self.world, self.folders, pod).values())
        if self.has_network(pod):
            return bool(shims)
        return await self.listens(shims, address.address, address.port)
