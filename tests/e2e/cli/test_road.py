"""One job travels the whole road, through our command and through the real kubectl."""

import json
import re
import socket
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, arguments, leftovers
from tests.e2e.support.manifests import claim, generic, pytorch, text


def written(folder: Path, name: str, content: str) -> str:
    path = folder / name
    path.write_text(content)
    return str(path)


def member_logs(cluster: Embedded, job: str) -> str:
    return cluster.kubectl("logs", "-l", f"tensorstack.dev/owner-name={job}", "--tail=-1").out


def test_two_jobs_at_once_do_not_disturb_each_other(cluster: Embedded, meet_script: str) -> None:
    jobs = [pytorch(name, command=["python", "-c", meet_script, name], workers=2) for name in ("left", "right")]
    created = cluster.kubectl("create", "-f", "-", stdin=text(*jobs))
    assert created.code == 0, created.err

    for name in ("left", "right"):
        waited = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pj/{name}", "--timeout=60s")
        assert waited.code == 0, cluster.kubectl("get", "pj", name, "-o", "yaml").out
        lines = sorted(member_logs(cluster, name).splitlines())
        assert lines == [f"job {name} rank {rank} of 2: sum 1" for rank in (0, 1)]


def test_a_port_on_which_another_program_listens_is_not_handed_out(cluster: Embedded, meet_script: str) -> None:
    def master_port(name: str) -> int:
        job = pytorch(name, command=["python", "-c", meet_script, name], workers=2)
        job["spec"]["replicaSpecs"][0]["template"]["spec"]["hostNetwork"] = True
        assert cluster.kubectl("create", "-f", "-", stdin=text(job)).code == 0
        waited = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pj/{name}", "--timeout=60s")
        assert waited.code == 0, cluster.kubectl("get", "pj", name, "-o", "yaml").out
        return int(json.loads(cluster.kubectl("get", "pj", name, "-o", "json").out)["status"]["ports"]["master"])

    usual = master_port("usual")
    with socket.create_server(("0.0.0.0", usual)):
        assert master_port("other") != usual


def test_our_command_and_kubectl_bring_the_same_result(cluster: Embedded, meet_script: str, tmp_path: Path) -> None:
    ours = pytorch("by-paceline", command=["python", "-c", meet_script, "x"], workers=2)
    theirs = pytorch("by-kubectl", command=["python", "-c", meet_script, "x"], workers=2)

    ran = cluster.paceline("run", written(tmp_path, "job.yaml", text(ours)))
    assert ran.code == 0, ran.out + ran.err
    assert "job x rank 0 of 2: sum 1" in ran.out
    assert cluster.kubectl("create", "-f", "-", stdin=text(theirs)).code == 0
    waited = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pj/by-kubectl", "--timeout=60s")
    assert waited.code == 0, waited.err

    results = []
    for name in ("by-paceline", "by-kubectl"):
        job = json.loads(cluster.kubectl("get", "pj", name, "-o", "json").out)
        status = job["status"]
        pods = [replica["name"].replace(name, "NAME") for task in status["tasks"] for replica in task["replicas"]]
        hashed = [re.sub(r"NAME-[0-9a-f]{5}-", "NAME-HASH-", pod) for pod in pods]
        conditions = {each["type"]: each["status"] for each in status["conditions"]}
        results.append((status["phase"], status["aggregate"], hashed, conditions))
    assert results[0] == results[1]
    assert results[0][2] == ["NAME-HASH-worker-0", "NAME-HASH-worker-1"]


def test_a_claim_is_mounted_where_the_job_says_and_outlives_it(cluster: Embedded, tmp_path: Path) -> None:
    volume = [{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}]
    mount = [{"name": "data", "mountPath": "/t9k/mnt"}]
    write = pytorch(
        "writer",
        command=["sh", "-c", "echo model > result.txt && cat result.txt"],
        workers=1,
        volumes=volume,
        volumeMounts=mount,
        workingDir="/t9k/mnt",
    )
    path = written(tmp_path, "job.yaml", text(claim("kept"), write))
    assert cluster.paceline("run", path).code == 0
    assert cluster.paceline("delete", "pj/writer", "--yes").code == 0

    read = pytorch("reader", command=["cat", "/elsewhere/result.txt"], workers=1, volumes=volume)
    read["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "data", "mountPath": "/elsewhere"}
    ]
    ran = cluster.paceline("run", written(tmp_path, "read.yaml", text(read)))
    assert ran.code == 0, ran.out + ran.err
    assert "model" in ran.out.splitlines()


def test_a_failed_job_says_which_pod_and_why_and_exits_1(cluster: Embedded, tmp_path: Path) -> None:
    """T-11, H-05"""
    job = generic("breaks", command=["sh", "-c", "echo about to break; exit 7"])
    ran = cluster.paceline("run", written(tmp_path, "job.yaml", text(job)))

    assert ran.code == 1
    said = ran.out + ran.err
    assert "exit code 7" in said
    assert re.search(r"breaks-[0-9a-f]{5}-worker-0", said)
    status = json.loads(cluster.kubectl("get", "gj", "breaks", "-o", "json").out)["status"]
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["Failed"] == conditions["Completed"] == conditions["ReplicaFailure"] == "True"
    assert conditions["Running"] == "False"
    described = cluster.paceline("describe", "breaks").out
    assert "about to break" in described
    assert "exit code 7" in described or "7" in described


def test_deleting_a_running_job_leaves_no_process(cluster: Embedded, tmp_path: Path) -> None:
    # The trap keeps its marks in the command line, so that the processes can be found from outside.
    """H-05"""
    job = generic(
        "long", command=["python", "-c", "import time; print('up', flush=True); time.sleep(1000)"], replicas=2
    )
    assert cluster.paceline("submit", written(tmp_path, "job.yaml", text(job))).code == 0
    waited = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "gj/long", "--timeout=60s")
    assert waited.code == 0, waited.err

    assert cluster.kubectl("delete", "gj", "long", "--wait=true").code == 0
    gone = cluster.kubectl("wait", "--for=delete", "pods", "-l", "tensorstack.dev/owner-name=long", "--timeout=60s")
    assert gone.code == 0, gone.err
    running = [words for pid in leftovers(cluster.home) if "shim" in " ".join(words := arguments(pid))]
    assert running == []


@pytest.mark.parametrize("what", ["pods", "pytorchtrainingjobs", "gj", "nodes", "events", "pvc", "services"])
def test_kubectl_lists_what_our_users_ask_for(cluster: Embedded, what: str) -> None:
    listed = cluster.kubectl("get", what)

    assert listed.code == 0, listed.err
    assert "error" not in listed.err.lower()
