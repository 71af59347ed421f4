"""One process per folder: a lock that dies with its holder."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import Unavailable


@contextlib.contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold the lock file and write our pid into it; Unavailable names whoever holds it already."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(f"a cluster runs here already (pid {holder(path)}, folder {path.parent})") from None
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(file)


def holder(path: Path) -> int | None:
    """Give the pid of the live process that holds the lock, or None."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        written = os.read(file, 32).decode().strip()
        return int(written) if written.isdigit() else -1
    else:
        return None
    finally:
        os.close(file)
