"""The controllers put together: those of our own kinds, and what else the embedded cluster needs."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Protocol

from paceline.apimachinery.builtin.scheduling import SYSTEM_PRIORITIES
from paceline.apimachinery.builtin.storage_annotations import DEFAULT_CLASS, FOLDERS
from paceline.apimachinery.meta import Object, key_of
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer
from paceline.client.interface import (
    ENDPOINTS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    SLICES,
    STORAGE_CLASSES,
    Cluster,
    Collection,
    Select,
)
from paceline.controllers.app.reconciler import Apps
from paceline.controllers.endpoints import Endpoints
from paceline.controllers.gc.garbage_collector import Owners
from paceline.controllers.interactive.job_tensorboard import Boards
from paceline.controllers.interactive.reconciler import Services, Visits
from paceline.controllers.job.reconciler import PORTS, Jobs
from paceline.controllers.namespaces import Accounts, Namespaces
from paceline.controllers.scheduler import Scheduler
from paceline.controllers.volumes import CLASS, Claims
from paceline.effects import Effects, Ids
from paceline.errors import NotFound
from paceline.podtools import ssh_shim
from paceline.settings import NAMESPACE
from paceline.trainers import parameter_server

SHIPPED = {"parameter-server": str(parameter_server.__file__)}


@cache
def shipped_trainer(name: str) -> Mapping[str, str]:
    """Give the files of a trainer by its name; none for a trainer that is not shipped."""
    path = SHIPPED.get(name)
    return {} if path is None else {f"{name}.py": Path(path).read_text()}


NAMES = ("agent", "ssh", "pdsh")


def launch_program(ids: Ids) -> Callable[[], Mapping[str, str]]:
    """Give what makes the files of one job; the key is new each time."""
    return lambda: {"key": ids.secret(), **dict.fromkeys(NAMES, _text())}


@cache
def _text() -> str:
    return f"#!/usr/bin/env python3\n{Path(ssh_shim.__file__).read_text()}"


# The first address of those that services share.
API_ADDRESS = "10.96.0.1"


async def create_default_objects(cluster: Cluster) -> None:
    """Make what every cluster has: a few namespaces, priorities, a class for claims, a name for the API itself."""
    for where, manifest in _basics():
        try:
            # Asked first: an address that a service has already cannot even be asked for again.
            await cluster.get(where, *key_of(manifest))
        except NotFound:
            # What a kube-apiserver makes by itself says that one has made it; clients need not know the difference.
            await cluster.create(where, manifest, author="" if where is STORAGE_CLASSES else "kube-apiserver")


def default_class() -> Object:
    """Give the class of claims that name none: a folder on this machine."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": FOLDERS,
        # What a person has trained is not removed with a claim, unless they choose a class that says so.
        "reclaimPolicy": "Retain",
        # A folder is as large as its disk, whatever it is called.
        "allowVolumeExpansion": True,
    }


def _basics() -> Iterator[tuple[Collection, Object]]:
    for name in (NAMESPACE, "kube-node-lease", "kube-public", "kube-system"):
        yield NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for priority in SYSTEM_PRIORITIES.values():
        yield PRIORITY_CLASSES, priority
    yield STORAGE_CLASSES, default_class()
    yield (
        SERVICES,
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": NAMESPACE,
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {"clusterIP": API_ADDRESS, "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
        },
    )


async def publish_api_endpoints(cluster: Cluster, address: str, port: int) -> None:
    """Say where the API server answers, for those who look behind its service; loopback is no address to tell."""
    key = (NAMESPACE, "kubernetes")
    for where, manifest in _behind_api(address, port):
        try:
            current = await cluster.get(where, *key)
        except NotFound:
            if address:
                await cluster.create(where, manifest, author="kube-apiserver")
            continue
        if not address:
            await cluster.delete(where, key)
        elif any(current.get(part) != manifest[part] for part in ("subsets", "endpoints", "ports") if part in manifest):
            await cluster.replace(where, {**current, **manifest, "metadata": current["metadata"]})


def _behind_api(address: str, port: int) -> Iterator[tuple[Collection, Object]]:
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    named: Object = {"name": "kubernetes", "namespace": NAMESPACE}
    yield (
        ENDPOINTS,
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**named, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
        },
    )
    yield (
        SLICES,
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**named, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What controllers must know of the machine and of the server on it."""

    # Which ports are for jobs, and who says which of them are in use.
    ports: range = PORTS
    in_use: Callable[[], frozenset[int]] = frozenset
    # The certificate by which the server is known, as PEM.
    authority: str = ""
    # Whether pods share its network, so that every job needs ports of its own.
    shares_network: bool = True
    # Who counts the requests that are passed on to services, if anybody does.
    visits: Visits | None = None
    # Where high ports of services listen; none: at the addresses of the nodes, whichever those are.
    external_address: str = ""


ANY_MACHINE = Machine()


class Controller(Protocol):
    """Something that looks after a cluster."""

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """Follows a collection once for all controllers that look at it."""

    informer: Informer

    async def run(self, synced: asyncio.Event) -> None:
        """Follow it until cancelled; `synced` is set once all of it has been seen."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.informer.run())
            await self.informer.has_synced.wait()
            synced.set()


async def start_controllers(
    group: asyncio.TaskGroup,
    cluster: Cluster,
    world: Effects,
    *,
    volumes: PurePosixPath,
    machine: Machine = ANY_MACHINE,
) -> None:
    """Start every controller of the embedded cluster and wait until each has seen the cluster once."""
    pods = Informer(cluster, PODS, chance=world.chance)
    scheduler = Scheduler(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        pods=pods,
        recorder=Recorder(cluster, world.clock, component="paceline-scheduler"),
    )
    claims = Claims(
        cluster=cluster,
        chance=world.chance,
        pods=pods,
        recorder=Recorder(cluster, world.clock, component="persistentvolume-controller"),
        root=volumes,
    )
    owners = Owners(
        cluster=cluster,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="garbage-collector-controller"),
    )
    namespaces = Namespaces(cluster=cluster, chance=world.chance)
    accounts = Accounts(cluster=cluster, chance=world.chance, authority=machine.authority)
    endpoints = Endpoints(cluster=cluster, chance=world.chance, pods=pods)
    own_kinds = own_controllers(cluster, world, machine=machine, pods=pods)
    await start(group, (*own_kinds, scheduler, claims, owners, namespaces, accounts, endpoints))


def own_controllers(
    cluster: Cluster,
    world: Effects,
    *,
    machine: Machine = ANY_MACHINE,
    namespace: str = "",
    pods: Informer | None = None,
) -> tuple[Controller, ...]:
    """Make the controllers that any cluster needs for our kinds; everything else a real one has of its own."""
    pods = pods or Informer(cluster, PODS, select=Select(namespace=namespace), chance=world.chance)
    jobs = Jobs(
        cluster=cluster,
        pods=pods,
        clock=world.clock,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="paceline-controller"),
        namespace=namespace,
        shares_network=machine.shares_network,
        ports=machine.ports,
        in_use=machine.in_use,
        program=launch_program(world.ids),
    )
    apps = Apps(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="paceline-controller"),
        namespace=namespace,
        jobs=jobs.informers,
        trainer=shipped_trainer,
    )
    return (Following(informer=pods), jobs, *_windows(cluster, world, jobs=jobs, machine=machine), apps)


async def start(group: asyncio.TaskGroup, controllers: Iterable[Controller]) -> None:
    """Start controllers one after the other, each once the one before has seen the cluster."""
    for controller in controllers:
        synced = asyncio.Event()
        group.create_task(controller.run(synced))
        await synced.wait()


def _windows(cluster: Cluster, world: Effects, *, jobs: Jobs, machine: Machine) -> tuple[Boards, Services]:
    """Make the controllers of what people open in a browser."""
    recorder = Recorder(cluster, world.clock, component="paceline-controller")
    services = Services(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        recorder=recorder,
        namespace=jobs.namespace,
        token=world.ids.secret,
        visits=machine.visits,
        node_address=machine.external_address,
    )
    boards = Boards(
        cluster=cluster,
        chance=world.chance,
        recorder=recorder,
        namespace=jobs.namespace,
        jobs=jobs.informers,
    )
    return boards, services
