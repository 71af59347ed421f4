"""Build an environment with uv: beside its final folder, then renamed in one step."""

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.environments.cache import ABOUT, EnvironmentCache, remove, size_of, uv_variables
from paceline.environments.specs import EnvironmentSpec, interpreter, python
from paceline.errors import PacelineError

LOCK_FILE, REQUIREMENTS = "requirements.lock", "requirements.txt"
LAST_LINES, LAST_BYTES = 12, 1500
LOCK_RETRY_SECONDS = 0.2
# Box-drawing characters and marks in uv's output.
DECORATION = "[\\u00d7\\u2500-\\u257f\\u25b6]+"
# How long PyTorch's own index may take to answer before the default index is used.
PROBE_LIMITS = {"UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "0"}


class BuildFailed(PacelineError):
    """A build failed; the message ends with the last lines of uv's output."""

    code, reason = 500, "NotBuilt"


@dataclass(slots=True, kw_only=True)
class Build:
    """One build. Run it on a thread; `stop` may be called from another."""

    cache: EnvironmentCache
    spec: EnvironmentSpec
    # Whether an existing environment is built again if there are newer packages.
    is_renewal: bool = False
    # Called with a short description of every step.
    report: Callable[[str], None] = lambda _line: None
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _mutex: threading.Lock = field(default_factory=threading.Lock, init=False)

    def run(self) -> Path:
        """Build the environment unless it exists, and return its folder; BuildFailed or HostError say why not."""
        existing = self.cache.folder(self.spec)
        is_built = existing.exists()
        if is_built and not self.is_renewal:
            return existing
        folder, uv = self.cache.next_folder(self.spec) if is_built else existing, self.cache.uv()
        try:
            self.cache.root.mkdir(parents=True, exist_ok=True)
            with self._lock(folder) as lock:
                # Another process may have built it while we waited for the lock.
                if not folder.exists():
                    if is_built and not self._has_newer(uv, existing, lock):
                        self.report("no newer packages")
                        return existing
                    self._build(uv, folder, lock)
        except OSError as error:
            raise BuildFailed(f"environment {self.spec.name}: {error}") from error
        return folder

    def stop(self) -> None:
        """Kill uv, so that `run` ends soon after."""
        self._stopped.set()
        with self._mutex:
            if self._process is not None and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _has_newer(self, uv: str, existing: Path, lock: int) -> bool:
        """Return whether the same requirements would install other packages today."""
        self.report("looking for newer packages")
        target = ("--python", str(existing / "bin" / "python"))
        options = ("--dry-run", "--upgrade", "--refresh", *target, *_index_options(existing))
        argv = ("pip", "install", *options, "-r", str(existing / REQUIREMENTS))
        output = self._uv(lock, uv, *argv, env=PROBE_LIMITS, is_quiet=True)
        return any(line.lstrip().startswith("+ ") for line in output)

    def _build(self, uv: str, folder: Path, lock: int) -> None:
        staging = folder.with_name(f".{folder.name}.new")
        # A killed build may have left it. We hold the lock, which its uv held as long as it ran.
        remove(staging)
        try:
            self._uv(lock, uv, "venv", "--quiet", "--relocatable", "--python", python(), str(staging))
            requirements = staging / REQUIREMENTS
            requirements.write_text("".join(f"{line}\n" for line in self.spec.lines))
            target = ("--python", str(staging / "bin" / "python"))
            index = self._torch_index(lock, uv, requirements)
            # Compiled now, once: it halves the start of every program that imports a large framework.
            self._uv(lock, uv, "pip", "install", "--compile-bytecode", *target, *index, "-r", str(requirements))
            frozen = self._uv(lock, uv, "pip", "freeze", *target, is_quiet=True)
            (staging / LOCK_FILE).write_text("".join(f"{line}\n" for line in frozen))
            self._write_about(staging, index)
            # So that a power cut after the rename leaves no environment with empty files.
            os.sync()
            staging.rename(folder)
        except BaseException:
            remove(staging)
            raise

    def _torch_index(self, lock: int, uv: str, requirements: Path) -> tuple[str, ...]:
        """Return uv's option for PyTorch's own packages: small ones for a CPU, or those for the machine's GPU.

        If their index cannot be reached, the default index has packages that work too, but take 5 GB.
        """
        if not self.spec.torch:
            return ()
        option = f"--torch-backend={self.spec.torch}"
        argv = ("pip", "compile", "--quiet", option, str(requirements), "--output-file", os.devnull)
        try:
            self._uv(lock, uv, *argv, env=PROBE_LIMITS, is_quiet=True)
        except BuildFailed:
            self.report("PyTorch's package index cannot be reached; using the larger packages of the default index")
            return ()
        return (option,)

    def _write_about(self, folder: Path, index: tuple[str, ...]) -> None:
        about = {
            "name": self.spec.name,
            "version": self.spec.version,
            "key": self.spec.key,
            "requirements": self.spec.lines,
            # uv's option for PyTorch's packages.
            "index": index,
            "interpreter": interpreter(),
            "bytes": size_of(folder),
            "builtAt": int(time.time()),
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n")

    def _uv(self, lock: int, *argv: str, env: Mapping[str, str] | None = None, is_quiet: bool = False) -> list[str]:
        """Run uv and return the lines of its output; BuildFailed if it failed or was stopped."""
        variables = uv_variables(self.cache.env, self.cache.cache) | dict(env or {})
        with self._mutex:
            if self._stopped.is_set():
                raise BuildFailed(f"environment {self.spec.name}: the build was stopped")
            # uv inherits the lock: if we are killed, no other build starts before uv has ended.
            self._process = process = subprocess.Popen(
                argv,
                env=variables,
                cwd=self.spec.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[lock],
                start_new_session=True,
                umask=0o022,
            )
        last: deque[str] = deque(maxlen=LAST_LINES if not is_quiet else None)
        try:
            for line in process.stdout or ():
                last.append(line.decode(errors="replace").rstrip())
                if last[-1].strip() and not is_quiet:
                    self.report(last[-1].strip())
                if last[-1].startswith("Installed"):
                    # The longest step, during which uv prints nothing.
                    self.report("compiling bytecode, so that programs start faster")
            code = process.wait()
        finally:
            self._reap(process)
        if code != 0:
            output = in_one_line(last)[-LAST_BYTES:] or f"uv exited with code {code}"
            raise BuildFailed(f"environment {self.spec.name} could not be built: {output}")
        return list(last)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    @contextlib.contextmanager
    def _lock(self, folder: Path) -> Iterator[int]:
        """Hold the lock of one environment; other builds of it wait here and then find it built."""
        fd = os.open(folder.with_name(f".{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            is_waiting = False
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if not is_waiting:
                    self.report("waiting for another build of the same environment")
                    is_waiting = True
                if self._stopped.wait(LOCK_RETRY_SECONDS):
                    raise BuildFailed(f"environment {self.spec.name}: the build was stopped")
            yield fd
        finally:
            os.close(fd)


def _index_options(folder: Path) -> tuple[str, ...]:
    """Return the index options that an environment was built with, to look for newer packages in the same index."""
    try:
        return tuple(json.loads((folder / ABOUT).read_text()).get("index") or ())
    except (OSError, ValueError):
        return ()


def in_one_line(lines: Iterable[str]) -> str:
    """Join lines of uv's output, without decoration and without the interpreter that it used."""
    plain = (re.sub(DECORATION, " ", line) for line in lines if not line.startswith("Using "))
    return " ".join(" ".join(plain).split())
