"""Without a sandbox, as people may choose: programs run, end whole, and what cannot be had is said."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded, processes_with, wait_until
from tests.e2e.support.shell_pods import ended, make_pod, run_pod, shell, show, waits_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--no-sandbox") as running:
        yield running
        for name in json.loads(running.kubectl("get", "pods", "-o", "json").out)["items"]:
            running.kubectl("delete", "pod", name["metadata"]["name"], "--now")


def state(cluster: Embedded, name: str) -> dict[str, object]:
    found: dict[str, object] = show(cluster, "pod", name)["status"]["containerStatuses"][0]["state"]["terminated"]
    return found


def test_a_program_sees_the_machine_as_it_is(cluster: Embedded, tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("by all\n")
    container = shell(f"cat {tmp_path}/seen; echo $GREETING; pwd", env=[{"name": "GREETING", "value": "hello"}])

    assert run_pod(cluster, "open", {**container, "workingDir": str(tmp_path)}) == ["by all", "hello", str(tmp_path)]


def test_the_node_says_that_there_is_no_sandbox(cluster: Embedded) -> None:
    (node,) = json.loads(cluster.kubectl("get", "nodes", "-o", "json").out)["items"]
    (said,) = [each for each in node["status"]["conditions"] if each["type"] == "SandboxReady"]

    assert (said["status"], said["reason"]) == ("False", "NotWanted")
    assert "--no-sandbox" in said["message"]


@pytest.mark.parametrize(
    ("name", "script", "code", "reason"),
    [
        ("fine", "exit 0", 0, "Completed"),
        ("seven", "exit 7", 7, "Error"),
        ("slain", "exec python -c 'import os; os.kill(os.getpid(), 9)'", 137, "Error"),
    ],
)
def test_the_end_of_a_program_is_told_as_it_was(
    cluster: Embedded, name: str, script: str, code: int, reason: str
) -> None:
    make_pod(cluster, name, shell(script))
    ended(cluster, name)

    assert (state(cluster, name)["exitCode"], state(cluster, name)["reason"]) == (code, reason)


def test_a_program_that_is_missing_is_said(cluster: Embedded) -> None:
    make_pod(cluster, "absent", {**shell(""), "command": ["no-such-program"]})
    ended(cluster, "absent")

    assert state(cluster, "absent")["reason"] == "StartError"
    assert "no-such-program: not found" in str(state(cluster, "absent")["message"])


@pytest.mark.parametrize(
    ("name", "volume", "mount"),
    [
        ("scratch", {"emptyDir": {}}, {"mountPath": "/data"}),
        ("closed", {"hostPath": {"path": "/usr"}}, {"mountPath": "/usr", "readOnly": True}),
    ],
)
def test_a_volume_that_would_have_to_be_mounted_is_refused(
    cluster: Embedded, name: str, volume: dict[str, object], mount: dict[str, object]
) -> None:
    container = shell("true", volumeMounts=[{"name": "v", **mount}])
    make_pod(cluster, name, container, volumes=[{"name": "v", **volume}])

    said = waits_for(cluster, name, "CreateContainerConfigError")
    assert f"volume 'v' cannot be mounted {'read-only ' * ('readOnly' in mount)}at {mount['mountPath']}" in said
    assert "paceline up --sandbox" in said


def test_a_folder_of_the_machine_at_its_own_place_is_there(cluster: Embedded, tmp_path: Path) -> None:
    container = shell(f"echo written >{tmp_path}/file", volumeMounts=[{"name": "v", "mountPath": str(tmp_path)}])
    run_pod(cluster, "same", container, volumes=[{"name": "v", "hostPath": {"path": str(tmp_path)}}])

    assert (tmp_path / "file").read_text() == "written\n"


HIDING = "for n in 1 2 3; do setsid sh -c 'sleep 1000 {mark} & sleep 1000' {mark} & done; trap '' TERM; {then}"


def hidden(mark: str) -> list[tuple[int, int]]:
    return sorted(processes_with(mark))


@pytest.mark.parametrize(("name", "then"), [("leaver", "sleep 0.5"), ("stayer", "while :; do sleep 1; done")])
def test_nothing_of_a_pod_stays_however_it_hides(cluster: Embedded, name: str, then: str) -> None:
    mark = f"hidden-by-{name}-{os.getpid()}"
    make_pod(cluster, name, shell(HIDING.format(mark=mark, then=then)))
    if name == "stayer":
        wait_until("they hide", lambda: len(hidden(mark)) >= 3)
        assert cluster.kubectl("delete", "pod", name, "--wait=true").code == 0
    else:
        ended(cluster, name)

    wait_until("all are gone", lambda: not hidden(mark))


def test_what_a_killed_shim_kept_goes_with_it(cluster: Embedded) -> None:
    mark = f"hidden-by-orphan-{os.getpid()}"
    make_pod(cluster, "orphan", shell(HIDING.format(mark=mark, then="while :; do sleep 1; done")))
    wait_until("they hide", lambda: len(hidden(mark)) >= 3)
    (started,) = cluster.home.glob(f"agent/pods/{show(cluster, 'pod', 'orphan')['metadata']['uid']}/**/started.json")

    os.kill(json.loads(started.read_text())["pid"], signal.SIGKILL)

    wait_until("all are gone", lambda: not hidden(mark))
    ended(cluster, "orphan")
    assert state(cluster, "orphan")["reason"] == "ShimLost"


def test_commands_run_beside_the_program(cluster: Embedded) -> None:
    make_pod(cluster, "host", shell("export INSIDE=yes; exec sleep 1000"))
    wait_until("it runs", lambda: show(cluster, "pod", "host")["status"].get("phase") == "Running")

    said = cluster.kubectl("exec", "host", "--", "sh", "-c", "echo $HOSTNAME; exit 3")
    assert (said.code, said.out) == (3, "host\n")
