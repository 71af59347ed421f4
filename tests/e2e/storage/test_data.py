"""Data in and results out on a real cluster: folders, claims and a real S3 server."""

import json
import os
from datetime import UTC, datetime
from typing import Any

import pytest

from paceline.errors import HostError
from paceline.model.well_known_labels import OWNER_NAME
from paceline.podtools.object_store import BucketConfig, BucketFolder, open_bucket
from paceline.testing.embedded import Embedded, wait_until
from paceline.testing.s3_server import KEY_ID, S3Server, s3_server
from tests.e2e.support.data_jobs import (
    beside_pods,
    ended,
    job,
    log,
    processes_that_show,
    secret,
    stages,
    status,
    submit,
)

# One that no other test uses: whoever shows it is one of ours.
KEY = f"very-secret-key-of-{os.getpid()}"
KEYS = {"accessKeyId": KEY_ID, "accessKeySecret": KEY}
BOTH = ["a.txt", "b.txt"]


@pytest.fixture(scope="module")
def store(cluster: Embedded):
    try:
        with s3_server(host=beside_pods(cluster)) as running:
            running.make_bucket("results")
            yield running
    except HostError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def known(cluster: Embedded):
    """A secret with the keys of the bucket."""
    submit(cluster, secret("keys", **KEYS))
    return "keys"


def bucket(store: S3Server, folder: str = "", **more: str) -> dict[str, str]:
    return {"url": f"s3://results/{folder}".rstrip("/"), "endpoint": store.address, **more}


def opened(store: S3Server, folder: str) -> BucketFolder:
    return open_bucket(BucketConfig(url=f"s3://results/{folder}", endpoint=store.address, secret=KEYS))


def files(there: BucketFolder) -> dict[str, bytes]:
    return {name: there.get(name) or b"" for name, _ in there.objects() if "/.paceline/" not in f"/{name}"}


def test_s24_s14_a_folder_of_the_machine_is_read_at_input_and_takes_results(cluster, tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "b.txt").write_text("data")
    (tmp_path / "out").mkdir()
    command = "cat /input/a/b.txt; mkdir -p /output/x; echo $HOSTNAME >/output/x/y.bin; echo no >/input/c"
    spec = {"input": {"directory": str(tmp_path / "in")}, "output": {"directory": str(tmp_path / "out")}}
    submit(cluster, job("folder", f"{command} || true", workers=2, **spec))

    found = ended(cluster, "folder")

    assert found["phase"] == "Succeeded", found
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.bin")}
    assert written == {"folder/worker-0/x/y.bin", "folder/worker-1/x/y.bin"}
    assert not (tmp_path / "in" / "c").exists()
    assert "data" in log(cluster, found)


def test_s24_a_folder_that_is_not_there_is_said_where_the_job_waits(cluster, tmp_path):
    submit(cluster, job("nofolder", "true", input={"directory": str(tmp_path / "nowhere")}))

    said = wait_until("the job says why it waits", lambda: status(cluster, "nofolder").get("waiting", ""))

    assert str(tmp_path / "nowhere") in said


def test_s13_s14_s50_results_of_every_worker_are_in_the_bucket_when_the_job_has_succeeded(cluster, store, known):
    opened(store, "data").put("a/b.txt", b"of the bucket")
    command = "cat /input/a/b.txt; mkdir /output/x; hostname >/output/x/y.bin; ln -s /etc/passwd /output/out"
    spec = {
        "input": {"bucket": bucket(store, "data", secret=known)},
        "output": {"bucket": bucket(store, "runs", secret=known)},
    }
    submit(cluster, job("both", command, workers=2, **spec))

    found = ended(cluster, "both")
    there = files(opened(store, "runs/both"))

    assert found["phase"] == "Succeeded", found
    assert log(cluster, found) == "of the bucket"
    names = [row["name"] for row in found["tasks"][0]["replicas"]]
    assert there == {f"worker-{index}/x/y.bin": f"{name}\n".encode() for index, name in enumerate(names)}
    for index in (0, 1):
        said = stages(found, index)["output"]
        assert (said["exitCode"], "out (leads out of the folder)" in said["message"]) == (0, True), said
    claims = json.loads(cluster.kubectl("get", "pvc", "-o", "json").out)["items"]
    assert {
        each["metadata"]["ownerReferences"][0]["name"] for each in claims if "both" in each["metadata"]["name"]
    } == {"both"}


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["directory", "bucket"])
def test_h21_the_same_job_keeps_its_results_wherever_it_is_told_to(cluster, store, known, kept, tmp_path):
    place = {"directory": str(tmp_path)} if kept == "directory" else {"bucket": bucket(store, "same", secret=known)}

    submit(cluster, job(f"same-{kept}", "mkdir -p /output/x; printf made > /output/x/y.bin", output=place))

    assert ended(cluster, f"same-{kept}")["phase"] == "Succeeded"
    if kept == "directory":
        made = (tmp_path / "same-directory" / "worker-0" / "x" / "y.bin").read_bytes()
    else:
        made = files(opened(store, "same/same-bucket"))["worker-0/x/y.bin"]
    assert made == b"made"


@pytest.mark.slow
def test_s50_what_a_failed_command_left_is_kept_too(cluster, store, known):
    command = "echo half >/output/half.txt; exit 3"
    submit(cluster, job("broken", command, output={"bucket": bucket(store, "runs", secret=known)}))

    found = ended(cluster, "broken")

    assert (found["phase"], found["failure"]["exitCode"]) == ("Failed", 3)
    assert files(opened(store, "runs/broken")) == {"worker-0/half.txt": b"half\n"}


@pytest.mark.slow
def test_s51_what_a_stopped_job_left_is_kept_too(cluster, store, known):
    command = "echo before >/output/a.txt; trap 'echo last >/output/b.txt; exit 0' TERM; while :; do sleep 0.1; done"
    submit(cluster, job("stopped", command, output={"bucket": bucket(store, "runs", secret=known)}))
    there = opened(store, "runs/stopped")
    wait_until("a file is copied while the command runs", lambda: "worker-0/a.txt" in files(there))

    assert cluster.paceline("stop", "stopped").code == 0
    wait_until("its last words are there", lambda: files(there).get("worker-0/b.txt") == b"last\n")
    pods = ("get", "pods", "-l", f"{OWNER_NAME}=stopped", "-o", "name")
    wait_until("its pods are gone", lambda: not cluster.kubectl(*pods).out)
    wait_until("both are listed", lambda: [each["name"] for each in results(cluster, "stopped")["items"]] == BOTH)


@pytest.mark.slow
def test_a_bucket_that_refuses_is_said_before_the_command_runs(cluster, store, known):
    spec = {"output": {"bucket": {"url": "s3://nobucket/x", "endpoint": store.address, "secret": known}}}
    submit(cluster, job("refused", "echo ran", **spec))

    found = ended(cluster, "refused")

    assert (found["phase"], found["failure"]["container"]) == ("Failed", "paceline-restore")
    assert "NoSuchBucket" in found["failure"]["message"]
    assert KEY not in json.dumps(found)


@pytest.mark.slow
def test_s08_a_next_try_finds_what_the_one_before_it_wrote(cluster, store, known):
    command = "if [ -e /output/step ]; then echo again; exit 0; fi; echo 7 >/output/step; exit 9"
    again = {"policy": "OnFailure", "limit": 2}
    submit(cluster, job("again", command, restart=again, output={"bucket": bucket(store, "runs", secret=known)}))

    found = ended(cluster, "again")

    assert (found["phase"], log(cluster, found)) == ("Succeeded", "again\n")
    assert files(opened(store, "runs/again")) == {"worker-0/step": b"7\n"}


@pytest.mark.slow
def test_no_key_of_a_bucket_is_in_what_people_and_commands_see(cluster, store, known):
    command = "env; ls -a / /paceline-secrets 2>&1; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; true"
    submit(cluster, job("curious", command, output={"bucket": bucket(store, "runs", secret=known)}))

    found = ended(cluster, "curious")

    shown = "".join(
        cluster.kubectl(*words).out
        for words in (("get", "genericjobs,pods,events", "-o", "yaml"), ("describe", "genericjob,pods"))
    )
    logs = "".join(log(cluster, found, each) for each in ("main", "paceline-restore", "paceline-output"))
    assert "paceline-output" in shown
    assert KEY not in shown + logs
    assert not processes_that_show(KEY)


def results(cluster: Embedded, name: str) -> dict[str, Any]:
    listed = cluster.paceline("results", name, "-o", "json")
    assert listed.code == 0, listed.err
    found: dict[str, Any] = json.loads(listed.out)
    return found


@pytest.mark.slow
def test_s47_logs_hold_what_was_printed_and_results_are_listed_apart_also_when_the_job_is_gone(cluster, store, known):
    event = r"\012\000\377\001brain.Event:2"
    command = (
        f"mkdir /output/logs; printf '{event}' >'/output/logs/events.out.tfevents 0'; echo printed; "
        "until [ -e /output/go ]; do sleep 0.1; done; printf weights >'/output/模型 .bin'"
    )
    submit(cluster, job("apart", command, output={"bucket": bucket(store, "runs", secret=known)}))
    wait_until("a file is listed while the command runs", lambda: results(cluster, "apart")["items"])
    pod = status(cluster, "apart")["tasks"][0]["replicas"][0]["name"]
    assert cluster.kubectl("exec", pod, "-c", "main", "--", "touch", "/output/go").code == 0

    assert ended(cluster, "apart")["phase"] == "Succeeded"

    wanted = {"go": 0, "logs/events.out.tfevents 0": 17, "模型 .bin": 7}
    listed = results(cluster, "apart")
    check_listed(listed, wanted)
    assert cluster.paceline("logs", "apart").out == "printed\n"
    assert "brain.Event" not in cluster.kubectl("logs", pod, "--all-containers").out
    assert files(opened(store, "runs/apart"))["worker-0/logs/events.out.tfevents 0"] == b"\n\0\xff\1brain.Event:2"
    assert KEY not in json.dumps(listed)
    shown = cluster.paceline("results", "apart")
    assert shown.out.splitlines()[0].split() == ["REPLICA", "SIZE", "TIME", "NAME"]
    assert "worker-0: 3 files, 24 bytes, are in s3://results/runs/apart/worker-0" in shown.err

    assert cluster.paceline("delete", "apart", "--yes").code == 0
    gone = wait_until("its pods are in the past", lambda: gone_results(cluster, "apart"))
    assert gone == listed
    assert cluster.paceline("logs", "apart").out == "printed\n"


def gone_results(cluster: Embedded, name: str) -> dict[str, Any] | None:
    is_gone = not json.loads(cluster.kubectl("get", "pods", "-l", f"{OWNER_NAME}={name}", "-o", "json").out)["items"]
    listed = cluster.paceline("results", name, "-o", "json")
    return json.loads(listed.out) if is_gone and listed.code == 0 else None


def check_listed(listed: dict[str, Any], wanted: dict[str, int]) -> None:
    assert {(each["replica"], each["name"]): each["size"] for each in listed["items"]} == {
        ("worker-0", name): size for name, size in wanted.items()
    }
    for each in listed["items"]:
        age = datetime.now(UTC) - datetime.fromisoformat(each["time"])
        assert abs(age.total_seconds()) < 300, each
    said = f"{len(wanted)} files, {sum(wanted.values())} bytes, are in s3://results/runs/apart/worker-0"
    assert listed["replicas"] == [{"replica": "worker-0", "message": said}]


def test_s47_a_job_that_keeps_nothing_is_told_what_to_do(cluster):
    submit(cluster, job("nowhere", "true"))

    refused = cluster.paceline("results", "nowhere")

    assert (refused.code, refused.out) == (1, "")
    assert "genericjob/nowhere has no results, because spec.output is not set; set it to a bucket" in refused.err
    assert ended(cluster, "nowhere")["phase"] == "Succeeded"
    assert cluster.paceline("delete", "nowhere", "--yes").code == 0
    said = "nowhere was deleted and did not upload results to a bucket"
    wait_until("it is told apart from a job that never was", lambda: said in cluster.paceline("results", "nowhere").err)


@pytest.mark.slow
def test_x31_results_on_a_claim_stay_when_the_job_goes(cluster):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    writes = job("writes", "echo kept >/output/a.txt", output={"claim": "shared", "path": "runs"})
    submit(cluster, claim, writes)
    assert ended(cluster, "writes")["phase"] == "Succeeded"
    assert [(each["name"], each["size"]) for each in results(cluster, "writes")["items"]] == [("a.txt", 5)]
    assert cluster.kubectl("delete", "genericjob", "writes").code == 0
    submit(cluster, job("reads", "cat /input/writes/worker-0/a.txt", input={"claim": "shared", "path": "runs"}))

    assert log(cluster, ended(cluster, "reads")) == "kept\n"


@pytest.mark.slow
def test_s50_what_a_pod_left_that_was_deleted_by_force_is_copied_by_another(cluster, store, known):
    command = "echo closed >/output/a.txt; echo ready; sleep 1000"
    submit(cluster, job("forced", command, output={"bucket": bucket(store, "runs", secret=known)}))

    def running() -> str:
        rows = (status(cluster, "forced").get("tasks") or [{}])[0].get("replicas") or [{}]
        name = str(rows[0].get("name", ""))
        return name if name and "ready" in cluster.kubectl("logs", name, "-c", "main").out else ""

    pod = wait_until("the command has written its file", running)
    assert cluster.kubectl("delete", "pod", pod, "--grace-period=0", "--force").code == 0

    found = ended(cluster, "forced")

    assert found["phase"] == "Failed"
    assert files(opened(store, "runs/forced")) == {"worker-0/a.txt": b"closed\n"}
    assert "flush-worker-0" in cluster.kubectl("get", "pods", "-L", "paceline.dev/errand").out
    assert [(each["name"], each["size"]) for each in results(cluster, "forced")["items"]] == [("a.txt", 7)]
