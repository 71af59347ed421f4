"""Rules of a job's life on a real machine: what failed says its last words, and people stop, restart and rerun."""

import json
import re
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import generic, text

FAILS = "for line in range(50): print('line', line)\nraise SystemExit(3)"
SLEEPS = ["python", "-c", "import signal; print('up', flush=True); signal.pause()"]


def submit(cluster: Embedded, job: dict[str, Any]) -> None:
    made = cluster.paceline("submit", "-", stdin=text(job))
    assert made.code == 0, made.err


def status(cluster: Embedded, name: str) -> dict[str, Any]:
    told = cluster.kubectl("get", "gj", name, "-o", "jsonpath={.status}").out
    return dict(json.loads(told)) if told else {}


def becomes(cluster: Embedded, name: str, phase: str, attempt: int = 0) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        now = status(cluster, name)
        return now if (now.get("phase"), now.get("attempt")) == (phase, attempt) else None

    return wait_until(f"{name} is {phase}", found)


def test_a_failure_keeps_its_last_twenty_lines_when_its_pod_is_gone(cluster: Embedded) -> None:
    """T-09, T-11"""
    job = generic("talks", command=["python", "-c", FAILS])
    submit(cluster, job | {"spec": job["spec"] | {"cleanUpPolicy": "All"}})

    over = wait_until(
        "its last lines are kept", lambda: status(cluster, "talks").get("failure", {}).get("lastLines"), 60
    )
    mine = ("-l", "tensorstack.dev/owner-name=talks", "-o", "name")
    wait_until("its pod is gone", lambda: not cluster.kubectl("get", "pods", *mine).out)
    shown = cluster.paceline("describe", "talks").out

    failure = status(cluster, "talks")["failure"]
    assert over == [f"line {number}" for number in range(30, 50)]
    assert (failure["replica"], failure["container"], failure["exitCode"]) == ("worker-0", "main", 3)
    assert "    line 49\n" in shown


def test_a_job_is_stopped_and_started_again(cluster: Embedded) -> None:
    """S-51, S-52"""
    submit(cluster, generic("naps", command=SLEEPS))
    becomes(cluster, "naps", "Running")

    stopped = cluster.paceline("stop", "naps")
    left = cluster.kubectl("get", "pods", "-l", "tensorstack.dev/owner-name=naps", "-o", "name").out

    assert (stopped.code, stopped.out) == (0, "genericjob/naps stopped\n")
    assert "paceline restart naps" in stopped.err
    assert left == ""
    assert cluster.paceline("restart", "naps").out == "genericjob/naps restarting\n"
    becomes(cluster, "naps", "Running", attempt=1)
    assert cluster.paceline("restart", "naps").code == 0
    assert becomes(cluster, "naps", "Running", attempt=2)["backoffCount"] == 0


SAYS_WHICH = (
    "import signal, sys\n"
    "def told(number, _): print('asked by', signal.Signals(number).name, flush=True); sys.exit(0)\n"
    "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, told)\n"
    "print('up', flush=True)\n"
    "while True: signal.pause()"
)


def test_d07_whoever_stops_a_job_chooses_the_signal(cluster: Embedded) -> None:
    submit(cluster, generic("asked", command=["python", "-c", SAYS_WHICH]))
    becomes(cluster, "asked", "Running")
    wait_until("it is up", lambda: "up" in cluster.paceline("logs", "asked").out)

    wrong = cluster.paceline("stop", "asked", "--signal", "INTR")
    stopped = cluster.paceline("stop", "asked", "--signal", "int")

    assert wrong.code != 0
    assert "did you mean INT?" in wrong.err
    assert (stopped.code, stopped.out) == (0, "genericjob/asked stopped\n"), stopped.err
    assert "asked by SIGINT" in cluster.paceline("logs", "asked").out


def test_whoever_pauses_resumes_and_deletes_a_job_is_named_whatever_the_client_says(cluster: Embedded) -> None:
    """T-18"""
    submit(cluster, generic("held", command=SLEEPS))
    becomes(cluster, "held", "Running")
    cluster.kubectl("create", "serviceaccount", "launcher")
    cluster.kubectl("annotate", "serviceaccount", "launcher", "paceline.dev/rights=write")
    launcher = f"--token={cluster.kubectl('create', 'token', 'launcher').out.strip()}"
    lie = {"metadata": {"annotations": {"paceline.dev/asked-by": "eve"}}}
    resume = {**lie, "spec": {"runMode": {"pause": {"enabled": False}}}}

    assert cluster.paceline("pause", "held").code == 0
    becomes(cluster, "held", "Paused")
    paused = cluster.paceline("describe", "held").out
    patched = cluster.kubectl("patch", "gj", "held", "--type=merge", "-p", json.dumps(resume), launcher)
    becomes(cluster, "held", "Running", attempt=1)
    resumed = cluster.paceline("describe", "held").out
    cluster.kubectl("delete", "gj", "held")
    deleted = cluster.kubectl("get", "events", "--field-selector", "reason=DeleteRequested", "-o", "yaml").out

    assert patched.code == 0, patched.err
    assert "has 1 replicas, created by admin" in paused
    assert "the job is paused by admin" in paused
    assert re.search(r"Asked by: +system:serviceaccount:default:launcher\n", resumed), resumed
    assert "the job is resumed by system:serviceaccount:default:launcher after a pause" in resumed
    assert "message: deleted by admin" in deleted


def test_a_job_is_run_once_more_under_the_next_name(cluster: Embedded) -> None:
    submit(cluster, generic("short", command=["true"]))
    becomes(cluster, "short", "Succeeded")

    again = cluster.paceline("rerun", "short")
    third = cluster.paceline("rerun", "short-2")
    chosen = cluster.paceline("rerun", "short", "--name", "brief")

    assert (again.code, again.out) == (0, "genericjob/short-2 created\n")
    assert third.out == "genericjob/short-3 created\n"
    assert chosen.out == "genericjob/brief created\n"
    for name in ("short-2", "short-3", "brief"):
        becomes(cluster, name, "Succeeded")


def test_what_cannot_be_done_is_said(cluster: Embedded) -> None:
    submit(cluster, generic("over", command=["true"]))
    becomes(cluster, "over", "Succeeded")
    before = status(cluster, "over")

    restart = cluster.paceline("restart", "over")
    stop = cluster.paceline("stop", "over")
    taken = cluster.paceline("rerun", "over", "--name", "over")
    wrong = cluster.paceline("rerun", "over", "--name", "Over It")
    nobody = cluster.paceline("restart", "ovr")

    assert (restart.code, stop.code, taken.code, nobody.code) == (1, 1, 1, 1)
    assert wrong.code in (1, 2)
    assert "has ended (Succeeded); to run it again as a new job: paceline rerun over" in restart.err
    assert "has ended (Succeeded)" in stop.err
    assert "genericjob/over already exists; choose another --name" in taken.err
    assert "metadata.name" in wrong.err
    assert "did you mean over?" in nobody.err
    assert status(cluster, "over") == before


@pytest.mark.slow
def test_a_job_goes_by_itself(cluster: Embedded) -> None:
    job = generic("fleeting", command=["true"])
    submit(cluster, job | {"spec": job["spec"] | {"runPolicy": {"ttlSecondsAfterFinished": 1}}})

    wait_until("it is gone", lambda: cluster.kubectl("get", "gj", "fleeting").code != 0)
    owned = ("-l", "tensorstack.dev/owner-name=fleeting", "-o", "name")
    wait_until("its pod too", lambda: not cluster.kubectl("get", "pods,services", *owned).out)


# Every replica says one word; then the first says more, or none of them does.
HANGS = "import signal; print('up', flush=True); signal.pause()"
TALKS = """
import os, time
print("up", flush=True)
if os.uname().nodename.endswith("-worker-0"):
    for step in range(16):
        time.sleep(0.5)
        print("step", step, flush=True)
"""


def impatient(name: str, program: str, seconds: int) -> dict[str, Any]:
    """A job of two replicas that may be silent for so long, and is tried once more."""
    job = generic(name, replicas=2, command=["python", "-c", program])
    (replicas,) = job["spec"]["replicaSpecs"]
    replicas["restartPolicy"] = {"policy": "OnFailure", "limit": 1}
    return job | {"spec": job["spec"] | {"runPolicy": {"stallSeconds": seconds}}}


@pytest.mark.slow
def test_a_job_of_which_nobody_says_anything_is_tried_again_and_then_fails(cluster: Embedded) -> None:
    submit(cluster, impatient("hangs", HANGS, 2))

    over = becomes(cluster, "hangs", "Failed", attempt=1)
    shown = cluster.paceline("describe", "hangs").out

    assert (over["backoffCount"], [each["restartCount"] for each in over["tasks"]]) == (1, [1])
    failed = next(each for each in over["conditions"] if each["type"] == "Failed")
    assert failed["reason"] == "Stalled"
    assert "for more than 2 seconds" in failed["message"]
    assert "; next attempt of all replicas (restart 1)\n" in shown
    mine = ("-l", "tensorstack.dev/owner-name=hangs", "-o", "jsonpath={.items[*].status.phase}")
    wait_until("nothing of it runs", lambda: "Running" not in cluster.kubectl("get", "pods", *mine).out)


@pytest.mark.slow
def test_a_line_of_one_replica_now_and_then_is_enough(cluster: Embedded) -> None:
    submit(cluster, impatient("talking", TALKS, 3))

    assert becomes(cluster, "talking", "Succeeded")["backoffCount"] == 0
