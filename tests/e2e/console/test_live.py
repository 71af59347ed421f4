"""What a tab follows arrives once, whatever is killed: the console, the control process, the agent."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.console.browser import Browser
from tests.e2e.console.live_tab import LiveTab
from tests.e2e.console.test_process import address_of

LINES = 600


@pytest.fixture
def tab(cluster: Embedded) -> Iterator[LiveTab]:
    """A tab of a person who is logged in."""
    url = address_of(cluster)
    browser = Browser(host=urlsplit(url).netloc)
    browser.open(url)
    opened = LiveTab(browser)
    yield opened
    opened.close()


def writer(name: str, script: str) -> dict[str, Any]:
    container = {"name": "main", "image": "python:3.11", "command": ["python", "-uc", script]}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "successRules": [{"worker": [0]}],
            "failureRules": [{"worker": [0]}],
            "replicaSpecs": [{"type": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}],
        },
    }


def submit(cluster: Embedded, name: str, script: str) -> str:
    """Submit a job and return the name of its pod."""
    ran = cluster.paceline("submit", "-", stdin=json.dumps(writer(name, script)))
    assert ran.code == 0, ran.err

    def pod() -> str:
        pods = json.loads(cluster.paceline("get", "pods", "-o", "json").out)["items"]
        return next((item["metadata"]["name"] for item in pods if item["metadata"]["name"].startswith(name)), "")

    return wait_until(f"{name} has a pod", pod)


# Ten groups of lines per second, each with one stamp.
TALKING = f"""
import sys, time
for number in range(0, {LINES}, 5):
    sys.stdout.write(''.join(f'line {{number + offset}}\\n' for offset in range(5)))
    sys.stdout.flush()
    time.sleep(0.1)
"""


def phase_of(tab: LiveTab, name: str) -> str:
    return next((row[4] for row in tab.rows.get(1, {}).values() if row[2] == name), "")


def test_a_job_is_seen_from_its_creation_to_its_end_and_its_log_too(cluster: Embedded, tab: LiveTab) -> None:
    tab.subscribe(1, type="rows", resource="jobs", namespace="default")
    pod = submit(cluster, "short", "print('hello')")
    tab.subscribe(2, type="log", namespace="default", pod=pod, container="main", follow=True)
    tab.subscribe(3, type="view", of="job", kind="GenericJob", namespace="default", name="short")
    tab.until(lambda: phase_of(tab, "short") == "Succeeded")
    tab.until(lambda: any(message["type"] == "end" for message in tab.messages))

    assert [line.split(b" ", 1)[1] for line in tab.lines[2]] == [b"hello"]
    tab.until(lambda: [m for m in tab.messages if m["type"] == "view" and m["view"]["phase"] == "Succeeded"])
    assert not [message for message in tab.messages if message["type"] == "error"]


@pytest.mark.slow
def test_no_line_is_lost_or_doubled_whatever_is_killed(cluster: Embedded, tab: LiveTab) -> None:
    pod = submit(cluster, "talking", TALKING)
    tab.subscribe(1, type="rows", resource="jobs", namespace="default")
    tab.subscribe(2, type="log", namespace="default", pod=pod, container="main", follow=True)
    tab.until(lambda: len(tab.lines.get(2, ())) > 20)
    for name in ("console_pid", "agent_pid", "control_pid"):
        pid = wait_until(f"there is a {name}", lambda name=name: getattr(cluster, name))
        os.kill(pid, signal.SIGKILL)
        count = len(tab.lines[2])
        tab.until(lambda count=count: len(tab.lines[2]) > count + 30)
    tab.until(lambda: len(tab.lines[2]) >= LINES and phase_of(tab, "talking") == "Succeeded")

    assert [line.split(b" ", 1)[1] for line in tab.lines[2]] == [b"line %d" % number for number in range(LINES)]
    assert tab.cuts >= 2


@pytest.mark.slow
def test_the_log_of_a_deleted_job_is_read_from_the_archive(cluster: Embedded, tab: LiveTab) -> None:
    pod = submit(cluster, "gone", "print('last words')")
    tab.subscribe(1, type="rows", resource="jobs", namespace="default")
    tab.until(lambda: phase_of(tab, "gone") == "Succeeded")
    assert cluster.paceline("delete", "gone", "--yes").code == 0
    tab.until(lambda: not phase_of(tab, "gone"))
    wait_until("its pod is gone", lambda: pod not in cluster.paceline("get", "pods").out)

    tab.subscribe(2, type="log", namespace="default", pod=pod, container="main", follow=True)
    tab.until(lambda: any(message["type"] == "end" for message in tab.messages))
    code, body = tab.browser.send("GET", f"/api/logs/default/{pod}/main")

    assert [line.split(b" ", 1)[1] for line in tab.lines[2]] == [b"last words"]
    assert (code, body) == (200, b"last words\n")


@pytest.mark.slow
def test_a_tab_that_reads_nothing_is_cut_off(cluster: Embedded, tab: LiveTab) -> None:
    pod = submit(cluster, "flood", "for number in range(1000000): print('x' * 100)")
    socket = tab.connect()
    request = {"type": "log", "namespace": "default", "pod": pod, "container": "main", "follow": True}
    socket.send(json.dumps({"id": 2, **request}))

    def is_cut() -> bool:
        try:
            # It asks for more and more, and takes nothing.
            socket.send(json.dumps({"id": 2, "type": "credit", "bytes": 2**20}))
        except ConnectionClosed:
            return True
        return False

    wait_until("the console has cut it off", is_cut)
