"""Decide which ports of the machine lead to which Services and pods, from the stored objects alone.

A NodePort Service has a node port for each of its ports. A LoadBalancer Service also has its own port numbers at the
external address, all of them or none. No two Services share a number: the one whose status has it keeps it, otherwise
the older one gets it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any
from zlib import crc32

from paceline.apimachinery.meta import Key, Object, is_deleting, key_of, labels_of, namespace_of
from paceline.apimachinery.pods import is_ready, target_port

BALANCED = "LoadBalancer"
TYPES = frozenset({BALANCED, "NodePort"})
TCP = "TCP"

Port = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPort:
    """A port of the machine that leads to a port of a Service."""

    port: int
    service: Key
    # The Service's own number of the port.
    number: int
    is_node_port: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAssignment:
    """All external ports by number, and why some Services do not get their own numbers."""

    ports: Mapping[int, ExternalPort] = field(default_factory=dict)
    refused: Mapping[Key, str] = field(default_factory=dict)


def assign_ports(services: Iterable[Object], address: str) -> PortAssignment:
    exposed = [service for service in services if is_exposed(service)]
    assigned = {port.port: port for service in exposed for port in _node_ports(service)}
    refused = {key_of(service): message for service in exposed if (message := _unsupported_port(service))}
    balanced = (service for service in exposed if is_balanced(service) and key_of(service) not in refused)
    for service in sorted(balanced, key=lambda service: _precedence(service, address)):
        ports = tuple(_balancer_ports(service))
        conflict = next((message for port in ports if (message := _conflict(port, assigned, address))), "")
        if conflict:
            refused[key_of(service)] = conflict
        else:
            assigned |= {port.port: port for port in ports}
    return PortAssignment(ports=assigned, refused=refused)


def is_exposed(service: Object) -> bool:
    spec = service.get("spec") or {}
    return spec.get("type") in TYPES and bool(spec.get("selector")) and not is_deleting(service)


def is_balanced(service: Object) -> bool:
    """Return whether we are the load balancer of a Service: with a loadBalancerClass another one is."""
    spec = service.get("spec") or {}
    return spec.get("type") == BALANCED and not spec.get("loadBalancerClass")


def current_ingress(service: Object) -> list[Any]:
    return list(((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ())


def ingress_status(address: str) -> list[Any]:
    """Return the ingress of an address, as a Service's status has it."""
    return [{"ip": address, "ipMode": "VIP"}]


def backends_of(service: Object, number: int, pods: Iterable[Object]) -> tuple[tuple[Object, int], ...]:
    """Return the pods behind a port of a Service, each with its own port number."""
    spec = service["spec"]
    port = next((port for port in _ports(spec) if port["port"] == number), None)
    if port is None:
        return ()
    backends = (
        (pod, target_port(port, pod) or 0)
        for pod in pods
        if namespace_of(pod) == namespace_of(service)
        and spec["selector"].items() <= labels_of(pod).items()
        and _is_backend(pod, includes_unready=bool(spec.get("publishNotReadyAddresses")))
    )
    return tuple((pod, target) for pod, target in backends if target)


def backend_order(
    service: Object, peer: str, backends: tuple[tuple[Object, int], ...], fraction: float
) -> list[tuple[Object, int]]:
    """Return the backends in the order to try for a client; with sessionAffinity the first is always the same."""
    if not backends:
        return []
    has_affinity = service["spec"].get("sessionAffinity") == "ClientIP"
    first = (crc32(peer.encode()) if has_affinity else int(fraction * len(backends))) % len(backends)
    return [*backends[first:], *backends[:first]]


def is_source_allowed(service: Object, peer: str, *, is_node_port: bool) -> bool:
    """Return whether the loadBalancerSourceRanges of a Service, if there are any, include the client."""
    ranges = (service.get("spec") or {}).get("loadBalancerSourceRanges") or ()
    if not ranges or (is_node_port and not is_balanced(service)):
        return True
    return any(ip_address(peer) in ip_network(str(source).strip(), strict=False) for source in ranges)


def _node_ports(service: Object) -> Iterator[ExternalPort]:
    for port in _ports(service["spec"]):
        if port.get("nodePort"):
            yield ExternalPort(port=port["nodePort"], service=key_of(service), number=port["port"], is_node_port=True)


def _balancer_ports(service: Object) -> Iterator[ExternalPort]:
    for port in _ports(service["spec"]):
        yield ExternalPort(port=port["port"], service=key_of(service), number=port["port"], is_node_port=False)


def _conflict(port: ExternalPort, assigned: Mapping[int, ExternalPort], address: str) -> str:
    """Return a message that names the Service that has the port; empty if the port is free."""
    owner = assigned.get(port.port)
    if owner is None:
        return ""
    message = f"port {port.port} of {address} is used by service {'/'.join(owner.service)}"
    return f"{message}; this service gets it when that one is deleted"


def _unsupported_port(service: Object) -> str:
    others = [port for port in service["spec"].get("ports") or () if (port.get("protocol") or TCP) != TCP]
    return f"port {others[0]['port']}/{others[0]['protocol']} is not supported: only TCP is" if others else ""


def _ports(spec: Mapping[str, Any]) -> Iterator[Port]:
    return (port for port in spec.get("ports") or () if (port.get("protocol") or TCP) == TCP)


def _precedence(service: Object, address: str) -> tuple[bool, str, Key]:
    """Return the order in which Services get their ports: first those that have them, then the older ones."""
    has_address = current_ingress(service) == ingress_status(address)
    return not has_address, str(service["metadata"].get("creationTimestamp") or ""), key_of(service)


def _is_backend(pod: Object, *, includes_unready: bool) -> bool:
    if (pod.get("status") or {}).get("phase") != "Running" or is_deleting(pod):
        return False
    return includes_unready or is_ready(pod)
