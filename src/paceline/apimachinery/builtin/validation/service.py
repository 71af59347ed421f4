"""Rules for services, endpoints and endpoint slices."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any

from paceline.apimachinery.builtin.validation.values import (
    IMMUTABLE,
    PROTOCOLS,
    choice_faults,
    name_faults,
    once,
    port_faults,
    port_or_name_faults,
)
from paceline.apimachinery.field_errors import forbidden, invalid, required
from paceline.apimachinery.meta import Object
from paceline.apimachinery.name_validation import label_problem, labels_faults, subdomain_problem
from paceline.errors import Fault

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_ADDRESS_RULE = "must be an IP address, such as 10.9.8.7 or 2001:db8::ffff"
_MOST_ADDRESSES = 100


def is_address(text: str) -> bool:
    """Return whether text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def service_faults(service: Object) -> Iterator[Fault]:
    """Yield the faults of a service."""
    spec = service.get("spec") or {}
    ports, kind = spec.get("ports") or (), spec.get("type") or "ClusterIP"
    headless = spec.get("clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if headless and kind in {"LoadBalancer", "NodePort"}:
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name_faults(spec)
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
    yield from _ports_faults(ports, kind)


def _external_name_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    if spec.get("clusterIP"):
        yield forbidden("spec.clusterIPs", "may not be set when type is ExternalName")
    name = str(spec.get("externalName") or "").removesuffix(".")
    yield from name_faults(name, "spec.externalName", subdomain_problem)


def _port_faults(port: Object, path: str, names: set[str], *, needs_name: bool) -> Iterator[Fault]:
    name = port.get("name") or ""
    yield from name_faults(name, f"{path}.name", label_problem, is_required=needs_name)
    if name:
        yield from once(name, f"{path}.name", names)
    yield from port_faults(port.get("port") or 0, f"{path}.port")
    yield from choice_faults(port.get("protocol"), PROTOCOLS, f"{path}.protocol")
    target = port.get("targetPort")
    if target is not None:
        yield from port_or_name_faults(target, f"{path}.targetPort")


def _ports_faults(ports: Any, kind: str) -> Iterator[Fault]:
    taken: set[str] = set()
    for index, port in enumerate(ports):
        yield from once(f"{port.get('port')}/{port.get('protocol') or 'TCP'}", f"spec.ports[{index}]", taken)
    if kind in {"ClusterIP", "ExternalName"}:
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", f"may not be used when `type` is '{kind}'")


def service_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of a service: its address may not change."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    if "ExternalName" not in (old_spec.get("type"), new_spec.get("type")):
        old_addresses, addresses = old_spec.get("clusterIPs") or [], new_spec.get("clusterIPs") or []
        if old_addresses[:1] != addresses[:1]:
            yield invalid("spec.clusterIPs[0]", addresses, "may not change once set")


def endpoints_faults(endpoints: Object) -> Iterator[Fault]:
    """Yield the faults of endpoints."""
    for index, subset in enumerate(endpoints.get("subsets") or ()):
        path = f"subsets[{index}]"
        fields = [(name, subset.get(name) or ()) for name in ("addresses", "notReadyAddresses")]
        if not any(addresses for _, addresses in fields):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for name, addresses in fields:
            for position, address in enumerate(addresses):
                if not is_address(address.get("ip") or ""):
                    yield invalid(f"{path}.{name}[{position}].ip", address.get("ip") or "", _ADDRESS_RULE)
        ports = subset.get("ports") or ()
        for position, port in enumerate(ports):
            where = f"{path}.ports[{position}]"
            if len(ports) > 1 and not port.get("name"):
                yield required(f"{where}.name")
            yield from port_faults(port.get("port") or 0, f"{where}.port")
            yield from choice_faults(port.get("protocol"), PROTOCOLS, f"{where}.protocol")


def slice_faults(endpoint_slice: Object) -> Iterator[Fault]:
    """Yield the faults of an endpoint slice."""
    kind = endpoint_slice.get("addressType") or ""
    if not kind:
        yield required("addressType")
    yield from choice_faults(kind, _ADDRESS_TYPES, "addressType")
    for index, endpoint in enumerate(endpoint_slice.get("endpoints") or ()):
        path, addresses = f"endpoints[{index}].addresses", endpoint.get("addresses") or ()
        if not addresses:
            yield required(path, "must contain at least 1 address")
        for position, address in enumerate(addresses[:_MOST_ADDRESSES]):
            if kind in {"IPv4", "IPv6"} and not is_address(address):
                yield invalid(f"{path}[{position}]", address, _ADDRESS_RULE)
    names: set[str] = set()
    for index, port in enumerate(endpoint_slice.get("ports") or ()):
        yield from once(port.get("name") or "", f"ports[{index}].name", names)
        yield from choice_faults(port.get("protocol"), PROTOCOLS, f"ports[{index}].protocol")


def slice_change_faults(new: Object, old: Object) -> Iterator[Fault]:
    """Yield the faults of an update of an endpoint slice."""
    if new.get("addressType") != old.get("addressType"):
        yield invalid("addressType", new.get("addressType") or "", IMMUTABLE)
