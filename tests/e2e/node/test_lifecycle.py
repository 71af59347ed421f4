"""The life of a pod with everything Kubernetes offers for it: sidecars, hooks, probes, deadlines, limits."""

import json
from pathlib import Path
from typing import Any

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import text

# Waits for the end and says so.
STAYS = "trap 'echo bye; exit 0' TERM; echo here; while :; do sleep 0.1; done"
WAITS = "until [ -e /tmp/hook ]; do sleep 0.05; done; cat /tmp/hook; while :; do sleep 0.1; done"
QUICK = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 10}


def box(name: str, *command: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "python:3.11", "command": list(command), **fields}


def shell(name: str, script: str, **fields: Any) -> dict[str, Any]:
    return box(name, "sh", "-c", script, **fields)


def create(cluster: Embedded, name: str, *containers: dict[str, Any], **spec: Any) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": list(containers), "terminationGracePeriodSeconds": 5, **spec},
    }
    made = cluster.kubectl("create", "-f", "-", stdin=text(pod))
    assert made.code == 0, made.err


def status(cluster: Embedded, name: str) -> dict[str, Any]:
    shown = cluster.kubectl("get", "pod", name, "-o", "json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)["status"]
    return found


def ended(cluster: Embedded, name: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = status(cluster, name)
        return found if found["phase"] in {"Succeeded", "Failed"} else None

    found: dict[str, Any] = wait_until(f"pod {name} ends", look)
    return found


def events(cluster: Embedded, name: str) -> list[tuple[str, str]]:
    shown = cluster.kubectl("get", "events", "--field-selector", f"involvedObject.name={name}", "-o", "json")
    return [(each["reason"], each["message"]) for each in json.loads(shown.out)["items"]]


def test_a_sidecar_runs_beside_its_pod_and_is_stopped_after_it(cluster: Embedded) -> None:
    shared = {"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]}
    script = "trap 'echo bye; exit 0' TERM; echo here; touch /shared/up; while :; do sleep 0.1; done"
    beside = shell("beside", script, restartPolicy="Always", **shared)
    main = shell("main", "until [ -e /shared/up ]; do sleep 0.1; done; echo done", **shared)
    create(cluster, "sidecar", main, initContainers=[beside], volumes=[{"name": "shared", "emptyDir": {}}])

    found = ended(cluster, "sidecar")

    assert found["phase"] == "Succeeded"
    assert cluster.kubectl("logs", "sidecar", "-c", "beside").out.splitlines() == ["here", "bye"]


def test_hooks_run_after_the_start_and_before_the_end(cluster: Embedded, tmp_path: Path) -> None:
    hooks = {
        "postStart": {"exec": {"command": ["sh", "-c", "echo started > /tmp/hook"]}},
        "preStop": {"exec": {"command": ["sh", "-c", "touch /tmp/leave; sleep 1"]}},
    }
    # Not into the log, which goes with the pod.
    script = f"trap 'ls /tmp/leave > /out/said; exit 0' TERM; {WAITS}"
    main = shell("main", script, lifecycle=hooks, volumeMounts=[{"name": "out", "mountPath": "/out"}])
    create(cluster, "hooks", main, volumes=[{"name": "out", "hostPath": {"path": str(tmp_path)}}])
    wait_until("the first hook was seen", lambda: "started" in cluster.kubectl("logs", "hooks").out)

    gone = cluster.kubectl("delete", "pod", "hooks")

    assert gone.code == 0, gone.err
    assert (tmp_path / "said").read_text() == "/tmp/leave\n"


def test_who_follows_a_log_is_let_go_with_the_pod(cluster: Embedded) -> None:
    create(cluster, "followed", shell("main", "echo here; sleep 60"), terminationGracePeriodSeconds=1)
    wait_until("it says something", lambda: "here" in cluster.kubectl("logs", "followed").out)
    gone = cluster.kubectl("delete", "pod", "followed", "--wait=false")

    followed = cluster.kubectl("logs", "-f", "followed", seconds=60)

    assert gone.code == 0, gone.err
    assert followed.out in {"here\n", ""}


def test_a_pod_is_ready_when_its_probe_says_so_and_restarted_when_it_is_dead(cluster: Embedded, tmp_path: Path) -> None:
    (tmp_path / "alive").touch()
    main = shell(
        "main",
        "sleep 1000",
        readinessProbe={"exec": {"command": ["cat", "/told/ready"]}, **QUICK},
        livenessProbe={"exec": {"command": ["cat", "/told/alive"]}, **QUICK},
        volumeMounts=[{"name": "told", "mountPath": "/told"}],
    )
    told_here = [{"name": "told", "hostPath": {"path": str(tmp_path)}}]
    create(cluster, "probed", main, restartPolicy="Always", terminationGracePeriodSeconds=1, volumes=told_here)

    wait_until("it runs", lambda: status(cluster, "probed")["phase"] == "Running")
    assert not status(cluster, "probed")["containerStatuses"][0]["ready"]
    (tmp_path / "ready").touch()
    ready = cluster.kubectl("wait", "--for=condition=Ready", "pod/probed", "--timeout=60s")
    assert ready.code == 0, ready.err
    (tmp_path / "alive").unlink()
    wait_until("it was restarted", lambda: status(cluster, "probed")["containerStatuses"][0]["restartCount"] > 0)
    told = events(cluster, "probed")
    assert ("Killing", "Container main failed liveness probe, will be restarted") in told
    assert any(reason == "Unhealthy" and said.startswith("Liveness probe failed: cat:") for reason, said in told)
    cluster.kubectl("delete", "pod", "probed", "--grace-period=0", "--force")


def test_a_pod_that_takes_too_long_fails_by_its_deadline(cluster: Embedded) -> None:
    create(cluster, "late", shell("main", "sleep 60"), activeDeadlineSeconds=2)

    found = ended(cluster, "late")

    assert (found["phase"], found["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_container_that_lacks_memory_says_so(cluster: Embedded) -> None:
    """H-02: and its neighbour does not notice."""
    create(cluster, "neighbour", shell("main", "sleep 1000"))
    wait_until("the neighbour runs", lambda: status(cluster, "neighbour").get("phase") == "Running")
    eater = box("main", "python", "-c", "x = bytearray(300 << 20)", resources={"limits": {"memory": "64Mi"}})
    create(cluster, "eater", eater)

    done = ended(cluster, "eater")["containerStatuses"][0]["state"]["terminated"]

    assert (done["exitCode"], done["reason"]) == (137, "OOMKilled")
    beside = status(cluster, "neighbour")
    assert (beside["phase"], beside["containerStatuses"][0]["restartCount"]) == ("Running", 0)
    cluster.kubectl("delete", "pod", "neighbour", "--now")


def test_a_failed_first_hook_ends_its_container(cluster: Embedded) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 3"]}}}
    create(cluster, "badhook", shell("main", "sleep 60", lifecycle=hook), terminationGracePeriodSeconds=1)

    assert ended(cluster, "badhook")["phase"] == "Failed"
    assert any(reason == "FailedPostStartHook" for reason, _ in events(cluster, "badhook"))
