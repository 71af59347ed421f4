"""How long a cluster that was killed takes to be ready again, with much in its store, and what its processes hold.

    .venv/bin/python -m bench.start [--objects N] [--rounds N]

Prints ratios to a bare interpreter started in the same run: a loaded machine slows both alike.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.memory import memory_of
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import CONFIG_MAPS
from paceline.client.rest_config import from_json
from paceline.host.effects import RealChance
from paceline.testing.embedded import embedded

CONNECTIONS = 64
SETTLE_SECONDS = 1.0
PROCESSES = {"control": "control_plane_main", "agent": "node_agent"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    bare = min(run("pass") for _ in range(chosen.rounds * 3))
    rows = {"bare interpreter": bare}
    for name, module in PROCESSES.items():
        rows[f"imports of {name}"] = min(run(f"import paceline.cluster.{module}") for _ in range(chosen.rounds))
    memory = {}
    for name, objects in (("empty", 0), (f"{chosen.objects} objects", chosen.objects)):
        restarts = [killed_once(objects) for _ in range(chosen.rounds)]
        rows[f"killed to ready, {name}"] = min(seconds for seconds, _ in restarts)
        memory[name] = restarts[-1][1]
    print(f"start, fastest of {chosen.rounds}")
    for name, seconds in rows.items():
        print(f"  {name:32} {seconds * 1000:7.1f} ms  {seconds / bare:6.2f}x bare")
    print("memory after the start, MB: Rss, Pss")
    for name, held in memory.items():
        for process, (rss, pss) in held.items():
            print(f"  {process + ', ' + name:32} {rss:7.1f} {pss:7.1f}")


def run(program):
    """Start an interpreter for a program and wait for its end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start


def killed_once(objects):
    """Return the seconds to ready after a kill, and what the processes hold then.

    In a new cluster: the pauses between restarts grow while one crashes in a row.
    """
    with embedded() as cluster:
        if objects:
            asyncio.run(fill(cluster, objects))
        seconds = start_again(cluster)
        # The processes return memory to the machine once they are ready.
        time.sleep(SETTLE_SECONDS)
        return seconds, held_by(cluster)


def start_again(cluster):
    """Kill the control process and wait until another is ready."""
    start = time.perf_counter()
    os.kill(cluster.control_pid, signal.SIGKILL)
    started = cluster.paceline("up", "-d")
    assert started.code == 0, started.err
    return time.perf_counter() - start


async def fill(cluster, count):
    """Store so many small objects, one in ten of them owned by another."""
    access = from_json(cluster.kubeconfig, Path.read_bytes)
    names = iter(range(count))
    async with HttpCluster(access, RealChance()) as api, asyncio.TaskGroup() as group:
        first = await api.create(CONFIG_MAPS, settings("owner", []))
        parts = {part: first[part] for part in ("apiVersion", "kind")}
        owner = {**parts, "name": "owner", "uid": first["metadata"]["uid"]}

        async def create_some():
            for number in names:
                await api.create(CONFIG_MAPS, settings(f"settings-{number}", [owner] if number % 10 == 0 else []))

        for _ in range(CONNECTIONS):
            group.create_task(create_some())


def settings(name, owners):
    metadata = {"name": name, "namespace": "default", "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 200}}


def held_by(cluster):
    """Give what each process holds, alone and with its part of what it shares, in MB."""
    pids = {"supervisor": cluster.supervisor_pid, "control": cluster.control_pid, "agent": cluster.agent_pid}
    return {name: memory_of(pid) for name, pid in pids.items()}


if __name__ == "__main__":
    main()
