"""`python -m paceline.cluster.supervisor HOME [FD | --adopt PID]`: keep one control process running.

It uses only the standard library, to need little memory. It reports on FD that the first control process is ready, or
why not. With --adopt it takes over a running control process whose supervisor was killed.
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

from paceline.cluster.logs import configure_logging, remembered_format
from paceline.errors import PacelineError
from paceline.host.lockfile import READY, lock_file
from paceline.settings import Settings

log = logging.getLogger(__name__)

# Exit code of the control process when a restart cannot help until the user acts.
FINAL = 3
BACKGROUND, FOREGROUND = "background", "foreground"
# A control process that ran for this long did not fail at its start.
STEADY_SECONDS = 10.0
FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.1, 30.0
# Shorter than `paceline down` waits for the supervisor.
STOP_SECONDS = 25.0
ANSWER_BYTES = 65536

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a control process ended; the exit code of an adopted one is unknown."""

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
    """Run the control process until a signal, and return an exit code; `report` gets its first message.

    Raise ServiceUnavailable when another supervisor holds the folder.
    """
    with lock_file(settings.supervisor_lock), _stop_requests() as stop:
        failures = 0
        if adopted is not None:
            exit_ = _Control(settings, stop).adopt(adopted)
        else:
            exit_ = _Control(settings, stop).run(mode, report)
            if not exit_.was_ready:
                # The command that starts the cluster reports the error and may try again.
                return 0 if _is_stopping(stop) else max(exit_.code or 0, 1)
        while True:
            if _is_stopping(stop) or exit_.code == 0:
                return 0
            if exit_.code == FINAL:
                log.error("the control process cannot continue; fix the error above, then start it with `paceline up`")
                return FINAL
            failures = 0 if exit_.seconds >= STEADY_SECONDS else failures + 1
            pause = pause_after(failures)
            log.warning("the control process %s and is restarted%s", exit_, f" in {pause:g} s" if pause else "")
            if select.select([stop], [], [], pause)[0]:
                return 0
            exit_ = _Control(settings, stop).run(mode, _log_ready if mode == BACKGROUND else _log_answer)


def pause_after(failures: int) -> float:
    """Return the seconds before the next start: none at first, then a short pause that doubles up to a bound."""
    if failures <= 1:
        return 0.0
    return min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 2, 10), MOST_PAUSE_SECONDS)


class _Control:
    """One control process."""

    def __init__(self, settings: Settings, stop: int) -> None:
        self._settings = settings
        self._stop = stop
        self._began = time.monotonic()

    def run(self, mode: str, report: Report) -> Exit:
        """Start a control process, report its message and wait until it exits."""
        read_end, write_end = os.pipe()
        arguments = [str(self._settings.home), str(write_end), str(os.getpid()), mode]
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline.cluster.control_plane_main", *arguments],
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
        """Wait until a control process that another supervisor started has exited."""
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            try:
                log.info("watching the control process (pid %d)", pid)
                self._wait(pidfd)
            finally:
                os.close(pidfd)
        return Exit(code=None, was_ready=True, seconds=self._seconds())

    def _answer(self, read_end: int, pidfd: int) -> str:
        """Return the message of the process about its start; empty when it exits without one."""
        ready, _, _ = select.select([read_end, self._stop], [], [])
        if self._stop in ready:
            self._end(pidfd)
        return os.read(read_end, ANSWER_BYTES).decode(errors="replace")

    def _wait(self, pidfd: int) -> None:
        if self._stop in select.select([pidfd, self._stop], [], [])[0]:
            self._end(pidfd)

    def _end(self, pidfd: int) -> None:
        """Terminate the process, and kill it when it does not exit."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, number)
            if select.select([pidfd], [], [], STOP_SECONDS)[0]:
                return

    def _seconds(self) -> float:
        return time.monotonic() - self._began


@contextlib.contextmanager
def _stop_requests() -> Iterator[int]:
    """Yield a file descriptor that becomes readable, and stays so, once a signal asks this process to stop."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    previous = {number: signal.signal(number, lambda *_: _write(write_end)) for number in numbers}
    try:
        yield read_end
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        os.close(read_end)
        os.close(write_end)


def _write(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.write(fd, b".")


def _is_stopping(stop: int) -> bool:
    return bool(select.select([stop], [], [], 0)[0])


def _log_ready(answer: str) -> None:
    """Log that a restarted control process is ready; it logs errors itself."""
    if answer == READY:
        log.info("the control process is ready again")


def _log_answer(answer: str) -> None:
    """Log in the foreground the message of a restarted control process."""
    if answer:
        log.warning("the control process says: %s", answer)


def report_once(fd: int) -> Report:
    """Return a function that writes its first message to a pipe and closes it; -1 for no pipe."""
    if fd >= 0:
        # No other process may hold it open: the reader waits for its end.
        os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no names

    def report(answer: str) -> None:
        nonlocal fd
        if fd >= 0:
            # The process that started this one may have exited; continue.
            with contextlib.suppress(BrokenPipeError):
                os.write(fd, answer.encode())
            os.close(fd)
            fd = -1

    return report


def main() -> int:
    """Run until a signal; log an expected error as one line."""
    settings = Settings(home=Path(sys.argv[1]))
    configure_logging("supervisor", settings.log, log_format=remembered_format(settings.started_with))
    arguments = sys.argv[2:]
    adopted = int(arguments[1]) if arguments[:1] == ["--adopt"] else None
    report = report_once(int(arguments[0]) if arguments and adopted is None else -1)
    try:
        return supervise(settings, report, mode=BACKGROUND, adopted=adopted)
    except PacelineError as error:
        log.error("%s", error)  # noqa: TRY400 - known errors need no traceback
        report(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
