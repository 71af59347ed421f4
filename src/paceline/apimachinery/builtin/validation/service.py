"""Rules for services and for the addresses behind them."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from paceline.apimachinery.builtin.validation.container import PROTOCOLS
from paceline.apimachinery.builtin.validation.values import choice_faults, port_faults, port_or_name_faults
from paceline.apimachinery.field_errors import duplicate, forbidden, invalid, required, unsupported
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import label_problem, labels_faults, subdomain_problem
from paceline.apimachinery.scheme import Lookup
from paceline.errors import Fault

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_ADDRESS_RULE = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_MOST_ADDRESSES = 100


def service_faults(service: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a service."""
    return tuple(_service_faults(service.get("spec") or {}))


def _service_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    ports, kind = spec.get("ports") or (), spec.get("type") or "ClusterIP"
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if headless and kind in {"LoadBalancer", "NodePort"}:
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _elsewhere_faults(spec)
    names: set[str] = set()
    for index, port in enumerate(ports):
        yield from _port_faults(port, f"spec.ports[{index}]", names, needs_name=len(ports) > 1)
    yield from labels_faults(spec.get("selector") or {}, "spec.selector")
    yield from choice_faults(spec.get("sessionAffinity"), _AFFINITIES, "spec.sessionAffinity")
    for field in ("clusterIPs", "externalIPs"):
        for index, address in enumerate(spec.get(field) or ()):
            if not (is_address(address) or (field == "clusterIPs" and address in {"", "None"})):
                yield invalid(f"spec.{field}[{index}]", address, _ADDRESS_RULE)
    yield from choice_faults(kind, _TYPES, "spec.type")
    yield from _twice_faults(ports)
    yield from _node_port_faults(ports, kind)


def _node_port_faults(ports: Any, kind: str) -> Iterator[Fault]:
    if kind in {"ClusterIP", "ExternalName"}:
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                hint = f"may not be used when `type` is '{kind}'"
                yield forbidden(f"spec.ports[{index}].nodePort", hint)


def _elsewhere_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    if spec.get("clusterIP"):
        yield forbidden("spec.clusterIPs", "may not be set when type is ExternalName")
    name = str(spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    elif wrong := subdomain_problem(name):
        yield invalid("spec.externalName", name, wrong)


def _port_faults(port: Object, path: str, names: set[str], *, needs_name: bool) -> Iterator[Fault]:
    name = port.get("name") or ""
    if needs_name and not name:
        yield required(f"{path}.name")
    elif name:
        if wrong := label_problem(name):
            yield invalid(f"{path}.name", name, wrong)
        if name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
    yield from port_faults(port.get("port") or 0, f"{path}.port")
    yield from choice_faults(port.get("protocol"), PROTOCOLS, f"{path}.protocol")
    target = port.get("targetPort")
    if target is not None:
        yield from port_or_name_faults(target, f"{path}.targetPort")


def _twice_faults(ports: Any) -> Iterator[Fault]:
    taken: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("port"), port.get("protocol") or "TCP")
        if key in taken:
            twice = {
                "Name": "",
                "Protocol": key[1],
                "AppProtocol": None,
                "Port": key[0],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{index}]", twice)
        taken.add(key)


def is_address(text: str) -> bool:
    """Tell whether text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def service_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a service: its address, while it has one."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if "ExternalName" in (before.get("type"), after.get("type")):
        return ()
    then, now = before.get("clusterIPs") or [], after.get("clusterIPs") or []
    if then[:1] != now[:1]:
        return (invalid("spec.clusterIPs[0]", now, "may not change once set"),)
    return ()


def endpoints_faults(endpoints: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with the addresses behind a service."""
    return tuple(_endpoints_faults(endpoints))


def _endpoints_faults(endpoints: Object) -> Iterator[Fault]:
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        both = [(name, subset.get(name) or ()) for name in ("addresses", "notReadyAddresses")]
        if not any(addresses for _, addresses in both):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for name, addresses in both:
            for at, address in enumerate(addresses):
                if not is_address(address.get("ip") or ""):
                    # Said twice, as Kubernetes does.
                    for rule in (_ADDRESS_RULE, _ADDRESS_RULE.partition(",")[0]):
                        yield invalid(f"{path}.{name}[{at}].ip", address.get("ip") or "", rule)
        ports = subset.get("ports") or ()
        for at, port in enumerate(ports):
            if len(ports) > 1 and not port.get("name"):
                yield required(f"{path}.ports[{at}].name")
            yield from port_faults(port.get("port") or 0, f"{path}.ports[{at}].port")
            yield from choice_faults(port.get("protocol"), PROTOCOLS, f"{path}.ports[{at}].protocol")


def slice_faults(piece: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find what is wrong with a slice of the addresses behind a service."""
    return tuple(_slice_faults(piece))


def _slice_faults(piece: Object) -> Iterator[Fault]:
    kind = piece.get("addressType") or ""
    if not kind:
        yield required("addressType")
    elif kind not in _ADDRESS_TYPES:
        yield unsupported("addressType", kind, _ADDRESS_TYPES)
    for index, endpoint in enumerate(piece.get("endpoints") or ()):
        path, addresses = f"endpoints[{index}].addresses", endpoint.get("addresses") or ()
        if not addresses:
            yield required(path, "must contain at least 1 address")
        for at, address in enumerate(addresses[:_MOST_ADDRESSES]):
            if kind in {"IPv4", "IPv6"} and not is_address(address):
                yield invalid(f"{path}[{at}]", address, _ADDRESS_RULE)
    names: set[str] = set()
    for index, port in enumerate(piece.get("ports") or ()):
        name = port.get("name") or ""
        if name in names:
            yield duplicate(f"ports[{index}].name", name)
        names.add(name)
        yield from choice_faults(port.get("protocol"), PROTOCOLS, f"ports[{index}].protocol")


def slice_change_faults(new: Object, old: Object) -> tuple[Fault, ...]:
    """Find what may not change in a slice."""
    if new.get("addressType") == old.get("addressType"):
        return ()
    return (invalid("addressType", new.get("addressType") or "", "field is immutable"),)
