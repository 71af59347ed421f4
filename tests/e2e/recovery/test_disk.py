"""A store on a disk that is full, read-only, torn, damaged or gone: said clearly, and nothing acknowledged is lost."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, Ran, folder_for_cluster, wait_until
from tests.e2e.support.counting_job import Counting
from tests.e2e.support.reboot import crash_machine, up_after_reboot

pytestmark = pytest.mark.slow

DISK_BYTES = 40 * 1024 * 1024
EXT4_BYTES = 64 * 1024 * 1024


def config(name: str, size: int = 0) -> str:
    data = {"name": name, "more": "x" * size}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def create(cluster: Embedded, name: str, size: int = 0) -> Ran:
    return cluster.kubectl("create", "-f", "-", stdin=config(name, size))


def names(cluster: Embedded) -> set[str]:
    """The names of all config maps, each of which must be whole."""
    listed = cluster.kubectl("get", "configmaps", "-o", "json")
    assert listed.code == 0, listed.err
    ours = [each for each in json.loads(listed.out)["items"] if each["metadata"]["name"] != "kube-root-ca.crt"]
    found = {each["metadata"]["name"]: each["data"]["name"] for each in ours}
    assert all(name == inside for name, inside in found.items())
    return set(found)


def up(cluster: Embedded) -> None:
    started = cluster.paceline("up", "-d")
    assert started.code == 0, started.err


def refused_up(cluster: Embedded) -> str:
    """Try to start, and give what is said to the person who did: nothing that only a programmer could read."""
    started = cluster.paceline("up", "-d")
    assert started.code != 0
    assert started.out == ""
    assert "Traceback" not in started.err
    assert started.err.startswith("error: ")
    assert cluster.control_pid is None
    return started.err


def crash(cluster: Embedded) -> None:
    cluster.kill_control_plane()


@pytest.fixture
def folder() -> Iterator[Embedded]:
    with folder_for_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(folder: Embedded) -> Embedded:
    up(folder)
    return folder


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"this test must be root, to mount a disk of its own:\n{' '.join(words)}: {done.stderr}"
    )


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    run("mount", *options, str(folder))
    # Whoever copies the machine's mounts meanwhile, for a namespace, lets go of this one when we do.
    run("mount", "--make-shared", str(folder))
    try:
        yield
    finally:
        # Lazily: a cluster that a failed test has left may still use it.
        run("umount", "--lazy", str(folder))


@pytest.fixture
def on_small_disk(folder: Embedded) -> Iterator[Embedded]:
    """A cluster whose store has a disk of a few megabytes for itself."""
    with mounted(folder.settings.store.parent, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs"):
        up(folder)
        yield folder
        wait_until("nothing uses the disk", lambda: stopped(folder))


@pytest.fixture
def on_ext4(folder: Embedded, tmp_path: Path) -> Iterator[Embedded]:
    """A cluster whose store has a file system for itself, as a disk has that may go read-only."""
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(EXT4_BYTES)
    run("mkfs.ext4", "-q", str(image))
    with mounted(folder.settings.store.parent, "-o", "loop", str(image)):
        up(folder)
        yield folder
        wait_until("nothing uses the disk", lambda: stopped(folder))


def stopped(cluster: Embedded) -> bool:
    cluster.paceline("down", "--keep-jobs")
    return cluster.control_pid is None


def fill(disk: Path) -> Path:
    """Take all the room there is."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return ballast
    raise AssertionError


def create_until_refused(cluster: Embedded, prefix: str = "tight", size: int = 0) -> tuple[set[str], str]:
    """Create until there is no room (the file may have some to use again); what was taken, and what was said then."""
    taken: set[str] = set()
    for number in range(500):
        made = create(cluster, f"{prefix}-{number}", size)
        if made.code != 0:
            return taken, made.err
        taken.add(f"{prefix}-{number}")
    raise AssertionError("the disk never became full")


def test_a_full_disk_refuses_writes_answers_reads_and_ends_nothing(on_small_disk: Embedded) -> None:
    cluster = on_small_disk
    disk = cluster.settings.store.parent
    job = Counting(cluster=cluster, lines=50, is_held=True)
    job.submit()
    running = job.wait_running()
    assert create(cluster, "before").code == 0
    ballast = fill(disk)

    taken, said = create_until_refused(cluster)

    assert "ServiceUnavailable" in said
    assert "the disk is full" in said
    assert str(disk) in said
    ours = cluster.paceline("submit", "-", stdin=config("ours"))
    assert ours.code == 3, ours
    assert "the disk is full" in ours.err
    # Reads are answered, and what runs runs on.
    assert names(cluster) == {"before", *taken}
    assert job.processes() == running
    job.wait_printed()
    job.let_go()
    wait_until("the job has ended", lambda: not job.processes())
    assert job.status()["phase"] == "Running"
    # Room comes back, and everything goes on by itself.
    ballast.unlink()
    job.wait("Succeeded")
    assert create(cluster, "after").code == 0
    crash(cluster)
    up(cluster)
    assert names(cluster) == {"before", "after", *taken}
    assert sorted(job.logs().values()) == job.printed()


def test_a_cluster_starts_on_a_full_disk_and_answers_reads(on_small_disk: Embedded, tmp_path: Path) -> None:
    cluster = on_small_disk
    assert create(cluster, "before").code == 0
    ballast = fill(cluster.settings.store.parent)
    taken, _ = create_until_refused(cluster)
    # A reboot too, so that there is something to write from the first moment on.
    crash_machine(cluster)

    up_after_reboot(cluster, tmp_path)

    assert names(cluster) == {"before", *taken}
    # What the write-ahead log took is used again: a few more writes may find room.
    _, said = create_until_refused(cluster, "more", 200_000)
    assert "the disk is full" in said
    ballast.unlink()
    assert create(cluster, "after").code == 0


def test_a_disk_that_turns_read_only_refuses_writes_and_recovers_with_a_restart(
    on_ext4: Embedded, tmp_path: Path
) -> None:
    cluster = on_ext4
    disk = cluster.settings.store.parent
    job = Counting(cluster=cluster, lines=3, is_held=True)
    job.submit()
    running = job.wait_running()
    job.wait_printed()
    assert create(cluster, "before").code == 0
    # What the kernel does to a file system that it finds damaged.
    run("mount", "-o", "remount,abort", str(disk))

    refused = create(cluster, "refused")

    assert refused.code != 0
    assert "read-only" in refused.err
    assert str(disk) in refused.err
    assert names(cluster) == {"before"}
    assert job.processes() == running
    assert all("line 2" in said for said in job.logs().values())
    # The kernel lets go of such a file system only when nobody uses it.
    assert cluster.paceline("down", "--keep-jobs").code == 0
    image = tmp_path / "disk"
    run("umount", str(disk))
    run("mount", "-o", "loop", str(image), str(disk))
    run("mount", "--make-shared", str(disk))
    up(cluster)
    assert create(cluster, "after").code == 0
    assert names(cluster) == {"before", "after"}
    assert job.processes() == running
    job.let_go()
    assert job.wait("Succeeded")["attempt"] == 0


def test_a_read_only_disk_keeps_a_cluster_from_starting_until_it_can_be_written(on_ext4: Embedded) -> None:
    cluster = on_ext4
    disk = cluster.settings.store.parent
    assert create(cluster, "before").code == 0
    assert cluster.paceline("down").code == 0
    run("mount", "-o", "remount,ro", str(disk))

    said = refused_up(cluster)

    assert str(disk) in said
    assert "Read-only file system" in said
    run("mount", "-o", "remount,rw", str(disk))
    up(cluster)
    assert names(cluster) == {"before"}


def test_garbage_after_the_last_record_is_what_it_is(cluster: Embedded) -> None:
    made = {f"made-{number}" for number in range(5)}
    assert all(create(cluster, name).code == 0 for name in made)
    crash(cluster)
    with wal_of(cluster).open("ab") as wal:
        wal.write(os.urandom(6000))

    up(cluster)

    assert names(cluster) == made
    assert create(cluster, "after").code == 0


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda wal: os.truncate(wal, wal.stat().st_size - 1), id="its last byte is cut off"),
        pytest.param(lambda wal: os.truncate(wal, wal.stat().st_size // 2), id="half of it is cut off"),
        pytest.param(lambda wal: flip(wal, wal.stat().st_size // 2), id="a byte of it is flipped"),
        pytest.param(lambda wal: wal.unlink(), id="it is gone"),
    ],
)
def test_a_write_ahead_log_that_lost_acknowledged_writes_is_not_served(cluster: Embedded, harm) -> None:
    assert all(create(cluster, f"made-{number}").code == 0 for number in range(5))
    crash(cluster)
    harm(wal_of(cluster))

    said = refused_up(cluster)

    assert str(cluster.settings.store) in said
    assert "restore a backup" in said
    # Nothing was done about it behind the person's back.
    assert refused_up(cluster) == said


def test_who_accepts_the_loss_goes_on_without_what_is_lost(cluster: Embedded) -> None:
    assert all(create(cluster, f"made-{number}").code == 0 for number in range(5))
    crash(cluster)
    os.truncate(wal_of(cluster), wal_of(cluster).stat().st_size - 1)
    assert "`paceline up --discard-damaged-state`" in refused_up(cluster)

    started = cluster.paceline("up", "-d", "--discard-damaged-state")

    assert started.code == 0, started.err
    assert "are lost" in started.err
    assert names(cluster) == {f"made-{number}" for number in range(4)}
    # Whoever knows a revision of before has to list again: none of them comes a second time.
    old = cluster.kubectl("get", "--raw", "/api/v1/configmaps?watch=1&resourceVersion=3&timeoutSeconds=1")
    assert json.loads(old.out.splitlines()[0])["object"]["reason"] == "Expired"


def wal_of(cluster: Embedded) -> Path:
    return cluster.settings.store.with_name(f"{cluster.settings.store.name}-wal")


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def test_a_store_whose_disk_is_not_mounted_is_missed_and_its_jobs_run_on(cluster: Embedded) -> None:
    job = Counting(cluster=cluster, lines=3, is_held=True)
    job.submit()
    running = job.wait_running()
    assert cluster.paceline("down", "--keep-jobs").code == 0
    store = cluster.settings.store.parent
    store.rename(cluster.home / "elsewhere")

    said = refused_up(cluster)

    assert str(cluster.settings.store) in said
    assert "mount" in said
    assert job.processes() == running
    store.rmdir()
    (cluster.home / "elsewhere").rename(store)
    up(cluster)
    job.let_go()
    assert job.wait("Succeeded")["attempt"] == 0


def test_a_damaged_object_is_named_and_not_served(cluster: Embedded) -> None:
    assert create(cluster, "whole").code == 0
    assert create(cluster, "broken").code == 0
    assert cluster.paceline("down").code == 0
    data = cluster.settings.store.read_bytes()
    place = data.index(b'"name":"broken"')
    flip(cluster.settings.store, place + len(b'"name":"'))

    said = refused_up(cluster)

    assert "configmaps/default/broken" in said
    assert str(cluster.settings.store) in said
    assert "restore a backup" in said

    started = cluster.paceline("up", "-d", "--discard-damaged-state")

    assert started.code == 0, started.err
    # Of two copies, in the log and beside it, one is whole.
    assert names(cluster) == {"whole", "broken"}


def test_what_is_no_database_is_not_overwritten(cluster: Embedded) -> None:
    assert cluster.paceline("down").code == 0
    cluster.settings.store.write_bytes(b"something else entirely\n" * 400)

    said = refused_up(cluster)

    assert "is not a database" in said
    assert str(cluster.settings.store) in said
    assert cluster.settings.store.read_bytes().startswith(b"something else")


def test_two_control_processes_never_share_a_folder(cluster: Embedded) -> None:
    control = cluster.control_pid

    # Past the command's own look: the process itself is refused, too.
    second = cluster.command(
        sys.executable, "-m", "paceline.cluster.control_plane_main", str(cluster.home), stdin="", seconds=60
    )

    assert second.code != 0
    assert f"pid {control}" in second.err
    assert str(cluster.home) in second.err
    assert "Traceback" not in second.err
    assert cluster.control_pid == control
    assert create(cluster, "after").code == 0
