"""Allocates the cluster IPs and node ports of Services.

The stored Services are the record of what is allocated. Allocations of a write that is still in progress are held here
until its request ends, with or without success.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import msgspec

from paceline.apimachinery.builtin.validation.service import is_address
from paceline.apimachinery.field_errors import FieldFault, invalid
from paceline.apimachinery.meta import Object, uid_of
from paceline.errors import Fault
from paceline.store.store import Store

ADDRESSES = IPv4Network("10.96.0.0/16")
NODE_PORTS = range(30_000, 32_768)

_SERVICES = "/core/services/"
_HEADLESS = "None"
_BALANCED = "LoadBalancer"
# Types with node ports.
_NODE_PORT_TYPES = frozenset({_BALANCED, "NodePort"})
_NOT_IN_RANGE = "the provided network does not match the current range"


class _Port(msgspec.Struct):
    node_port: int = msgspec.field(name="nodePort", default=0)


class _Spec(msgspec.Struct):
    addresses: list[str] = msgspec.field(name="clusterIPs", default_factory=list)
    ports: list[_Port] | None = None


class _ServiceMetadata(msgspec.Struct):
    uid: str = ""


class _Service(msgspec.Struct):
    metadata: _ServiceMetadata
    spec: _Spec


# Decodes only these fields.
_READER = msgspec.json.Decoder(_Service)


@dataclass(slots=True)
class ServiceAllocator:
    """Gives every Service its own cluster IP and node ports."""

    store: Store
    # By IP or port: the uid of its Service, and the task of the request; bounded by the number of requests.
    _pending: dict[str | int, tuple[str, asyncio.Task[Any] | None]] = field(default_factory=dict)

    def allocate(self, service: Object, old: Object | None, *, dry_run: bool = False) -> tuple[Fault, ...]:
        """Allocate IP and ports of a Service in place, and return field errors.

        Like Kubernetes, a dry run does not check whether an IP is free or a port is in the range.
        """
        spec, old_spec = service.get("spec") or {}, (old or {}).get("spec") or {}
        _release(service, old_spec)
        if spec.get("type") == "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if old is not None:
                    spec.pop(name, None)
            return ()
        _carry(spec, old_spec)
        address = _address_of(spec)
        if address == _HEADLESS:
            _families(spec)
            return ()
        faults: list[Fault] = []
        if address != _address_of(old_spec) or not address:
            faults.extend(self._allocate_ip(spec, uid_of(service), dry_run=dry_run))
        _families(spec)
        faults.extend(self._allocate_ports(spec, old_spec, uid_of(service), dry_run=dry_run))
        return tuple(faults)

    def _allocate_ip(self, spec: Object, uid: str, *, dry_run: bool) -> Iterator[Fault]:
        address = _address_of(spec)
        if address:
            faults = tuple(self._address_faults(address, uid, dry_run=dry_run))
            yield from faults
            if faults:
                return
        else:
            taken = self._taken()
            # Start at a place that depends on the uid, so that concurrent writes rarely choose the same one.
            begin = _start_index(uid)
            size = ADDRESSES.num_addresses - 2
            for step in range(size):
                address = str(ADDRESSES[1 + (begin + step) % size])
                if taken.get(address, uid) == uid:
                    break
            else:
                hint = "failed to allocate a serviceIP: range is full"
                yield FieldFault("spec.clusterIPs", [], hint)
                return
        self._reserve(address, uid)
        spec["clusterIP"], spec["clusterIPs"] = address, [address]

    def _address_faults(self, address: str, uid: str, *, dry_run: bool) -> Iterator[Fault]:
        if not is_address(address):
            # The validation of Services reports this.
            return
        start = f"failed to allocate IP {address}:"
        if ":" in address or IPv4Address(address) not in ADDRESSES:
            yield invalid("spec.clusterIPs", [address], f"{start} {_NOT_IN_RANGE}")
        elif not dry_run and self._taken().get(address, uid) != uid:
            yield invalid("spec.clusterIPs", [address], f"{start} provided IP is already allocated")

    def _allocate_ports(self, spec: Object, old_spec: Mapping[str, Any], uid: str, *, dry_run: bool) -> Iterator[Fault]:
        if spec.get("type") not in _NODE_PORT_TYPES or spec.get("allocateLoadBalancerNodePorts") is False:
            return
        current = {port.get("nodePort") for port in old_spec.get("ports") or ()}
        taken = self._taken()
        begin = _start_index(uid) % len(NODE_PORTS)
        # This also keeps clusters on one machine apart. A port that was taken is not looked at again.
        order = iter((*NODE_PORTS[begin:], *NODE_PORTS[:begin]))
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort")
            if number and number not in current:
                path = f"spec.ports[{index}].nodePort"
                if number not in NODE_PORTS and not dry_run:
                    valid = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
                    hint = f"provided port is not in the valid range. The range of valid ports is {valid}"
                    yield invalid(path, number, hint)
                    continue
                if taken.get(number, uid) != uid:
                    yield invalid(path, number, "provided port is already allocated")
                    continue
            elif not number:
                number = next(
                    (candidate for candidate in order if taken.get(candidate, uid) == uid and candidate not in current),
                    None,
                )
                if number is None:
                    yield invalid(f"spec.ports[{index}].nodePort", 0, "failed to allocate a nodePort: range is full")
                    return
                port["nodePort"] = number
            taken[number] = uid
            current.add(number)
            self._reserve(number, uid)

    def _taken(self) -> dict[str | int, str]:
        for value in [value for value, (_, task) in self._pending.items() if task is not None and task.done()]:
            del self._pending[value]
        taken = {value: uid for value, (uid, _) in self._pending.items()}
        for stored in self.store.list(_SERVICES):
            service = _READER.decode(stored.value)
            allocated: list[str | int] = [*service.spec.addresses]
            allocated.extend(port.node_port for port in service.spec.ports or ())
            for item in allocated:
                if item and item != _HEADLESS:
                    taken[item] = service.metadata.uid
                    # The stored Service is the record now.
                    self._pending.pop(item, None)
        return taken

    def _reserve(self, value: str | int, uid: str) -> None:
        self._pending[value] = (uid, asyncio.current_task())


def _start_index(uid: str) -> int:
    return int.from_bytes(sha256(uid.encode()).digest()[:4])


def _address_of(spec: Mapping[str, Any]) -> str:
    return str(spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), ""))


def _carry(spec: Object, old_spec: Mapping[str, Any]) -> None:
    """Keep the IP and ports of the old Service where the new one does not specify them."""
    if old_spec.get("type") == "ExternalName":
        return
    if not _address_of(spec):
        for name in ("clusterIP", "clusterIPs"):
            if old_spec.get(name):
                spec[name] = old_spec[name]
    if spec.get("type") == old_spec.get("type"):
        had = {(port.get("port"), port.get("protocol")): port.get("nodePort") for port in old_spec.get("ports") or ()}
        for port in spec.get("ports") or ():
            number = had.get((port.get("port"), port.get("protocol")))
            if number and not port.get("nodePort"):
                port["nodePort"] = number


def _release(service: Object, old_spec: Mapping[str, Any]) -> None:
    """Remove the fields of the old type that the new one does not have, unless they were changed."""
    spec = service.get("spec") or {}
    kind, old_type = spec.get("type"), old_spec.get("type")
    if old_type == _BALANCED and kind != _BALANCED:
        service["status"] = {**(service.get("status") or {}), "loadBalancer": {}}
        _drop(spec, old_spec, "allocateLoadBalancerNodePorts")
    if old_type in _NODE_PORT_TYPES and kind not in _NODE_PORT_TYPES:
        _drop(spec, old_spec, "externalTrafficPolicy")
        if _node_ports(spec) == _node_ports(old_spec):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)


def _drop(spec: Object, old_spec: Mapping[str, Any], field: str) -> None:
    if spec.get(field) == old_spec.get(field):
        spec.pop(field, None)


def _node_ports(spec: Mapping[str, Any]) -> set[int]:
    return {int(port.get("nodePort") or 0) for port in spec.get("ports") or ()}


def _families(spec: Object) -> None:
    address = _address_of(spec)
    spec.setdefault("clusterIP", address)
    spec.setdefault("clusterIPs", [address])
    if address == _HEADLESS and not spec.get("selector"):
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
