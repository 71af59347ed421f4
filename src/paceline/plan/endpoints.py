"""The Endpoints and EndpointSlices of a service."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.apimachinery.meta import Object, is_deleting, labels_of, name_of, namespace_of, owned_by, uid_of
from paceline.apimachinery.pods import is_ready, is_terminal, target_port

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
OLD_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGER = "paceline-endpoints"
_HEADLESS = "service.kubernetes.io/headless"
# The maximum number of addresses per slice.
MOST_ENDPOINTS = 100

# One port of a service as one pod has it: name, number, protocol.
Port = tuple[str, int, str]


def selects(service: Object, pod: Object) -> bool:
    """Return whether the selector of a service matches a pod."""
    spec = service.get("spec") or {}
    selector, labels = spec.get("selector") or {}, labels_of(pod)
    is_here = namespace_of(service) == namespace_of(pod)
    return is_here and bool(selector) and all(labels.get(name) == value for name, value in selector.items())


def has_selector(service: Object) -> bool:
    """Return whether a service has a selector; the addresses of others are written by their author."""
    spec = service.get("spec") or {}
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def endpoints_of(service: Object, pods: Iterable[Object]) -> Object:
    """Return the Endpoints of a service."""
    spec = service["spec"]
    subsets: dict[tuple[Port, ...], tuple[list[Object], list[Object]]] = {}
    for pod in _reachable(service, pods):
        ready, other = subsets.setdefault(_ports(spec, pod), ([], []))
        to = ready if is_ready(pod) or spec.get("publishNotReadyAddresses") else other
        to.append({"ip": pod["status"]["podIP"], **_about(service, pod)})
    labels = {**labels_of(service), OLD_MANAGED_BY: MANAGER}
    if spec.get("clusterIP") == "None":
        labels[_HEADLESS] = ""
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": name_of(service), "namespace": namespace_of(service), "labels": labels},
        "subsets": [_subset(ports, *both) for ports, both in sorted(subsets.items())],
    }


def _subset(ports: tuple[Port, ...], ready: list[Object], other: list[Object]) -> Object:
    listed = [{**({"name": name} if name else {}), "port": number, "protocol": sort} for name, number, sort in ports]
    parts = {"addresses": ready, "notReadyAddresses": other, "ports": listed}
    return {name: part for name, part in parts.items() if part}


def slices_of(service: Object, pods: Iterable[Object]) -> tuple[Object, ...]:
    """Return the EndpointSlices of a service, each with one set of ports."""
    by_ports: dict[tuple[Port, ...], list[Object]] = {}
    for pod in _reachable(service, pods):
        by_ports.setdefault(_ports(service["spec"], pod), []).append(_endpoint(service, pod))
    if not by_ports:
        by_ports[()] = []
    pieces = [
        (ports, endpoints[start : start + MOST_ENDPOINTS])
        for ports, endpoints in sorted(by_ports.items())
        for start in range(0, max(len(endpoints), 1), MOST_ENDPOINTS)
    ]
    return tuple(_slice(service, index, *piece) for index, piece in enumerate(pieces))


def _slice(service: Object, index: int, ports: tuple[Port, ...], endpoints: list[Object]) -> Object:
    labels = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: MANAGER}
    if service["spec"].get("clusterIP") == "None":
        labels[_HEADLESS] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            # Computed, so that a restarted controller finds the existing slice.
            "name": f"{name_of(service)}-{index}",
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": labels,
            "ownerReferences": [owned_by(service)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": name, "port": number, "protocol": sort} for name, number, sort in ports],
    }


def _endpoint(service: Object, pod: Object) -> Object:
    ready, going = is_ready(pod), is_deleting(pod)
    shown = bool(service["spec"].get("publishNotReadyAddresses"))
    conditions = {"ready": shown or (ready and not going), "serving": ready, "terminating": going}
    return {"addresses": [pod["status"]["podIP"]], "conditions": conditions, **_about(service, pod)}


def _about(service: Object, pod: Object) -> Object:
    spec = pod["spec"]
    details: Object = {
        "targetRef": {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
    }
    if spec.get("nodeName"):
        details["nodeName"] = spec["nodeName"]
    if spec.get("hostname") and spec.get("subdomain") == name_of(service):
        details["hostname"] = spec["hostname"]
    return details


def _reachable(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the pods that have an address and may answer, in a stable order."""
    shown = bool(service["spec"].get("publishNotReadyAddresses"))
    candidates = [
        pod
        for pod in pods
        if selects(service, pod)
        and (pod.get("status") or {}).get("podIP")
        and not is_terminal(pod)
        and (shown or not is_deleting(pod))
    ]
    return sorted(candidates, key=name_of)


def _ports(spec: Mapping[str, Any], pod: Object) -> tuple[Port, ...]:
    """Return the ports of a service resolved for a pod, without those that the pod does not have."""
    return tuple(
        (port.get("name") or "", number, port.get("protocol") or "TCP")
        for port in spec.get("ports") or ()
        if (number := target_port(port, pod))
    )
