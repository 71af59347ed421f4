"""exec and attach: a pod's container is found here, then its line is passed on to the node's agent."""

from functools import partial
from urllib.parse import quote

from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.handlers.pod_subresources import container_of
from paceline.apiserver.http_types import HttpRequest, ProxiedResponse, Scope
from paceline.apiserver.paths import Target

# Headers that the agent needs; the others concern this server only.
_KEPT = frozenset({b"host", b"upgrade", b"user-agent"})


class ExecHandler:
    """Opens the lines to containers."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def open(self, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse:
        """Find the container that is meant, and the way to it; on a wrong one say what Kubernetes says."""
        stored = self._server.store.get(target.key)
        if stored is None:
            raise status_errors.not_found(target.resource, target.name)
        pod = object_strategy.read(stored.value)
        container = container_of(pod, request.query.get("container", ""), target.name)
        if not pod["spec"].get("nodeName"):
            raise status_errors.bad_request(f"pod {target.name} does not have a host assigned")
        if target.subresource == "portforward":
            said = "port-forward is not offered here; kubectl proxy and the proxy of the pod are"
            raise status_errors.bad_request(
                f"{said}: /api/v1/namespaces/{target.namespace}/pods/{target.name}:PORT/proxy/"
            )
        parts = (target.subresource, target.namespace, target.name, container)
        onward = {
            **scope,
            "raw_path": "".join(f"/{quote(part, safe='')}" for part in parts).encode(),
            "headers": [(name, value) for name, value in scope["headers"] if name.lower() in _KEPT],
            "subprotocols": without_token_protocol(scope),
        }
        return ProxiedResponse(run=partial(self._server.nodes.pass_on, onward))


def without_token_protocol(scope: Scope) -> list[str]:
    """Give the protocols that a WebSocket offers, without the one that hides a token."""
    offered: list[str] = scope.get("subprotocols") or []
    return [each for each in offered if not each.startswith("base64url.bearer.authorization.k8s.io.")]
