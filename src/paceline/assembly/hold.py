"""One process per folder: a lock that dies with its holder, and says who it is and whether it is ready."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import Unavailable

READY = "ready"
# Whoever only looks has the lock for an instant, hence more than one try.
TRIES, PAUSE_SECONDS = 20, 0.01


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold the lock file and write our pid into it; Unavailable names whoever holds it already."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _take(file):
            raise Unavailable(f"a cluster runs already in {path.parent} (pid {holder(path)})")
        _write(file, str(os.getpid()))
        yield
    finally:
        os.close(file)


def say_ready(path: Path) -> None:
    """Let others know that the process that holds the lock, which is this one, has started well."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _write(file, f"{os.getpid()} {READY}")
    finally:
        os.close(file)


def holder(path: Path) -> int | None:
    """Give the pid of the live process that holds the lock, or None."""
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
        raise Unavailable(f"{path}: {error.strerror}; PACELINE_HOME chooses another folder") from error
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(file, 64).decode(errors="replace").split()
    else:
        return None
    finally:
        os.close(file)


def _take(file: int) -> bool:
    for _ in range(TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(PAUSE_SECONDS)
    return False


def _write(file: int, text: str) -> None:
    # Over the old words first, then cut: whoever reads in between finds our pid as the first word all the same.
    line = f"{text}\n".encode()
    os.pwrite(file, line, 0)
    os.ftruncate(file, len(line))
