"""What a job costs the controllers: to all its pods, over its whole life, and beside many jobs that are over.

    .venv/bin/python -m bench.control [--on embedded real] [--jobs N] [--finished N ...] [--replicas N]
                                      [--delay SECONDS] [--throttled SECONDS]

The controllers run in their own process: those of the embedded cluster against our API server, and those of
`paceline kube controller` against a real kube-apiserver with etcd. No node runs the pods; this program reports their
status as a kubelet would. It watches all objects to count the writes. Writes and CPU per job depend less on other load
on the machine than jobs per second do. Each finished job leaves a service and as many pods as --left says.
With --delay, every call of the controllers takes so much longer, as through webhooks or over a long line; with
--throttled, all calls are refused with 429 and `Retry-After: 1` for so long, from the first pod on.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import uvloop

from paceline.apimachinery.meta import owned_by
from paceline.client.http.cluster import HttpCluster, HttpTransport
from paceline.client.informer import Informer
from paceline.client.interface import EVENTS, NODES, PODS, SERVICES, Change, PatchType
from paceline.client.requests import Response
from paceline.client.rest import Verbs
from paceline.client.rest_config import from_json
from paceline.cluster.crd_install import define_kinds
from paceline.cluster.external_controllers import Choice, run_leader
from paceline.cluster.wiring import Machine, start_controllers
from paceline.controllers.job.reconciler import collection_of
from paceline.errors import PacelineError
from paceline.host.effects import GC_THRESHOLD, RealChance, real_world
from paceline.kinds import registry
from paceline.kinds.jobs.pytorch import KIND
from paceline.plan.job.manifests import pod_manifest, service_manifest
from paceline.plan.job.plan import NewPod
from paceline.testing.real.kube import find_assets, real_kube

JOBS = collection_of(KIND)
# Large enough for everything, so that the embedded cluster's scheduler places every pod.
ROOM = {"cpu": "100000", "memory": "100000Gi", "pods": "1000000"}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "bench"},
    "status": {"allocatable": ROOM, "capacity": ROOM, "conditions": [{"type": "Ready", "status": "True"}]},
}
WRITERS = 16
QUIET_SECONDS = 2.0
IDLE_SHARE, IDLE_SECONDS = 0.01, 4.0
TICKS = os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", nargs="*", default=list(SERVERS), choices=list(SERVERS))
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--finished", type=int, nargs="*", default=[0, 10_000])
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--left", type=int, default=1, help="pods that each finished job leaves")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--throttled", type=float, default=0.0)
    parser.add_argument("--controllers", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.controllers:
        which, kubeconfig = chosen.controllers
        uvloop.run(CONTROLLERS[which](from_json(Path(kubeconfig), Path.read_bytes), chosen))
        return
    for name in chosen.on:
        rows = [uvloop.run(measured(name, chosen, finished)) for finished in chosen.finished]
        if len(rows) > 1:
            print(
                f"{name:8} beside {chosen.finished[-1]} finished jobs: {rows[-1].rate / rows[0].rate:.2f} of the jobs "
                f"per second, {rows[-1].cpu / rows[0].cpu:.2f} times the CPU per job"
            )


class Troubled:
    """A transport on which every call takes longer, or on which all calls are refused for a while."""

    def __init__(self, transport, chosen):
        self.transport, self.stream = transport, transport.stream
        self.delay, self.throttled, self.until = chosen.delay, chosen.throttled, None

    async def send(self, request):
        if self.delay:
            await asyncio.sleep(self.delay)
        now = time.monotonic()
        if self.until is None and request.method == "POST" and request.path.endswith("/pods"):
            self.until = now + self.throttled
        if now < (self.until or 0.0):
            status = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "too many requests"}
            return Response(status=429, headers=(("retry-after", "1"),), body=json.dumps(status).encode())
        return await self.transport.send(request)


async def control_embedded(access, chosen):
    """Run all controllers that the embedded cluster has, in their own process instead of the server's."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    world = real_world()
    cluster = Verbs(Troubled(HttpTransport(access, world.chance), chosen))
    async with asyncio.TaskGroup() as group:
        machine = Machine(shares_network=False)
        await start_controllers(group, cluster, world, volumes=PurePosixPath("/volumes"), machine=machine)
        print("leading", flush=True)


async def control_real(access, chosen):
    """Run what `paceline kube controller` runs."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    world = real_world()
    transport = Troubled(HttpTransport(access, world.chance), chosen)
    choice = Choice(access=access, lease_namespace="default")
    await run_leader(transport, world, choice, lambda text: print(text, flush=True))


CONTROLLERS = {"embedded": control_embedded, "real": control_real}


@dataclass
class Server:
    """An API server under the controllers."""

    kubeconfig: Path
    # The processes whose CPU is the server's.
    pids: tuple


@contextlib.contextmanager
def our_server():
    with tempfile.TemporaryDirectory(prefix="pl-") as home:
        command = [sys.executable, "-m", "bench.serving", "ours", home]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                process.stdout.readline()
                yield Server(kubeconfig=Path(home) / "kubeconfig", pids=(process.pid,))
            finally:
                process.kill()


@contextlib.contextmanager
def kube_apiserver():
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver here; `make kube` builds one")
    with real_kube(assets) as kube:
        yield Server(kubeconfig=kube.kubeconfig, pids=children())


SERVERS = {"embedded": our_server, "real": kube_apiserver}


@contextlib.contextmanager
def controllers(name, kubeconfig, chosen):
    command = [sys.executable, "-m", "bench.control", "--controllers", name, str(kubeconfig)]
    command += ["--delay", str(chosen.delay), "--throttled", str(chosen.throttled)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            while "leading" not in (said := process.stdout.readline()):
                if not said:
                    sys.exit("the controllers ended before they began")
            yield process.pid
        finally:
            process.kill()


@dataclass
class Written:
    """What was written, as whoever follows it sees."""

    counts: Counter = field(default_factory=Counter)
    last: float = 0.0
    phases: dict = field(default_factory=dict)
    pods: dict = field(default_factory=dict)

    def note(self, kind):
        def changed(change, old, new):
            self.last = time.monotonic()
            told = "made" if change is Change.ADDED else "changed" if change is Change.MODIFIED else "gone"
            self.counts[kind, told] += 1
            if kind == "event" and (new or old)["source"]["component"] == "paceline-controller":
                self.counts["own event", told] += 1
            if kind == "job" and new is not None:
                self.phases[new["metadata"]["name"]] = (new.get("status") or {}).get("phase")
            if kind == "pod" and new is not None and new["metadata"]["name"].startswith("job-"):
                self.pods[new["metadata"]["name"]] = new

        return changed


@dataclass
class Row:
    """One line of the result."""

    rate: float
    cpu: float


async def measured(name, chosen, finished):
    with SERVERS[name]() as server:
        async with HttpCluster(from_json(server.kubeconfig, Path.read_bytes), RealChance()) as api:
            await prepared(api)
            await api.create(NODES, NODE)
            # A new node is not ready until its agent says so.
            await api.patch(NODES, ("", "bench"), {"spec": {"taints": None}})
            await each(range(finished), lambda number: over(api, number, chosen))
            with controllers(name, server.kubeconfig, chosen) as pid:
                await idle(pid)
                return await lives(api, chosen, Costs(name=name, finished=finished, pid=pid, servers=server.pids))


@dataclass
class Costs:
    """Where the costs arise."""

    name: str
    finished: int
    pid: int
    servers: tuple

    def cpu(self):
        return cpu_seconds(self.pid), sum(map(cpu_seconds, self.servers))


async def lives(api, chosen, costs):
    """Make jobs, wait for their pods, let these run and end; tell what each part took."""
    written, followed = Written(), {"job": JOBS, "pod": PODS, "service": SERVICES, "event": EVENTS}
    informers = [
        Informer(api, where, chance=RealChance(), on_change=written.note(kind)) for kind, where in followed.items()
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.has_synced.wait()
        written.counts.clear()
        began, before = time.monotonic(), costs.cpu()
        await each(range(chosen.jobs), lambda number: api.create(JOBS, job(f"job-{number}", chosen.replicas)))
        await until(lambda: written.counts["pod", "made"] >= chosen.jobs * chosen.replicas)
        took = time.monotonic() - began
        await quiet(written)
        after = costs.cpu()
        row = Row(rate=chosen.jobs / took, cpu=(after[0] - before[0]) / chosen.jobs)
        trouble = f", each call {chosen.delay * 1000:.0f} ms later" if chosen.delay else ""
        trouble += f", 429 for {chosen.throttled:.0f} s" if chosen.throttled else ""
        show(costs, f"{chosen.jobs} x {chosen.replicas} to all pods{trouble}: seconds", took)
        show(costs, f"{chosen.jobs} jobs to all pods, per second", row.rate)
        show(costs, "CPU per job, ms: controllers", row.cpu * 1000)
        show(costs, "CPU per job, ms: server", (after[1] - before[1]) / chosen.jobs * 1000)
        tell_writes(costs, written, chosen.jobs)
        for phase in ("Running", "Succeeded"):
            await each(list(written.pods.values()), lambda pod, phase=phase: say(api, pod, phase))
            await until(lambda phase=phase: sum(each == phase for each in written.phases.values()) >= chosen.jobs)
        await quiet(written)
        whole = costs.cpu()
        show(costs, "whole life: CPU per job, ms: controllers", (whole[0] - before[0]) / chosen.jobs * 1000)
        tell_writes(costs, written, chosen.jobs)
        for task in tasks:
            task.cancel()
    return row


def tell_writes(costs, written, jobs):
    made = sum(written.counts[kind, "made"] for kind in ("pod", "service"))
    parts = {
        "objects made": made,
        "status": written.counts["job", "changed"],
        "events": written.counts["own event", "made"] + written.counts["own event", "changed"],
    }
    told = ", ".join(f"{name} {count / jobs:.2f}" for name, count in parts.items())
    show(costs, f"writes per job ({told})", sum(parts.values()) / jobs)


def show(costs, what, value):
    where = f"{costs.name:8} {costs.finished:6} finished"
    print(f"{where}  {what:75} {value:9.2f}  (load {os.getloadavg()[0]:.1f})", flush=True)


async def prepared(api):
    """Define the kinds, and wait until they are served."""
    await define_kinds(api)
    for _ in range(300):
        with contextlib.suppress(PacelineError):
            await api.list(JOBS)
            return
        await asyncio.sleep(0.2)
    sys.exit("our kinds are not served")


async def each(items, do):
    """Do something with everything, some at a time."""
    left = iter(items)

    async def work():
        for item in left:
            await do(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(work())


async def over(api, number, chosen):
    """Put down a job that is over, with what it leaves."""
    made = await api.create(JOBS, job(f"over-{number}", chosen.replicas))
    told = "2030-01-01T00:00:00Z"
    status = {"phase": "Succeeded", "observedGeneration": 1, "startTime": told, "completionTime": told}
    await api.replace(JOBS, {**made, "status": {**status, "ports": {"master": 23456}}}, subresource="status")
    site, gang = registry.expand(made, {"master": 23456})
    owner = owned_by(made)
    await api.create(SERVICES, service_manifest(site, owner=owner))
    for member in gang.members[: chosen.left]:
        pod = await api.create(PODS, pod_manifest(site, gang, NewPod(place=member.place, attempt=0), owner=owner))
        await say(api, pod, "Succeeded")


def job(name, replicas):
    main = {"name": "pytorch", "image": "python:3", "command": ["python3", "train.py"]}
    worker = {"type": "worker", "replicas": replicas, "template": {"spec": {"containers": [main]}}}
    return {
        "apiVersion": f"{JOBS.group}/{JOBS.version}",
        "kind": KIND.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicaSpecs": [worker]},
    }


async def say(api, pod, phase):
    """Say of a pod what a kubelet would."""
    now = "2030-01-01T00:00:00Z"
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    state = {"running": {"startedAt": now}} if phase == "Running" else {"terminated": ended}
    container = {"name": "pytorch", "image": "python:3", "imageID": "", "ready": True, "restartCount": 0}
    status = {"phase": phase, "startTime": now, "containerStatuses": [{**container, "state": state}]}
    key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
    with contextlib.suppress(PacelineError):
        await api.patch(PODS, key, {"status": status}, kind=PatchType.MERGE, subresource="status")


async def until(holds):
    while not holds():  # noqa: ASYNC110 - of what others write, only the cache tells
        await asyncio.sleep(0.01)


async def quiet(written):
    """Wait until nothing more is written."""
    await until(lambda: time.monotonic() - written.last > QUIET_SECONDS)


async def idle(pid):
    """Wait until a process has nothing to do any more."""
    before = cpu_seconds(pid)
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        now = cpu_seconds(pid)
        if now - before < IDLE_SHARE * IDLE_SECONDS:
            return
        before = now


def children():
    """Give the processes that this one has started."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return tuple(map(int, found))


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
