"""Environments on disk: built once by uv beside their place, put there in one step, found by name and hash."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.environments.specs import Recipe, interpreter, python
from paceline.environments.uv import cache_folder, find_uv, how_to_get, variables
from paceline.errors import HostError, PacelineError

# What an environment says of itself; its time of change is that of the last use.
ABOUT, LOCK_FILE, WANTED = "paceline.json", "requirements.lock", "requirements.txt"
LAST_LINES, LAST_BYTES = 12, 1500
LOOK_SECONDS = 0.2
# With what uv leads the eye.
DRAWN = "[\\u00d7\\u2500-\\u257f\\u25b6]+"
# How long an index of PyTorch's own may take to answer before the usual one is asked.
PATIENCE = {"UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "0"}


class NotBuilt(PacelineError):
    """A build failed; the message ends with uv's last words."""

    code, reason = 500, "NotBuilt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """The folder in which all environments of a user lie."""

    cache: Path
    env: Mapping[str, str]

    @property
    def root(self) -> Path:
        """Where the environments lie."""
        return self.cache / "envs"

    def folder(self, recipe: Recipe) -> Path:
        """Give the place of an environment, built or not; of several builds of the same, that of the newest."""
        last = self._last_number(recipe)
        return self.root / (f"{recipe.title}-{last}" if last > 1 else recipe.title)

    def next_folder(self, recipe: Recipe) -> Path:
        """Give the place of the next build of the same requirements: containers may run in the last one."""
        return self.root / f"{recipe.title}-{self._last_number(recipe) + 1}"

    def _last_number(self, recipe: Recipe) -> int:
        """Count builds of the same requirements: the first has no number in its name."""
        ends = (path.name.removeprefix(f"{recipe.title}-") for path in self.root.glob(f"{recipe.title}-*"))
        return max((int(end) for end in ends if end.isdecimal()), default=1)

    def uv(self) -> str:
        """Find uv; HostError says how to get it."""
        found = find_uv(self.cache, self.env.get("PATH"))
        if found is None:
            said = "uv is not installed, and environments are built by it"
            raise HostError(f"{said}; install it with: {how_to_get(self.cache)}")
        return found


def environments(env: Mapping[str, str]) -> Environments:
    """Give the environments of the user whose variables these are."""
    return Environments(cache=cache_folder(env), env=env)


@dataclass(slots=True, kw_only=True)
class Build:
    """One build. Run it on a thread; `stop` may be called from another."""

    place: Environments
    recipe: Recipe
    # Whether one that is there is built anew once there are newer packages for it.
    is_renewal: bool = False
    # Told of every step, in a few words.
    say: Callable[[str], None] = lambda _line: None
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _mutex: threading.Lock = field(default_factory=threading.Lock, init=False)

    def run(self) -> Path:
        """Build it unless it is there, and give its folder; NotBuilt or HostError say why it is not."""
        there = self.place.folder(self.recipe)
        is_there = there.exists()
        if is_there and not self.is_renewal:
            return there
        folder, uv = self.place.next_folder(self.recipe) if is_there else there, self.place.uv()
        try:
            self.place.root.mkdir(parents=True, exist_ok=True)
            with self._lock(folder) as lock:
                # Somebody else may have been quicker.
                if not folder.exists():
                    if is_there and not self._finds_newer(uv, there, lock):
                        self.say("there are none")
                        return there
                    self._make(uv, folder, lock)
        except OSError as error:
            raise NotBuilt(f"environment {self.recipe.name}: {error}") from error
        return folder

    def stop(self) -> None:
        """End the build: uv at once, and `run` soon after."""
        self._stopped.set()
        with self._mutex:
            if self._process is not None and self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def _finds_newer(self, uv: str, there: Path, lock: int) -> bool:
        """Tell whether the requirements would bring other packages today than are there."""
        self.say("looking for newer packages")
        into = ("--python", str(there / "bin" / "python"))
        ask = ("--dry-run", "--upgrade", "--refresh", *into, *_index_of(there), "-r", str(there / WANTED))
        told = self._uv(lock, uv, "pip", "install", *ask, more=PATIENCE, is_quiet=True)
        return any(line.lstrip().startswith("+ ") for line in told)

    def _make(self, uv: str, folder: Path, lock: int) -> None:
        beside = folder.with_name(f".{folder.name}.new")
        # What a build left that did not live to its end. The lock is ours, and was its uv's as long as that ran.
        remove(beside)
        try:
            self._uv(lock, uv, "venv", "--quiet", "--relocatable", "--python", python(), str(beside))
            wanted = beside / WANTED
            wanted.write_text("".join(f"{line}\n" for line in self.recipe.lines))
            into = ("--python", str(beside / "bin" / "python"))
            extra = self._torch(lock, uv, wanted)
            # Compiled now, once: it halves the start of every program that imports a large framework.
            self._uv(lock, uv, "pip", "install", "--compile-bytecode", *into, *extra, "-r", str(wanted))
            frozen = self._uv(lock, uv, "pip", "freeze", *into, is_quiet=True)
            (beside / LOCK_FILE).write_text("".join(f"{line}\n" for line in frozen))
            self._describe(beside, extra)
            # Not after a power cut either may there be an environment with empty files in it.
            os.sync()
            beside.rename(folder)
        except BaseException:
            remove(beside)
            raise

    def _torch(self, lock: int, uv: str, wanted: Path) -> tuple[str, ...]:
        """Ask for PyTorch's own builds: small ones for a CPU, or those of the GPU that is there.

        Where their index cannot be reached, the usual one has builds that work too, and take 5 GB.
        """
        if not self.recipe.torch:
            return ()
        option = f"--torch-backend={self.recipe.torch}"
        ask = ("pip", "compile", "--quiet", option, str(wanted), "--output-file", os.devnull)
        try:
            self._uv(lock, uv, *ask, more=PATIENCE, is_quiet=True)
        except NotBuilt:
            self.say("PyTorch's own index cannot be reached; taking the larger packages of the usual one")
            return ()
        return (option,)

    def _describe(self, folder: Path, index: tuple[str, ...]) -> None:
        about = {
            "name": self.recipe.name,
            "version": self.recipe.version,
            "key": self.recipe.key,
            "requirements": self.recipe.lines,
            # Which of PyTorch's builds it has, in uv's words.
            "index": index,
            "interpreter": interpreter(),
            "bytes": size_of(folder),
            "builtAt": int(time.time()),
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n")

    def _uv(self, lock: int, *argv: str, more: Mapping[str, str] | None = None, is_quiet: bool = False) -> list[str]:
        """Run uv to its end and give what it said; NotBuilt when it failed or was stopped."""
        env = variables(self.place.env, self.place.cache) | dict(more or {})
        with self._mutex:
            if self._stopped.is_set():
                raise NotBuilt(f"environment {self.recipe.name}: the build was stopped")
            # uv holds the lock too: should we be killed, nobody else begins before it has ended.
            self._process = process = subprocess.Popen(
                argv,
                env=env,
                cwd=self.recipe.folder,
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
                    self.say(last[-1].strip())
                if last[-1].startswith("Installed"):
                    # uv says nothing while it does this, and it takes longest.
                    self.say("compiling it, so that programs start faster")
            code = process.wait()
        finally:
            self._see_off(process)
        if code != 0:
            said = in_one_line(last)[-LAST_BYTES:] or f"uv ended with {code}"
            raise NotBuilt(f"environment {self.recipe.name} could not be built: {said}")
        return list(last)

    def _see_off(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    @contextlib.contextmanager
    def _lock(self, folder: Path) -> Iterator[int]:
        """Hold the lock of one environment; others of the same wait here, and then find it built."""
        fd = os.open(folder.with_name(f".{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            is_told = False
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                if not is_told:
                    self.say("waiting for another build of the same")
                    is_told = True
                if self._stopped.wait(LOOK_SECONDS):
                    raise NotBuilt(f"environment {self.recipe.name}: the build was stopped")
            yield fd
        finally:
            os.close(fd)


def _index_of(folder: Path) -> tuple[str, ...]:
    """Read which index an environment was built from, so that the same is asked again."""
    try:
        return tuple(json.loads((folder / ABOUT).read_text()).get("index") or ())
    except (OSError, ValueError):
        return ()


def in_one_line(lines: Iterable[str]) -> str:
    """Put what uv said into one line, without its drawings and without where it worked."""
    told = (re.sub(DRAWN, " ", line) for line in lines if not line.startswith("Using "))
    return " ".join(" ".join(told).split())


def size_of(folder: Path) -> int:
    """Tell how many bytes the files of a folder have; links are not followed."""
    found = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found += (Path(where) / name).lstat().st_size
    return found


def remove(folder: Path) -> None:
    """Remove a folder; gone already is fine."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)
