"""A real embedded cluster in a folder of its own: the real command, real processes, gone at the end."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import Unavailable

COMMAND_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A running cluster and the ways to talk to it."""

    home: Path
    # What differs from this process's own environment.
    env: dict[str, str] = field(default_factory=dict)

    @property
    def kubeconfig(self) -> Path:
        """Where kubectl finds the cluster."""
        return self.home / "kubeconfig"

    def environment(self) -> dict[str, str]:
        """Give the environment in which commands talk to this cluster."""
        return {**os.environ, **self.env, "PACELINE_HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}

    def paceline(self, *args: str, stdin: str = "", seconds: float = COMMAND_SECONDS) -> Ran:
        """Run our command against this cluster."""
        return self.command(paceline_command(), *args, stdin=stdin, seconds=seconds)

    def kubectl(self, *args: str, stdin: str = "", seconds: float = COMMAND_SECONDS) -> Ran:
        """Run the real kubectl against this cluster."""
        program = shutil.which("kubectl")
        if program is None:
            raise Unavailable("kubectl is not installed")
        cache = f"--cache-dir={self.home / 'kubectl-cache'}"
        return self.command(program, cache, *args, stdin=stdin, seconds=seconds)

    def command(self, *args: str, stdin: str, seconds: float) -> Ran:
        """Run any command in this cluster's environment; one that does not end in time is killed and raises."""
        done = subprocess.run(
            args,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=self.environment(),
            check=False,
        )
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def paceline_command() -> str:
    """Find the command that belongs to the interpreter that runs this."""
    return str(Path(sys.executable).parent / "paceline")


@contextlib.contextmanager
def embedded(*up: str, env: dict[str, str] | None = None) -> Iterator[Embedded]:
    """Start a cluster with `paceline up -d`, and leave no process of it behind."""
    # A short path: Unix sockets lie below it.
    home = Path(tempfile.mkdtemp(prefix="pl-"))
    cluster = Embedded(home=home, env=env or {})
    try:
        started = cluster.paceline("up", "-d", *up)
        if started.code != 0:
            raise Unavailable(f"paceline up -d failed ({started.code}):\n{started.out}{started.err}")
        yield cluster
    finally:
        cluster.paceline("down", "--keep-jobs")
        for pid in leftovers(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)


def leftovers(home: Path) -> tuple[int, ...]:
    """Find the live processes that were started for this folder: they name it in their arguments or environment."""
    marks = (str(home).encode(), f"PACELINE_HOME={home}".encode())
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            told = (entry / "cmdline").read_bytes()
            if any(mark in told for mark in marks):
                found.append(int(entry.name))
    return tuple(found)
