"""A high-water mark apart from the store: a store that has lost what was acknowledged is noticed before it is served.

SQLite takes a damaged or missing write-ahead log for one that was never written, and a folder whose disk is not mounted
for a new one. The mark says how far the store had come.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from paceline.errors import Unavailable
from paceline.store.log import Log, Record

DIGITS = 20


class MarkedLog:
    """A log that refuses to open when it has fallen behind its mark."""

    def __init__(self, log: Log, *, store: Path, mark: Path) -> None:
        self._log = log
        self._store = store
        self._mark = mark
        self._fd = -1

    def open(self) -> int:
        """Open the log; Unavailable when the store is gone or older than what was acknowledged."""
        try:
            marked = self._read()
        except OSError as error:
            raise Unavailable(f"{self._mark} cannot be written: {error.strerror}") from error
        if marked and not self._store.exists():
            begin_anew = (
                f"to begin with an empty cluster instead, which ends the jobs that still run, remove {self._mark}"
            )
            raise Unavailable(f"{self._store} is gone; mount its disk again or restore a backup; {begin_anew}")
        last = self._log.open()
        if last < marked:
            self._log.close()
            lost = f"it ends at revision {last}, but {marked} was acknowledged"
            go_on = f"to go on without what is lost, remove {self._mark}"
            raise Unavailable(f"{self._store} has lost writes: {lost}; restore a backup; {go_on}")
        self._write(last)
        return last

    def current(self) -> Iterable[Record]:
        """Give the newest record of every key."""
        return self._log.current()

    def since(self, revision: int) -> Iterable[Record]:
        """Give the kept records after a revision."""
        return self._log.since(revision)

    def compacted(self) -> int:
        """Tell how far history is gone."""
        return self._log.compacted()

    def append(self, batch: tuple[Record, ...]) -> None:
        """Make a batch durable, then move the mark."""
        self._log.append(batch)
        self._write(batch[-1].revision)

    def compact(self, revision: int) -> None:
        """Forget history up to a revision."""
        self._log.compact(revision)

    def close(self) -> None:
        """Let go of the log and of the mark."""
        self._log.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read(self) -> int:
        """Open the mark's file; a new or damaged one marks nothing."""
        if self._fd < 0:
            self._fd = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        written = os.pread(self._fd, DIGITS, 0).strip()
        return int(written) if written.isdigit() else 0

    def _write(self, revision: int) -> None:
        # A mark that lags behind does no harm, so it is not synced, which would cost as much as the batch itself did,
        # and a disk that does not take it does not make the batch fail, which is durable by now.
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, f"{revision:0{DIGITS}}\n".encode(), 0)
