"""What a container may use is what its limits say, and the kernel holds it to that."""

import signal
from decimal import Decimal

import pytest

from tests.e2e.support.containers import HOST, python

CPU_FILE = "cpu.cfs_quota_us" if HOST.cgroups and HOST.cgroups.version == 1 else "cpu.max"
needs_cgroups = pytest.mark.skipif(HOST.cgroups is None, reason="needs the right to make control groups")


@needs_cgroups
async def test_a_program_that_takes_too_much_memory_is_ended_and_said_so(container):
    """H-02, S-03"""
    eater = await container(
        *python("x = bytearray(200 << 20); print(len(x))"), held_to={"memory_bytes": 50 << 20}
    ).start()

    ended = await eater.end()

    assert (ended.exit_code, ended.reason) == (137, "OOMKilled")


@needs_cgroups
async def test_memory_within_the_limit_is_nobodys_business(container):
    modest = await container(
        *python("x = bytearray(20 << 20); print(len(x))"), held_to={"memory_bytes": 100 << 20}
    ).start()

    assert (await modest.end()).reason == "Completed"
    assert await modest.output() == b"20971520\n"


@needs_cgroups
async def test_a_program_that_is_ended_by_another_hand_did_not_lack_memory(container):
    victim = await container("sh", "-c", "kill -9 $$", held_to={"memory_bytes": 50 << 20}).start()

    assert (await victim.end()).reason == "Error"


@needs_cgroups
async def test_a_limit_on_cpus_reaches_the_kernel_and_goes_with_the_container(container):
    """S-03"""
    box = await container(
        "sh", "-c", "cat /proc/self/cgroup; read x < /dev/zero", held_to={"cpus": Decimal("0.5")}
    ).start()
    folders = list(HOST.cgroups.cpu.glob(f"{box.folder.parent.name}.*"))

    assert [(each / CPU_FILE).read_text().split()[0] for each in folders] == ["50000"]
    box.signal(signal.SIGQUIT)
    await box.end()
    assert not [each for each in folders if each.exists()]


@needs_cgroups
async def test_processes_are_counted_where_a_limit_says_so(container):
    storm = "import os, signal\nfor _ in range(100):\n    if os.fork() == 0:\n        signal.pause()"
    box = await container(*python(storm), held_to={"pids": 20}).start()

    ended = await box.end()

    assert ended.exit_code == 1
    assert b"BlockingIOError" in await box.output()
