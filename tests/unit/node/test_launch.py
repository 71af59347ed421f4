"""What stands in for ssh, pdsh and sshd, between real processes on one machine."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from paceline.cluster.wiring import launch_program
from paceline.testing.embedded import wait_until


class Keys:
    def secret(self):
        return "s3cret"


def folder(path, ports, key=None):
    """What a member mounts."""
    path.mkdir()
    files = {**launch_program(Keys())(), "hosts.json": json.dumps(ports)}
    for name, text in {**files, **({"key": key} if key else {})}.items():
        (path / name).write_text(text)
    return path


def free_ports(count):
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def serving(launch, port, host="127.0.0.1"):
    command = [sys.executable, launch / "agent", "serve", f"--port={port}", f"--bind={host}"]
    with subprocess.Popen(command) as agent:
        try:
            wait_until("the agent listens", lambda: listens(host, port))
            yield agent
        finally:
            agent.terminate()
            assert agent.wait(10) == 0


def listens(host, port):
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@contextmanager
def calling(launch, program, *arguments):
    command = [sys.executable, launch / program, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def stopped(process):
    """The kernel accepts connections of a stopped process, and nothing answers them."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def threads_of(process):
    with suppress(FileNotFoundError):
        return len(list(Path(f"/proc/{process.pid}/task").iterdir()))
    return 0


def two_members(path):
    """Two members under names of loopback addresses, which need no resolver; their folder and ports."""
    ports = free_ports(2)
    return folder(path / "launch", dict(zip(("127.0.0.1", "127.0.0.2"), ports, strict=True))), ports


@pytest.fixture
def launch(tmp_path):
    """Two members that can be reached."""
    files, ports = two_members(tmp_path)
    with serving(files, ports[0]), serving(files, ports[1], "127.0.0.2"):
        yield files


def call(launch, program, *words, stdin="", **more):
    command = [sys.executable, str(launch / program), *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=15, **more)


def test_a_command_runs_over_there_and_its_output_and_exit_code_come_back(launch):
    done = call(launch, "ssh", "127.0.0.1", "echo out; echo err >&2; exit 3")

    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_options_of_ssh_are_understood_and_words_are_joined_as_ssh_does(launch):
    done = call(
        launch, "ssh", "-x", "-o", "ConnectionAttempts=10", "-p22", "-l", "me", "root@127.0.0.1", "echo", "a  b"
    )

    assert (done.returncode, done.stdout) == (0, "a b\n")


def test_input_is_passed_on(launch):
    assert call(launch, "ssh", "127.0.0.1", "wc -c", stdin="x" * 200_000).stdout.strip() == "200000"


def test_much_output_comes_whole(launch):
    done = call(launch, "ssh", "127.0.0.1", "seq 1 200000")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(number) for number in range(1, 200_001)]


def test_a_killed_command_has_the_code_a_shell_would_give(launch):
    assert call(launch, "ssh", "127.0.0.1", "kill -9 $$").returncode == 137


def test_a_daemon_that_a_command_leaves_behind_does_not_hold_it_up(launch, tmp_path):
    """mpirun's daemons do that."""
    mark = tmp_path / "pid"
    done = call(launch, "ssh", "127.0.0.1", f"setsid sleep 60 & echo $! > {mark}; echo started")

    assert (done.returncode, done.stdout) == (0, "started\n")
    os.kill(int(mark.read_text()), signal.SIGKILL)


def test_several_members_are_reached_at_once_each_with_its_number(launch):
    done = call(
        launch, "pdsh", "-S", "-f", "1024", "-w", "127.0.0.1,127.0.0.2", "echo", "rank", "%n", "at", "%h", "%%name"
    )

    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [
        "127.0.0.1: rank 0 at 127.0.0.1 %name",
        "127.0.0.2: rank 1 at 127.0.0.2 %name",
    ]


def test_one_lost_member_ends_the_others_and_its_code_counts(launch, tmp_path):
    mark = tmp_path / "runs"
    lost = f"while [ ! -e {mark} ]; do sleep 0.05; done; exit 7"
    script = f"if [ %n = 1 ]; then {lost}; else touch {mark}; exec sleep 60; fi"

    done = call(launch, "pdsh", "-w", "127.0.0.1,127.0.0.2", script)

    assert done.returncode == 7


def test_one_lost_member_ends_the_launch_while_another_has_not_started(tmp_path):
    """Its agent may never start: waiting for it would outlast the failed job."""
    files, ports = two_members(tmp_path)
    with serving(files, ports[1], "127.0.0.2"):
        done = call(files, "pdsh", "-w", "127.0.0.1,127.0.0.2", "exit 7")

    assert (done.returncode, done.stderr) == (7, "")


def test_a_member_that_answers_after_another_was_lost_runs_nothing(tmp_path):
    files, ports = two_members(tmp_path)
    started, late = tmp_path / "started", tmp_path / "late"
    script = f"if [ %n = 1 ]; then touch {started}; exit 7; fi; touch {late}; exec sleep 60"
    with (
        serving(files, ports[0]) as slow,
        serving(files, ports[1], "127.0.0.2"),
        stopped(slow),
        calling(files, "pdsh", "-w", "127.0.0.1,127.0.0.2", script) as launcher,
    ):
        wait_until("the second member runs", started.exists)
        assert launcher.wait(10) == 7
        slow.send_signal(signal.SIGCONT)
        assert call(files, "ssh", "127.0.0.1", "true").returncode == 0

    assert not late.exists()


def test_a_signal_ends_a_launch_that_still_waits_for_its_members(tmp_path):
    (port,) = free_ports(1)
    files = folder(tmp_path / "launch", {"127.0.0.1": port})
    with calling(files, "pdsh", "-w", "127.0.0.1", "true") as launcher:
        # The thread of each member starts after the signal handlers are installed.
        wait_until("it calls the member", lambda: threads_of(launcher) == 2)
        launcher.terminate()
        assert launcher.wait(10) == 128 + signal.SIGTERM


def test_a_signal_to_the_caller_reaches_the_command(launch, tmp_path):
    mark = tmp_path / "mark"
    script = f"trap 'echo ended > {mark}; exit 5' TERM; touch {mark}; while :; do sleep 0.05; done"
    with calling(launch, "ssh", "127.0.0.1", script) as caller:
        wait_until("the command runs", mark.exists)
        caller.terminate()
        assert caller.wait(10) == 5
    assert mark.read_text() == "ended\n"


def test_what_a_caller_started_ends_when_the_caller_is_gone(launch, tmp_path):
    mark = tmp_path / "mark"
    script = f"trap 'echo ended > {mark}; exit' TERM; touch {mark}; while :; do sleep 0.05; done"
    with calling(launch, "ssh", "127.0.0.1", script) as caller:
        wait_until("the command runs", mark.exists)
        caller.kill()
    wait_until("the command has ended", lambda: mark.read_text() == "ended\n")


def test_who_does_not_have_the_key_runs_nothing(launch, tmp_path):
    ports = json.loads((launch / "hosts.json").read_text())
    stranger = folder(tmp_path / "stranger", ports, key="another")

    done = call(stranger, "ssh", "127.0.0.1", f"touch {tmp_path}/mark")

    assert done.returncode == 255
    assert not (tmp_path / "mark").exists()


def test_who_says_nothing_sensible_runs_nothing(launch):
    port = json.loads((launch / "hosts.json").read_text())["127.0.0.1"]
    for junk in (b"", b"GET / HTTP/1.1\r\n\r\n", b"q\xff\xff\xff\xff", b"q\x00\x00\x00\x20" + b"x" * 32 + b"a\0\0\0\0"):
        # The question, perhaps an answer to ours, and then the end: a close, or a reset when it ends first.
        with socket.create_connection(("127.0.0.1", port)) as stranger, suppress(OSError):
            stranger.sendall(junk)
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(1024):
                pass
    assert call(launch, "ssh", "127.0.0.1", "echo still here").stdout == "still here\n"


def test_a_member_nobody_knows_is_named_with_those_that_are(launch):
    done = call(launch, "ssh", "three", "true")

    assert done.returncode == 255
    assert done.stderr == "ssh: three is not a member of this job; the members are 127.0.0.1, 127.0.0.2\n"


def test_a_member_that_starts_late_is_waited_for(tmp_path):
    (port,) = free_ports(1)
    made = folder(tmp_path / "launch", {"127.0.0.1": port})
    with subprocess.Popen(
        [sys.executable, made / "ssh", "127.0.0.1", "echo late"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as caller:
        assert caller.poll() is None
        with serving(made, port):
            assert caller.communicate(timeout=15)[0] == "late\n"


def test_nobody_to_reach_is_a_mistake(launch):
    assert call(launch, "pdsh", "true").returncode == call(launch, "ssh").returncode == 255


def test_another_name_is_refused(launch):
    assert call(launch, "agent", "stop").returncode == 255
