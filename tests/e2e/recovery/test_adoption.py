"""What was lost without anybody to record it: with the whole machine, or with the container's keeper alone."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.counting_job import MEMBERS, Counting
from tests.e2e.support.ledger import ON, Crowd
from tests.e2e.support.reboot import crash_machine, up_after_reboot


@pytest.fixture
def cluster() -> Iterator[Embedded]:
    """A cluster of its own for every test: each of them is rebooted."""
    with embedded() as running:
        yield running


def end_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["status"]["containerStatuses"]
    return container["state"]["terminated"]


@pytest.mark.slow
def test_after_a_reboot_a_job_that_may_is_tried_again(cluster: Embedded, tmp_path: Path) -> None:
    """X-32"""
    job = Counting(cluster=cluster, lines=3, is_held=True, restart="OnFailure")
    job.submit()
    before = job.wait_running()
    first = job.pods()
    crash_machine(cluster)

    boot_id = up_after_reboot(cluster, tmp_path)

    wait_until("both members are begun again", lambda: len(job.ledger()) == 2 * MEMBERS)
    after = wait_until("both run", lambda: found if len(found := job.processes()) == MEMBERS else None)
    assert not before & after
    job.let_go()
    status = job.wait("Succeeded")
    assert status["backoffCount"] == MEMBERS
    pods = job.pods()
    for name, pod in pods.items():
        if name in first:
            assert pod["status"]["phase"] == "Failed"
            assert end_of(pod)["reason"] == "NodeRebooted"
            assert end_of(pod)["startedAt"] == running_since(first[name])
        else:
            assert pod["status"]["phase"] == "Succeeded"
    assert len(pods) == 2 * MEMBERS
    assert sorted(attempt for _, attempt, _ in job.ledger()) == ["0", "0", "1", "1"]
    assert len({uid for uid, _, _ in job.ledger()}) == 2 * MEMBERS
    node = job.read("nodes")["items"][0]
    assert node["status"]["nodeInfo"]["bootID"] == boot_id


def running_since(pod: dict[str, Any]) -> str:
    (container,) = pod["status"]["containerStatuses"]
    return container["state"]["running"]["startedAt"]


@pytest.mark.slow
def test_after_a_reboot_a_job_that_is_never_tried_again_has_failed_and_says_why(
    cluster: Embedded, tmp_path: Path
) -> None:
    job = Counting(cluster=cluster, lines=3, is_held=True, restart="Never")
    job.submit()
    job.wait_running()
    job.wait_printed()
    crash_machine(cluster)

    up_after_reboot(cluster, tmp_path)

    status = job.wait("Failed")
    assert status["failure"]["reason"] == "NodeRebooted"
    assert status["backoffCount"] == 0
    assert job.processes() == frozenset()
    described = cluster.paceline("describe", job.name).out
    assert "NodeRebooted" in described
    assert "machine" in described
    # What they had printed is kept.
    assert all("line 2" in said and "crc" not in said for said in job.logs().values())
    assert sorted(attempt for _, attempt, _ in job.ledger()) == ["0", "0"]


@pytest.mark.slow
def test_what_had_ended_before_the_reboot_ended_as_it_did(cluster: Embedded, tmp_path: Path) -> None:
    job = Counting(cluster=cluster, lines=3)
    job.submit()
    ended = job.wait("Succeeded")
    pods = job.pods()
    crash_machine(cluster)

    up_after_reboot(cluster, tmp_path)

    assert job.status() == ended
    assert job.pods() == pods
    assert sorted(job.logs().values()) == job.printed()


def restarts_of(pod: dict[str, Any]) -> int:
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


def state_of(pod: dict[str, Any]) -> str:
    """What a pod's container does: the word, and why; nothing while the node has not spoken of it."""
    known = pod["status"].get("containerStatuses")
    ((word, more),) = known[0]["state"].items() if known else (("unknown", {}),)
    return f"{word} {more.get('reason', '')}".strip()


def await_alive(crowd: Crowd, names: set[str]) -> None:
    """Wait until exactly these run, those that crash aside; what else there is, is told."""
    try:
        wait_until("these run again", lambda: {who for who, _ in crowd.alive()} - {"crashing"} == names)
    except AssertionError as error:
        told = {name: pod["status"] for name, pod in crowd.pods().items()}
        raise AssertionError(f"{crowd.alive()} {json.dumps(told)}") from error


def test_after_a_reboot_pods_go_on_by_their_restart_policy(cluster: Embedded, tmp_path: Path) -> None:
    crowd = Crowd(cluster=cluster, folder=tmp_path)
    tmp_path.chmod(0o777)
    shapes = {"always": ("Always", ON, 0), "failure": ("OnFailure", ON, 0), "never": ("Never", ON, 0)}
    shapes |= {"done": ("Never", 1, 0), "crashing": ("Always", 0, 3)}
    names = ("always", "failure", "never")
    for name, (policy, lines, code) in shapes.items():
        crowd.create(crowd.pod(name, crowd.container(name, "main", lines, code), policy=policy))
    wait_until("three run", lambda: {who for who, _ in crowd.alive()} == set(names))
    wait_until("one rests between two tries", lambda: state_of(crowd.pods()["crashing"]) == "waiting CrashLoopBackOff")
    wait_until("one is done", lambda: state_of(crowd.pods()["done"]) == "terminated Completed")
    before, running = crowd.pods(), crowd.alive()
    crash_machine(cluster)

    up_after_reboot(cluster, tmp_path)

    await_alive(crowd, {"always", "failure"})
    assert not set().union(*running.values()) & set().union(*crowd.alive().values())
    wait_until("all know it", lambda: [restarts_of(crowd.pods()[name]) for name in names] == [1, 1, 0])
    wait_until(
        "the other one is tried again", lambda: restarts_of(crowd.pods()["crashing"]) > restarts_of(before["crashing"])
    )
    after = crowd.pods()
    for name in ("always", "failure"):
        last = after[name]["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"], last["startedAt"]) == (
            137,
            "NodeRebooted",
            running_since(before[name]),
        )
    assert (after["never"]["status"]["phase"], end_of(after["never"])["reason"]) == ("Failed", "NodeRebooted")
    assert after["done"] == before["done"]
    (tmp_path / "go").touch()
    wait_until("it has succeeded", lambda: crowd.pods()["failure"]["status"]["phase"] == "Succeeded")
    # Nobody was started more often than the API says, and nobody beside another.
    for name in ("failure", "never", "done"):
        pod = crowd.pods()[name]
        assert len(crowd.starts(pod["metadata"]["uid"], "main")) == restarts_of(pod) + 1
    assert not [each for each in crowd.entries() if each.is_beside]


@pytest.mark.slow
@pytest.mark.parametrize(("restart", "phase"), [("OnFailure", "Succeeded"), ("Never", "Failed")])
def test_a_killed_keeper_takes_its_container_along(cluster: Embedded, restart: str, phase: str) -> None:
    job = Counting(cluster=cluster, lines=3, is_held=True, restart=restart)
    job.submit()
    before = job.wait_running()
    victim = next(iter(job.pods().values()))
    (record,) = cluster.settings.agent.glob(f"pods/{victim['metadata']['uid']}/containers/*/0/started.json")

    os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)

    pod = wait_until("the pod has failed", lambda: failed(job, victim["metadata"]["name"]))
    assert end_of(pod)["reason"] == "ShimLost"
    assert end_of(pod)["exitCode"] == 137
    wait_until("its process is gone", lambda: len(before & job.processes()) == MEMBERS - 1)
    if restart == "OnFailure":
        wait_until("it is begun again", lambda: len(job.ledger()) == MEMBERS + 1)
    job.let_go()
    if restart == "Never":
        # The other one need not end well for the job to be lost.
        status = wait_until("the job is over", lambda: over(job))
        assert status["phase"] == phase
        assert status["failure"]["reason"] == "ShimLost"
    else:
        assert job.wait(phase)["backoffCount"] == 1
    uids = [uid for uid, _, _ in job.ledger()]
    assert len(uids) == len(set(uids))


def failed(job: Counting, name: str) -> dict[str, Any] | None:
    pod = job.pods()[name]
    return pod if pod["status"]["phase"] == "Failed" else None


def over(job: Counting) -> dict[str, Any] | None:
    status = job.status()
    return status if status["phase"] in ("Succeeded", "Failed") else None
