"""The service proxy: listens on ports of the machine for Services, and forwards connections to ready pods.

Which ports are open follows from the Services alone (node/network/service_ports.py), so an agent that starts after a
kill opens the same ports. A port that another program uses is reported on the Service and tried again; its node port
works meanwhile.
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

# A single key: the assignment of ports concerns all Services at once, and few of them have any.
ALL = "all"
# How often a port that another program uses is tried again.
RETRY_SECONDS = 10.0
# ClusterIP Services, which are most, have no ports of the machine and are not watched.
EXTERNAL = Select(fields="spec.type!=ClusterIP")

# Returns where to forward a connection, given the client's address; None refuses it.
Route = Callable[[str], Awaitable[Address | None]]


class Ports(Protocol):
    """Listens on ports of the external address while the agent runs."""

    def open(self, port: int, route: Route) -> None:
        """Listen, and forward every connection; HostError says why the port cannot be opened."""
        ...

    async def close(self, port: int) -> None:
        """Stop listening, and end open connections."""
        ...


@dataclass(slots=True, kw_only=True)
class ServiceProxy:
    """Watches Services with external ports, and opens and closes ports for them."""

    cluster: Cluster
    chance: Random
    recorder: Recorder
    # The external address, on which ports are opened.
    address: str
    ports: Ports
    pods: Mapping[Key, Object]
    # Returns the address of a port of a pod, if one of the pod's processes listens there.
    address_of: Callable[[Object, int], Awaitable[Address | None]]
    queue: WorkQueue[str] = field(init=False)
    _services: Informer = field(init=False)
    _open: dict[int, ExternalPort] = field(init=False, default_factory=dict)
    # Why assigned ports are not open.
    _failures: dict[int, str] = field(init=False, default_factory=dict)
    # The last message that was recorded for each Service, by uid, so that it is recorded once.
    _reported: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.queue = WorkQueue(self.chance)
        self._services = Informer(
            self.cluster, SERVICES, select=EXTERNAL, chance=self.chance, on_change=self._service_changed
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._services.run())
            await self._services.has_synced.wait()
            await run(self.queue, self.reconcile, workers=1)

    async def reconcile(self, _all: str) -> None:
        """Open and close ports as assigned, and write every Service's ingress."""
        services = tuple(service for service in self._services.cache.values() if is_exposed(service))
        assignment = assign_ports(services, self.address)
        await self._apply(assignment)
        for service in services:
            await self._report(service, assignment)
        uids = {uid_of(service) for service in services}
        self._reported = {uid: message for uid, message in self._reported.items() if uid in uids}
        if self._failures:
            self.queue.add_after(ALL, RETRY_SECONDS)

    async def _apply(self, assignment: PortAssignment) -> None:
        for number in [number for number, port in self._open.items() if assignment.ports.get(number) != port]:
            del self._open[number]
            await self.ports.close(number)
        self._failures = {}
        for number, port in assignment.ports.items():
            if number in self._open:
                continue
            try:
                self.ports.open(number, partial(self.route, port))
            except HostError as error:
                self._failures[number] = str(error)
            else:
                self._open[number] = port

    async def route(self, port: ExternalPort, peer: str) -> Address | None:
        """Return the address of a ready pod for a client; None if there is none, or the client is not allowed."""
        service = self._services.cache.get(port.service)
        if service is None or not is_source_allowed(service, peer, is_node_port=port.is_node_port):
            return None
        backends = backends_of(service, port.number, self.pods.values())
        for pod, number in backend_order(service, peer, backends, self.chance.fraction()):
            if address := await self.address_of(pod, number):
                return address
        return None

    async def _report(self, service: Object, assignment: PortAssignment) -> None:
        """Write a Service's ingress, then record an event if a port is not open."""
        message = self._problem(service, assignment)
        mine = [port for port in assignment.ports.values() if port.service == key_of(service) and not port.is_node_port]
        is_reachable = bool(mine) and all(port.port in self._open for port in mine)
        ingress = ingress_status(self.address) if is_reachable else []
        if is_balanced(service) and current_ingress(service) != ingress:
            await self._write(service, ingress)
        if message and self._reported.get(uid_of(service)) != message:
            await self.recorder.record(service, "PortNotOpen", message=message, is_warning=True)
        self._reported[uid_of(service)] = message

    async def _write(self, service: Object, ingress: list[object]) -> None:
        patch = {
            "metadata": {"resourceVersion": revision_of(service)},
            "status": {"loadBalancer": {"ingress": ingress or None}},
        }
        try:
            self._services.observe(await self.cluster.patch(SERVICES, key_of(service), patch, subresource="status"))
        except NotFound:
            # Deleted meanwhile: its ports are closed when the watch reports that.
            return

    def _problem(self, service: Object, assignment: PortAssignment) -> str:
        mine = [port for port in assignment.ports.values() if port.service == key_of(service)]
        messages = [self._failures[port.port] for port in mine if port.port in self._failures]
        if key_of(service) in assignment.refused:
            messages.append(assignment.refused[key_of(service)])
        node_ports = [str(port.port) for port in mine if port.is_node_port and port.port in self._open]
        if messages and node_ports:
            messages.append(f"until then use port {', '.join(node_ports)} of {self.address}")
        return "; ".join(messages)

    def _service_changed(self, _change: Change, _old: Object | None, _new: Object | None) -> None:
        self.queue.add(ALL)
