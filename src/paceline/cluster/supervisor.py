"""`python -m paceline.cluster.supervisor HOME [FD | --adopt PID]`: keeps one control process running.

It uses the standard library only, because it is there all the time. On FD it says that the first control process is
ready, or why it is not. With --adopt it keeps a control process that is there already, whose supervisor was killed.
"""

import contextlib
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from paceline.cluster.logs import configure_logging
from paceline.errors import PacelineError
from paceline.host.lockfile import READY, lock_file
from paceline.settings import Settings

log = logging.getLogger(__name__)

# How the control process ends when nothing will change until a person acts.
FINAL = 3
BACKGROUND, FOREGROUND = "background", "foreground"
# A control process that ran for this long did not fail because of its start.
STEADY_SECONDS = 10.0
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.1, 30.0
# Shorter than whoever stops the cluster waits for the supervisor.
STOP_SECONDS = 25.0
ANSWER_BYTES = 65536

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a control process ended; the code of one that was adopted is not known."""

    code: int | None
    was_ready: bool
    seconds: float

    def __str__(self) -> str:
        if self.code is None:
            return "ended"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-self.code).name}"
        return f"was killed by signal {-self.code}"


def supervise(settings: Settings, report: Report, *, mode: str, adopted: int | None = None) -> int:
    """Run the control process until told to stop, and return an exit code; `report` gets its first answer.

    Unavailable when another supervisor holds the folder.
    """
    with lock_file(settings.supervisor_lock), _stop_requests() as stop:
        failures = 0
        if adopted is not None:
            exit_ = _Control(settings, stop).adopt(adopted)
        else:
            exit_ = _Control(settings, stop).run(mode, report)
            if not exit_.was_ready:
                # Whoever starts the cluster is told why, and tries again.
                return 0 if _is_asked(stop) else max(exit_.code or 0, 1)
        while True:
            if _is_asked(stop) or exit_.code == 0:
                return 0
            if exit_.code == FINAL:
                log.error("the control process cannot go on; `paceline up` starts it when that is mended")
                return FINAL
            failures = 0 if exit_.seconds >= STEADY_SECONDS else failures + 1
            pause = pause_after(failures)
            log.warning("the control process %s and is started again in %g s", exit_, pause)
            if select.select([stop], [], [], pause)[0]:
                return 0
            exit_ = _Control(settings, stop).run(mode, _log_ready if mode == BACKGROUND else _log_answer)


def pause_after(failures: int) -> float:
    """Return how long to wait before the next start: almost nothing at first, then ever longer, up to a bound."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** min(max(failures - 2, 0), 10), MOST_PAUSE_SECONDS)


class _Control:
    """One control process from its start to its end."""

    def __init__(self, settings: Settings, stop: int) -> None:
        self._settings = settings
        self._stop = stop
        self._began = time.monotonic()

    def run(self, mode: str, report: Report) -> Exit:
        """Start a control process, report its answer and wait for its end."""
        read_end, write_end = os.pipe()
        words = [str(self._settings.home), str(write_end), str(os.getpid()), mode]
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline.cluster.control_plane_main", *words],
            stdin=subprocess.DEVNULL,
            pass_fds=[write_end],
            cwd="/",
        )
        os.close(write_end)
        pidfd = os.pidfd_open(process.pid)
        try:
            answer = self._answer(read_end, pidfd)
            report(answer)
            self._wait(pidfd)
        finally:
            os.close(read_end)
            os.close(pidfd)
        return Exit(code=process.wait(), was_ready=answer == READY, seconds=self._seconds())

    def adopt(self, pid: int) -> Exit:
        """Wait for the end of a control process that somebody else started."""
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            try:
                log.info("watching the control process (pid %d)", pid)
                self._wait(pidfd)
            finally:
                os.close(pidfd)
        return Exit(code=None, was_ready=True, seconds=self._seconds())

    def _answer(self, read_end: int, pidfd: int) -> str:
        """Wait for what the process says about its start; nothing when it ends without a word."""
        ready, _, _ = select.select([read_end, self._stop], [], [])
        if self._stop in ready:
            self._end(pidfd)
        return os.read(read_end, ANSWER_BYTES).decode(errors="replace")

    def _wait(self, pidfd: int) -> None:
        if self._stop in select.select([pidfd, self._stop], [], [])[0]:
            self._end(pidfd)

    def _end(self, pidfd: int) -> None:
        """Ask the process to stop, and kill it when it does not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, number)
            if select.select([pidfd], [], [], STOP_SECONDS)[0]:
                return

    def _seconds(self) -> float:
        return time.monotonic() - self._began


@contextlib.contextmanager
def _stop_requests() -> Iterator[int]:
    """Give what becomes readable, and stays so, once a signal asks this process to stop."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: _write(write_end)) for number in numbers}
    try:
        yield read_end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)


def _write(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.write(fd, b".")


def _is_asked(stop: int) -> bool:
    return bool(select.select([stop], [], [], 0)[0])


def _log_ready(answer: str) -> None:
    """Log that a later control process is ready; why one is not, it logs itself."""
    if answer == READY:
        log.info("the control process is ready again")


def _log_answer(answer: str) -> None:
    """Log in front whether a later control process is ready, or why not."""
    if answer:
        log.warning("the control process says: %s", answer)


def main() -> int:
    """Run until told to stop; a known error is one line."""
    settings = Settings(home=Path(sys.argv[1]))
    configure_logging("supervisor", settings.log)
    words = sys.argv[2:]
    adopted = int(words[1]) if words[:1] == ["--adopt"] else None
    fd = int(words[0]) if words and adopted is None else -1
    if fd >= 0:
        os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no names

    def report(answer: str) -> None:
        nonlocal fd
        if fd >= 0:
            # Whoever started this may have gone; it runs on all the same.
            with contextlib.suppress(BrokenPipeError):
                os.write(fd, answer.encode())
            os.close(fd)
            fd = -1

    try:
        return supervise(settings, report, mode=BACKGROUND, adopted=adopted)
    except PacelineError as error:
        log.error("%s", error)  # noqa: TRY400 - known errors need no traceback
        report(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
