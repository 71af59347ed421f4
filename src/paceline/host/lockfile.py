"""One process per folder: a lock that dies with its holder, and says who it is and whether it is ready."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import HostError
from paceline.node.runtime.shim import start_ticks

READY = "ready"
# Whoever only looks has the lock for an instant, hence more than one try; on a loaded machine an instant may be long,
# hence many more where no live process is named that could be the holder.
TRIES, MOST_TRIES, PAUSE_SECONDS = 20, 1000, 0.01
# More than any holder writes.
MOST_BYTES = 64


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock file and write our pid into it; HostError names whoever holds it already."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _take(file):
            raise HostError(f"a cluster runs already in {path.parent} (pid {holder(path)})")
        _write(file, str(os.getpid()))
        yield
    finally:
        os.close(file)


def mark_ready(path: Path) -> None:
    """Let others know that the process that holds the lock, which is this one, has started well."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _write(file, f"{os.getpid()} {READY}")
    finally:
        os.close(file)


def holder(path: Path) -> int | None:
    """Give the pid of the live process that holds the lock, -1 when it has not said who it is yet, or None."""
    words = _words_of_holder(path)
    if words is None:
        return None
    return int(words[0]) if words and words[0].isdigit() else -1


def is_ready(path: Path) -> bool:
    """Tell whether a live process holds the lock and has started well."""
    return READY in (_words_of_holder(path) or ())


def is_locked(path: Path) -> bool:
    """Tell whether somebody holds a lock, by trying to take it; no file, no holder."""
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


def _words_of_holder(path: Path) -> list[str] | None:
    """Read what the holder wrote; None when nobody holds the lock."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(f"{path}: {error.strerror}; PACELINE_HOME chooses another folder") from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _live_words(file)
    else:
        return None
    finally:
        os.close(file)


def _live_words(file: int) -> list[str]:
    """Read what a live process wrote; what a killed one left is not believed, also before the next has written."""
    words = os.pread(file, MOST_BYTES, 0).decode(errors="replace").split()
    return words if words and words[0].isdigit() and start_ticks(int(words[0])) is not None else []


def _take(file: int) -> bool:
    for tries in range(MOST_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if tries >= TRIES and _live_words(file):
            return False
        time.sleep(PAUSE_SECONDS)
    return False


def _write(file: int, text: str) -> None:
    # Over all of the old words first, then cut: whoever reads in between finds our pid and nothing of theirs.
    line = f"{text}\n".encode()
    os.pwrite(file, line.ljust(MOST_BYTES, b"\n"), 0)
    os.ftruncate(file, len(line))
