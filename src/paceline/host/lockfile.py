"""Lock files that allow one process per folder; they end with the process, and have its pid and whether it is ready."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import HostError
from paceline.node.runtime.shim import is_exiting, start_ticks

READY = "ready"
# A process that only checks holds the lock for an instant, hence more than one try. On a loaded machine that may be
# long, hence many more tries while the file names no live process that could be the holder.
TRIES, MOST_TRIES, PAUSE_SECONDS = 20, 1000, 0.01
# More than a holder writes.
MOST_BYTES = 64


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock file and write our pid into it; HostError names the process that holds it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _take(file):
            raise HostError(f"a cluster is already running in {path.parent} (pid {holder(path)})")
        _write(file, str(os.getpid()))
        yield
    finally:
        os.close(file)


def mark_ready(path: Path) -> None:
    """Write into the lock file that this process, which holds it, is ready."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _write(file, f"{os.getpid()} {READY}")
    finally:
        os.close(file)


def holder(path: Path) -> int | None:
    """Return the pid of the process that holds the lock, -1 if it has not written it yet, None if there is none."""
    fields = _read_holder(path)
    if fields is None:
        return None
    return int(fields[0]) if fields and fields[0].isdigit() else -1


def is_ready(path: Path) -> bool:
    """Return whether a live process holds the lock and is ready."""
    return READY in (_read_holder(path) or ())


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock, by trying to take it; False if the file does not exist."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _read_holder(path: Path) -> list[str] | None:
    """Return the fields that the holder wrote; None if no process holds the lock."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}; set PACELINE_HOME to another folder") from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_live(file)
    else:
        return None
    finally:
        os.close(file)


def _read_live(file: int) -> list[str]:
    """Return the fields that a live process wrote; empty if the process that wrote them has ended or was killed."""
    fields = os.pread(file, MOST_BYTES, 0).decode(errors="replace").split()
    is_live = bool(fields) and fields[0].isdigit() and _is_live(int(fields[0]))
    return fields if is_live else []


def _is_live(pid: int) -> bool:
    # A killed process keeps its locks until its memory is freed, but serves nothing any more.
    return start_ticks(pid) is not None and not is_exiting(pid)


def _take(file: int) -> bool:
    for tries in range(MOST_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if tries >= TRIES and _read_live(file):
            return False
        time.sleep(PAUSE_SECONDS)
    return False


def _write(file: int, text: str) -> None:
    # All old bytes are overwritten first, then cut off: a reader in between sees our pid and nothing old.
    line = f"{text}\n".encode()
    os.pwrite(file, line.ljust(MOST_BYTES, b"\n"), 0)
    os.ftruncate(file, len(line))
