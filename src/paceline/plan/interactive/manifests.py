"""The manifests of a TensorBoard or Notebook (pod, Service, token Secret), and its external URL."""

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import IPv6Address
from typing import Any

from paceline.apimachinery.meta import Object, owned_metadata
from paceline.apimachinery.pods import CONFINED
from paceline.model import well_known_labels
from paceline.model.interactive import PORT_NAME, InteractiveWorkload
from paceline.plan.job.manifests import owner_labels

# Annotation with the digest of the spec: a pod with another digest is replaced.
DIGEST = "paceline.dev/spec-digest"
# The user of confined pods: an ordinary one that owns nothing.
CONFINED_USER = 65532


def pod_manifest(window: InteractiveWorkload, *, owner: Mapping[str, Any], is_proxied: bool = False) -> Object:
    """Return the pod; `is_proxied` if its pages are reached through the service proxy only."""
    metadata = window.template.get("metadata") or {}
    queued = {well_known_labels.QUEUE: window.queue, well_known_labels.QUEUE_GROUP: window.name} if window.queue else {}
    annotations = (
        {well_known_labels.GANG_SIZE: "1", well_known_labels.QUEUE_PRIORITY: str(window.priority)}
        if window.queue
        else {}
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **_metadata(window, window.pod, owner),
            "labels": {**(metadata.get("labels") or {}), **owner_labels(window.name, owner), **queued},
            "annotations": {**(metadata.get("annotations") or {}), **annotations, DIGEST: window.digest},
        },
        "spec": _proxied(window) if is_proxied and window.proxied_command else dict(window.template["spec"]),
    }


def _proxied(window: InteractiveWorkload) -> Object:
    spec = window.template["spec"]
    first, *others = spec["containers"]
    return {**spec, "containers": [{**first, "command": list(window.proxied_command)}, *others]}


def confined_pod(pod: Object) -> Object:
    """Return the pod as the strictest Pod Security level wants it: no privileges, and the user of our image."""
    user = {"runAsNonRoot": True, "runAsUser": CONFINED_USER}
    containers = [
        {**container, "securityContext": {**(container.get("securityContext") or {}), **CONFINED, **user}}
        for container in pod["spec"]["containers"]
    ]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def door_manifest(window: InteractiveWorkload, *, owner: Mapping[str, Any]) -> Object:
    """Return the Service of the pod."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(window, window.service, owner),
        "spec": {
            "type": window.service_type,
            "selector": owner_labels(window.name, owner),
            "ports": [{"name": PORT_NAME, "port": 80, "targetPort": window.port}],
        },
    }


def token_manifest(window: InteractiveWorkload, token: str, *, owner: Mapping[str, Any]) -> Object:
    """Return the Secret with the access token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": _metadata(window, window.secret, owner),
        "data": {"token": b64encode(token.encode()).decode()},
    }


def _metadata(window: InteractiveWorkload, name: str, owner: Mapping[str, Any]) -> Object:
    return owned_metadata(name, window.namespace, owner_labels(window.name, owner), owner)


BALANCED, HIGH = "LoadBalancer", "NodePort"
# The default port of http.
USUAL_PORT = 80


def type_of(service: Object) -> str:
    """Return the type of a service."""
    return str((service.get("spec") or {}).get("type") or "ClusterIP")


def address_of(service: Object, node: str) -> str:
    """Return where the first port of a service is reached; `node` is an address at which its high port listens, if any.

    Nothing while nobody has given it an address, and for a service that is reached from inside only.
    """
    port: dict[str, Any] = next(iter((service.get("spec") or {}).get("ports") or ()), {})
    ingresses = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    kind, high = type_of(service), int(port.get("nodePort") or 0)
    for ingress in ingresses if kind == BALANCED else ():
        return _written(str(ingress.get("ip") or ingress.get("hostname")), int(port.get("port") or USUAL_PORT))
    return _written(node, high) if kind in (BALANCED, HIGH) and node and high else ""


def _written(host: str, port: int) -> str:
    shown = f"[{host}]" if _is_long(host) else host
    return f"http://{shown}/" if port == USUAL_PORT else f"http://{shown}:{port}/"


def _is_long(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True
