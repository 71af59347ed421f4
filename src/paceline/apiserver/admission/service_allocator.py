"""What a service gets of what all services share: an address of the cluster, ports of the machines.

What is given out is what the stored services hold, so nothing has to be remembered; what was given to a service whose
write is still under way is kept here until the request is over, however it ends.
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
# The types that have a port of every machine.
_HIGH = frozenset({_BALANCED, "NodePort"})
_NOT_IN_RANGE = "the provided network does not match the current range"


class _Port(msgspec.Struct):
    node_port: int = msgspec.field(name="nodePort", default=0)


class _Spec(msgspec.Struct):
    addresses: list[str] = msgspec.field(name="clusterIPs", default_factory=list)
    ports: list[_Port] | None = None


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Service(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


# Reads what is shared and skips the rest.
_READER = msgspec.json.Decoder(_Service)


@dataclass(slots=True)
class ServiceAllocator:
    """Gives every service its own address and ports."""

    store: Store
    # By address or port: the uid of who has it, and the request that asked; hence as many as there are requests.
    _given: dict[str | int, tuple[str, asyncio.Task[Any] | None]] = field(default_factory=dict)

    def give(self, service: Object, old: Object | None, *, dry_run: bool = False) -> tuple[Fault, ...]:
        """Complete a service in place with what it shares with others; say what it cannot have.

        A dry run does not ask whether an address is free nor whether a port may be given out, as in Kubernetes.
        """
        spec, before = service.get("spec") or {}, (old or {}).get("spec") or {}
        _let_go(service, before)
        if spec.get("type") == "ExternalName":
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if old is not None:
                    spec.pop(name, None)
            return ()
        _carry(spec, before)
        wanted = _address_of(spec)
        if wanted == _HEADLESS:
            _families(spec)
            return ()
        faults: list[Fault] = []
        if wanted != _address_of(before) or not wanted:
            faults.extend(self._give_address(spec, uid_of(service), dry_run=dry_run))
        _families(spec)
        faults.extend(self._give_ports(spec, before, uid_of(service), dry_run=dry_run))
        return tuple(faults)

    def _give_address(self, spec: Object, uid: str, *, dry_run: bool) -> Iterator[Fault]:
        wanted = _address_of(spec)
        if wanted:
            faults = tuple(self._address_faults(wanted, uid, dry_run=dry_run))
            yield from faults
            if faults:
                return
        else:
            taken = self._taken()
            # Begins where only this uid begins, so that two writes at a time rarely want the same.
            begin = _lot(uid)
            size = ADDRESSES.num_addresses - 2
            for step in range(size):
                wanted = str(ADDRESSES[1 + (begin + step) % size])
                if taken.get(wanted, uid) == uid:
                    break
            else:
                hint = "failed to allocate a serviceIP: range is full"
                yield FieldFault("spec.clusterIPs", [], hint)
                return
        self._note(wanted, uid)
        spec["clusterIP"], spec["clusterIPs"] = wanted, [wanted]

    def _address_faults(self, wanted: str, uid: str, *, dry_run: bool) -> Iterator[Fault]:
        if not is_address(wanted):
            # The rules for services say it better.
            return
        start = f"failed to allocate IP {wanted}:"
        if ":" in wanted or IPv4Address(wanted) not in ADDRESSES:
            yield invalid("spec.clusterIPs", [wanted], f"{start} {_NOT_IN_RANGE}")
        elif not dry_run and self._taken().get(wanted, uid) != uid:
            yield invalid("spec.clusterIPs", [wanted], f"{start} provided IP is already allocated")

    def _give_ports(self, spec: Object, before: Mapping[str, Any], uid: str, *, dry_run: bool) -> Iterator[Fault]:
        if spec.get("type") not in _HIGH or spec.get("allocateLoadBalancerNodePorts") is False:
            return
        has = {port.get("nodePort") for port in before.get("ports") or ()}
        taken = self._taken()
        begin = _lot(uid) % len(NODE_PORTS)
        # Clusters that share a machine begin at different places, too. What was looked at is not free again meanwhile.
        order = iter((*NODE_PORTS[begin:], *NODE_PORTS[:begin]))
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort")
            if number and number not in has:
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
                number = next((each for each in order if taken.get(each, uid) == uid and each not in has), None)
                if number is None:
                    yield invalid(f"spec.ports[{index}].nodePort", 0, "failed to allocate a nodePort: range is full")
                    return
                port["nodePort"] = number
            taken[number] = uid
            has.add(number)
            self._note(number, uid)

    def _taken(self) -> dict[str | int, str]:
        for what in [what for what, (_, task) in self._given.items() if task is not None and task.done()]:
            del self._given[what]
        taken = {what: uid for what, (uid, _) in self._given.items()}
        for stored in self.store.list(_SERVICES):
            service = _READER.decode(stored.value)
            held: list[str | int] = [*service.spec.addresses]
            held.extend(port.node_port for port in service.spec.ports or ())
            for each in held:
                if each and each != _HEADLESS:
                    taken[each] = service.metadata.uid
                    # Stored by now: that is remembered well enough.
                    self._given.pop(each, None)
        return taken

    def _note(self, what: str | int, uid: str) -> None:
        self._given[what] = (uid, asyncio.current_task())


def _lot(uid: str) -> int:
    return int.from_bytes(sha256(uid.encode()).digest()[:4])


def _address_of(spec: Mapping[str, Any]) -> str:
    return str(spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), ""))


def _carry(spec: Object, before: Mapping[str, Any]) -> None:
    """Let a service keep what it has when its author does not speak of it."""
    if before.get("type") == "ExternalName":
        return
    if not _address_of(spec):
        for name in ("clusterIP", "clusterIPs"):
            if before.get(name):
                spec[name] = before[name]
    if spec.get("type") == before.get("type"):
        had = {(port.get("port"), port.get("protocol")): port.get("nodePort") for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            number = had.get((port.get("port"), port.get("protocol")))
            if number and not port.get("nodePort"):
                port["nodePort"] = number


def _let_go(service: Object, before: Mapping[str, Any]) -> None:
    """Take off what a service had for its old type, unless its author says something new of it."""
    spec = service.get("spec") or {}
    kind, was = spec.get("type"), before.get("type")
    if was == _BALANCED and kind != _BALANCED:
        service["status"] = {**(service.get("status") or {}), "loadBalancer": {}}
        _drop(spec, before, "allocateLoadBalancerNodePorts")
    if was in _HIGH and kind not in _HIGH:
        _drop(spec, before, "externalTrafficPolicy")
        if _high_ports(spec) == _high_ports(before):
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)


def _drop(spec: Object, before: Mapping[str, Any], field: str) -> None:
    if spec.get(field) == before.get(field):
        spec.pop(field, None)


def _high_ports(spec: Mapping[str, Any]) -> set[int]:
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
