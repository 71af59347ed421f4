"""What processes use, measured on this very machine."""

import subprocess
import sys

import pytest

from paceline.effects import ProcessHandle
from paceline.host.proc_stats import children_of, descendants, measure, processes
from paceline.node.runtime.shim import boot_id, start_ticks

MIB = 2**20
# Works and holds memory in a child, so that only the whole family shows it.
WORKS = """
import os, sys, time
if os.fork() == 0:
    data = b"x" * (48 * 2**20)
    while time.process_time() < 0.3: pass
    print("worked", flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


@pytest.fixture
def worker():
    """A process whose child has worked; its identity."""
    process = subprocess.Popen([sys.executable, "-c", WORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "worked\n"
    yield ProcessHandle(pid=process.pid, start_ticks=start_ticks(process.pid), boot_id=boot_id())
    process.communicate("")


def test_a_family_is_measured_together(worker):
    use = measure(frozenset({worker})).containers[worker]

    assert use.cpu_seconds >= 0.2
    assert 48 * MIB < use.memory_bytes < 200 * MIB
    assert use.age_seconds >= 0


def test_what_is_gone_or_another_by_now_is_not_measured(worker):
    later = ProcessHandle(pid=worker.pid, start_ticks=worker.start_ticks + 1, boot_id=worker.boot_id)

    assert measure(frozenset({later})).containers == {}


@pytest.mark.usefixtures("worker")
def test_the_machine_is_measured():
    node = measure(frozenset()).node

    assert node.cpu_seconds > 0
    assert node.memory_bytes > 48 * MIB
    assert node.age_seconds > 0


def test_children_are_found_below_their_parents(worker):
    table = processes()
    family = list(descendants(worker.pid, children_of(table)))

    assert family[0] == worker.pid
    assert len(family) == 2
    assert table[family[1]].parent == worker.pid
