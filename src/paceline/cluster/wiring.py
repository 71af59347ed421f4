"""Creates the controllers of our own kinds, and the other controllers and objects of the embedded cluster."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Protocol

from paceline.apimachinery.builtin.scheduling import SYSTEM_PRIORITIES
from paceline.apimachinery.builtin.storage_annotations import DEFAULT_CLASS, FOLDERS
from paceline.apimachinery.meta import Object, key_of
from paceline.apimachinery.metrics import MetricRegistry
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer, running
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
from paceline.controllers.event_expiry import EventExpiry
from paceline.controllers.gc.garbage_collector import GarbageCollector
from paceline.controllers.interactive.job_tensorboard import JobTensorBoards
from paceline.controllers.interactive.reconciler import InteractiveController, Visits
from paceline.controllers.job.reconciler import PORTS, Jobs
from paceline.controllers.job.snapshot import trimmed_pod
from paceline.controllers.job_records import JobRecords
from paceline.controllers.namespaces import Namespaces, ServiceAccounts
from paceline.controllers.scheduler import PodScheduler
from paceline.controllers.volumes import CLASS, VolumeBinder
from paceline.effects import Effects, Ids
from paceline.errors import NotFound
from paceline.kinds import registry
from paceline.model import well_known_labels
from paceline.model.gang import PodTools
from paceline.model.retention import EventPolicy, RecordPolicy
from paceline.podtools import ssh_shim
from paceline.settings import NAMESPACE
from paceline.trainers import parameter_server

SHIPPED = {"parameter-server": str(parameter_server.__file__)}


@cache
def shipped_trainer(name: str) -> Mapping[str, str]:
    """Return the files of a shipped trainer; empty for another name."""
    path = SHIPPED.get(name)
    return {} if path is None else {f"{name}.py": Path(path).read_text()}


NAMES = ("agent", "ssh", "pdsh")


def launch_program(ids: Ids) -> Callable[[], Mapping[str, str]]:
    """Return a function that returns the files of one job for remote launch, with a new key each time."""
    return lambda: {"key": ids.secret(), **dict.fromkeys(NAMES, _text())}


@cache
def _text() -> str:
    return f"#!/usr/bin/env python3\n{Path(ssh_shim.__file__).read_text()}"


# The first address of the service range.
API_ADDRESS = "10.96.0.1"


async def create_default_objects(cluster: Cluster) -> None:
    """Create the default namespaces, priority classes, storage class and the `kubernetes` Service."""
    for where, manifest in _default_objects():
        try:
            # Check first: creating the Service again would fail, because its address is allocated.
            await cluster.get(where, *key_of(manifest))
        except NotFound:
            # Use the field manager of objects that a kube-apiserver creates.
            await cluster.create(where, manifest, author="" if where is STORAGE_CLASSES else "kube-apiserver")


def default_class() -> Object:
    """Return the default storage class: a folder on this machine."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {DEFAULT_CLASS: "true"}},
        "provisioner": FOLDERS,
        # Keep results when a claim is deleted, unless the user chooses another class.
        "reclaimPolicy": "Retain",
        # A folder can grow to the size of its disk.
        "allowVolumeExpansion": True,
    }


def _default_objects() -> Iterator[tuple[Collection, Object]]:
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
    """Write the endpoints of the `kubernetes` Service; delete them without an address, as loopback is not allowed."""
    key = (NAMESPACE, "kubernetes")
    for where, manifest in _api_endpoints(address, port):
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


def _api_endpoints(address: str, port: int) -> Iterator[tuple[Collection, Object]]:
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
    """What controllers need to know about the machine and its API server."""

    # The ports for jobs, and a function that returns those in use.
    ports: range = PORTS
    in_use: Callable[[], frozenset[int]] = frozenset
    # The certificate authority of the API server, as PEM.
    authority: str = ""
    # Whether pods share the host network, so that every job needs different ports.
    shares_network: bool = True
    # Whether the scheduler starts all pods of a job, or none.
    schedules_gangs: bool = True
    # Whether nodes may be lost, so that a controller must delete their pods by force.
    loses_nodes: bool = False
    # Counts requests to services, if available.
    visits: Visits | None = None
    # The address of node ports; empty for the addresses of the nodes.
    external_address: str = ""
    # Whether it is the embedded cluster, whose API server serves T9k's URL paths and whose scheduler has queues.
    is_embedded: bool = True
    # The version of Kubernetes' own PodGroups; empty if the cluster has none.
    native_groups: str = ""
    # Where the metrics of the controllers are registered, if anywhere.
    metrics: MetricRegistry | None = None
    # The image of our own containers in the pods of jobs.
    tools: PodTools = field(default_factory=PodTools)
    # How many records of jobs are kept.
    records: RecordPolicy = field(default_factory=RecordPolicy)
    # How many events are kept in the embedded cluster.
    events: EventPolicy = field(default_factory=EventPolicy)


ANY_MACHINE = Machine()
# The group of the metrics of our own kinds' controllers.
CONTROLLERS = "controllers"


class Controller(Protocol):
    """A controller."""

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedInformer:
    """Runs an informer that several controllers share."""

    informer: Informer

    async def run(self, synced: asyncio.Event) -> None:
        """Run the informer until cancelled; set `synced` once its cache is filled."""
        async with running(self.informer, synced=synced):
            pass


async def start_controllers(
    group: asyncio.TaskGroup,
    cluster: Cluster,
    world: Effects,
    *,
    volumes: PurePosixPath,
    machine: Machine = ANY_MACHINE,
) -> None:
    """Start every controller of the embedded cluster and wait until all caches are filled."""
    pods = Informer(cluster, PODS, chance=world.chance)
    scheduler = PodScheduler(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        pods=pods,
        recorder=Recorder(cluster, world.clock, component="paceline-scheduler"),
    )
    claims = VolumeBinder(
        cluster=cluster,
        chance=world.chance,
        pods=pods,
        recorder=Recorder(cluster, world.clock, component="persistentvolume-controller"),
        root=volumes,
    )
    owners = GarbageCollector(
        cluster=cluster,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="garbage-collector-controller"),
    )
    namespaces = Namespaces(cluster=cluster, chance=world.chance)
    accounts = ServiceAccounts(cluster=cluster, chance=world.chance, authority=machine.authority)
    endpoints = Endpoints(cluster=cluster, chance=world.chance, pods=pods)
    expiry = EventExpiry(cluster=cluster, clock=world.clock, policy=machine.events)
    own_kinds = own_controllers(cluster, world, machine=machine, pods=pods)
    if machine.metrics is not None:
        others = (scheduler, claims, owners, namespaces, accounts, endpoints)
        machine.metrics.put("cluster", *(controller.queue.metrics for controller in others))
    await start(group, (*own_kinds, scheduler, claims, owners, namespaces, accounts, endpoints, expiry))


def own_controllers(
    cluster: Cluster,
    world: Effects,
    *,
    machine: Machine = ANY_MACHINE,
    namespace: str = "",
    pods: Informer | None = None,
) -> tuple[Controller, ...]:
    """Return the controllers of our kinds, which every cluster needs; a real cluster has the others."""
    pods = pods or Informer(cluster, PODS, select=own_pods(namespace), chance=world.chance)
    jobs = Jobs(
        cluster=cluster,
        pods=pods,
        clock=world.clock,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="paceline-controller"),
        namespace=namespace,
        shares_network=machine.shares_network,
        reads_nodes=machine.loses_nodes,
        schedules_gangs=machine.schedules_gangs,
        ports=machine.ports,
        in_use=machine.in_use,
        program=launch_program(world.ids),
        requires_queue=not machine.is_embedded,
        native_groups=machine.native_groups,
        tools=machine.tools,
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
    records = JobRecords(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        namespace=namespace,
        jobs=jobs.informers,
        policy=machine.records,
    )
    boards, services = _interactive_controllers(cluster, world, jobs=jobs, machine=machine)
    if machine.metrics is not None:
        queues = (jobs.queue, boards.queue, services.queue, apps.queue)
        machine.metrics.add(CONTROLLERS, jobs.metrics, *(queue.metrics for queue in queues))
    return SharedInformer(informer=pods), jobs, boards, services, apps, records


def own_pods(namespace: str) -> Select:
    """Return the selection of the pods of jobs: other people's pods are not read, and of these only what jobs need."""
    kinds = ",".join(sorted(kind.kind for kind in registry.KINDS))
    return Select(namespace=namespace, labels=f"{well_known_labels.OWNER_KIND} in ({kinds})", trim=trimmed_pod)


async def start(group: asyncio.TaskGroup, controllers: Iterable[Controller]) -> None:
    """Start controllers one after the other, each once the caches of the previous one are filled."""
    for controller in controllers:
        synced = asyncio.Event()
        group.create_task(controller.run(synced))
        await synced.wait()


def _interactive_controllers(
    cluster: Cluster, world: Effects, *, jobs: Jobs, machine: Machine
) -> tuple[JobTensorBoards, InteractiveController]:
    """Return the controllers of TensorBoards and Notebooks."""
    recorder = Recorder(cluster, world.clock, component="paceline-controller")
    services = InteractiveController(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        recorder=recorder,
        namespace=jobs.namespace,
        token=world.ids.secret,
        visits=machine.visits,
        node_address=machine.external_address,
        serves_pages=machine.is_embedded,
        tools=machine.tools,
    )
    boards = JobTensorBoards(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        recorder=recorder,
        namespace=jobs.namespace,
        jobs=jobs.informers,
    )
    return boards, services
