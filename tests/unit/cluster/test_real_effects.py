"""The real world keeps the promises that the simulated one makes."""

import asyncio
import errno
import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from paceline.cluster.host_facts import look_at_host, node_name
from paceline.effects import ProcessHandle
from paceline.host.effects import OneThread, RealFiles, RealIds, real_world
from paceline.node.runtime import shim
from paceline.testing.sim.effects import SimClock, SimFiles, SimIds, sim_world


@pytest.fixture(params=["real", "simulated"])
def files(request):
    return RealFiles() if request.param == "real" else SimFiles()


@pytest.fixture
def folder(files, tmp_path):
    place = tmp_path / "deep" / "folder"
    files.make_folder(place)
    return place


def test_a_file_is_replaced_whole_and_with_its_rights(files, folder):
    path = folder / "file"
    files.write(path, b"old")
    files.write(path, b"new", 0o640)

    assert files.read(path) == b"new"
    assert files.names(folder) == ("file",)
    if isinstance(files, RealFiles):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_is_rewritten_in_place(files, folder):
    path = folder / "file"
    files.overwrite(path, b"a longer text")
    before = path.stat().st_ino if isinstance(files, RealFiles) else 0
    files.overwrite(path, b"short")

    assert files.read(path) == b"short"
    if isinstance(files, RealFiles):
        assert path.stat().st_ino == before


def test_a_folder_in_a_volume_is_made_once(files, folder):
    files.make_beneath(folder, "runs/one", 0o755)
    files.write(folder / "runs" / "one" / "file", b"x")
    files.make_beneath(folder, "runs/one", 0o755)
    files.make_beneath(folder, "runs/one/file", 0o755)

    assert files.names(folder / "runs" / "one") == ("file",)
    assert files.sort(folder / "runs" / "one" / "file") == "file"


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc"])
def test_no_folder_is_made_outside_of_a_volume(files, folder, path):
    with pytest.raises(OSError, match="leads out of its folder") as caught:
        files.make_beneath(folder, path, 0o755)

    assert caught.value.errno == errno.EXDEV
    assert files.names(folder.parent) == (folder.name,)


def test_parts_of_a_file_are_read(files, folder):
    path = folder / "file"
    files.write(path, b"0123456789")

    assert files.read_range(path, 2, 3) == b"234"
    assert files.read_range(path, 8, 100) == b"89"
    assert files.read_range(path, 10, 1) == b""
    assert files.size(path) == 10


def test_what_is_missing_is_missing(files, folder):
    for call in (files.read, files.size, lambda path: files.read_range(path, 0, 1)):
        with pytest.raises(FileNotFoundError):
            call(folder / "nothing")
    with pytest.raises(FileNotFoundError):
        files.write(folder / "no" / "folder", b"")
    assert files.names(folder / "nothing") == ()
    assert not files.exists(folder / "nothing")
    files.remove(folder / "nothing")


def test_a_folder_goes_with_all_that_is_in_it(files, folder):
    files.make_folder(folder / "a" / "b")
    files.write(folder / "a" / "b" / "c", b"")
    files.write(folder / "ab", b"")
    assert files.names(folder) == ("a", "ab")
    files.remove(folder / "a")

    assert files.names(folder) == ("ab",)


def test_folders_are_made_once_and_closed_to_others(files, folder):
    files.make_folder(folder)
    files.make_folder(folder / "shared" / "all", 0o777)

    assert files.exists(folder / "shared" / "all")
    if isinstance(files, RealFiles):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "shared" / "all").stat().st_mode) == 0o777
        assert stat.S_IMODE((folder / "shared").stat().st_mode) == 0o755


def test_removing_does_not_follow_links(tmp_path):
    files = RealFiles()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "going").mkdir()
    (tmp_path / "going" / "link").symlink_to(tmp_path / "kept")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    files.remove(tmp_path / "going")
    files.remove(tmp_path / "link")

    assert (tmp_path / "kept" / "file").exists()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    files, path = RealFiles(), tmp_path / "file"
    files.write(path, b"old")

    def full(_fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write(path, b"new")

    assert path.read_bytes() == b"old"
    assert files.names(tmp_path) == ("file",)


def test_a_simulated_power_cut_takes_what_was_not_synced():
    files = SimFiles()
    files.make_folder(Path("/a/b"))
    files.write(Path("/a/b/durable"), b"1")
    files.overwrite(Path("/a/b/durable"), b"2")
    files.overwrite(Path("/a/b/loose"), b"3")
    files.crash()

    assert files.read(Path("/a/b/durable")) == b"1"
    assert files.names(Path("/a/b")) == ("durable",)


@pytest.mark.parametrize("ids", [RealIds(), SimIds(1)])
def test_ids_look_as_kubernetes_wants_them(ids):
    assert len({ids.uid() for _ in range(100)}) == 100
    assert [len(part) for part in ids.uid().split("-")] == [8, 4, 4, 4, 12]
    assert set(ids.suffix(500)) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert len(ids.secret()) >= 43
    assert ids.secret() != ids.secret()


def test_the_same_seed_is_the_same_world():
    one, same, other = (sim_world(seed) for seed in (7, 7, 8))

    assert (one.ids.uid(), one.chance.fraction()) == (same.ids.uid(), same.chance.fraction())
    assert one.ids.uid() != other.ids.uid()


def test_a_simulated_clock_passes_when_told_and_jumps_without_passing():
    clock = SimClock()
    before = clock.now()
    clock.advance(5)
    clock.jump(-60)

    assert (clock.now() - before).total_seconds() == -55
    assert clock.monotonic() == 5


async def test_what_blocks_runs_elsewhere_and_in_order():
    thread, order = OneThread("test"), []
    try:
        await asyncio.gather(*(thread.run(lambda number=number: order.append(number)) for number in range(50)))
        assert await thread.run(threading.get_ident) != threading.get_ident()
    finally:
        thread.close()

    assert order == list(range(50))


async def test_a_process_is_known_by_more_than_its_pid():
    processes = real_world().processes
    child = await asyncio.create_subprocess_exec("sleep", "60")
    who = ProcessHandle(pid=child.pid, start_ticks=shim.start_ticks(child.pid), boot_id=processes.boot_id())
    others = [
        ProcessHandle(pid=who.pid, start_ticks=who.start_ticks + 1, boot_id=who.boot_id),
        ProcessHandle(pid=who.pid, start_ticks=who.start_ticks, boot_id="another boot"),
    ]

    assert processes.alive(who)
    for other in others:
        assert not processes.alive(other)
        processes.signal(other, 9)
        await processes.ended(other)
    assert processes.alive(who)
    processes.signal(who, 9)
    async with asyncio.timeout(10):
        await processes.ended(who)
    assert await child.wait() == -9
    assert not processes.alive(who)
    processes.signal(who, 9)


def test_a_zombie_is_not_alive():
    child = subprocess.Popen(["true"])
    ticks = shim.start_ticks(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    who = ProcessHandle(pid=child.pid, start_ticks=ticks or 0, boot_id=shim.boot_id())

    assert not real_world().processes.alive(who)
    child.wait()


def test_looking_at_a_lock_does_not_take_it(tmp_path):
    processes = real_world().processes
    assert not processes.holds(tmp_path)
    (tmp_path / shim.LOCK).touch()

    assert not processes.holds(tmp_path)
    assert not processes.holds(tmp_path)


@pytest.mark.parametrize(
    ("hostname", "name"),
    [("box", "box"), ("My Laptop.local", "my-laptop.local"), ("ÄÖ", "node"), ("", "node"), ("-a_b-", "a-b")],
)
def test_a_machines_name_becomes_one_that_kubernetes_takes(hostname, name):
    assert node_name(hostname) == name


def test_this_machine_is_described():
    host = look_at_host()

    assert host.cpus >= 1
    assert host.memory_bytes > 2**20
    assert "/usr" in host.folders
    assert Path(host.python_bin).is_dir()
