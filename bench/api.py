"""`python -m bench.api`: what the API server does in a second, beside floors measured in the same run.

A floor is the least that could give the same answer: a bare ASGI application under the same uvicorn over TLS with the
same bytes, and SQLite committing the same rows in the same groups. Rounds of both take turns, so that a machine that is
busy with something else slows both alike; the best round counts. Server CPU per request is told too: it does not depend
on who else is running, nor on the client. The load of the last minute stands at the end of each line.

A write is one request and one durable commit, so it is told beside either floor alone, which it cannot reach, and
beside both of them one after the other, which is what it has to do.
"""

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop
import yaml

from bench.load import ask, connection, fan_out, gets_per_second, request, send_all

COLLECTION = "/api/v1/namespaces/default/configmaps"
VALUE_BYTES = 700
WRITERS, WRITES = 64, 3000
WATCHERS, EVENTS = 100, 200
OBJECTS = 10_000
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Subject:
    """A server under test."""

    port: int
    pid: int
    token: str

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def request(self, method, path, body=b""):
        return request(method, path, body, host=self.host, token=self.token)

    def cpu(self):
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def served(which, home):
    command = [sys.executable, "-m", "bench.serving", which, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            config = yaml.safe_load((home / "kubeconfig").read_text())
            yield Subject(port=port, pid=process.pid, token=config["users"][0]["user"]["token"])
        finally:
            process.kill()


def config_map(name):
    data = {"text": "x" * VALUE_BYTES}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).encode()


@dataclass
class Row:
    """One line of the result: the best rate of both, and what a request costs each in CPU."""

    name: str
    ours: float = 0.0
    floor: float = 0.0
    our_cpu: float = 0.0
    floor_cpu: float = 0.0

    def take(self, *, ours, floor):
        (rate, cpu), (least, least_cpu) = ours, floor
        self.ours, self.floor = max(self.ours, rate), max(self.floor, least)
        self.our_cpu = min(self.our_cpu or cpu, cpu)
        self.floor_cpu = min(self.floor_cpu or least_cpu, least_cpu)

    def show(self):
        text = f"  {self.name:44} {self.ours:9.1f}  {self.floor:9.1f}  {self.ours / self.floor:5.2f}"
        if self.our_cpu and self.floor_cpu:
            cpu = f"{self.our_cpu * 1e6:7.0f} / {self.floor_cpu * 1e6:.0f}"
            text += f"   {cpu:>16}  {self.floor_cpu / self.our_cpu:5.2f}"
        print(f"{text:111} {os.getloadavg()[0]:6.1f}", flush=True)


def measured(subject, work):
    """Give the rate that `work` reports, and the server's CPU seconds for each of its requests."""
    before, start = subject.cpu(), time.perf_counter()
    rate = work()
    seconds = time.perf_counter() - start
    return rate, (subject.cpu() - before) / (rate * seconds)


def bench_gets(ours, raw, *, rounds, seconds):
    row = Row("GET of one object, per second")
    path = f"{COLLECTION}/one"
    with connection(ours.port) as sock:
        ask(sock, ours.request("POST", COLLECTION, config_map("one")))
        body = ask(sock, ours.request("GET", path))
    with connection(raw.port) as sock:
        ask(sock, raw.request("PUT", path, body))

    for _ in range(rounds):
        mine = measured(ours, lambda: gets_per_second(ours, path, seconds))
        row.take(ours=mine, floor=measured(raw, lambda: gets_per_second(raw, path, seconds)))
    row.show()


def bench_writes(ours, raw, home, *, rounds):
    asgi, disk = Row(f"durable writes, {WRITERS} clients; bare ASGI"), Row("durable writes; bare SQLite")
    both = Row("durable writes; both floors one after the other")

    def write(subject, number):
        wanted = [subject.request("POST", COLLECTION, config_map(f"w{number}-{each}")) for each in range(WRITES)]
        seconds, cpu = uvloop.run(send_all(subject.port, wanted, WRITERS, subject.cpu))
        return WRITES / seconds, cpu / WRITES

    for number in range(rounds):
        mine, bare = write(ours, number), write(raw, number)
        committed = sqlite_rate(home / f"floor-{number}.db"), 0.0
        asgi.take(ours=mine, floor=bare)
        disk.take(ours=(mine[0], 0.0), floor=committed)
        both.take(ours=(mine[0], 0.0), floor=(1 / (1 / bare[0] + 1 / committed[0]), 0.0))
    for row in (asgi, disk, both):
        row.show()


def sqlite_rate(path):
    """Commit the same rows in groups as large as there are writers, each synced: the log and what is current."""
    row = config_map("x" * 20) + b" " * 350
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT, value BLOB)")
        db.execute("CREATE TABLE current (id INTEGER PRIMARY KEY, key TEXT UNIQUE, value BLOB)")
        start = time.perf_counter()
        for first in range(0, WRITES, WRITERS):
            db.execute("BEGIN IMMEDIATE")
            rows = [(f"{COLLECTION}/{number}", row) for number in range(first, first + WRITERS)]
            db.executemany("INSERT INTO log (key, value) VALUES (?, ?)", rows)
            db.executemany("INSERT INTO current (key, value) VALUES (?, ?)", rows)
            db.execute("COMMIT")
        return WRITES / (time.perf_counter() - start)


def bench_fan_out(ours, raw, *, rounds):
    row = Row(f"events told to {WATCHERS} watchers, per second")

    def spread(subject, number):
        query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        listen = subject.request("GET", f"{COLLECTION}?{query}")
        posts = [config_map(f"f{number}-{each}") for each in range(EVENTS)]
        if subject is raw:
            # What is told is the same: the object as it is stored, in its line.
            posts = [b'{"type":"ADDED","object":' + post + b" " * 350 + b"}\n" for post in posts]
        wanted = [subject.request("POST", COLLECTION, post) for post in posts]
        told = fan_out(subject, listen, wanted, watchers=WATCHERS, clients=8)
        seconds, cpu = uvloop.run(told)
        return EVENTS * WATCHERS / seconds, cpu / EVENTS / WATCHERS

    for number in range(rounds):
        row.take(ours=spread(ours, number), floor=spread(raw, number))
    row.show()


def bench_list(ours, raw, *, rounds):
    row = Row(f"lists of {OBJECTS} objects, per second")
    path = "/api/v1/namespaces/many/configmaps"
    with connection(ours.port) as sock:
        ask(sock, ours.request("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": "many"}}).encode()))
    wanted = [ours.request("POST", path, config_map(f"c{each}")) for each in range(OBJECTS)]
    uvloop.run(send_all(ours.port, wanted, WRITERS))
    with connection(ours.port) as sock, connection(raw.port) as floor:
        body = ask(sock, ours.request("GET", path))
        assert body.count(b'"resourceVersion"') == OBJECTS + 1
        ask(floor, raw.request("PUT", path, body))

        def times(subject, line):
            start = time.perf_counter()
            for _ in range(3):
                ask(line, subject.request("GET", path))
            return 3 / (time.perf_counter() - start)

        for _ in range(rounds):
            mine, bare = measured(ours, lambda: times(ours, sock)), measured(raw, lambda: times(raw, floor))
            row.take(ours=mine, floor=bare)
    row.show()
    print(f"  ({len(body) / 1e6:.1f} MB; the best of ours took {1000 / row.ours:.0f} ms)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", choices=("get", "write", "watch", "list"))
    given = parser.parse_args()
    by = "wrk, 16 connections" if shutil.which("wrk") else "a raw socket, 16 requests in flight"
    print(f"api, best of {given.rounds} rounds; GETs by {by}")
    print(f"  {'':44} {'ours':>9}  {'floor':>9}  ratio   {'CPU µs ours/floor':>16}  ratio   load")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        homes = {which: Path(folder) / which for which in ("ours", "raw")}
        with served("ours", homes["ours"]) as ours, served("raw", homes["raw"]) as raw:
            if given.only in {None, "get"}:
                bench_gets(ours, raw, rounds=given.rounds, seconds=given.seconds)
            if given.only in {None, "write"}:
                bench_writes(ours, raw, Path(folder), rounds=given.rounds)
            if given.only in {None, "watch"}:
                bench_fan_out(ours, raw, rounds=given.rounds)
            if given.only in {None, "list"}:
                bench_list(ours, raw, rounds=given.rounds)


if __name__ == "__main__":
    main()
