"""`paceline up` and `down` with running jobs: nothing is ended by surprise, and what was kept is found again."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.host.lockfile import is_ready
from paceline.testing.embedded import (
    Embedded,
    Ran,
    arguments,
    embedded,
    folder_for_cluster,
    leftovers,
    paceline_command,
    wait_until,
)
from tests.e2e.support.counting_job import Counting
from tests.e2e.support.manifests import claim, text
from tests.e2e.support.shell_pods import run_pod, shell


@pytest.fixture
def cluster() -> Iterator[Embedded]:
    """A cluster of its own for every test: each of them stops it."""
    with embedded() as running:
        yield running


@pytest.fixture
def job(cluster: Embedded) -> Counting:
    """A job that runs until it is let go."""
    return Counting(cluster=cluster, lines=3, is_held=True)


def up(cluster: Embedded) -> None:
    started = cluster.paceline("up", "-d")
    assert started.code == 0, started.err


def on_terminal(cluster: Embedded, *args: str, typed: str) -> Ran:
    """Run our command as a person does, who types an answer once there is a question."""
    ours, theirs = pty.openpty()
    # A terminal that a test can read: no colours.
    env = {**cluster.environment(), "TERM": "dumb"}
    process = subprocess.Popen([paceline_command(), *args], stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    said, is_answered = "", False
    while True:
        try:
            said += os.read(ours, 4096).decode()
        except OSError:
            break  # The other end is closed: the command has ended.
        if said.rstrip().endswith(">") and not is_answered:
            is_answered = True
            os.write(ours, f"{typed}\n".encode())
    os.close(ours)
    return Ran(code=process.wait(timeout=60), out=said, err="")


def test_a_cluster_that_nobody_uses_has_not_loaded_what_checks_jobs(cluster: Embedded) -> None:
    def is_loaded() -> bool:
        return "jsonschema_rs" in Path(f"/proc/{cluster.control_pid}/maps").read_text()

    assert not is_loaded()
    Counting(cluster=cluster, lines=1).submit()
    assert is_loaded()


def test_down_refuses_when_jobs_run_and_nobody_can_be_asked(cluster: Embedded, job: Counting) -> None:
    job.submit()
    running = job.wait_running()

    down = cluster.paceline("down")

    assert down.code == 2
    assert job.name in down.err
    assert "--keep-jobs" in down.err
    assert "--stop-jobs" in down.err
    assert cluster.control_pid is not None
    assert job.processes() == running
    assert job.status()["phase"] == "Running"


def test_kept_jobs_run_on_and_are_found_again(cluster: Embedded, job: Counting) -> None:
    job.submit()
    running = job.wait_running()

    down = cluster.paceline("down", "--keep-jobs")

    assert down.code == 0, down.err
    assert cluster.control_pid is None
    assert cluster.agent_pid is None
    assert job.processes() == running
    up(cluster)
    assert job.processes() == running
    job.let_go()
    status = job.wait("Succeeded")
    assert (status["attempt"], status["backoffCount"]) == (0, 0)
    assert sorted(job.logs().values()) == job.printed()


def test_stopped_jobs_are_paused_and_leave_no_process(cluster: Embedded, job: Counting) -> None:
    job.submit()
    job.wait_running()

    down = cluster.paceline("down", "--stop-jobs")

    assert down.code == 0, down.err
    assert leftovers(cluster.home) == ()
    assert job.processes() == frozenset()
    up(cluster)
    assert job.status()["phase"] == "Paused"
    assert job.processes() == frozenset()
    # A pause is no end: the job goes on when it is told to.
    go_on = json.dumps({"spec": {"runMode": {"pause": {"enabled": False}}}})
    assert cluster.kubectl("patch", "gj", job.name, "--type=merge", "-p", go_on).code == 0
    job.let_go()
    assert job.wait("Succeeded")["backoffCount"] == 0


def test_a_person_is_asked_and_the_answer_is_done(cluster: Embedded, job: Counting) -> None:
    job.submit()
    running = job.wait_running()

    cancelled = on_terminal(cluster, "down", typed="c")
    assert job.name in cancelled.out
    assert cancelled.code == 1
    assert cluster.control_pid is not None
    assert job.processes() == running

    kept = on_terminal(cluster, "down", typed="k")
    assert kept.code == 0, kept.out
    assert cluster.control_pid is None
    assert job.processes() == running

    up(cluster)
    stopped = on_terminal(cluster, "down", typed="s")
    assert stopped.code == 0, stopped.out
    assert leftovers(cluster.home) == ()
    up(cluster)
    assert job.status()["phase"] == "Paused"


def test_enter_leaves_everything_as_it_is(cluster: Embedded, job: Counting) -> None:
    job.submit()
    running = job.wait_running()

    assert on_terminal(cluster, "down", typed="").code == 1
    assert cluster.control_pid is not None
    assert job.processes() == running


def test_down_asks_nothing_when_no_job_runs(cluster: Embedded) -> None:
    done = Counting(cluster=cluster, lines=1)
    done.submit()
    done.wait("Succeeded")

    down = cluster.paceline("down")

    assert (down.code, down.out, down.err) == (0, "The cluster has stopped.\n", "")
    assert leftovers(cluster.home) == ()
    again = cluster.paceline("down")
    assert again.code == 0
    assert f"No cluster is running in {cluster.home}" in again.err


def test_up_twice_says_that_it_runs_and_changes_nothing(cluster: Embedded) -> None:
    control = cluster.control_pid

    again = cluster.paceline("up", "-d")

    assert again.code == 0, again.err
    assert "is already running" in again.out
    assert cluster.control_pid == control


def test_up_in_front_on_a_folder_that_is_in_use_is_refused_and_names_the_process(cluster: Embedded) -> None:
    control = cluster.control_pid

    again = cluster.paceline("up")

    assert again.code != 0
    assert str(control) in again.err
    assert str(cluster.home) in again.err
    assert cluster.control_pid == control


def test_up_keeps_the_images_of_the_last_start(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    (environment / "bin").mkdir(parents=True)
    with embedded("--image", f"acme/*={environment}") as cluster:
        assert cluster.paceline("down").code == 0
        up(cluster)

        images = json.loads((cluster.home / "settings.json").read_text())["images"]
        assert images == [["acme/*", str(environment)]]
        job = Counting(cluster=cluster, lines=1)
        manifest = job.job()
        manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0] |= {
            "image": "acme/trainer:1",
            "command": ["no-such-program"],
        }
        created = cluster.kubectl("create", "-f", "-", stdin=text(claim(job.name), manifest))
        assert created.code == 0, created.err
        # The program is looked for in that very environment.
        assert str(environment) in job.wait("Failed")["failure"]["message"]


def test_ctrl_c_ends_a_cluster_in_front_and_jobs_run_on() -> None:
    with folder_for_cluster() as cluster:
        with in_front(cluster) as process:
            job = Counting(cluster=cluster, lines=3, is_held=True)
            job.submit()
            running = job.wait_running()
            volume = job.volume()
            # As a terminal does it: to the whole process group.
            os.killpg(process.pid, signal.SIGINT)
            said = process.communicate(timeout=60)

        assert process.returncode == 0, said
        assert "The cluster has stopped." in said[1]
        assert "Traceback" not in said[0] + said[1]
        assert "WARNING" not in said[1]
        assert cluster.control_pid is None
        wait_until("the agent has gone", lambda: cluster.agent_pid is None)
        assert job.processes() == running
        (volume / "go").touch()
        up(cluster)
        assert job.wait("Succeeded")["attempt"] == 0
        assert sorted(job.logs().values()) == job.printed()


def in_front(cluster: Embedded) -> subprocess.Popen[str]:
    """Start `paceline up` as a terminal does, in a process group of its own, and wait until it is ready."""
    process = subprocess.Popen(
        [paceline_command(), "up"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=cluster.environment(),
        process_group=0,
    )
    assert "ready" in process.stdout.readline()
    return process


def test_starts_at_once_make_one_cluster_and_all_wait_until_it_is_ready() -> None:
    with folder_for_cluster() as cluster:
        starts = [start(cluster) for _ in range(2)]
        wait_until("one of them is under way", lambda: cluster.control_pid)
        starts.append(start(cluster))
        # The last first: it must not answer for a cluster that others are still starting.
        for each in reversed(starts):
            _, said = each.communicate(timeout=60)
            assert each.returncode == 0, said
            assert is_ready(cluster.settings.lock)
        controls = [pid for pid in leftovers(cluster.home) if "paceline.cluster.control_plane_main" in arguments(pid)]
        assert controls == [cluster.control_pid]


def start(cluster: Embedded) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [paceline_command(), "up", "-d"], env=cluster.environment(), stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(("name", "said"), [("a-file", "a-file"), ("x" * 100, "a shorter PACELINE_HOME")])
def test_a_folder_that_cannot_be_used_is_said_at_once(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "a-file").touch()
    with folder_for_cluster(home=tmp_path / name) as cluster:
        for words in (["up", "-d"], ["up"]):
            refused = cluster.paceline(*words, seconds=30)

            assert refused.code != 0
            assert said in refused.err
            assert "PACELINE_HOME" in refused.err
            assert "bug" not in refused.err
            assert "Traceback" not in refused.err
        assert cluster.paceline("down").code == 0


def test_images_that_are_mapped_in_the_settings_file_run_and_a_bad_file_is_said() -> None:
    with folder_for_cluster() as cluster:
        (cluster.home / "settings.yaml").write_text("images: {acme/train: nowhere}\n")
        refused = cluster.paceline("up", "-d")
        assert refused.code != 0
        assert "settings.yaml: images.acme/train" in refused.err

        (cluster.home / "settings.yaml").write_text("images: {acme/train: host}\n")
        assert cluster.paceline("up", "-d").code == 0
        assert run_pod(cluster, "mapped", {**shell("echo in"), "image": "acme/train:1"}) == ["in"]
