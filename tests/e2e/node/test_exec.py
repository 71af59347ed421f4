"""Commands in running containers, asked for by the clients that people have."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, Ran, paceline_command, processes_with, wait_until
from tests.e2e.support.manifests import pod, pytorch, text
from tests.e2e.support.shell_pods import assert_no_bugs
from tests.e2e.support.terminal import terminal

# Says that it is there, and lives until it is told to end.
LIVES = "import signal, sys; print('up', flush=True); print('oh', file=sys.stderr, flush=True); signal.pause()"
SECONDS = 30.0


@pytest.fixture(scope="module")
def home(cluster: Embedded) -> Iterator[Embedded]:
    """A cluster with one running pod of two containers."""
    main = {"name": "main", "workingDir": "/tmp", "env": [{"name": "WHO", "value": "me and you"}]}
    both = [{**main, "command": ["python", "-c", LIVES]}, {"name": "side", "command": ["python", "-c", LIVES]}]
    start(cluster, pod("box", *both))
    yield cluster
    assert_no_bugs(cluster)


def start(cluster: Embedded, manifest: dict[str, Any], name: str = "box") -> None:
    made = cluster.kubectl("create", "-f", "-", stdin=text(manifest))
    assert made.code == 0, made.err
    ready = cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Running", f"pod/{name}", "--timeout=60s")
    assert ready.code == 0, ready.err


def run(home: Embedded, *words: str, stdin: str = "") -> Ran:
    return home.kubectl("exec", *words, stdin=stdin, seconds=SECONDS)


def test_a_command_sees_the_container_as_its_program_does(home: Embedded) -> None:
    ran = run(home, "box", "-c", "main", "--", "sh", "-c", 'echo "$WHO"; pwd; hostname; cat /proc/1/comm; echo no >&2')

    assert ran == Ran(code=0, out="me and you\n/tmp\nbox\nbwrap\n", err="no\n")


def test_a_command_has_no_more_rights_than_the_container(home: Embedded) -> None:
    wanted = "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)' /proc/self/status; ls -l /proc/self/fd | grep -c ' -> /'"
    mine = run(home, "box", "-c", "main", "--", "sh", "-c", wanted).out.split()
    rights = dict(zip(mine[0:12:2], mine[1:12:2], strict=True))

    assert rights.pop("NoNewPrivs:") == "1"
    assert {int(each, 16) for each in rights.values()} == {0}


def test_an_exit_code_comes_back(home: Embedded) -> None:
    ran = run(home, "box", "-c", "main", "--", "sh", "-c", "echo out; exit 3")

    assert ran == Ran(code=3, out="out\n", err="command terminated with exit code 3\n")


def test_a_command_reads_what_is_sent_to_it(home: Embedded) -> None:
    much = "".join(f"line {number}\n" for number in range(20_000))

    assert run(home, "-i", "box", "-c", "main", "--", "cat", stdin=much) == Ran(code=0, out=much, err="")
    assert run(home, "-i", "box", "-c", "main", "--", "wc", "-l", stdin=much).out.strip() == "20000"


def test_a_command_that_is_not_there_is_told_of(home: Embedded) -> None:
    ran = run(home, "box", "-c", "main", "--", "no-such-program")

    assert (ran.code, ran.out) == (1, "")
    assert 'exec: "no-such-program": executable file not found in $PATH' in ran.err


def test_what_cannot_be_entered_is_told_in_the_words_of_kubernetes(home: Embedded) -> None:
    assert run(home, "no", "--", "ls").err == 'Error from server (NotFound): pods "no" not found\n'
    assert "container zz is not valid for pod box" in run(home, "box", "-c", "zz", "--", "ls").err
    chosen = run(home, "box", "--", "true")
    assert (chosen.code, chosen.err) == (0, 'Defaulted container "main" out of: main, side\n')


def test_a_container_that_has_ended_cannot_be_entered(home: Embedded) -> None:
    done = [{"name": "main", "command": ["python", "-c", LIVES]}, {"name": "done", "command": ["true"]}]
    start(home, pod("half", *done), "half")
    state = "jsonpath={.status.containerStatuses[?(@.name=='done')].state.terminated.exitCode}"
    wait_until("it has ended", lambda: home.kubectl("get", "pod", "half", "-o", state).out == "0")

    ran = run(home, "half", "-c", "done", "--", "ls")

    assert ran.code == 1
    assert 'container not found ("done")' in ran.err


def test_a_terminal_is_one_inside_too_and_has_its_size(home: Embedded) -> None:
    command = (kubectl(), "exec", "-it", "box", "-c", "main", "--", "sh")
    with terminal(*command, env=home.environment()) as shell:
        shell.wait_for_answer("stty size; tty; echo $TERM\n", "40 100\r\n/dev/pts/0\r\nxterm\r\n")
        shell.resize(50, 120)
        shell.wait_for_answer("stty size\n", "50 120")
        shell.type("exit 4\n")
        assert shell.ended() == 4


def test_a_command_ends_when_its_client_does(home: Embedded) -> None:
    mark = "ends-with-its-client"
    child = f"sh -c 'sleep 1000; true' {mark}"
    command = ["exec", "box", "-c", "main", "--", "sh", "-c", f"{child} & wait", mark]
    running = subprocess.Popen([kubectl(), *command], env=home.environment())
    try:
        wait_until("the command and its child run", lambda: len(inside(mark)) == 2)
    finally:
        running.kill()
        running.wait()

    wait_until("the command has ended", lambda: not inside(mark))


def test_a_command_ends_with_its_container(home: Embedded) -> None:
    start(home, pod("brief", {"name": "main", "command": ["python", "-c", LIVES]}), "brief")
    command = [kubectl(), "exec", "brief", "--", "sh", "-c", "echo here; sleep 1000"]
    running = subprocess.Popen(command, env=home.environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "here\n"
        assert home.kubectl("delete", "pod", "brief", "--now").code == 0
        assert running.wait(SECONDS) == 137
    finally:
        running.kill()
        running.communicate()


def test_what_a_command_leaves_running_does_not_hold_it_up(home: Embedded) -> None:
    assert run(home, "box", "-c", "side", "--", "sh", "-c", "sleep 1000 & echo left").out == "left\n"


def test_attaching_shows_the_output_until_the_container_ends(home: Embedded) -> None:
    program = "import time\nwhile True: print('tick', flush=True); time.sleep(0.05)"
    start(home, pod("ticks", {"name": "main", "command": ["python", "-c", program]}), "ticks")
    attached = subprocess.Popen(
        [kubectl(), "attach", "ticks"],
        env=home.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert attached.stdout is not None
        assert attached.stdout.readline() == "tick\n"
        assert home.kubectl("delete", "pod", "ticks", "--now").code == 0
        assert attached.wait(SECONDS) == 0
    finally:
        attached.kill()
        attached.communicate()


# In processes of their own: these libraries leave connections open behind them.
OFFICIAL = """
from kubernetes import client, config
from kubernetes.stream import stream
config.load_kube_config()
call = client.CoreV1Api().connect_get_namespaced_pod_exec
options = {"container": "main", "stderr": True, "stdout": True, "tty": False, "_request_timeout": 20}
whole = stream(call, "box", "default", command=["sh", "-c", "echo out; echo err >&2"], stdin=False, **options)
print(sorted(whole.split()))
command = ["sh", "-c", "read line; echo got $line; exit 5"]
talk = stream(call, "box", "default", command=command, stdin=True, _preload_content=False, **options)
talk.write_stdin("something\\n")
talk.run_forever(timeout=20)
print(talk.read_stdout().strip(), talk.returncode)
"""
KR8S = """
from kr8s.objects import Pod
done = Pod.get("box").exec(["sh", "-c", "echo hi; exit 6"], container="main", check=False)
print(done.stdout, done.returncode)
"""


def test_the_official_python_client_runs_commands(home: Embedded) -> None:
    assert python(home, OFFICIAL) == "['err', 'out']\ngot something 5\n"


def test_kr8s_runs_commands(home: Embedded) -> None:
    assert python(home, KR8S) == "b'hi\\n' 6\n"


def python(home: Embedded, program: str) -> str:
    """Run a program of its own against the cluster; give what it prints."""
    ran = home.command(sys.executable, "-c", program, stdin="", seconds=2 * SECONDS)
    assert ran.code == 0, ran.err
    return ran.out


def test_our_own_command_enters_a_pod_and_the_member_of_a_job(home: Embedded) -> None:
    """X-11"""
    made = home.kubectl("create", "-f", "-", stdin=text(pytorch("enter", command=["python", "-c", LIVES], workers=2)))
    assert made.code == 0, made.err
    assert home.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pj/enter", "--timeout=60s").code == 0

    in_pod = home.paceline("exec", "-c", "main", "box", "--", "sh", "-c", "echo $WHO; echo no >&2; exit 3")
    assert in_pod == Ran(code=3, out="me and you\n", err="no\n")
    piped = home.paceline("exec", "-i", "-c", "main", "pod/box", "wc", "-l", stdin="a\nb\n")
    assert (piped.code, piped.out.strip()) == (0, "2")
    second = home.paceline("exec", "--index", "1", "enter", "hostname")
    assert (second.code, second.out.strip().endswith("-worker-1")) == (0, True)


def test_our_own_command_says_what_cannot_be_entered(home: Embedded) -> None:
    missing, program = home.paceline("exec", "no-such", "ls"), home.paceline("exec", "-c", "main", "box", "no-such")
    several, piped = home.paceline("exec", "box", "ls"), home.paceline("exec", "-t", "box", "ls")

    assert (missing.code, "there is no job named 'no-such'" in missing.err) == (1, True)
    assert 'exec: "no-such": executable file not found in $PATH' in program.err
    assert "choose one of: [main side]" in several.err
    assert "-t needs a terminal" in piped.err
    assert all(each.code for each in (program, several, piped))


def test_our_own_command_gives_a_terminal(home: Embedded) -> None:
    command = (paceline_command(), "exec", "-it", "-c", "main", "box", "sh")
    with terminal(*command, env=home.environment()) as shell:
        shell.wait_for_answer("stty size\n", "40 100")
        shell.resize(50, 120)
        shell.wait_for_answer("stty size\n", "50 120")
        shell.type("exit 7\n")
        assert shell.ended() == 7


def kubectl() -> str:
    return shutil.which("kubectl") or "kubectl"


def inside(mark: str) -> set[int]:
    """The processes that name the mark in a namespace other than ours."""
    here = Path("/proc/self/ns/pid").readlink()
    found = set()
    for pid, _ in processes_with(mark):
        with contextlib.suppress(OSError):  # It ended after it was found.
            if Path(f"/proc/{pid}/ns/pid").readlink() != here:
                found.add(pid)
    return found
