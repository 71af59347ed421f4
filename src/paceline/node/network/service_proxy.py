"""The way in from outside: listens for services at ports of the machine, and leads callers to ready pods.

What listens is worked out from the services alone (node/network/service_ports.py), so whoever is started after a
kill opens the same ports. A port that is taken is reported on the Service and tried again; its node port works
meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from paceline.apimachinery.meta import Key, Object, key_of, revision_of, uid_of
from paceline.client.event_recorder import Recorder
from paceline.client.http.http1 import Address
from paceline.client.informer import Informer
from paceline.client.interface import SERVICES, Change, Cluster, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Random
from paceline.errors import HostError, NotFound
from paceline.node.network.service_ports import (
    ExternalPort,
    PortAssignment,
    assign_ports,
    backend_order,
    backends_of,
    current_ingress,
    ingress_status,
    is_balanced,
    is_exposed,
    is_source_allowed,
)

# One key: who has which port concerns all services at once, and few have any.
ALL = "all"
# Whoever has a port may give it back without a word.
AGAIN_SECONDS = 10.0
# Most services are reached from inside only: those are not even heard of.
OUTSIDE = Select(fields="spec.type!=ClusterIP")

# Given the address of a caller, tells where it is led to; None: nobody answers.
Lead = Callable[[str], Awaitable[Address | None]]


class Ports(Protocol):
    """Listens at ports of the external address while the agent runs."""

    def open(self, port: int, lead: Lead) -> None:
        """Listen, and lead whoever calls; HostError says why the port cannot be had."""
        ...

    async def close(self, port: int) -> None:
        """Listen no more, and end what is under way."""
        ...


@dataclass(slots=True, kw_only=True)
class ServiceProxy:
    """Follows the services that are reached from outside, and opens and closes ports for them."""

    cluster: Cluster
    chance: Random
    recorder: Recorder
    # Where ports are opened.
    address: str
    ports: Ports
    pods: Mapping[Key, Object]
    # Gives where a port of a pod is dialled, if one of its own programs listens there.
    way_to: Callable[[Object, int], Awaitable[Address | None]]
    queue: WorkQueue[str] = field(init=False)
    _services: Informer = field(init=False)
    # What listens, by its port.
    _open: dict[int, ExternalPort] = field(init=False, default_factory=dict)
    # Why ports that are wanted do not listen.
    _shut: dict[int, str] = field(init=False, default_factory=dict)
    # What was last told of a service, by its uid, so that it is told once.
    _told: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Set up the cache; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance)
        self._services = Informer(
            self.cluster, SERVICES, select=OUTSIDE, chance=self.chance, on_change=self._service_changed
        )

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._services.run())
            await self._services.has_synced.wait()
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, _all: str) -> None:
        """Open what is missing, close what nobody wants any more, and say on each service how it is reached."""
        services = tuple(each for each in self._services.cache.values() if is_exposed(each))
        layout = assign_ports(services, self.address)
        await self._rearrange(layout)
        for service in services:
            await self._report(service, layout)
        uids = {uid_of(each) for each in services}
        self._told = {uid: said for uid, said in self._told.items() if uid in uids}
        if self._shut:
            self.queue.add_after(ALL, AGAIN_SECONDS)

    async def _rearrange(self, layout: PortAssignment) -> None:
        for port in [port for port, entrance in self._open.items() if layout.entrances.get(port) != entrance]:
            del self._open[port]
            await self.ports.close(port)
        self._shut = {}
        for port, entrance in layout.entrances.items():
            if port in self._open:
                continue
            try:
                self.ports.open(port, partial(self.lead, entrance))
            except HostError as error:
                self._shut[port] = str(error)
            else:
                self._open[port] = entrance

    async def lead(self, entrance: ExternalPort, peer: str) -> Address | None:
        """Find a pod for a caller: one that is ready, and of whose programs one listens."""
        service = self._services.cache.get(entrance.service)
        if service is None or not is_source_allowed(service, peer, is_high=entrance.is_high):
            return None
        found = backends_of(service, entrance.number, self.pods.values())
        for pod, number in backend_order(service, peer, found, self.chance.fraction()):
            if place := await self.way_to(pod, number):
                return place
        return None

    async def _report(self, service: Object, layout: PortAssignment) -> None:
        """Write where a service is reached, then tell what stands in the way."""
        why = self._why(service, layout)
        fronts = [each for each in layout.entrances.values() if each.service == key_of(service) and not each.is_high]
        is_there = bool(fronts) and all(each.port in self._open for each in fronts)
        wanted = ingress_status(self.address) if is_there else []
        if is_balanced(service) and current_ingress(service) != wanted:
            await self._write(service, wanted)
        if why and self._told.get(uid_of(service)) != why:
            await self.recorder.record(service, "PortNotOpen", message=why, is_warning=True)
        self._told[uid_of(service)] = why

    async def _write(self, service: Object, ways: list[object]) -> None:
        patch = {
            "metadata": {"resourceVersion": revision_of(service)},
            "status": {"loadBalancer": {"ingress": ways or None}},
        }
        try:
            self._services.observe(await self.cluster.patch(SERVICES, key_of(service), patch, subresource="status"))
        except NotFound:
            # It went meanwhile; its ports are closed when that is heard of.
            return

    def _why(self, service: Object, layout: PortAssignment) -> str:
        mine = [each for each in layout.entrances.values() if each.service == key_of(service)]
        said = [self._shut[each.port] for each in mine if each.port in self._shut]
        if key_of(service) in layout.refused:
            said.append(layout.refused[key_of(service)])
        high = [str(each.port) for each in mine if each.is_high and each.port in self._open]
        if said and high:
            said.append(f"meanwhile it is reached at port {', '.join(high)} of {self.address}")
        return "; ".join(said)

    def _service_changed(self, _change: Change, _old: Object | None, _new: Object | None) -> None:
        self.queue.add(ALL)
