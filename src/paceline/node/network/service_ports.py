"""Which ports of the machine lead to which services, and to which of their pods: decided from what is stored alone.

A service of type NodePort has a high port for each of its own; one of type LoadBalancer has those and its own numbers
too, all of them or none. Two services cannot have the same number: who is told to have it keeps it, else the older one.
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
    """A port of the machine that leads to one of a service's."""

    port: int
    service: Key
    # The service's own number of it.
    number: int
    # Whether it is of the high ones, which no two services share.
    is_high: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAssignment:
    """All entrances by their port, and why some services have none of their own numbers."""

    entrances: Mapping[int, ExternalPort] = field(default_factory=dict)
    refused: Mapping[Key, str] = field(default_factory=dict)


def assign_ports(services: Iterable[Object], address: str) -> PortAssignment:
    """Give every service its entrances."""
    there = [each for each in services if is_exposed(each)]
    entrances = {each.port: each for service in there for each in _high(service)}
    refused = {key_of(each): why for each in there if (why := _unled(each))}
    wanting = (each for each in there if is_balanced(each) and key_of(each) not in refused)
    for service in sorted(wanting, key=lambda each: (not is_told(each, address), _age(each))):
        fronts = tuple(_fronts(service))
        why = next((why for each in fronts if (why := _taken(each, entrances, address))), "")
        if why:
            refused[key_of(service)] = why
        else:
            entrances |= {each.port: each for each in fronts}
    return PortAssignment(entrances=entrances, refused=refused)


def is_exposed(service: Object) -> bool:
    """Tell whether a service has ports of the machine."""
    spec = service.get("spec") or {}
    return spec.get("type") in TYPES and bool(spec.get("selector")) and not is_deleting(service)


def is_balanced(service: Object) -> bool:
    """Tell whether a service has its own numbers at the external address; others may balance it (its class says so)."""
    spec = service.get("spec") or {}
    return spec.get("type") == BALANCED and not spec.get("loadBalancerClass")


def is_told(service: Object, address: str) -> bool:
    """Tell whether its status says that it is reached at this address."""
    return current_ingress(service) == ingress_status(address)


def current_ingress(service: Object) -> list[Any]:
    """Give where a service's status says that it is reached."""
    found = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return list(found)


def ingress_status(address: str) -> list[Any]:
    """Write an address as a service's status has it."""
    return [{"ip": address, "ipMode": "VIP"}]


def backends_of(service: Object, number: int, pods: Iterable[Object]) -> tuple[tuple[Object, int], ...]:
    """Give the pods that answer for a port of a service, each with its own port."""
    spec = service["spec"]
    port = next((each for each in _ports(spec) if each["port"] == number), None)
    if port is None:
        return ()
    found = (
        (pod, target_port(port, pod) or 0)
        for pod in pods
        if namespace_of(pod) == namespace_of(service)
        and spec["selector"].items() <= labels_of(pod).items()
        and _answers(pod, is_shown=bool(spec.get("publishNotReadyAddresses")))
    )
    return tuple((pod, target) for pod, target in found if target)


def backend_order(
    service: Object, peer: str, found: tuple[tuple[Object, int], ...], dice: float
) -> list[tuple[Object, int]]:
    """Give whom to lead a caller to, and whom if that one does not answer; always the same if its author says so."""
    if not found:
        return []
    has_affinity = service["spec"].get("sessionAffinity") == "ClientIP"
    first = (crc32(peer.encode()) if has_affinity else int(dice * len(found))) % len(found)
    return [*found[first:], *found[:first]]


def is_source_allowed(service: Object, peer: str, *, is_high: bool) -> bool:
    """Tell whether a caller may come in: an author may name the networks from which a balanced service is reached."""
    ranges = (service.get("spec") or {}).get("loadBalancerSourceRanges") or ()
    if not ranges or (is_high and not is_balanced(service)):
        return True
    return any(ip_address(peer) in ip_network(str(each).strip(), strict=False) for each in ranges)


def _high(service: Object) -> Iterator[ExternalPort]:
    for port in _ports(service["spec"]):
        if port.get("nodePort"):
            yield ExternalPort(port=port["nodePort"], service=key_of(service), number=port["port"], is_high=True)


def _fronts(service: Object) -> Iterator[ExternalPort]:
    for port in _ports(service["spec"]):
        yield ExternalPort(port=port["port"], service=key_of(service), number=port["port"], is_high=False)


def _taken(front: ExternalPort, entrances: Mapping[int, ExternalPort], address: str) -> str:
    """Say who has a port already; nothing when nobody does."""
    holder = entrances.get(front.port)
    if holder is None:
        return ""
    return f"port {front.port} of {address} leads to service {'/'.join(holder.service)}, and here when that has gone"


def _unled(service: Object) -> str:
    others = [port for port in service["spec"].get("ports") or () if (port.get("protocol") or TCP) != TCP]
    return f"port {others[0]['port']}/{others[0]['protocol']} is not led to: only TCP is" if others else ""


def _ports(spec: Mapping[str, Any]) -> Iterator[Port]:
    return (port for port in spec.get("ports") or () if (port.get("protocol") or TCP) == TCP)


def _age(service: Object) -> tuple[str, Key]:
    return str(service["metadata"].get("creationTimestamp") or ""), key_of(service)


def _answers(pod: Object, *, is_shown: bool) -> bool:
    if (pod.get("status") or {}).get("phase") != "Running" or is_deleting(pod):
        return False
    return is_shown or is_ready(pod)
