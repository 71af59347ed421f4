"""`python -m bench.console`: what the console's back end does with 10,000 jobs, many tabs and a log that floods.

Rows and tabs are measured with a real API server and a real console, each in a process of its own, without controllers:
the jobs only exist. The log is one of a real pod on an embedded cluster. Goals stand beside each line; the load of the
last minute stands at its end. CPU is that of the console's process alone.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path

import orjson
import uvloop
from websockets.asyncio.client import connect

from bench.api import TICKS, served
from bench.memory import memory_of
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import Collection
from paceline.client.kubeconfig import load
from paceline.cluster.crd_install import define_kinds
from paceline.host.effects import real_world
from paceline.testing.embedded import embedded, wait_until

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
WRITERS = 64
IN_FRONT = "from paceline.cluster.console.server import run_in_front as run; import sys;"
IN_FRONT += " run(sys.argv[1], '', lambda address, code: print(address, code, flush=True))"


@dataclass
class Console:
    """A console's process, and a session there."""

    host: str
    pid: int
    cookie: str

    def cpu(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def tab(self):
        return connect(
            f"ws://{self.host}/api/live",
            host="127.0.0.1",
            origin=f"http://{self.host}",
            additional_headers={"Cookie": self.cookie},
            max_size=None,
            compression=None,
        )


def log_in(address, code):
    """Turn a one-time code into a cookie."""
    host = address.removeprefix("http://")
    connection = HTTPConnection("127.0.0.1", int(host.rpartition(":")[2]), timeout=60)
    headers = {"Host": host, "Origin": address, "X-Paceline": "1", "Content-Type": "application/json"}
    connection.request("POST", "/api/login", json.dumps({"code": code}), headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    return "; ".join(cookie.partition(";")[0] for cookie in answer.headers.get_all("Set-Cookie"))


@contextlib.contextmanager
def console_process(kubeconfig):
    """Start a console; yield its address, a one-time code and its process id."""
    command = [sys.executable, "-c", IN_FRONT, str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield *process.stdout.readline().split(), process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def console_before(kubeconfig):
    with console_process(kubeconfig) as (address, code, pid):
        yield Console(host=address.removeprefix("http://"), pid=pid, cookie=log_in(address, code))


def job(number):
    """A job as people write them, of which a status is known."""
    container = {
        "name": "pytorch",
        "image": "pytorch/pytorch:2.9",
        "command": ["torchrun", "--nproc_per_node=8", "train.py", f"--seed={number}", "--epochs=10"],
        "resources": {
            "requests": {"cpu": "4", "memory": "16Gi"},
            "limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2"},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    template = {
        "spec": {
            "containers": [container],
            "volumes": [{"name": "data", "hostPath": {"path": "/srv/data"}}],
        }
    }
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {
            "name": f"train-{number:05}",
            "namespace": "default",
            "labels": {"team": f"team-{number % 20}", "experiment": f"ablation-{number % 300}"},
        },
        "spec": {"replicaSpecs": [{"type": "worker", "replicas": 4, "template": template}]},
    }


def status(number, phase="Running"):
    rows = [
        {"name": f"train-{number:05}-1f409-worker-{index}", "phase": phase, "uid": f"{number:08}-{index}"}
        for index in range(4)
    ]
    return {
        "phase": phase,
        "startTime": "2030-01-01T00:00:00Z",
        "tasks": [{"type": "worker", "restartCount": 0, "replicas": rows}],
        "aggregate": {"running": 4},
        "backoffCount": number % 3,
    }


class Jobs:
    """Writes jobs, many at once."""

    def __init__(self, cluster):
        self._cluster = cluster

    async def create(self, count):
        numbers = iter(range(count))

        async def write():
            for number in numbers:
                await self._cluster.create(JOBS, job(number))
                await self.touch(number, "Running")

        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(write())

    async def touch(self, number, phase):
        patch = {"status": status(number, phase)}
        return await self._cluster.patch(JOBS, ("default", f"train-{number:05}"), patch, subresource="status")


@dataclass
class Tab:
    """What one tab has been sent."""

    socket: object
    wire_bytes: int = 0
    rows: dict = field(default_factory=dict)
    first_at: float = 0.0
    whole_at: float = 0.0
    updates: dict = field(default_factory=dict)

    async def read(self):
        async for frame in self.socket:
            self.wire_bytes += len(frame)
            message = orjson.loads(frame if isinstance(frame, str) else gzip.decompress(frame[5:]))
            if message["type"] == "error":
                raise RuntimeError(message)
            if message["type"] == "rows":
                self._take(message)

    def _take(self, message):
        now = time.perf_counter()
        if message["rows"]:
            self.first_at = self.first_at or now
        for row in message["rows"]:
            self.rows[row[0]] = row
            if self.whole_at:
                self.updates[row[2], row[4]] = now
        if not message["more"]:
            self.whole_at = self.whole_at or now


@contextlib.asynccontextmanager
async def open_tab(console):
    async with console.tab() as socket, asyncio.TaskGroup() as group:
        tab = Tab(socket)
        reading = group.create_task(tab.read())
        subscribe = {"id": 1, "type": "rows", "resource": "jobs", "namespace": "default"}
        await socket.send(json.dumps(subscribe))
        yield tab
        reading.cancel()


def show(name, value, goal=""):
    text = f"  {name:58} {value:>14}   {goal}"
    print(f"{text:100} {os.getloadavg()[0]:6.1f}", flush=True)


async def whole(tab, count):
    async with asyncio.timeout(120):
        while not tab.whole_at or len(tab.rows) < count:  # noqa: ASYNC110 - a busy loop measures best
            await asyncio.sleep(0.005)


async def bench_rows(console, count):
    for name in ("cold", "shared with another tab"):
        start = time.perf_counter()
        async with open_tab(console) as tab:
            await whole(tab, count)
            show(f"{count} jobs, first rows after connect, {name}, s", f"{tab.first_at - start:.2f}", "≤ 1")
            show(f"{count} jobs, all rows, {name}, s", f"{tab.whole_at - start:.2f}")
            show("on the wire, MB", f"{tab.wire_bytes / 1e6:.2f}", "≤ 0.6")
    show("RSS of the console, MB", f"{memory_of(console.pid)[0]:.0f}")


async def bench_updates(console, jobs, count):
    delays = []
    async with open_tab(console) as tab:
        await whole(tab, count)
        for number in range(40):
            start = time.perf_counter()
            phase = ("Paused", "Failed")[number % 2]
            await jobs.touch(number, phase)
            async with asyncio.timeout(10):
                while (f"train-{number:05}", phase) not in tab.updates:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.001)
            delays.append(tab.updates[f"train-{number:05}", phase] - start)
            await asyncio.sleep(0.15)
    delays.sort()
    show("from a write to its row, median / 95 %, ms", f"{delays[20] * 1e3:.0f} / {delays[37] * 1e3:.0f}", "≤ 200")


async def bench_tabs(console, jobs, count, *, tabs, seconds):
    async with contextlib.AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_tab(console)) for _ in range(tabs)]
        for tab in opened:
            await whole(tab, count)
        await asyncio.sleep(1)
        quiet, before = console.cpu(), time.perf_counter()
        await asyncio.sleep(3)
        idle = (console.cpu() - quiet) / (time.perf_counter() - before)
        start, cpu = time.perf_counter(), console.cpu()
        sent = [tab.wire_bytes for tab in opened]
        for number in range(seconds * 10):
            await jobs.touch(number * 7 % count, ("Running", "Failed")[number % 2])
            await asyncio.sleep(max(0.0, start + (number + 1) / 10 - time.perf_counter()))
        used = (console.cpu() - cpu) / (time.perf_counter() - start)
        rate = statistics.mean(tab.wire_bytes - first for tab, first in zip(opened, sent, strict=True)) / seconds
        show(f"{tabs} tabs, nothing changes: CPU of a core", f"{idle:.1%}")
        show(
            f"{tabs} tabs, 10 jobs/s change: CPU of a core, all / each", f"{used:.1%} / {used / tabs:.2%}", "≤ 5 % each"
        )
        show("bytes to a tab per second", f"{rate:.0f}")
        show(f"RSS of the console with {tabs} tabs, MB", f"{memory_of(console.pid)[0]:.0f}", "≤ 120")


FLOOD = """
import sys, time
line = 'epoch 3 step %07d loss 0.1234 acc 0.9876 lr 0.001 throughput 1234 images/s gpu 98%% mem 31%%\\n'
start, n = time.monotonic(), 0
while n < TOTAL:
    due = min(int((time.monotonic() - start) * RATE), TOTAL) if RATE else n + 1000
    if due > n:
        sys.stdout.write(''.join(line % i for i in range(n, due)))
        sys.stdout.flush()
        n = due
    time.sleep(0.01 if RATE else 0)
"""


def flood(name, total, rate):
    script = FLOOD.replace("TOTAL", str(total)).replace("RATE", str(rate))
    container = {"name": "main", "image": "python:3.11", "command": ["python", "-c", script]}
    template = {"spec": {"containers": [container]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "successRules": [{"worker": [0]}],
            "failureRules": [{"worker": [0]}],
            "replicaSpecs": [{"type": "worker", "replicas": 1, "template": template}],
        },
    }


async def follow(console, pod, *, tail=None):
    """Follow a log to its end; gives seconds, lines, bytes, CPU, and how old the last line of a frame is at most."""
    start, cpu, lines, size, late = time.time(), console.cpu(), 0, 0, 0.0
    request = {"id": 9, "type": "log", "namespace": "default", "pod": pod, "container": "main", "follow": True}
    async with console.tab() as socket:
        await socket.send(json.dumps(request | ({} if tail is None else {"tail": tail})))
        async for frame in socket:
            if isinstance(frame, str):
                message = json.loads(frame)
                if message["type"] in {"end", "error"}:
                    assert message["type"] == "end", message
                    break
                continue
            data = frame[5:]
            lines, size = lines + data.count(b"\n"), size + len(data)
            await socket.send(json.dumps({"id": 9, "type": "credit", "bytes": len(data)}))
            late = max(late, age(data))
    return time.time() - start, lines, size, console.cpu() - cpu, late


def age(data):
    """How long ago the last whole line was written; nothing for a frame without one."""
    line = data[: data.rfind(b"\n")].rpartition(b"\n")[2]
    try:
        written = datetime.fromisoformat(line[:26].decode() + "+00:00")
    except ValueError:
        return 0.0
    return time.time() - written.timestamp()


def bench_logs(lines):
    with embedded() as cluster:
        ran = cluster.paceline("ui", "--no-browser")
        address, _, code = ran.out.strip().partition("/login#code=")
        cookie = log_in(address, code)
        console = Console(host=address.removeprefix("http://"), pid=cluster.console_pid, cookie=cookie)
        for name, rate in (("steady", 20_000), ("flood", 0)):
            ran = cluster.paceline("submit", "-", stdin=json.dumps(flood(name, lines, rate)))
            assert ran.code == 0, ran.err
            pod = wait_until("the pod runs", lambda name=name: pod_of(cluster, name))
            seconds, count, size, cpu, late = uvloop.run(follow(console, pod))
            assert count == lines, (count, lines)
            show(f"log, {name}: lines/s followed", f"{count / seconds:.0f}", "20,000 written" if rate else "")
            show(f"log, {name}: CPU of the console, of a core", f"{cpu / seconds:.0%}")
            if rate:
                show("how far behind at most, s", f"{late:.2f}", "≤ 2")
            seconds, count, size, cpu, _ = uvloop.run(follow(console, pod))
            show(f"log of {size / 1e6:.0f} MB read again: MB/s; CPU s", f"{size / 1e6 / seconds:.0f}; {cpu:.2f}")
        show("RSS of the console, MB", f"{memory_of(console.pid)[0]:.0f}")
        download(console, pod, size)


def download(console, pod, size):
    connection = HTTPConnection("127.0.0.1", int(console.host.rpartition(":")[2]), timeout=600)
    start = time.perf_counter()
    connection.request(
        "GET", f"/api/logs/default/{pod}/main?timestamps=true", headers={"Host": console.host, "Cookie": console.cookie}
    )
    answer, length, peak = connection.getresponse(), 0, 0.0
    while chunk := answer.read(1 << 20):
        length += len(chunk)
        peak = max(peak, memory_of(console.pid)[0])
    assert length == size, (length, size)
    show("download, MB/s", f"{length / 1e6 / (time.perf_counter() - start):.0f}")
    show("RSS of the console at most meanwhile, MB", f"{peak:.0f}")


def pod_of(cluster, name):
    pods = json.loads(cluster.paceline("get", "pods", "-o", "json").out)["items"]
    running = [
        pod for pod in pods if pod["metadata"]["name"].startswith(name) and pod["status"].get("phase") != "Pending"
    ]
    return running[0]["metadata"]["name"] if running else None


async def bench_jobs(options, kubeconfig):
    async with HttpCluster(load(kubeconfig, Path.read_bytes), real_world().chance) as cluster:
        await define_kinds(cluster)
        jobs = Jobs(cluster)
        await jobs.create(options.jobs)
        with console_before(kubeconfig) as console:
            show("RSS of the console before the first tab, MB", f"{memory_of(console.pid)[0]:.0f}")
            if options.only in {None, "rows"}:
                await bench_rows(console, options.jobs)
                await bench_updates(console, jobs, options.jobs)
            if options.only in {None, "tabs"}:
                await bench_tabs(console, jobs, options.jobs, tabs=options.tabs, seconds=options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--only", choices=("rows", "tabs", "logs"))
    options = parser.parse_args()
    print("console, back end")
    print(f"  {'':58} {'':>14}   {'goal':23}   load")
    if options.only != "logs":
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
            home = Path(folder) / "ours"
            with served("ours", home):
                uvloop.run(bench_jobs(options, home / "kubeconfig"))
    if options.only in {None, "logs"}:
        bench_logs(options.lines)


if __name__ == "__main__":
    main()
