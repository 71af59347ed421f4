"""What jobs and pods wrote is found after they were deleted, until it is removed by policy; and that is said."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, folder_for_cluster, wait_until
from tests.e2e.support.manifests import pytorch, text
from tests.e2e.support.shell_pods import make_pod, run_pod, shell, show, told


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded() as running:
        yield running


def delete(cluster: Embedded, what: str, name: str) -> None:
    gone = cluster.kubectl("delete", what, name, "--wait=true")
    assert gone.code == 0, gone.err


def kept(cluster: Embedded, namespace: str = "default") -> list[dict[str, object]]:
    (node,) = json.loads(cluster.kubectl("get", "nodes", "-o", "json").out)["items"]
    path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/history/{namespace}"
    # An agent that was just killed answers when the next one is there.
    said = wait_until("the agent answers", lambda: cluster.kubectl("get", "--raw", path).out)
    items: list[dict[str, object]] = json.loads(said)["items"]
    return items


def test_the_log_of_a_deleted_pod_is_kept(cluster: Embedded) -> None:
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    container = shell("echo out; echo err >&2; touch /scratch/large", volumeMounts=mounts)
    run_pod(cluster, "spoke", container, volumes=[{"name": "scratch", "emptyDir": {}}])
    uid = show(cluster, "pod", "spoke")["metadata"]["uid"]
    delete(cluster, "pod", "spoke")
    wait_until("it is in the past", lambda: [each for each in kept(cluster) if each["pod"] == "spoke"])

    said = cluster.paceline("logs", "spoke")
    assert said.code == 0, said.err
    assert sorted(said.out.splitlines()) == ["err", "out"]
    assert "pod spoke was deleted" in said.err
    assert cluster.paceline("logs", "pod/spoke", "--tail", "1").out.count("\n") == 1
    (past,) = (cluster.settings.agent / "history" / "default").glob(f"*/spoke.{uid}")
    assert {path.name for path in past.rglob("*")}.isdisjoint({"large", "intent.json"})
    assert not (cluster.settings.agent / "pods" / uid).exists()


def test_the_members_of_a_deleted_job_are_told_apart_and_so_are_two_jobs_of_one_name(
    cluster: Embedded, tmp_path: Path
) -> None:
    """T-09"""
    for round_ in ("first", "second"):
        path = tmp_path / f"{round_}.yaml"
        path.write_text(text(pytorch("twice", command=["sh", "-c", f"echo {round_} of rank $RANK"], workers=2)))
        ran = cluster.paceline("run", str(path))
        assert ran.code == 0, ran.out + ran.err
        assert cluster.paceline("delete", "twice", "--yes").code == 0
        wait_until("all members are in the past", lambda: len(of_job(cluster, "twice")) >= 2)

    wait_until("all members of both are in the past", lambda: len(of_job(cluster, "twice")) == 4)
    said = cluster.paceline("logs", "twice", "--all")
    assert said.code == 0, said.err
    lines = sorted(line.partition("│ ")[2] for line in said.out.splitlines())
    assert lines == ["second of rank 0", "second of rank 1"]
    one = cluster.paceline("logs", "twice", "--role", "worker", "--index", "1")
    assert one.out == "second of rank 1\n"

    third = pytorch("twice", command=["true"], workers=1)
    third["spec"]["runMode"] = {"pause": {"enabled": True}}
    (tmp_path / "third.yaml").write_text(text(third))
    assert cluster.paceline("submit", str(tmp_path / "third.yaml")).code == 0
    silent = cluster.paceline("logs", "twice")
    assert (silent.code, silent.out) == (1, "")


def of_job(cluster: Embedded, job: str) -> list[dict[str, object]]:
    return [each for each in kept(cluster) if each["job"] == job]


def test_a_name_that_nobody_ever_had_is_said(cluster: Embedded) -> None:
    said = cluster.paceline("logs", "nobody")

    assert said.code == 1
    assert "nobody" in said.err


@pytest.mark.slow
def test_what_a_pod_wrote_is_kept_when_the_agent_is_killed_while_the_pod_goes(cluster: Embedded) -> None:
    names = [f"victim-{number}" for number in range(5)]
    for name in names:
        make_pod(cluster, name, shell(f"echo last words of {name}; exec sleep 1000"))
    for name in names:
        wait_until(f"{name} has spoken", lambda name=name: cluster.kubectl("logs", name).out)
    assert cluster.kubectl("delete", "pod", *names, "--wait=false").code == 0
    for _ in range(3):
        pid = wait_until("an agent runs", lambda: cluster.agent_pid)
        os.kill(pid, signal.SIGKILL)
        wait_until("another agent runs", lambda pid=pid: cluster.agent_pid not in (None, pid))

    def all_kept() -> bool:
        return set(names) <= {str(each["pod"]) for each in kept(cluster)}

    wait_until("all of them are in the past", all_kept)
    assert [cluster.paceline("logs", name).out for name in names] == [f"last words of {name}\n" for name in names]


@pytest.mark.slow
def test_what_is_more_than_the_policy_keeps_goes_the_oldest_first_and_it_is_said() -> None:
    with folder_for_cluster() as cluster:
        (cluster.home / "settings.yaml").write_text("history: {pods: 2}\n")
        assert cluster.paceline("up", "-d").code == 0
        make_pod(cluster, "runs", shell("echo still here; exec sleep 1000"))
        for name in ("one", "two", "three"):
            run_pod(cluster, name, shell(f"echo {name}"))
            delete(cluster, "pod", name)
            wait_until("it is in the past", lambda name=name: [e for e in kept(cluster) if e["pod"] == name])

        wait_until("one was removed", lambda: [each for each in kept(cluster) if "prunedAt" in each])
        assert cluster.paceline("logs", "three").out == "three\n"
        assert cluster.paceline("logs", "two").out == "two\n"
        said = cluster.paceline("logs", "one")
        assert said.code == 1
        assert "was removed" in said.err
        assert "settings.yaml" in said.err
        assert cluster.kubectl("logs", "runs").out == "still here\n"
        (node,) = json.loads(cluster.kubectl("get", "nodes", "-o", "json").out)["items"]
        assert "removed logs of 1 pods" in told(cluster, node["metadata"]["name"], "HistoryPruned")
