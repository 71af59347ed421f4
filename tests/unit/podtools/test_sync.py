"""Results are copied once, whole, and never from elsewhere; copying may stop anywhere and be begun again."""

import json
import mmap
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import obstore
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from paceline.podtools.object_store import BucketConfig, BucketError, BucketFolder, open_bucket
from paceline.podtools.output_tree import PART, list_output
from paceline.podtools.reporting import StepFailed
from paceline.podtools.uploader import MANIFEST, OutputSync, download, restore


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "output"
    folder.mkdir()
    return folder


@pytest.fixture
def bucket(tmp_path):
    return folder_bucket(tmp_path / "bucket")


def folder_bucket(folder):
    return open_bucket(BucketConfig(url=f"file://{folder}", secret={}))


def sync(root, bucket, job="job-1"):
    return OutputSync(root=root, bucket=bucket, job=job)


def names(bucket):
    return {name for name, _ in bucket.objects()} - {MANIFEST}


class Counting:
    """A bucket that counts what is put into it, and refuses from some put on."""

    def __init__(self, inner, room=10**9):
        self.inner, self.room, self.puts = inner, room, []
        self.name = inner.name

    def put(self, key, data, **more):
        if len(self.puts) >= self.room:
            raise BucketError("full")
        self.puts.append(key)
        self.inner.put(key, data, **more)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_files_keep_their_paths_and_bytes(root, bucket):
    (root / "x").mkdir()
    (root / "x" / "y.bin").write_bytes(b"\x00\xff" * 1000)
    (root / "a b ü.txt").write_text("ü")

    manifest = sync(root, bucket).finish()

    assert bucket.get("x/y.bin") == b"\x00\xff" * 1000
    assert bucket.get("a b ü.txt") == "ü".encode()
    assert manifest.summary("there").startswith("2 files, 2002 bytes, are in there")
    assert json.loads(bucket.get(MANIFEST))["complete"] is True


def test_a_large_file_is_copied_whole(root, bucket):
    data = os.urandom(9 * 1024 * 1024)
    (root / "big").write_bytes(data)

    sync(root, bucket).finish()

    assert bucket.get("big") == data


def test_a_file_is_told_when_the_list_that_names_it_is_written_and_not_before(root, bucket):
    told = []
    full = OutputSync(root=root, bucket=Counting(bucket, room=1), job="job-1", on_manifest=told.append)
    (root / "a").write_text("a")
    with pytest.raises(BucketError):
        full.finish()
    assert [list(each.files) for each in told] == [[]]

    OutputSync(root=root, bucket=bucket, job="job-1", on_manifest=told.append).finish()

    assert [list(each.files) for each in told[1:]] == [[], ["a"]]


def test_what_is_there_is_not_copied_again(root, bucket):
    (root / "a").write_text("a")
    sync(root, bucket).finish()
    counting = Counting(bucket)

    sync(root, counting).finish()

    assert counting.puts == [MANIFEST]


def test_a_file_of_the_same_bytes_and_another_time_is_not_copied_again(root, bucket):
    (root / "a").write_text("a")
    sync(root, bucket).finish()
    os.utime(root / "a", (1, 1))
    counting = Counting(bucket)

    sync(root, counting).finish()

    assert set(counting.puts) == {MANIFEST}


def test_a_file_that_changed_is_copied_again(root, bucket):
    (root / "a").write_text("old")
    sync(root, bucket).finish()
    (root / "a").write_text("new")

    sync(root, bucket).finish()

    assert bucket.get("a") == b"new"


def test_a_file_is_left_alone_while_it_is_written(root, bucket):
    running = sync(root, bucket)
    (root / "log").write_text("1")
    running.upload_changes()
    (root / "log").write_text("1, 2")
    running.upload_changes()

    assert names(bucket) == set()

    running.upload_changes()
    assert bucket.get("log") == b"1, 2"


def test_a_link_out_of_the_folder_is_refused_and_said(root, bucket, tmp_path):
    (tmp_path / "secret").write_text("secret-of-the-pod")
    (root / "up").symlink_to(tmp_path / "secret")
    (root / "relative").symlink_to("../secret")
    (root / "chain").symlink_to("up")
    (root / "good").write_text("good")

    manifest = sync(root, bucket).finish()

    assert names(bucket) == {"good"}
    assert set(manifest.refused) == {"up", "relative", "chain"}
    assert "up (leads out of the folder)" in manifest.summary("there")


def test_a_link_through_a_linked_folder_leads_nowhere(root, bucket, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret")
    (root / "door").symlink_to(outside)
    (root / "key").symlink_to("door/key")

    manifest = sync(root, bucket).finish()

    assert names(bucket) == set()
    assert set(manifest.refused) == {"door", "key"}


def test_a_link_to_a_file_inside_is_copied_as_that_file(root, bucket):
    (root / "step-9").write_text("nine")
    (root / "latest").symlink_to("step-9")

    sync(root, bucket).finish()

    assert bucket.get("latest") == b"nine"


def test_a_loop_of_links_and_a_pipe_keep_nobody_waiting(root, bucket):
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    os.mkfifo(root / "pipe")

    manifest = sync(root, bucket).finish()

    assert set(manifest.refused) == {"a", "b", "pipe"}


def test_a_name_that_is_no_text_is_said(root):
    (root / os.fsdecode(b"\xff\xfe")).write_text("x")

    assert list(list_output(root).refused.values()) == ["has a name that is not UTF-8"]


def test_a_name_that_no_bucket_takes_is_said_and_holds_nothing_up(root, bucket):
    (root / "tab\there").write_text("x")
    (root / "two\nlines").mkdir()
    (root / "two\nlines" / "inner").write_text("x")
    (root / "good").write_text("good")

    manifest = sync(root, bucket).finish()

    assert names(bucket) == {"good"}
    assert manifest.refused == dict.fromkeys(
        ("tab\\x09here", "two\\x0alines/inner"), "has a name with a control character"
    )


def test_what_may_not_be_read_is_said_and_holds_nothing_up(root, bucket, monkeypatch):
    """As root everything may be read; so it is the call that says no here, as the kernel does to everybody else."""
    (root / "open").write_text("open")
    (root / "closed").write_text("closed")
    (root / "folder").mkdir()
    (root / "folder" / "inner").write_text("inner")
    real_open = os.open

    def guarded_open(path, *words, **more):
        if path in ("closed", "folder"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *words, **more)

    monkeypatch.setattr(os, "open", guarded_open)
    running = sync(root, bucket)
    running.upload_changes()
    running.upload_changes()
    manifest = running.finish()

    assert names(bucket) == {"open"}
    assert manifest.is_complete
    assert manifest.refused == dict.fromkeys(("closed", "folder"), "may not be read by us")


@pytest.mark.parametrize("place", ["/dev/shm", "/var/tmp"])
def test_what_is_written_through_memory_after_a_copy_is_copied_again(place, bucket):
    """Such a file keeps its time until its pages have been written back, and in memory for ever."""
    with TemporaryDirectory(dir=place) as folder:
        write_through_memory(Path(folder), bucket)


def write_through_memory(root, bucket):
    running = sync(root, bucket)
    with (root / "array").open("w+b") as file:
        file.truncate(4096)
        with mmap.mmap(file.fileno(), 4096) as array:
            array[:5] = b"first"
            running.upload_changes()
            running.upload_changes()
            copied = bucket.get("array")
            array[:5] = b"later"

    sync(root, bucket).finish()

    assert copied[:5] == b"first"
    assert bucket.get("array")[:5] == b"later"


@given(room=st.integers(0, 8), count=st.integers(1, 5))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wherever_copying_stops_the_next_one_completes_it(room, count, tmp_path_factory):
    """What the list names is there; what it does not name comes with the next try; nothing comes under two names."""
    base = tmp_path_factory.mktemp("stop")
    root, inner = base / "output", folder_bucket(base / "bucket")
    root.mkdir()
    for index in range(count):
        (root / f"f{index}").write_text(f"text {index}")
    broken = Counting(inner, room=room)
    try:
        sync(root, broken).finish()
    except BucketError:
        listed = json.loads(inner.get(MANIFEST) or b'{"files": {}}')["files"]
        assert set(listed) <= names(inner)

    sync(root, inner).finish()

    assert names(inner) == {f"f{index}" for index in range(count)}
    assert all(inner.get(f"f{index}") == f"text {index}".encode() for index in range(count))


def test_a_later_try_of_the_same_job_finds_what_an_earlier_one_left(root, bucket, tmp_path):
    (root / "sub").mkdir()
    (root / "sub" / "ckpt").write_text("step 7")
    sync(root, bucket).finish()
    empty = tmp_path / "fresh"
    empty.mkdir()

    assert restore(empty, bucket, "job-1") == 1
    assert (empty / "sub" / "ckpt").read_text() == "step 7"


@pytest.mark.parametrize("is_running", [True, False], ids=["while it ran", "in the end"])
def test_what_the_command_deleted_stays_in_the_bucket_and_does_not_come_back_to_it(root, bucket, is_running):
    """A lock, or the oldest of some checkpoints."""
    running = sync(root, bucket)
    (root / "lock").write_text("held")
    (root / "kept").write_text("kept")
    running.upload_changes()
    running.upload_changes()
    (root / "lock").unlink()
    running.upload_changes() if is_running else running.finish()
    (root / "kept").unlink()

    assert restore(root, bucket, "job-1") == 1
    assert [path.name for path in root.iterdir()] == ["kept"]
    assert names(bucket) == {"lock", "kept"}


def test_a_file_that_came_back_is_listed_as_being_there(root, bucket):
    running = sync(root, bucket)
    (root / "lock").write_text("held")
    running.finish()
    (root / "lock").unlink()
    running.finish()
    (root / "lock").write_text("held")
    running.finish()
    (root / "lock").unlink()

    assert restore(root, bucket, "job-1") == 1


def test_a_name_as_long_as_names_may_be_comes_back(root, tmp_path):
    long = "x" * 255
    inside = tmp_path / "in memory"
    inside.mkdir()
    bucket = BucketFolder(store=MemoryStore(), name="memory")
    (root / long).write_text("x")
    sync(root, bucket).finish()

    assert restore(inside, bucket, "job-1") == 1
    assert [path.name for path in inside.iterdir()] == [long]


def test_what_was_half_brought_is_no_result(root):
    """Whoever is killed cleans nothing up."""
    (root / f"{PART}0123").write_text("half")

    assert list_output(root).files == {}


def test_an_object_may_be_larger_than_ten_thousand_usual_pieces(bucket, monkeypatch):
    asked = []
    monkeypatch.setattr(obstore, "put", lambda *_, **more: asked.append(more["chunk_size"]))
    bucket.put("huge", iter(()), size=200 * 1024**3)

    assert 200 * 1024**3 / asked[0] <= 10_000


def test_another_job_of_the_same_name_begins_with_nothing(root, bucket, tmp_path):
    (root / "ckpt").write_text("step 7")
    sync(root, bucket).finish()
    empty = tmp_path / "fresh"
    empty.mkdir()

    assert restore(empty, bucket, "job-2") == 0
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "a//b", "."])
def test_a_name_that_leads_out_is_refused_on_the_way_in(root, bucket, name):
    with pytest.raises(StepFailed, match="leads out"):
        download(root, bucket, name)
