"""exec and attach: a pod's container is found here, then its line is passed on to the node's agent."""

from functools import partial
from urllib.parse import quote

from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.handlers.pod_subresources import container_of
from paceline.apiserver.http_types import HttpRequest, ProxiedResponse, Scope
from paceline.apiserver.paths import Target

# Headers for the agent; the others are for this server.
_KEPT = frozenset({b"host", b"upgrade", b"user-agent"})


class ExecHandler:
    """Proxies exec and attach to the node agent."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def open(self, request: HttpRequest, target: Target, scope: Scope) -> ProxiedResponse:
        """Return the proxied response of a container's exec or attach."""
        stored = self._server.store.get(target.key)
        if stored is None:
            raise status_errors.not_found(target.resource, target.name)
        pod = object_strategy.read(stored.value)
        container = container_of(pod, request.query.get("container", ""), target.name)
        if not pod["spec"].get("nodeName"):
            raise status_errors.bad_request(f"pod {target.name} does not have a host assigned")
        if target.subresource == "portforward":
            message = "port-forward is not offered here; kubectl proxy and the proxy of the pod are"
            raise status_errors.bad_request(
                f"{message}: /api/v1/namespaces/{target.namespace}/pods/{target.name}:PORT/proxy/"
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
    """Return the offered subprotocols without the one that contains a token."""
    offered: list[str] = scope.get("subprotocols") or []
    return [protocol for protocol in offered if not protocol.startswith("base64url.bearer.authorization.k8s.io.")]
