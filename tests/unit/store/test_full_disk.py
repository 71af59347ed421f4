"""A disk that is really full: writers are told, readers go on, and nothing needs a restart when room comes back."""

import asyncio
import contextlib
import os
import resource
import subprocess
from contextlib import closing

import pytest

from paceline.errors import ServiceUnavailable
from paceline.host.effects import OneThread
from paceline.store.sqlite import SqliteLog
from paceline.testing.contract.store import running

MIB = 1024 * 1024
DISK_BYTES = 6 * MIB
RESERVE_BYTES = MIB


class SmallDisk:
    """A file system in memory with little room."""

    def __init__(self, folder):
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self):
        with self._ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def free(self):
        self._ballast.unlink()

    def shrink(self, size):
        os.truncate(self._ballast, self._ballast.stat().st_size - size)


class SmallFiles:
    """The kernel's limit on the size of files, which any user may lower; Python ignores its signal."""

    def __init__(self, folder):
        self.folder = folder
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self):
        largest = max(path.stat().st_size for path in self.folder.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, self._before[1]))

    def free(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@contextlib.contextmanager
def small_disk(folder):
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mounted, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)


def small_files(folder):
    disk = SmallFiles(folder)
    try:
        yield disk
    finally:
        disk.free()


@pytest.fixture(params=["disk", "files"])
def disk(request, tmp_path):
    make = small_disk if request.param == "disk" else contextlib.contextmanager(small_files)
    with make(tmp_path) as disk:
        yield disk


@pytest.fixture
def small(tmp_path):
    with small_disk(tmp_path) as disk:
        yield disk


async def write_until_refused(store):
    """Count the writes that still found room (the file may have some to use again), and give what was said then."""
    for number in range(1000):
        try:
            await store.create(f"a/{number}", lambda _: bytes(3500))
        except ServiceUnavailable as refused:
            return number, str(refused)
    raise AssertionError("the disk never became full")


async def test_a_full_disk_refuses_writes_and_recovers(disk):
    path = disk.folder / "objects.db"
    with closing(OneThread("store")) as thread:
        async with running(SqliteLog(path, reserve=0), thread) as store:
            await store.create("before", lambda _: bytes(3500))
            with store.watch("", 1) as watch:
                disk.fill()
                acknowledged, said = await write_until_refused(store)
                assert "the disk is full" in said or "the disk refuses writes" in said
                assert store.revision == acknowledged + 1
                assert len(store.list("a/")) == acknowledged
                with pytest.raises(ServiceUnavailable):
                    await store.create("still-full", lambda _: bytes(3500))
                disk.free()
                made = await store.create("after", lambda _: bytes(3500))
                assert made.revision == acknowledged + 2
                assert [one.revision for one in await watch.take()] == list(range(2, made.revision + 1))
        async with running(SqliteLog(path, reserve=0), thread) as store:
            assert store.revision == made.revision
            assert {found.key for found in store.list("")} == {
                "before",
                "after",
                *(f"a/{number}" for number in range(acknowledged)),
            }


async def test_a_full_disk_still_takes_deletes_and_then_takes_its_reserve_back(small):
    path = small.folder / "objects.db"
    with closing(OneThread("store")) as thread:
        async with running(SqliteLog(path, reserve=RESERVE_BYTES), thread) as store:
            for number in range(40):
                await store.create(f"b/{number}", lambda _: bytes(3500))
            reserve = path.with_name("objects.db.reserve")
            assert reserve.stat().st_size == RESERVE_BYTES
            small.fill()
            await write_until_refused(store)
            for number in range(40):
                found = store.get(f"b/{number}")
                # A delete in two steps, as of a pod that is given time to end.
                marked = await store.replace(found.key, lambda _: b"ending", expected=found.revision, urgent=True)
                await store.delete(found.key, lambda _: b"gone", expected=marked.revision)
                with pytest.raises(ServiceUnavailable, match="the disk is full; deletes still work"):
                    await store.create("refused", lambda _: bytes(3500))
            assert store.list("b/") == ()
            assert not reserve.exists()
            small.shrink(3 * RESERVE_BYTES)
            await store.create("after", lambda _: b"")
            assert reserve.stat().st_size == RESERVE_BYTES
        async with running(SqliteLog(path), thread) as store:
            assert store.list("b/") == ()
            assert store.get("after") is not None


async def test_writes_that_were_refused_together_with_a_delete_do_not_hold_it_back(small):
    path = small.folder / "objects.db"
    with closing(OneThread("store")) as thread:
        async with running(SqliteLog(path, reserve=RESERVE_BYTES), thread) as store:
            await store.create("b", lambda _: bytes(3500))
            small.fill()
            large = store.create("large", lambda _: bytes(3 * MIB))
            outcomes = await asyncio.gather(large, store.delete("b", bytes, expected=None), return_exceptions=True)
            assert isinstance(outcomes[0], ServiceUnavailable)
            assert outcomes[1].key == "b"
            assert store.get("large") is None
