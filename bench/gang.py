"""A job of four workers: how soon all of them run, how soon its end is seen, and how soon a crash has ended them all.

    .venv/bin/python -m bench.gang [--rounds N] [--workers N]

The floor of the same round: as many processes by `Popen`, until all of them have said something and have ended.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time

from bench.node import SAY_WHEN, connected
from paceline.client.interface import PODS, Collection, Select
from paceline.testing.embedded import embedded, processes_with

GROUP, VERSION = "batch.tensorstack.dev", "v1beta1"
# Of the first all workers have to succeed; of the second, the first that fails ends the others.
GENERIC = Collection(group=GROUP, version=VERSION, plural="genericjobs")
PYTORCH = Collection(group=GROUP, version=VERSION, plural="pytorchtrainingjobs")
# The last worker dies once all of them run; the others would run on for an hour.
CRASH = (
    "import os, sys, time\n"
    "if not os.environ['HOSTNAME'].endswith('-{last}'): time.sleep(3600)\n"
    "time.sleep(1.5)\n"
    "print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)\n"
    "sys.exit(1)\n"
)
MARK = f"gang-{os.getpid()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4)
    chosen = parser.parse_args()
    asyncio.run(measure(chosen.rounds, chosen.workers))


async def measure(rounds, workers):
    with embedded() as cluster:
        async with connected(cluster) as api:
            await through(api, "warm", workers)
            rows = [(*await through(api, f"run-{n}", workers), *bare(workers)) for n in range(rounds)]
            crashes = [await crashed(api, f"crash-{n}", workers) for n in range(rounds)]
    runs, ends, bare_runs, bare_ends = (statistics.median(column) for column in zip(*rows, strict=True))
    show(f"{workers} workers run, s", runs, bare_runs, goal="0.25 s")
    show("their end is seen, s", ends, bare_ends, goal="0.30 s")
    print(f"{'one dies, all ended, s':24} {statistics.median(crashes):6.3f}  goal 0.3 s  {load()}")


def show(what, ours, floor, *, goal):
    print(f"{what:24} {ours:6.3f}  bare Popen {floor:6.3f}  ratio {ours / floor:5.2f}, goal {goal}  {load()}")


def load():
    return f"(load {os.getloadavg()[0]:.1f})"


def generic(name, workers):
    rules = {"successRules": [{"worker": list(range(workers))}], "failureRules": [{"worker": [0]}]}
    return job("GenericJob", name, {**rules, "replicaSpecs": [replica("main", SAY_WHEN, workers)]})


def pytorch(name, workers):
    program = CRASH.format(last=workers - 1)
    return job("PyTorchTrainingJob", name, {"replicaSpecs": [replica("pytorch", program, workers)]})


def job(kind, name, spec):
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": meta, "spec": spec}


def replica(container, program, workers):
    main = {"name": container, "image": "python:3", "command": ["python3", "-S", "-c", program, MARK]}
    template = {"spec": {"containers": [main]}}
    return {"type": "worker", "replicas": workers, "restartPolicy": "Never", "template": template}


async def through(api, name, workers):
    """Give the seconds from the request to the last worker's first statement, and to the end that is seen."""
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    await api.create(GENERIC, generic(name, workers))
    await ended(api, GENERIC, name)
    over = time.clock_gettime(time.CLOCK_MONOTONIC) - began
    said = [await said_by(api, each) for each in await pods_of(api, name)]
    assert len(said) == workers
    return max(said) - began, over


async def crashed(api, name, workers):
    """Give the seconds from a worker's death to that of the last process of the job."""
    await api.create(PYTORCH, pytorch(name, workers))
    over = await asyncio.to_thread(all_gone)
    await ended(api, PYTORCH, name)
    last = next(each for each in await pods_of(api, name) if each["metadata"]["name"].endswith(f"-{workers - 1}"))
    return over - await said_by(api, last)


def all_gone():
    """Wait until the job's processes have come and gone, and give the moment."""
    while not processes_with(MARK):
        time.sleep(0.01)
    while processes_with(MARK):
        time.sleep(0.005)
    return time.clock_gettime(time.CLOCK_MONOTONIC)


async def ended(api, where, name):
    page = await api.list(where, Select(namespace="default"))
    if any(each["metadata"]["name"] == name and is_over(each) for each in page.items):
        return
    async for change in api.watch(where, Select(namespace="default"), since=page.revision):
        if change.object["metadata"]["name"] == name and is_over(change.object):
            return


def is_over(wire):
    return (wire.get("status") or {}).get("phase") in ("Succeeded", "Failed")


async def pods_of(api, name):
    page = await api.list(PODS, Select(namespace="default"))
    return [each for each in page.items if each["metadata"]["name"].startswith(f"{name}-")]


async def said_by(api, pod):
    path = PODS.path("default", pod["metadata"]["name"], "log")
    return float(b"".join([chunk async for chunk in api.stream(path, {})]))


def bare(workers):
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    command = [sys.executable, "-S", "-c", SAY_WHEN]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(workers)]
    said = [float(each.communicate()[0]) for each in started]
    return max(said) - began, time.clock_gettime(time.CLOCK_MONOTONIC) - began


if __name__ == "__main__":
    sys.exit(main())
