"""`python -m bench.history`: what 10,000 records of jobs cost on disk and in memory, and how soon their list is shown.

A real API server without controllers, in a process of its own, and a real console before it. Memory is that of the API
server, which has the records; the controllers remember a few facts of each. CPU is that of the server.
"""

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

import orjson
import uvloop

from bench.api import TICKS, served
from bench.console import console_before, job, show, status
from bench.memory import memory_of
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import Collection
from paceline.client.kubeconfig import load
from paceline.cluster.crd_install import define_kinds
from paceline.host.effects import real_world
from paceline.plan.job_records import outcome_of, record_manifest

RECORDS = Collection(group="paceline.dev", version="v1beta1", plural="jobrecords")
WRITERS = 8
EVENTS = 12
# Written before memory is measured: the first ones load code and build the validator of their schema.
FIRST = 100


def record(number):
    """Return the record of a job of four replicas, and its outcome with the events of a whole life."""
    written = job(number)
    written["metadata"] |= {
        "uid": f"{number:08}-0000-4000-8000-000000000000",
        "creationTimestamp": "2030-01-01T00:00:00Z",
    }
    written["status"] = status(number, "Succeeded")
    events = [
        {
            "uid": written["metadata"]["uid"],
            "type": "Normal",
            "reason": ("Created", "Scheduled", "Started", "Running")[index % 4],
            "message": f"pod train-{number:05}-1f409-worker-{index % 4} is bound to a node with what it needs",
            "time": f"2030-01-01T00:00:{index:02}Z",
            "object": f"Pod/train-{number:05}-1f409-worker-{index % 4}",
            "count": 1,
        }
        for index in range(EVENTS)
    ]
    outcome = outcome_of(written, events, {"loss": "0.1234", "accuracy": "0.9876"}, gone_at=None)
    return record_manifest("paceline.dev/v1beta1", written), outcome


async def write(cluster, numbers):
    numbers = iter(numbers)

    async def some():
        for number in numbers:
            manifest, outcome = record(number)
            made = await cluster.create(RECORDS, manifest)
            key = (made["metadata"]["namespace"], made["metadata"]["name"])
            await cluster.patch(RECORDS, key, {"status": outcome}, subresource="status")

    async with asyncio.TaskGroup() as group:
        for _ in range(WRITERS):
            group.create_task(some())


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def disk(home):
    """Return the bytes on the disk below a folder, in MB."""
    return int(subprocess.run(["du", "-sk", home], check=True, capture_output=True).stdout.split()[0]) / 1024


def pages(console):
    """Read the whole list as the page does; yield seconds and bytes of each answer."""
    connection, after = HTTPConnection("127.0.0.1", int(console.host.rpartition(":")[2]), timeout=120), ""
    while True:
        began = time.perf_counter()
        headers = {"Host": console.host, "Cookie": console.cookie}
        connection.request("GET", f"/api/history?namespace=default&after={after}", headers=headers)
        body = connection.getresponse().read()
        yield time.perf_counter() - began, len(body)
        after = orjson.loads(body)["after"]
        if not after:
            return


async def run(server, home, count):
    async with HttpCluster(load(home / "kubeconfig", Path.read_bytes), real_world().chance) as cluster:
        await define_kinds(cluster)
        empty = memory_of(server.pid)[0]
        await write(cluster, range(FIRST))
        rss, size = memory_of(server.pid)[0], disk(home)
        show(f"the first {FIRST} records: memory of the server (Rss), MB", f"{rss - empty:.1f}")
        await write(cluster, range(FIRST, FIRST + count))
        show(f"{count} records: memory of the server (Rss), MB", f"{memory_of(server.pid)[0] - rss:.1f}", "< 60")
        show(f"{count} records: on the disk, with the log not merged yet, MB", f"{disk(home) - size:.1f}", "< 60")
    with console_before(home / "kubeconfig") as console:
        before = (cpu(server.pid), console.cpu())
        answers = list(pages(console))
        used = (cpu(server.pid) - before[0], console.cpu() - before[1])
        show("first page of 500, s; MB", f"{answers[0][0]:.2f}; {answers[0][1] / 1e6:.2f}")
        show(
            f"all {len(answers)} pages, s; CPU of server and console a page, ms",
            f"{sum(took for took, _ in answers):.2f}",
        )
        show("", f"{used[0] / len(answers) * 1e3:.0f} + {used[1] / len(answers) * 1e3:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        home = Path(folder) / "ours"
        with served("ours", home) as server:
            uvloop.run(run(server, home, options.records))


if __name__ == "__main__":
    main()
