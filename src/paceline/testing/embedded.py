"""A real embedded cluster in a folder of its own: the real command, real processes, gone at the end."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from paceline.errors import HostError
from paceline.host.lockfile import holder
from paceline.host.pod_bridge import close
from paceline.node.runtime.shim import start_ticks
from paceline.settings import Settings

COMMAND_SECONDS = 120.0
WAIT_SECONDS = 120.0
LOOK_SECONDS, MOST_LOOK_SECONDS = 0.02, 0.5

T = TypeVar("T")


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

    @property
    def settings(self) -> Settings:
        """Where the cluster keeps what."""
        return Settings(home=self.home)

    @property
    def control_pid(self) -> int | None:
        """The control process, while it lives and has said who it is."""
        return _named(holder(self.settings.lock))

    @property
    def supervisor_pid(self) -> int | None:
        """The process that starts the control process again, while it lives and has said who it is."""
        return _named(holder(self.settings.supervisor_lock))

    @property
    def agent_pid(self) -> int | None:
        """The node agent, while it lives and has said who it is."""
        return _named(holder(self.settings.agent_lock))

    @property
    def console_pid(self) -> int | None:
        """The console, while a page is open."""
        return _named(holder(self.settings.console_lock))

    def kill_control_plane(self) -> None:
        """End the supervisor, the control process and the agent at once, as a power cut does; pods run on."""
        # Stopped first: none of them can start another one while the others are ended.
        pids = [pid for pid in (self.supervisor_pid, self.control_pid, self.agent_pid) if pid is not None]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        wait_until("all are gone", lambda: not (self.supervisor_pid or self.control_pid or self.agent_pid))

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
            raise HostError("kubectl is not installed")
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


def _named(pid: int | None) -> int | None:
    """Never -1, which is every process of the machine to whoever sends a signal there."""
    return pid if pid is not None and pid > 0 else None


def paceline_command() -> str:
    """Find the command that belongs to the interpreter that runs this."""
    return str(Path(sys.executable).parent / "paceline")


@contextlib.contextmanager
def embedded(*up: str, env: dict[str, str] | None = None, home: Path | None = None) -> Iterator[Embedded]:
    """Start a cluster with `paceline up -d`, and leave no process of it behind."""
    with folder_for_cluster(env=env, home=home) as cluster:
        started = cluster.paceline("up", "-d", *up)
        if started.code != 0:
            raise HostError(f"paceline up -d failed ({started.code}):\n{started.out}{started.err}")
        yield cluster


@contextlib.contextmanager
def folder_for_cluster(*, env: dict[str, str] | None = None, home: Path | None = None) -> Iterator[Embedded]:
    """Give a cluster that is not started yet, and in the end remove its folder and whatever runs from it."""
    # A short path: Unix sockets lie below it.
    home = home or Path(tempfile.mkdtemp(prefix="pl-"))
    try:
        yield Embedded(home=home, env=env or {})
    finally:
        wait_until(f"all processes of {home} end", lambda: not end_all(home))
        close(Settings(home=home))
        shutil.rmtree(home, ignore_errors=True)


def end_all(home: Path) -> tuple[int, ...]:
    """Kill whatever runs from a folder, and give what was found: a killed process may have had time for a child.

    All are stopped before one is killed, so that none of them starts another one again or sees it end.
    """
    processes = leftovers(home)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    return processes


def leftovers(home: Path) -> tuple[int, ...]:
    """Find the live processes of a cluster: its own, which name its folder, and its pods', which have it mounted."""
    named = str(home).encode()
    here = Path("/proc/self/ns/mnt").readlink()
    processes = []
    for entry in _processes():
        with contextlib.suppress(OSError):
            is_ours = named in (entry / "cmdline").read_bytes()
            is_pod = (entry / "ns/mnt").readlink() != here and has_mounted(home, (entry / "mountinfo").read_text())
            if (is_ours or is_pod) and start_ticks(int(entry.name)) is not None:
                processes.append(int(entry.name))
    return tuple(processes)


def has_mounted(home: Path, mountinfo: str) -> bool:
    """Tell whether a process sees a part of a cluster's agent folder elsewhere, as its pods do.

    A process in a copy of the machine's own mounts, such as a cluster of another test under `unshare --mount`, sees
    the mounts of every other cluster as well, but at their own places. It is none of their pods.
    """
    # By its last part: where a mount shows it depends on how the machine mounts what is above.
    part = f"{home.name}/agent/"
    rows = (line.split() for line in mountinfo.splitlines())
    return any(part in row[3] and part not in row[4] for row in rows if len(row) > 4)


def processes_with(mark: str) -> frozenset[tuple[int, int]]:
    """Find the live processes that have a word among their arguments: pid and start time."""
    pids = set()
    for entry in _processes():
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                ticks = start_ticks(int(entry.name))
                pids |= set() if ticks is None else {(int(entry.name), ticks)}
    return frozenset(pids)


def arguments(pid: int) -> tuple[str, ...]:
    """Give the words that a process was started with; none when it has ended."""
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0"))
    except OSError:
        return ()


def open_files(pid: int) -> tuple[str, ...]:
    """Name what a process has open; what it closes meanwhile is left out."""
    paths = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.append(str(entry.readlink()))
    return tuple(paths)


def _processes() -> Iterator[Path]:
    return (path for path in Path("/proc").iterdir() if path.name.isdigit() and int(path.name) != os.getpid())


def wait_until(description: str, look: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Look again and again until there is something to see, and give it; AssertionError says what never came."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if value := look():
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain until {description}")
        # Looking with a command takes from the machine what is waited for could use: most of the time it may not.
        time.sleep(min(max(LOOK_SECONDS, 2 * (now - began)), MOST_LOOK_SECONDS))
