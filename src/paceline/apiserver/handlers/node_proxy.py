"""proxy of a node: what its agent tells about itself, as a kubelet would, and has kept of pods that are gone."""

from functools import partial
from urllib.parse import unquote

from paceline.apiserver import status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.http_types import HttpRequest, ProxiedResponse, Receive, Scope, Send
from paceline.apiserver.paths import Target
from paceline.errors import MethodNotAllowed

# Length of /api/v1/nodes/NAME/proxy, which the agent's path follows.
NODE_PREFIX_PARTS = 5
# Readable paths of an agent; the others have subresources of their own, with their own authorization.
READABLE_PATHS = frozenset({"healthz", "history", "pods", "stats"})


def is_node_proxy(parts: tuple[str, ...]) -> bool:
    return parts[:3] == ("api", "v1", "nodes") and parts[4:NODE_PREFIX_PARTS] == ("proxy",)


class NodeProxyHandler:
    """Proxies read requests to a node agent."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def open(self, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse:
        """Return the proxied response of an agent."""
        if self._server.store.get(target.key) is None:
            raise status_errors.not_found(target.resource, target.name)
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        tail = raw.lstrip("/").split("/")[NODE_PREFIX_PARTS:]
        if request.method != "GET" or scope["type"] != "http":
            raise MethodNotAllowed("an agent is only read through the proxy of its node")
        if not tail or unquote(tail[0]) not in READABLE_PATHS:
            raise status_errors.no_such_path()
        onward = {**scope, "raw_path": f"/{'/'.join(tail)}".encode(), "headers": []}
        return ProxiedResponse(run=partial(self._pass_on, onward))

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._server.nodes.pass_on(scope, receive, send)
