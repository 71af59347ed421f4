"""One cluster with a pod per level, in each of which the program of attempts runs; `python -m` prints all answers."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paceline.environments.cache import cache_folder
from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.support.shell_pods import make_pod, phase

PROGRAM = Path(__file__).parents[1] / "jobs" / "escape.py"
POD = "escape"
SETUID = "/shared/id"
# By level: the pod's spec beside its container. The last one runs beside the pod `root`, as a command in it.
LEVELS: dict[str, dict[str, Any]] = {
    "root": {},
    "user": {"securityContext": {"runAsUser": 1000, "runAsGroup": 1000}},
    "host-network": {"hostNetwork": True},
}
EXEC = "exec"
LAST = "status Seccomp"


@contextmanager
def listener() -> Iterator[str]:
    """Listen at an abstract name of this machine's network."""
    name = f"paceline-escape-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(f"\0{name}")
        sock.listen(16)
        yield name


def answers(levels: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return what came of every attempt, by level."""
    shared = Path(tempfile.mkdtemp(prefix="pl-escape-"))
    shared.chmod(0o777)
    shutil.copy(shutil.which("id") or "/usr/bin/id", shared / "id")
    (shared / "id").chmod(0o4755)
    shutil.copy(PROGRAM, shared / "escape.py")
    try:
        with embedded() as cluster, listener() as name:
            for level in levels:
                _make(cluster, level, shared, name)
            return {level: _collected(cluster, level) for level in levels} | _of_exec(cluster)
    finally:
        shutil.rmtree(shared)


def _make(cluster: Embedded, level: str, shared: Path, name: str) -> None:
    env = {
        "ESCAPE_HOST_PID": str(cluster.agent_pid),
        "ESCAPE_HOME": str(cluster.home),
        "ESCAPE_CACHE": str(cache_folder(os.environ)),
        "ESCAPE_SOCKET": name,
        "ESCAPE_SETUID": SETUID,
        "ESCAPE_SCRATCH": "/scratch",
    }
    container = {
        "name": "main",
        "image": "python:3.11",
        # The first stays for the command that is run in it.
        "command": ["sh", "-c", f"python /shared/escape.py; sleep {1000 if level == 'root' else 0}"],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "volumeMounts": [{"name": "shared", "mountPath": "/shared"}, {"name": "scratch", "mountPath": "/scratch"}],
    }
    volumes = [{"name": "shared", "hostPath": {"path": str(shared)}}, {"name": "scratch", "emptyDir": {}}]
    make_pod(cluster, f"{POD}-{level}", container, volumes=volumes, **LEVELS[level])


def _collected(cluster: Embedded, level: str) -> dict[str, str]:
    name = f"{POD}-{level}"
    wait_until(f"{name} has run", lambda: phase(cluster, "pod", name) != "Pending")
    # Until it has ended, or has said its last word and waits for the command that is run in it.
    with subprocess.Popen(logs_of(cluster, name), stdout=subprocess.PIPE, text=True) as following:
        lines = list(_until_last(following.stdout or ()))
        following.kill()
    return _read(lines)


def logs_of(cluster: Embedded, name: str) -> tuple[str, ...]:
    return (shutil.which("kubectl") or "", f"--kubeconfig={cluster.kubeconfig}", "logs", "--follow", name)


def _until_last(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if LAST in line:
            return


def _of_exec(cluster: Embedded) -> dict[str, dict[str, str]]:
    ran = cluster.kubectl("exec", f"{POD}-root", "--", "python", "/shared/escape.py")
    assert ran.code == 0, ran.err
    return {EXEC: _read(ran.out.splitlines())}


def _read(lines: Iterable[str]) -> dict[str, str]:
    return {row["name"]: row["answer"] for row in map(json.loads, lines)}


if __name__ == "__main__":
    json.dump(answers(tuple(sys.argv[1:])), sys.stdout)
