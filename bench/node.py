"""What a pod costs over a bare process: its start, many at once, its log, its being measured, and an idle cluster.

    .venv/bin/python -m bench.node [--only start many log idle sampling] [--pods N] [--lines N] [--rounds N]

Each number stands beside a floor of the same round: the same program started by `Popen`, or read from a pipe.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from bench.memory import memory_of
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import PODS, Select
from paceline.client.rest_config import from_json
from paceline.effects import ProcessHandle
from paceline.host.effects import RealChance, RealFiles
from paceline.host.proc_stats import measure
from paceline.node.devices import Devices
from paceline.node.host_info import Folders
from paceline.node.runtime.shim import start_ticks
from paceline.node.server.stats import PERIOD_SECONDS, Sample
from paceline.node.usage.recorder import UsageRecorder
from paceline.testing.embedded import embedded

# Says when it runs, on the clock that all processes of a machine share.
SAY_WHEN = "import time; print(time.clock_gettime(time.CLOCK_MONOTONIC), flush=True)"
TINY = "pass"
WIDE = 4
SLEEPERS = 100
LOOK_SECONDS = 20
# Five minutes of them, so that minutes are merged, too.
SAMPLES = 60
FINAL = ("Succeeded", "Failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    for name in chosen.only:
        asyncio.run(PARTS[name](chosen))


async def start(chosen):
    """From the request to the program's first statement, one pod after the other."""
    with embedded() as cluster:
        async with connected(cluster) as api:
            rows = [(await pod_start(api, f"one-{number}"), bare_start()) for number in range(chosen.rounds * 5)]
    ours, bare = (statistics.median(column) for column in zip(*rows, strict=True))
    show("pod start, ms", ours * 1000, bare * 1000, "bare Popen", goal="")


async def many(chosen):
    """All pods at once, until each is known to have ended."""
    rounds = []
    for _ in range(chosen.rounds):
        with embedded() as cluster:
            async with connected(cluster) as api:
                rounds.append((await all_ended(api, chosen.pods), four_wide(chosen.pods)))
    ours, bare = min(rounds, key=lambda pair: pair[0] / pair[1])
    show(f"{chosen.pods} pods, per second", chosen.pods / ours, chosen.pods / bare, "bare, 4 at a time", goal="0.5")


async def log(chosen):
    """Lines of one pod to one follower, from the first to the last."""
    program = (
        f"import sys\nfor n in range({chosen.lines}): sys.stdout.write(f'line {{n}} of a log that somebody reads\\n')"
    )
    with embedded() as cluster:
        async with connected(cluster) as api:
            rounds = [(await followed(api, f"log-{n}", program), piped(program)) for n in range(chosen.rounds)]
    ours, bare = min(rounds, key=lambda pair: pair[0] / pair[1])
    show(f"{chosen.lines} lines, s", ours, bare, "raw pipe", goal="1.3")


async def idle(_chosen):
    """What a cluster costs that has nothing to do, and one whose pods sleep and are measured."""
    with embedded() as cluster:
        pids = {"supervisor": cluster.supervisor_pid, "control": cluster.control_pid, "agent": cluster.agent_pid}
        empty = await cpu_share(pids)
        memory = {name: memory_of(pid) for name, pid in pids.items()}
        async with connected(cluster) as api:
            for number in range(SLEEPERS):
                await api.create(PODS, pod(f"sleeper-{number}", "import time; time.sleep(3600)"))
            await until(api, lambda pods: sum(each["status"].get("phase") == "Running" for each in pods) == SLEEPERS)
        full = await cpu_share(pids)
    for name in pids:
        rss, pss = memory[name]
        print(f"{name:10} idle: {empty[name]:5.2f} % of a core, Rss {rss:5.1f} MB, Pss {pss:5.1f} MB", end="; ")
        print(f"with {SLEEPERS} pods: {full[name]:5.2f} %")


async def sampling(_chosen):
    """CPU time of measuring 100 containers of three processes each, and of keeping what they used.

    In this process, so that other work on the machine counts for nothing; the node itself is measured anyway.
    """
    with contextlib.ExitStack() as stack:
        folders = Folders(root=Path(stack.enter_context(tempfile.TemporaryDirectory())))
        shells = [sleeping_shell() for _ in range(SLEEPERS)]
        for shell in shells:
            stack.callback(end_group, shell)
        shims = [ProcessHandle(pid=shell.pid, start_ticks=start_ticks(shell.pid), boot_id="") for shell in shells]
        files = RealFiles()
        recorder = UsageRecorder(files=files, folders=folders, devices=Devices(files=files, folders=folders, pools=()))
        recorder.start()
        pods = [pod(f"sleeper-{number}", "") for number in range(SLEEPERS)]
        for number, each in enumerate(pods):
            each["metadata"]["uid"] = f"uid-{number}"
            files.make_folder(folders.usage(f"uid-{number}"))
        running = tuple((each, {"main": shim}) for each, shim in zip(pods, shims, strict=True))
        parts = {"node alone": 0.0, "measure": 0.0, "record": 0.0}
        for number in range(SAMPLES):
            at = datetime.fromtimestamp(1_900_000_000 + 5.1 * number, UTC)
            for name, subjects in (("node alone", ()), ("measure", shims)):
                began = time.thread_time()
                measurement = measure(frozenset(subjects))
                parts[name] += time.thread_time() - began
            sample = Sample(at=at, moment=5.1 * number, measurement=measurement, pods=running)
            began = time.thread_time()
            recorder.record(sample)
            parts["record"] += time.thread_time() - began
    for name, what in (("measure", parts["measure"] - parts["node alone"]), ("record", parts["record"])):
        share = what / SAMPLES / PERIOD_SECONDS
        print(
            f"{name} {SLEEPERS} containers: {what / SAMPLES * 1000:.2f} ms of CPU a sample, {share:.2%} of a core",
            end="",
        )
        print(f"  (load {os.getloadavg()[0]:.1f})")


def sleeping_shell():
    return subprocess.Popen(["sh", "-c", "sleep 3600 & sleep 3600 & wait"], start_new_session=True)


def end_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


PARTS = {"start": start, "many": many, "log": log, "idle": idle, "sampling": sampling}


def show(what, ours, floor, name, *, goal):
    wanted = f", goal {goal}" if goal else ""
    load = os.getloadavg()[0]
    print(
        f"{what:24} {ours:10.2f}  {name} {floor:10.2f}  ratio {ours / floor:6.2f}{wanted}  (load {load:.1f})",
        flush=True,
    )


def connected(cluster):
    return HttpCluster(from_json(cluster.kubeconfig, Path.read_bytes), RealChance())


def pod(name, program):
    main = {"name": "main", "image": "python:3", "command": ["python3", "-S", "-c", program]}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def pod_start(api, name):
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    await api.create(PODS, pod(name, SAY_WHEN))
    await until(api, lambda pods: ended(pods, name))
    said = b"".join([chunk async for chunk in api.stream(PODS.path("default", name, "log"), {})])
    return float(said) - began


def bare_start():
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    said = subprocess.run([sys.executable, "-S", "-c", SAY_WHEN], check=True, capture_output=True).stdout
    return float(said) - began


async def all_ended(api, count):
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(api.create(PODS, pod(f"tiny-{number}", TINY)))
    await until(api, lambda pods: sum(each["status"].get("phase") in FINAL for each in pods) == count)
    return time.perf_counter() - began


def four_wide(count):
    began = time.perf_counter()
    with ThreadPoolExecutor(WIDE) as threads:
        list(threads.map(lambda _: subprocess.run([sys.executable, "-S", "-c", TINY], check=True), range(count)))
    return time.perf_counter() - began


async def followed(api, name, program):
    """Count from the request, so that nothing which was written before somebody followed comes for free."""
    began = time.perf_counter()
    await api.create(PODS, pod(name, program))
    await until(
        api,
        lambda pods: any(
            each["metadata"]["name"] == name and each["status"].get("phase") != "Pending" for each in pods
        ),
    )
    size = 0
    async for chunk in api.stream(PODS.path("default", name, "log"), {"follow": "true"}):
        size += len(chunk)
    took = time.perf_counter() - began
    assert size == size_of(program), f"{size} bytes of {size_of(program)}"
    return took


def size_of(program):
    return len(subprocess.run([sys.executable, "-S", "-c", program], check=True, capture_output=True).stdout)


def piped(program):
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, "-S", "-c", program], stdout=subprocess.PIPE) as process:
        while process.stdout.read(1 << 16):
            pass
    return time.perf_counter() - began


async def until(api, holds):
    """Follow all pods until something is true of them."""
    page = await api.list(PODS, Select(namespace="default"))
    pods = {each["metadata"]["name"]: each for each in page.items}
    if holds(pods.values()):
        return
    async for change in api.watch(PODS, Select(namespace="default"), since=page.revision):
        pods[change.object["metadata"]["name"]] = change.object
        if holds(pods.values()):
            return
    raise TimeoutError("the watch ended before it was so")


def ended(pods, name):
    return any(each["metadata"]["name"] == name and each["status"].get("phase") in FINAL for each in pods)


async def cpu_share(pids):
    """Measure the CPU of some processes for a while, in percent of one core."""
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    await asyncio.sleep(LOOK_SECONDS)
    return {name: (cpu_seconds(pid) - before[name]) / LOOK_SECONDS * 100 for name, pid in pids.items()}


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
