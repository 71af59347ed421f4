"""Starting a simulated cluster, and waiting for what a job comes to."""

import asyncio

from paceline.apimachinery.meta import Object
from paceline.client.interface import Collection
from paceline.testing.sim.cluster import SimCluster

PATIENCE_SECONDS = 600


async def started(seed: int) -> SimCluster:
    """Give a cluster whose two processes are ready."""
    cluster = SimCluster(seed=seed)
    await asyncio.wait_for(cluster.start_control().ready.wait(), PATIENCE_SECONDS)
    await asyncio.wait_for(cluster.start_agent().ready.wait(), PATIENCE_SECONDS)
    return cluster


async def phase_becomes(cluster: SimCluster, where: Collection, name: str, phase: str) -> Object:
    """Wait, in virtual time, until a job is in a phase."""
    client = cluster.client()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            job = await client.get(where, "default", name)
            if (job.get("status") or {}).get("phase") == phase:
                return job
            await asyncio.sleep(0.1)


async def ended(cluster: SimCluster) -> None:
    """End both processes; a bug that ended one by itself is raised."""
    error = cluster.broken()
    await cluster.kill_agent()
    await cluster.kill_control()
    if error is not None:
        raise error
