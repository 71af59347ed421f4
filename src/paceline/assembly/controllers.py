"""The controllers of the embedded cluster, put together."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from paceline.assembly.settings import NAMESPACE
from paceline.client.cluster import NAMESPACES, Cluster, Collection
from paceline.client.events import Recorder
from paceline.control.claims import Claims
from paceline.control.jobs import PORTS, Jobs, collection_of
from paceline.control.owners import Owners
from paceline.control.scheduler import Scheduler
from paceline.errors import Exists
from paceline.kinds import catalog
from paceline.kinds.kind import GROUP, VERSION
from paceline.world import World


async def make_namespaces(cluster: Cluster) -> None:
    """Make the namespaces that every cluster has."""
    for name in (NAMESPACE, "kube-system"):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await cluster.create(NAMESPACES, manifest)
        except Exists:
            continue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of one machine: which are for jobs, and who says which of them are in use."""

    for_jobs: range = PORTS
    in_use: Callable[[], frozenset[int]] = frozenset


ALL_PORTS = Ports()


async def start_controllers(
    group: asyncio.TaskGroup,
    cluster: Cluster,
    world: World,
    *,
    volumes: PurePosixPath,
    ports: Ports = ALL_PORTS,
) -> None:
    """Start every controller and wait until each has seen the cluster once."""
    jobs = Jobs(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="paceline-controller"),
        shares_network=True,
        ports=ports.for_jobs,
        in_use=ports.in_use,
    )
    scheduler = Scheduler(
        cluster=cluster,
        clock=world.clock,
        chance=world.chance,
        recorder=Recorder(cluster, world.clock, component="paceline-scheduler"),
    )
    claims = Claims(cluster=cluster, chance=world.chance, root=volumes)
    owners = Owners(cluster=cluster, chance=world.chance, kinds=_owner_kinds())
    for controller in (jobs, scheduler, claims, owners):
        synced = asyncio.Event()
        group.create_task(controller.run(synced))
        await synced.wait()


def _owner_kinds() -> dict[tuple[str, str], Collection]:
    return {(f"{GROUP}/{VERSION}", kind.kind): collection_of(kind) for kind in catalog.KINDS}
