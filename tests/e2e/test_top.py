"""What pods and nodes use, as `kubectl top` shows it."""

import os
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, processes_with, wait_until
from tests.e2e.manifests import pod, pytorch, text

BUSY = "data = b'x' * (64 * 2**20)\nwhile True: pass"
IDLE = "import signal; signal.pause()"
# Not those of the job that another test runs.
MINE = ("-l", "app in (busy,idle)")


@pytest.fixture(scope="module")
def home(cluster: Embedded) -> Embedded:
    """A cluster with a busy pod and an idle one, both measured."""
    busy = {"name": "main", "command": ["python", "-c", BUSY]}
    idle = {"name": "side", "command": ["python", "-c", IDLE]}
    both = text(pod("busy", busy, idle, app="busy"), pod("idle", idle, app="idle"))
    made = cluster.kubectl("create", "-f", "-", stdin=both)
    assert made.code == 0, made.err
    wait_until("all are measured", lambda: len(rows(cluster, "pods", "--containers")) == 3)
    return cluster


def rows(home: Embedded, *words: str) -> list[list[str]]:
    return [line.split() for line in home.kubectl("top", *words, "--no-headers").out.splitlines()]


def number(text: str) -> int:
    return int("".join(each for each in text if each.isdigit()))


def test_pods_are_shown_with_the_busy_one_first(home: Embedded) -> None:
    wait_until("the busy one is seen to be", lambda: number(rows(home, "pod", "busy")[0][1]) > 100)
    shown = rows(home, "pods", "--sort-by=cpu", *MINE)

    assert [row[0] for row in shown] == ["busy", "idle"]
    assert number(shown[0][2]) > 64
    assert 0 < number(shown[1][2]) < 64


def test_what_is_shown_is_what_the_kernel_says(home: Embedded) -> None:
    """T-10, X-17: memory, within ten percent."""
    (main,) = [row for row in rows(home, "pods", "--containers", *MINE) if row[:2] == ["busy", "main"]]
    pids = [pid for pid, _ in processes_with(BUSY) if is_python(pid)]
    resident = max(rss(pid) for pid in pids)

    assert number(main[3]) == pytest.approx(resident / 2**20, rel=0.1)


def is_python(pid: int) -> bool:
    return "python" in Path(f"/proc/{pid}/comm").read_text()


def rss(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_containers_are_told_apart(home: Embedded) -> None:
    shown = {(row[0], row[1]): number(row[3]) for row in rows(home, "pods", "--containers", *MINE)}

    assert set(shown) == {("busy", "main"), ("busy", "side"), ("idle", "side")}
    assert shown["busy", "main"] > 64 > shown["busy", "side"]


def test_pods_are_chosen_by_label_and_by_name(home: Embedded) -> None:
    assert [row[0] for row in rows(home, "pods", "-l", "app=idle")] == ["idle"]
    assert [row[0] for row in rows(home, "pod", "busy")] == ["busy"]
    nobody = home.kubectl("top", "pods", "-l", "app=nobody")
    assert (nobody.code, nobody.err) == (0, "No resources found in default namespace.\n")


def test_a_node_is_shown_with_its_share(home: Embedded) -> None:
    (node,) = rows(home, "nodes")

    assert node[0] == home.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}").out
    assert number(node[1]) > 0
    assert 0 < number(node[4]) <= 100


def test_what_is_not_there_is_told_in_the_words_of_kubernetes(home: Embedded) -> None:
    pod, node = home.kubectl("top", "pod", "no"), home.kubectl("top", "node", "no")

    assert (pod.code, node.code) == (1, 1)
    assert pod.err == 'Error from server (NotFound): pods "no" not found\n'
    assert node.err == 'Error from server (NotFound): node "no" not found\n'


def test_our_own_command_shows_jobs_pods_and_nodes(home: Embedded) -> None:
    """X-18"""
    job = pytorch("work", command=["python", "-c", BUSY], workers=2)
    assert home.kubectl("create", "-f", "-", stdin=text(job)).code == 0

    def shown() -> list[str]:
        rows = [line.split() for line in home.paceline("top").out.splitlines()[1:]]
        return next((row for row in rows if row[:2] == ["work", "2"]), [])

    row = wait_until("both pods of the job are measured", shown)
    assert number(row[3]) > 128
    pods = home.paceline("top", "pods", "--sort-by", "memory").out.splitlines()
    assert pods[0].split() == ["NAME", "CPU(CORES)", "MEMORY"]
    assert pods[-1].split()[0] == "idle"
    assert len(home.paceline("top", "nodes").out.splitlines()) == 2
    assert home.paceline("top", "everything").code == 2
