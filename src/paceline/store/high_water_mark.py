"""A high-water mark apart from the store: a store that has lost what was acknowledged is noticed before it is served.

SQLite takes a damaged or missing write-ahead log for one that was never written, and a folder whose disk is not mounted
for a new one. The mark says how far the store had come.
"""

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import HostError
from paceline.store.backend import Log, Record
from paceline.store.sqlite_schema import RESTORE

DIGITS = 20
# The revision, and the hash of everything up to it.
MARK_BYTES = DIGITS + 1 + 32


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWaterMark:
    """How far a store had come when it was last seen; its hash is empty when it is not known."""

    revision: int = 0
    trail: str = ""


def read_mark(path: Path) -> HighWaterMark:
    """Read a mark; a missing or damaged one marks nothing."""
    try:
        fields = path.read_bytes()[:MARK_BYTES].split()
    except FileNotFoundError:
        fields = []
    if not fields or not fields[0].isdigit():
        return HighWaterMark()
    return HighWaterMark(revision=int(fields[0]), trail=fields[1].decode(errors="replace") if len(fields) > 1 else "")


def write_mark(fd: int, mark: HighWaterMark) -> None:
    """Write a mark over the one before."""
    os.pwrite(fd, f"{mark.revision:0{DIGITS}} {mark.trail}\n".encode(), 0)


class MarkedLog:
    """A log that refuses to open when it has fallen behind its mark."""

    def __init__(self, log: Log, *, store: Path, mark: Path) -> None:
        self._log = log
        self._store = store
        self._mark = mark
        self._fd = -1

    def open(self) -> int:
        """Open the log; HostError when the store is gone, or is not the one that was acknowledged."""
        try:
            if self._fd < 0:
                self._fd = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            marked = read_mark(self._mark)
        except OSError as error:
            raise HostError(f"{self._mark} cannot be written: {error.strerror}") from error
        if marked.revision and not self._store.exists():
            begin_anew = (
                "`paceline up --discard-damaged-state` begins with an empty cluster, which ends the jobs that still run"
            )
            raise HostError(f"{self._store} is gone; mount its disk again, or {RESTORE}; {begin_anew}")
        last = self._log.open()
        if lost := self._lost(marked, last):
            self._log.close()
            go_on = "`paceline up --discard-damaged-state` goes on without what is lost"
            raise HostError(f"{self._store} has lost writes: {lost}; {RESTORE}; {go_on}")
        self._write(last)
        return last

    def _lost(self, marked: HighWaterMark, last: int) -> str:
        """Say in what way the store is not the one that was acknowledged."""
        if last < marked.revision:
            return f"it ends at revision {last}, but {marked.revision} was acknowledged"
        trail = self._log.trail(marked.revision)
        if trail and marked.trail and trail != marked.trail:
            return f"up to revision {marked.revision} it is not what was acknowledged, but another file's history"
        return ""

    def current(self) -> Iterable[Record]:
        """Give the newest record of every key."""
        return self._log.current()

    def since(self, revision: int) -> Iterable[Record]:
        """Give the kept records after a revision."""
        return self._log.since(revision)

    def compacted(self) -> int:
        """Tell how far history is gone."""
        return self._log.compacted()

    def trail(self, revision: int) -> str:
        """Give a hash of everything up to a revision."""
        return self._log.trail(revision)

    def append(self, batch: tuple[Record, ...]) -> None:
        """Make a batch durable, then move the mark."""
        self._log.append(batch)
        self._write(batch[-1].revision)

    def compact(self, revision: int) -> None:
        """Forget history up to a revision."""
        self._log.compact(revision)

    def release_reserve(self) -> bool:
        """Give up the log's reserve."""
        return self._log.release_reserve()

    def restore_reserve(self) -> bool:
        """Take the log's reserve again."""
        return self._log.restore_reserve()

    def close(self) -> None:
        """Let go of the log and of the mark."""
        self._log.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, revision: int) -> None:
        # A mark that lags behind does no harm, so it is not synced, which would cost as much as the batch itself did,
        # and a disk that does not take it does not make the batch fail, which is durable by now.
        with contextlib.suppress(OSError):
            write_mark(self._fd, HighWaterMark(revision=revision, trail=self._log.trail(revision)))
