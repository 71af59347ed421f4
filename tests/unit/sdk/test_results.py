"""The files that a job has left are read from the logs of the containers that copy them."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sdk.conftest import JOBS, PODS

from paceline.errors import BadRequest, MethodNotAllowed, NotFound
from paceline.model.gang import ReplicaId
from paceline.podtools.output_tree import Stamp
from paceline.podtools.upload_log import DESTINATION as UPLOADER_GOES_TO
from paceline.podtools.upload_log import kept_line
from paceline.podtools.uploader import Manifest, UploadedFile
from paceline.sdk.results import (
    COUNT,
    GOES_TO,
    ResultFile,
    Uploader,
    UploadLog,
    files_below,
    read_log,
    read_upload_logs,
    results_of,
)

WORKER = ReplicaId("worker", 0)
NOON = "2030-01-31T12:00:00Z"
NAMES = st.text(st.characters(codec="utf-8"), min_size=1)


def line(name, size=1):
    return f"kept {size} {NOON} {name}\n".encode()


def file(name, size=1, replica="worker-0"):
    return ResultFile(replica=replica, name=name, size=size, time=NOON)


def keeper(log, attempt=0, *, is_errand=False, place=WORKER):
    def read():
        if isinstance(log, Exception):
            raise log
        return [log]

    return Uploader(place=place, turn=(is_errand, attempt), read=read)


def told(*keepers):
    return read_upload_logs(keepers, {})[WORKER]


@given(st.lists(NAMES, unique=True), st.integers(0, 2**63 - 1), st.integers(0, 2**33))
def test_every_name_that_is_written_is_read_back(names, size, second):
    stamp = Stamp(size=size, mtime_ns=second * 10**9, inode=1)
    log = "".join(f"{kept_line(name, stamp)}\n" for name in names)

    files, others = read_log("worker-0", log.encode())

    assert list(files) == names
    assert {each.size for each in files.values()} <= {size}
    assert others == []


@pytest.mark.parametrize(
    "name", [" a", "a ", "a b", '"a"', "a\u2028b", "a\nkept 1", "a\x85kept 1", "\\u0041", "中文 名.bin", "\ufeff"]
)
def test_a_name_that_could_be_mistaken_is_read_back(name):
    (read,), others = read_log("worker-0", f"{kept_line(name, Stamp(size=1, mtime_ns=0, inode=1))}\n".encode())

    assert (read, others) == (name, [])


def test_the_uploader_and_this_reader_use_the_same_words():
    stamp = Stamp(size=7, mtime_ns=0, inode=1)
    one = Manifest(job="j", files={"a": UploadedFile(stamp=stamp, sha256="")}).summary("there")

    assert UPLOADER_GOES_TO == GOES_TO
    assert [COUNT.match(each)[1] for each in (one, Manifest(job="j").summary("there"))] == ["1", "0"]


def test_the_last_line_of_a_name_holds_and_other_lines_are_told_apart():
    log = (
        b"results go to there\n" + line("a", 1) + b"full; it is tried again\n" + line("a", 2) + b'kept 1 x y\nkept 1 "'
    )

    assert read_log("worker-0", log) == (
        {"a": file("a", 2)},
        ["results go to there", "full; it is tried again", "kept 1 x y", 'kept 1 "'],
    )


def test_the_latest_run_tells_all_and_none_before_it_is_read():
    found = told(keeper(AssertionError("not asked for"), 0), keeper(b"results go to there\n" + line("new"), 1))

    assert (list(found.files), found.sentence()) == (["new"], "results go to there")


def test_a_run_that_has_told_nothing_yet_does_not_hide_the_one_before_it():
    silent, first = keeper(BadRequest("is waiting to start"), 2), keeper(b"results go to there\n" + line("a", 1), 0)

    found = told(first, silent, keeper(line("b") + line("a", 2) + b"no way; it is tried again\n", 1))

    assert found.files == {"a": file("a", 2), "b": file("b")}
    assert found.sentence() == "no way; it is tried again"


def test_the_errand_that_copied_the_rest_has_the_last_word():
    found = told(
        keeper(b"results go to there\n" + line("a"), 5),
        keeper(
            b"results go to there\n" + line("a") + line("b") + b"2 files, 2 bytes, are in there\n", 0, is_errand=True
        ),
    )

    assert (sorted(found.files), found.sentence()) == (["a", "b"], "2 files, 2 bytes, are in there")


def test_a_list_that_lacks_files_says_so():
    found = UploadLog(replica="worker-0")
    found.add(line("a") + b"3 files, 9 bytes, are in there\n")

    assert "only 1 of them are listed" in found.sentence()
    assert ".paceline/manifest.json" in found.sentence()


@pytest.fixture
def job(stage, job_object):
    def make(output):
        made = job_object(phase="Running", tasks=[{"type": "worker", "replicas": [{"name": "digits-1a2b3-worker-0"}]}])
        made["spec"]["output"] = output
        stage.put(JOBS, made)

    return make


BUCKET = {"bucket": {"url": "s3://runs"}}


def test_the_sidecar_of_every_member_is_asked(stage, session, job, pod_object):
    job(BUCKET)
    for index in (1, 0):
        stage.put(PODS, pod_object(index))
        stage.logs[f"digits-1a2b3-worker-{index}"].append([b"results go to there\n" + line(f"of-{index}")])

    found = results_of(session, "digits")

    assert found.files == (file("of-0"), file("of-1", replica="worker-1"))
    assert found.messages == (("worker-0", "results go to there"), ("worker-1", "results go to there"))
    assert {stage.asked.get()["container"] for _ in (0, 1)} == {"paceline-output"}


def test_an_errand_is_asked_for_the_member_it_copied_for(stage, session, job, pod_object):
    job(BUCKET)
    made = pod_object()
    made["metadata"]["name"] = "digits-1a2b3-flush-big-role-3"
    made["metadata"]["labels"] = {
        "tensorstack.dev/owner-name": "digits",
        "paceline.dev/errand": "flush-big-role-3",
        "paceline.dev/attempt": "0",
    }
    resolve = pod_object(1)
    resolve["metadata"]["labels"] = {**made["metadata"]["labels"], "paceline.dev/errand": "resolve"}
    stage.put(PODS, made)
    stage.put(PODS, resolve)
    stage.logs["digits-1a2b3-flush-big-role-3"].append([b"results go to there\n" + line("a")])

    assert results_of(session, "digits").files == (file("a", replica="big-role-3"),)
    assert "container" not in stage.asked.get()


def test_pods_of_another_job_of_the_name_are_not_asked(stage, session, job, pod_object):
    job(BUCKET)
    stage.put(PODS, pod_object(owner="uid-of-another"))
    stage.logs["digits-1a2b3-worker-0"].append([line("a")])

    assert results_of(session, "digits").files == ()


def test_a_list_that_was_removed_with_its_log_is_said_to_be_and_where_another_one_is(stage, session, job, pod_object):
    job(BUCKET)
    stage.put(PODS, pod_object())
    stage.logs["digits-1a2b3-worker-0"].append(
        "the log of pod digits-1a2b3-worker-0 was removed (yesterday) to free disk space"
    )

    with pytest.raises(
        NotFound, match=r"was removed \(yesterday\).*; the uploaded files are listed in .paceline/manifest.json"
    ):
        results_of(session, "digits")


def test_of_members_whose_list_was_removed_it_is_said_beside_the_lists_of_others(stage, session, job, pod_object):
    job(BUCKET)
    stage.put(PODS, pod_object(0))
    stage.put(PODS, pod_object(1))
    stage.logs["digits-1a2b3-worker-0"].append("was removed")
    stage.logs["digits-1a2b3-worker-1"].append([b"results go to there\n" + line("a")])

    found = results_of(session, "digits")

    assert found.files == (file("a", replica="worker-1"),)
    assert found.messages == (("worker-0", "was removed"), ("worker-1", "results go to there"))


def test_a_job_without_output_is_told_what_to_do(session, job):
    job(None)

    with pytest.raises(
        MethodNotAllowed,
        match=r"pytorchtrainingjob/digits has no results, because spec.output is not set; set it to a bucket",
    ):
        results_of(session, "digits")


def test_a_job_that_never_was_is_missing(session):
    with pytest.raises(NotFound, match="there is no job named 'nobody'"):
        results_of(session, "nobody")


def test_where_nothing_is_copied_files_are_listed_where_they_lie(session, job, tmp_path):
    for name in ("worker-0/x/y.bin", "worker-0/a", "worker-1/a"):
        (tmp_path / "digits" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "digits" / name).write_bytes(b"12")
        os.utime(tmp_path / "digits" / name, (1_896_091_200, 1_896_091_200))
    (tmp_path / "digits" / "worker-1" / "out").symlink_to("/etc")
    (tmp_path / "digits" / "worker-1" / "passwd").symlink_to("/etc/passwd")
    job({"directory": str(tmp_path)})

    here, elsewhere = (results_of(session, "digits", is_here=is_here) for is_here in (True, False))

    assert here.files == (file("a", 2), file("x/y.bin", 2), file("a", 2, replica="worker-1"))
    assert str(tmp_path / "digits") in here.messages[0][1]
    assert (elsewhere.files, "a folder of this machine" in elsewhere.messages[0][1]) == ((), True)


def test_what_lies_on_a_claim_that_nobody_can_look_into_is_said_to_lie_there(session, job):
    job({"claim": "shared", "path": "runs"})

    (said,) = results_of(session, "digits", is_here=True).messages

    assert said == (
        "",
        "results are in runs/digits/ on claim shared; they can be listed only if that is a folder of this machine",
    )


def test_a_folder_with_a_name_that_is_no_text_is_listed(tmp_path):
    (tmp_path / "worker-0").mkdir()
    (tmp_path / "worker-0" / os.fsdecode(b"a\xff")).write_text("")

    (found,) = files_below(tmp_path)

    assert found.name == "a\ufffd"


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    assert list(files_below(tmp_path / "nothing")) == []
