"""The node agent's own disk is full: nothing that runs is ended or forgotten, and all goes on when there is room."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, folder_for_cluster, wait_until
from tests.e2e.support.shell_pods import ended, make_pod, phase, shell, show

DISK_MIB, MORE_MIB = 12, 256
# More than the disk has.
LINES = 300_000

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk of its own")]


@contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[], None]]:
    """Give a folder a disk of its own, and a way to make that larger."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "none", folder], check=True)
    try:
        yield lambda: subprocess.run(["mount", "-o", f"remount,size={MORE_MIB}m", folder], check=True)
    finally:
        # Lazily: what a failed test has left may still use it.
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def cluster() -> Iterator[tuple[Embedded, Callable[[], None]]]:
    """A cluster whose pods' folders are on a small disk, and a way to make that larger."""
    with folder_for_cluster() as made, small_disk(made.settings.agent) as enlarge:
        started = made.paceline("up", "-d")
        assert started.code == 0, started.err
        yield made, enlarge
        made.paceline("down", "--keep-jobs")


def is_full(cluster: Embedded) -> bool:
    return not os.statvfs(cluster.settings.agent).f_bavail


def talk(cluster: Embedded, name: str, lines: int) -> None:
    """Start a pod that prints numbered lines."""
    script = f"for i in range({lines}): print(i, 'of many lines, each of which takes some room')"
    make_pod(cluster, name, {"name": "main", "image": "python:3.11", "command": ["python", "-c", script]})


def said_all(cluster: Embedded, name: str, lines: int) -> bool:
    found = cluster.kubectl("logs", name).out.splitlines()
    return found == [f"{number} of many lines, each of which takes some room" for number in range(lines)]


def end_of(cluster: Embedded, name: str) -> dict:
    return show(cluster, "pod", name)["status"]["containerStatuses"][0]["state"].get("terminated") or {}


def events_of(cluster: Embedded, name: str) -> str:
    fields = f"involvedObject.name={name},type=Warning"
    return cluster.kubectl("get", "events", "--field-selector", fields, "-o", "jsonpath={.items[*].message}").out


def kill_agent(cluster: Embedded) -> None:
    before = cluster.agent_pid
    os.kill(before or 0, signal.SIGKILL)
    wait_until("the next agent is there", lambda: cluster.agent_pid not in (None, before))


def test_on_a_full_disk_pods_wait_and_end_as_they_should(
    cluster: tuple[Embedded, Callable[[], None]], tmp_path: Path
) -> None:
    embedded, enlarge = cluster
    volume = [{"name": "gate", "hostPath": {"path": str(tmp_path)}}]
    waits = shell(
        "until [ -e /gate/go ]; do sleep 0.1; done; exit 7", volumeMounts=[{"name": "gate", "mountPath": "/gate"}]
    )
    make_pod(embedded, "waits", waits, volumes=volume)
    make_pod(embedded, "stays", shell("echo up; sleep 1000"))
    for name in ("waits", "stays"):
        wait_until(f"{name} runs", lambda n=name: phase(embedded, "pod", n) == "Running")
    talk(embedded, "talks", LINES)
    wait_until("the disk is full", lambda: is_full(embedded))

    # How a pod ends is on record although there is no room.
    (tmp_path / "go").touch()
    assert ended(embedded, "waits") == "Failed"
    assert end_of(embedded, "waits")["exitCode"] == 7
    # The next agent finds its way, too; what runs runs on.
    kill_agent(embedded)
    wait_until("the agent answers", lambda: embedded.kubectl("logs", "stays").out == "up\n")
    assert phase(embedded, "pod", "talks") == "Running"
    # Who comes now waits, and is told why.
    make_pod(embedded, "late", shell("echo here"))
    wait_until("it is said", lambda: "No space left" in events_of(embedded, "late"))
    # A pod that goes takes what it has with it.
    gone = embedded.kubectl("delete", "pod", "stays", "--timeout=60s")
    assert gone.code == 0, gone.err
    assert embedded.agent_pid

    enlarge()

    assert ended(embedded, "late") == "Succeeded"
    assert ended(embedded, "talks") == "Succeeded"
    assert said_all(embedded, "talks", LINES)
    uid = show(embedded, "pod", "talks")["metadata"]["uid"]
    (record,) = (embedded.settings.agent / "pods" / uid).glob("containers/main/0/exit.json")
    assert json.loads(record.read_text())["lostLogBytes"] == 0


def test_a_pod_that_fills_the_disk_can_be_deleted_which_makes_room(
    cluster: tuple[Embedded, Callable[[], None]],
) -> None:
    embedded, _ = cluster
    talk(embedded, "talks", LINES)
    wait_until("the disk is full", lambda: is_full(embedded))
    make_pod(embedded, "late", shell("echo here"))

    gone = embedded.kubectl("delete", "pod", "talks", "--timeout=60s")

    assert gone.code == 0, gone.err
    assert ended(embedded, "late") == "Succeeded"
    assert embedded.kubectl("logs", "late").out == "here\n"
