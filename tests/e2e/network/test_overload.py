"""Overload: whatever one client does, another that behaves is answered within a second, and the node is renewed.

The counts are small in `make test` and full in `make soak`.
"""

import contextlib
import json
import threading
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, folder_for_cluster, paceline_command
from tests.e2e.support.overload import MIB, Beside, Target, allow_many_files, flood, half_sent
from tests.e2e.support.shell_pods import run_pod, shell

pytestmark = pytest.mark.slow

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
# Twice the pause between two renewals is a missed one.
RENEW_SECONDS = 10.0
MOST_SECONDS, MOST_BYTES = 1.0, 100 * MIB
FULL = pytest.mark.soak
FEW_FILES = 1024


@pytest.fixture(scope="module", autouse=True)
def _many_files():
    allow_many_files()


@pytest.fixture(scope="module")
def target(cluster: Embedded) -> Target:
    return Target(cluster)


def assert_unharmed(beside: Beside) -> None:
    noticed = beside.noticed
    assert noticed.failed == ()
    assert noticed.p99 <= MOST_SECONDS
    assert all(gap < 2 * RENEW_SECONDS for gap in noticed.gaps)
    assert noticed.growth <= MOST_BYTES
    beside.assert_memory_comes_back()


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=FULL)])
def test_half_sent_requests_harm_nobody(target: Target, count: int) -> None:
    with contextlib.ExitStack() as stack, Beside(target) as beside:
        opened = half_sent(target, count, stack)
        assert len(opened) == count
        # None is waited for longer than ten seconds, and each is told so.
        assert all(told(connection) == 408 for connection in opened)
    assert_unharmed(beside)


def told(connection) -> int:
    return int(connection.makefile("rb").readline().split()[1])


HEADS = {"headers": b"X-A: b\r\n" * 1000, "url": b"a" * 8000, "value": b"a" * 8000}


@pytest.mark.parametrize("size", [8, pytest.param(60, marks=FULL)])
def test_heads_without_end_harm_nobody(target: Target, size: int) -> None:
    start = f"GET /api HTTP/1.1\r\nHost: {target.host}\r\n"
    first = {"headers": start, "url": "GET /", "value": f"{start}X: "}
    with Beside(target) as beside:
        for sort, piece in HEADS.items():
            with target.dial() as connection:
                code, body = flood(connection, first[sort].encode(), piece, size * MIB)
            # A client that goes on sending for long enough is cut off before it can read.
            assert code in {None, 414 if sort == "url" else 431}
            assert code is None or json.loads(body)["code"] == code
        beside.wait(1)
    assert_unharmed(beside)


@pytest.mark.parametrize(("count", "events"), [(40, 40), pytest.param(500, 300, marks=FULL)])
def test_watches_that_nobody_reads_harm_nobody(target: Target, count: int, events: int) -> None:
    said = {"data": {"a": "x" * 20_000}}
    made = [f"watched-{count}-{number}" for number in range(events)]
    # What is stored stays: it is there before anything is measured.
    for name in made:
        assert target.ask("POST", CONFIG_MAPS, json.dumps({"metadata": {"name": name}, **said}).encode())[0] == 201
    with contextlib.ExitStack() as stack, Beside(target) as beside:
        for _ in range(count):
            connection = stack.enter_context(target.dial())
            connection.sendall(target.head("GET", f"{CONFIG_MAPS}?watch=1"))
        for name in made:
            target.ask("DELETE", f"{CONFIG_MAPS}/{name}")
        beside.wait(2)
    assert_unharmed(beside)


@pytest.mark.parametrize("count", [5000, pytest.param(20_000, marks=FULL)])
def test_owner_references_harm_nobody(target: Target, count: int) -> None:
    owners = [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": f"u{number}"} for number in range(count)]
    body = json.dumps({"metadata": {"name": "owned", "ownerReferences": owners}}).encode()
    with Beside(target) as beside:
        codes = {target.ask("POST", f"{CONFIG_MAPS}?dryRun=All", body)[0] for _ in range(3)}
        beside.wait(1)
    # With the names of its fields, the larger is more than an object may have.
    assert codes == {201 if count < 10_000 else 413}
    assert_unharmed(beside)


@pytest.mark.parametrize(("clients", "objects"), [(4, 200), pytest.param(20, 1500, marks=FULL)])
def test_selectors_of_many_rules_harm_nobody(target: Target, clients: int, objects: int) -> None:
    for number in range(objects):
        said = {"metadata": {"name": f"labelled-{clients}-{number}", "labels": {"a": "b", "c": "d"}}}
        target.ask("POST", CONFIG_MAPS, json.dumps(said).encode())
    rules = ",".join(f"!x{number}" for number in range(1900))
    codes = []

    def ask() -> None:
        path = f"{CONFIG_MAPS}?labelSelector={rules},a=none"
        codes.extend(target.ask("GET", path)[0] for _ in range(3))

    with Beside(target) as beside:
        threads = [threading.Thread(target=ask) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        beside.wait(1)
    assert codes == [200] * 3 * clients
    assert_unharmed(beside)


@pytest.mark.parametrize("count", [FEW_FILES + 100])
def test_half_sent_requests_lock_nobody_out_where_few_files_may_be_open(count: int) -> None:
    with folder_for_cluster() as cluster:
        up = f"ulimit -n {FEW_FILES} && exec {paceline_command()} up -d"
        ran = cluster.command("sh", "-c", up, stdin="", seconds=120)
        assert ran.code == 0, ran.err
        target = Target(cluster)
        with contextlib.ExitStack() as stack, Beside(target) as beside:
            half_sent(target, count, stack)
            beside.wait(2)
        assert_unharmed(beside)
        assert cluster.paceline("get", "nodes").code == 0


def test_malformed_requests_do_not_grow_the_log(target: Target) -> None:
    before = target.cluster.settings.log.stat().st_size
    for _ in range(50):
        with target.dial() as connection:
            connection.sendall(b"no request at all\r\n\r\n")
            assert told(connection) == 400

    assert target.cluster.settings.log.stat().st_size == before


def test_pods_have_the_usual_limit_on_open_files() -> None:
    """Ours is raised; what it was is what pods get."""
    with folder_for_cluster() as cluster:
        up = f"ulimit -S -n 900 && exec {paceline_command()} up -d"
        assert cluster.command("sh", "-c", up, stdin="", seconds=120).code == 0
        assert run_pod(cluster, "limits", shell("ulimit -S -n")) == ["900"]
        limits = (cluster.control_pid, cluster.agent_pid)
        assert all(soft_limit(pid) > 900 for pid in limits)


def soft_limit(pid: int) -> int:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(int(line.split()[3]) for line in lines if line.startswith("Max open files"))
