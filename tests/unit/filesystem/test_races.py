"""A container that exchanges a folder for a link, as fast as it can, has our code reach nothing outside of its volume.

Five of six places where we work in folders that job code can write to; the sixth, `subPath`, takes a real sandbox and
is in tests/e2e/storage/test_volume_races.py.
"""

import os
import stat

import pytest

from paceline.apimachinery.builtin.storage_annotations import FOLDERS, PROVISIONED_BY
from paceline.client.event_recorder import Recorder
from paceline.host.effects import RealChance, RealFiles
from paceline.node.logs.logs import RotatedLog
from paceline.node.runtime import cri_log
from paceline.node.volumes.reclaim import VolumeReclaimer
from paceline.podtools.object_store import BucketConfig, open_bucket
from paceline.podtools.output_tree import list_output
from paceline.podtools.reporting import StepFailed
from paceline.podtools.uploader import MANIFEST, OutputSync, download
from paceline.testing.sim.effects import SimBlocking
from tests.racing import SECONDS, exchanging, rounds

FILES = RealFiles()
SECRET = b"S" * 500_000


@pytest.fixture
def outside(tmp_path):
    """What no container may reach: a folder with a file that only its owner may read."""
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    for each in (folder / "secret", folder / "inner" / "secret"):
        each.write_bytes(SECRET)
        each.chmod(0o600)
    return folder


@pytest.fixture
def volume(tmp_path):
    folder = tmp_path / "volume"
    folder.mkdir()
    return folder


def set_out(volume, outside):
    """Lay out a folder and, under the name that it is exchanged with, a link to what lies outside."""
    (volume / "sub" / "inner").mkdir(parents=True, exist_ok=True)
    for each in (volume / "sub" / "secret", volume / "sub" / "inner" / "secret"):
        each.touch()
    if not os.path.lexists(volume / "other"):
        (volume / "other").symlink_to(outside)


def set_up(tree, outside):
    """Lay a tree out under another name first: whoever makes files in it must not be led astray either."""
    staging = tree.with_name("staging")
    set_out(staging, outside)
    staging.rename(tree)


def is_untouched(outside):
    every = [outside, *outside.rglob("*")]
    return [(each.name, each.stat().st_size * each.is_file(), stat.S_IMODE(each.stat().st_mode)) for each in every]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("seconds", SECONDS)
def test_a_volume_is_given_to_a_group_and_nothing_else_is(volume, outside, seconds):
    set_out(volume, outside)
    # Files too: a link in place of a file that is about to get the rights of all.
    (volume / "file").touch(mode=0o4777)
    (volume / "file-link").symlink_to(outside / "secret")
    before = is_untouched(outside)
    with (
        exchanging(volume / "sub", volume / "other"),
        exchanging(volume / "file", volume / "file-link"),
    ):
        for _ in rounds(seconds):
            os.chown(volume, -1, 0)
            FILES.share(volume, 4321)
            assert is_untouched(outside) == before
            assert {each.stat().st_gid for each in (outside, *outside.rglob("*"))} == {0}


@pytest.mark.parametrize("seconds", SECONDS)
def test_a_tree_is_removed_and_nothing_outside_of_it(volume, outside, seconds):
    before = is_untouched(outside)
    tree = volume / "tree"
    with exchanging(tree / "sub", tree / "other"):
        for _ in rounds(seconds):
            set_up(tree, outside)
            FILES.remove(tree)
            assert not tree.exists()
            assert is_untouched(outside) == before


@pytest.mark.parametrize("seconds", SECONDS)
def test_what_lies_outside_is_not_measured(volume, outside, seconds):
    set_out(volume, outside)
    most = FILES.used(volume) + 100_000
    with exchanging(volume / "sub", volume / "other"):
        for _ in rounds(seconds):
            assert FILES.used(volume) < most


class Deletes:
    """A cluster from which volumes are deleted, and nothing else is asked."""

    def __init__(self):
        self.deleted = []

    async def delete(self, _where, key, _options):
        self.deleted.append(key)


def released(name, path):
    marks = {PROVISIONED_BY: FOLDERS}
    return {
        "metadata": {"name": name, "uid": "v-1", "resourceVersion": "7", "annotations": marks},
        "spec": {"hostPath": {"path": str(path)}, "persistentVolumeReclaimPolicy": "Delete"},
        "status": {"phase": "Released"},
    }


UID = "0b2c3d4e-1111-4222-8333-444455556666"


@pytest.mark.parametrize("seconds", SECONDS)
async def test_the_folder_of_a_claim_is_removed_and_nothing_else(volume, outside, seconds):
    ours, key = volume / f"team-data-{UID[:8]}", ("", f"pvc-{UID}")
    set_out(volume / "mounted", outside)
    (outside / ours.name).mkdir()
    before = is_untouched(outside)
    cluster = Deletes()
    volumes = {
        key: released(key[1], ours),
        # Through a claim that a container writes to: its folder may be a link by now.
        ("", "astray"): released(key[1], volume / "mounted" / "sub" / ours.name),
        ("", "copied"): released("copied", outside / "inner"),
    }
    reclaim = VolumeReclaimer(
        cluster=cluster,
        files=FILES,
        blocking=SimBlocking(),
        chance=RealChance(),
        volumes=volumes,
        recorder=Recorder(cluster, None, component="test"),
        root=volume,
    )
    with (
        exchanging(volume / "mounted" / "sub", volume / "mounted" / "other"),
        exchanging(ours / "sub", ours / "other"),
    ):
        for _ in rounds(seconds):
            set_up(ours, outside)
            for each in volumes:
                await reclaim.reconcile(each)
            assert not ours.exists()
            assert is_untouched(outside) == before
    assert set(cluster.deleted) == {key}


@pytest.mark.parametrize("seconds", SECONDS)
def test_results_are_copied_from_their_folder_and_from_nowhere_else(volume, outside, tmp_path, seconds):
    set_out(volume, outside)
    (outside / "only-here").symlink_to("secret")
    (volume / "file").write_text("mine")
    (volume / "file-link").symlink_to(outside / "secret")
    bucket = open_bucket(BucketConfig(url=f"file://{tmp_path / 'bucket'}", secret={}))
    running = OutputSync(root=volume, bucket=bucket, job="job-1")
    with (
        exchanging(volume / "sub", volume / "other"),
        exchanging(volume / "file", volume / "file-link"),
    ):
        for _ in rounds(seconds):
            look = list_output(volume)
            assert not [name for name in (*look.files, *look.refused) if name.endswith("only-here")]
            assert {stamp.size for stamp in look.files.values()} <= {0, 4}
            running.upload_changes()
    kept = [each for each in (tmp_path / "bucket").rglob("*") if each.is_file() and str(each)[-13:] != MANIFEST[-13:]]
    assert {each.stat().st_size for each in kept} <= {0, 4}


@pytest.mark.parametrize("seconds", SECONDS)
def test_what_comes_back_from_a_bucket_is_written_to_its_folder(volume, outside, tmp_path, seconds):
    set_out(volume, outside)
    (tmp_path / "bucket" / "sub").mkdir(parents=True)
    (tmp_path / "bucket" / "sub" / "secret").write_bytes(b"new")
    bucket = open_bucket(BucketConfig(url=f"file://{tmp_path / 'bucket'}", secret={}))
    before = is_untouched(outside)
    came = 0
    with exchanging(volume / "sub", volume / "other"):
        for _ in rounds(seconds):
            try:
                download(volume, bucket, "sub/secret")
                came += 1
            except StepFailed:
                assert is_untouched(outside) == before
            assert is_untouched(outside) == before
    assert came


@pytest.mark.parametrize("seconds", SECONDS)
def test_a_log_goes_on_beside_its_first_file_and_nowhere_else(volume, outside, seconds, monkeypatch):
    monkeypatch.setattr(cri_log, "FILE_BYTES", 64)
    before = is_untouched(outside)
    monkeypatch.chdir(volume)
    # The name of the next file is known to whoever counts bytes.
    second = volume / f"log.{64:020d}"
    second.touch()
    (volume / "other").symlink_to(outside / "secret")
    with exchanging(second, volume / "other"):
        for _ in rounds(seconds):
            (volume / "log").unlink(missing_ok=True)
            log = cri_log.CriLog("log")
            for _ in range(3):
                log.write(b"x" * 63 + b"\n")
            os.close(log._fd)
            assert is_untouched(outside) == before
            pages = RotatedLog(FILES, volume)
            assert b"S" not in pages.read_range(0, 1000) + pages.read_range(64, 1000)
