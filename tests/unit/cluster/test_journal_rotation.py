"""Our own log: bounded, for its owner only, and written by several processes."""

import os
import subprocess
import sys

import pytest

from paceline.cluster.logs import OLD_LOGS, follow_log, open_log

# Logs lines of its own through one handler, as control, agent and supervisor do, into a file of a few kilobytes.
PROGRAM = """
import logging, sys
from pathlib import Path
from paceline.cluster import logs as journal
journal.follow_log.__defaults__ = (4096,)
name, count = sys.argv[2], int(sys.argv[3])
journal.configure_logging(name, Path(sys.argv[1]))
for number in range(count):
    logging.getLogger("test").info("line %d", number)
"""


def run_writers(path, *names, count):
    fd = open_log(path)
    try:
        words = [sys.executable, "-c", PROGRAM, str(path)]
        writers = [subprocess.Popen([*words, name, str(count)], stdout=fd, stderr=fd) for name in names]
        assert [writer.wait(timeout=60) for writer in writers] == [0] * len(names)
    finally:
        os.close(fd)


def test_a_full_log_is_put_aside_and_a_few_old_ones_are_kept(tmp_path):
    path = tmp_path / "paceline.log"

    run_writers(path, "control", count=1000)

    found = sorted(tmp_path.iterdir())
    assert [each.name for each in found] == ["paceline.log", *(f"paceline.log.{n + 1}" for n in range(OLD_LOGS))]
    assert all(each.stat().st_size < 5000 for each in found)
    assert {each.stat().st_mode & 0o777 for each in found} == {0o600}
    # The newest line is in the newest file, and files follow each other without a gap.
    order = [*(path.with_name(f"paceline.log.{n}") for n in range(OLD_LOGS, 0, -1)), path]
    numbers = [int(line.split()[-1]) for each in order for line in each.read_text().splitlines()]
    assert numbers == list(range(numbers[0], 1000))


def test_several_processes_write_to_one_log_and_lose_no_line_but_the_oldest(tmp_path):
    path = tmp_path / "paceline.log"

    run_writers(path, "control", "agent", "supervisor", count=60)

    lines = [line for each in tmp_path.iterdir() for line in each.read_text().splitlines()]
    assert len(lines) == len(set(lines)) == 180
    assert all(each.stat().st_size < 6000 for each in tmp_path.iterdir())


def test_a_log_that_others_may_read_is_closed_to_them(tmp_path):
    path = tmp_path / "paceline.log"
    path.touch(mode=0o644)

    os.close(open_log(path))

    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_moved", [False, True], ids=["removed", "moved away"])
def test_a_log_that_somebody_took_away_is_begun_again(tmp_path, is_moved):
    path = tmp_path / "paceline.log"
    saved = os.dup(2)
    fd = open_log(path)
    os.dup2(fd, 2)
    try:
        path.rename(tmp_path / "elsewhere") if is_moved else path.unlink()
        follow_log(path)
        os.write(2, b"after\n")
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(fd)

    assert path.read_text() == "after\n"


def test_a_log_that_is_a_link_to_a_device_leaves_the_device_open(tmp_path):
    """The modes of /dev/null are everybody's affair."""
    leader, terminal = os.openpty()
    device = os.ttyname(terminal)
    os.fchmod(terminal, 0o622)
    path = tmp_path / "paceline.log"
    path.symlink_to(device)

    os.close(open_log(path))

    assert os.fstat(terminal).st_mode & 0o777 == 0o622
    os.close(terminal)
    os.close(leader)
