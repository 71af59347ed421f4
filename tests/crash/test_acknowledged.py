"""A server that is killed at any moment under load has every write that it acknowledged, to the last byte."""

import http.client
import json
import random
import signal
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from tests.crash.serving import TOKEN

CLIENTS = 6
NAMES = 40
COLLECTION = "/api/v1/namespaces/default/configmaps"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
STARTED_SECONDS = 60


@contextmanager
def server(folder):
    """Run the program, and give it and its port."""
    command = [sys.executable, "-m", "tests.crash.serving", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def ask(connection, method, path, obj=None):
    connection.request(method, path, json.dumps(obj) if obj else None, HEADERS)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


@dataclass
class Ledger:
    """What one client was told, in order; its own names, so that nobody else changes them."""

    name: int
    # Name → the object as it was last acknowledged, None when its deletion was.
    told: dict[str, dict | None] = field(default_factory=dict)
    # The one write whose outcome the client was not told.
    open_name: str = ""
    count: int = 0

    def write_until_cut(self, port, seed, acknowledged):
        dice = random.Random(f"{seed} {self.name}")
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            while True:
                name = f"client-{self.name}-{dice.randrange(NAMES)}"
                try:
                    self.write_one(connection, name, dice)
                except (OSError, http.client.HTTPException, ValueError):
                    return
                acknowledged.release()

    def write_one(self, connection, name, dice):
        there = self.told.get(name)
        obj = {"metadata": {"name": name}, "data": {"seed": "x" * dice.randrange(3000), "count": str(self.count)}}
        self.open_name = name
        if there is None:
            code, found = ask(connection, "POST", COLLECTION, obj)
            assert code == 201, found
            self.told[name] = found
        elif dice.random() < 0.3:
            code, found = ask(connection, "DELETE", f"{COLLECTION}/{name}")
            assert code == 200, found
            self.told[name] = None
        else:
            obj["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
            code, found = ask(connection, "PUT", f"{COLLECTION}/{name}", obj)
            assert code == 200, found
            self.told[name] = found
        self.open_name = ""
        self.count += 1

    def check(self, found):
        """Compare with what is served; only the write without an answer may have come to either end."""
        for name, told in self.told.items():
            if name == self.open_name:
                continue
            assert found.get(name) == told, name
        if self.open_name:
            self.told[self.open_name] = found.get(self.open_name)
            self.open_name = ""


def served(port):
    """Give what the server lists, and its revision."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        code, listed = ask(connection, "GET", COLLECTION)
    assert code == 200, listed
    kind = {"kind": "ConfigMap", "apiVersion": "v1"}
    found = {item["metadata"]["name"]: {**kind, **item} for item in listed["items"]}
    return found, int(listed["metadata"]["resourceVersion"])


def kills(count, folder):
    """Kill the server again and again; give how many writes were acknowledged in all."""
    ledgers = [Ledger(number) for number in range(CLIENTS)]
    before = 0
    for seed in range(count):
        with server(folder) as (process, port):
            found, revision = served(port)
            assert revision >= before
            for ledger in ledgers:
                ledger.check(found)
            assert set(found) <= {name for ledger in ledgers for name in ledger.told}
            acknowledged = threading.Semaphore(0)
            threads = [
                threading.Thread(target=ledger.write_until_cut, args=(port, seed, acknowledged)) for ledger in ledgers
            ]
            for thread in threads:
                thread.start()
            for _ in range(random.Random(seed).randrange(1, 150)):
                assert acknowledged.acquire(timeout=STARTED_SECONDS)
            process.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join()
        revisions = [
            int(told["metadata"]["resourceVersion"]) for ledger in ledgers for told in ledger.told.values() if told
        ]
        before = max(revisions, default=0)
    with server(folder) as (_, port):
        found, _ = served(port)
        for ledger in ledgers:
            ledger.check(found)
    return sum(ledger.count for ledger in ledgers)


@pytest.mark.timeout(300)
def test_a_server_killed_under_load_has_all_it_acknowledged(tmp_path):
    assert kills(10, tmp_path) > 100


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_server_killed_a_hundred_times_has_all_it_acknowledged(tmp_path):
    assert kills(100, tmp_path) > 1000
