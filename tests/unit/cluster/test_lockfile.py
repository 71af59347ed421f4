"""One process per folder, and whoever only looks is in nobody's way."""

import fcntl
import os
import subprocess
import sys
import threading
import time

import pytest

from paceline.errors import HostError
from paceline.host.lockfile import TRIES, holder, is_ready, lock_file, mark_ready


def test_the_holder_is_named_while_it_holds(tmp_path):
    path = tmp_path / "lock"
    assert holder(path) is None
    with lock_file(path):
        assert holder(path) == os.getpid()
    assert holder(path) is None


def test_a_second_holder_is_refused_and_told_who_the_first_is(tmp_path):
    named = f"{tmp_path} \\(pid {os.getpid()}\\)"
    with lock_file(tmp_path / "lock"), pytest.raises(HostError, match=named), lock_file(tmp_path / "lock"):
        pass


def test_ready_is_what_the_holder_says_and_ends_with_it(tmp_path):
    path = tmp_path / "lock"
    with lock_file(path):
        assert not is_ready(path)
        mark_ready(path)
        assert is_ready(path)
        assert holder(path) == os.getpid()
    assert not is_ready(path)
    with lock_file(path):
        assert not is_ready(path)


def test_what_a_killed_holder_left_is_not_believed(tmp_path):
    path = tmp_path / "lock"
    path.write_text("999999999 ready\n")
    assert holder(path) is None
    assert not is_ready(path)
    with lock_file(path):
        assert path.read_text() == f"{os.getpid()}\n"


def test_what_a_killed_holder_left_is_not_believed_before_the_next_has_written_either(tmp_path):
    path = tmp_path / "lock"
    path.write_text("999999999 ready\n")
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert holder(path) == -1
        assert not is_ready(path)


# Freeing its memory takes a killed process a while, and it holds the lock until then.
LARGE_HOLDER = """
import sys, time
from pathlib import Path
from paceline.host.lockfile import lock_file, mark_ready
path = Path(sys.argv[1])
memory = b"x" * (400 << 20)
with lock_file(path):
    mark_ready(path)
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_holder_that_was_killed_is_not_ready_although_it_still_holds_the_lock(tmp_path):
    path = tmp_path / "lock"
    command = [sys.executable, "-c", LARGE_HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        assert is_ready(path)
        process.kill()
        assert not is_ready(path)
    assert holder(path) is None


def test_whoever_looks_for_longer_than_an_instant_does_not_keep_a_holder_out(tmp_path, monkeypatch):
    path, waits = tmp_path / "lock", []
    with path.open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)

        def wait(seconds):
            waits.append(seconds)
            if len(waits) == 10 * TRIES:
                fcntl.flock(looking, fcntl.LOCK_UN)

        monkeypatch.setattr(time, "sleep", wait)
        with lock_file(path):
            assert len(waits) == 10 * TRIES


def test_whoever_looks_all_the_time_does_not_keep_a_holder_out(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    is_over = threading.Event()

    def look():
        while not is_over.is_set():
            holder(path)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(50):
            with lock_file(path):
                pass
    finally:
        is_over.set()
        looking.join()
