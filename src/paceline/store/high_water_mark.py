"""A high-water mark outside the store, which shows at the next start whether acknowledged writes were lost.

SQLite treats a damaged or missing write-ahead log as one that was never written, and the directory of an unmounted disk
looks like a new one. The mark records the last acknowledged revision.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import HostError
from paceline.store.backend import Record
from paceline.store.sqlite import SqliteLog
from paceline.store.sqlite_schema import RESTORE

DIGITS = 20
# The revision, and the hash of everything up to it.
MARK_BYTES = DIGITS + 1 + 32


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWaterMark:
    """The last acknowledged revision of a store; the hash is empty if it is unknown."""

    revision: int = 0
    trail: str = ""


def read_mark(path: Path) -> HighWaterMark:
    """Return the mark; a missing or damaged one is 0."""
    try:
        fields = path.read_bytes()[:MARK_BYTES].split()
    except FileNotFoundError:
        fields = []
    if not fields or not fields[0].isdigit():
        return HighWaterMark()
    return HighWaterMark(revision=int(fields[0]), trail=fields[1].decode(errors="replace") if len(fields) > 1 else "")


def write_mark(fd: int, mark: HighWaterMark) -> None:
    """Overwrite the mark."""
    os.pwrite(fd, f"{mark.revision:0{DIGITS}} {mark.trail}\n".encode(), 0)


class MarkedLog(SqliteLog):
    """A log that refuses to open if it is behind its mark."""

    def __init__(self, store: Path, *, mark: Path) -> None:
        super().__init__(store)
        self._mark = mark
        self._fd = -1

    def open(self) -> int:
        """Open the log; raise HostError if the store is missing, or is not the one that was acknowledged."""
        try:
            if self._fd < 0:
                self._fd = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            marked = read_mark(self._mark)
        except OSError as error:
            raise HostError(f"{self._mark} cannot be written: {error.strerror}") from error
        if marked.revision and not self._path.exists():
            discard_hint = (
                "`paceline up --discard-damaged-state` begins with an empty cluster, which ends the jobs that still run"
            )
            raise HostError(f"{self._path} is gone; mount its disk again, or {RESTORE}; {discard_hint}")
        last = super().open()
        if lost := self._lost(marked, last):
            super().close()
            discard_hint = "`paceline up --discard-damaged-state` goes on without what is lost"
            raise HostError(f"{self._path} has lost writes: {lost}; {RESTORE}; {discard_hint}")
        self._write(last)
        return last

    def _lost(self, marked: HighWaterMark, last: int) -> str:
        """Return how the store differs from the acknowledged one, or ""."""
        if last < marked.revision:
            return f"it ends at revision {last}, but {marked.revision} was acknowledged"
        trail = self.trail(marked.revision)
        if trail and marked.trail and trail != marked.trail:
            return f"up to revision {marked.revision} it is not what was acknowledged, but another file's history"
        return ""

    def append(self, batch: tuple[Record, ...]) -> None:
        """Store a batch durably, then move the mark."""
        super().append(batch)
        self._write(batch[-1].revision)

    def close(self) -> None:
        """Close and unlock the log."""
        super().close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, revision: int) -> None:
        # The mark may lag behind: it is not synced, which would cost as much as the batch, and an error does not fail
        # the batch, which is durable already.
        with contextlib.suppress(OSError):
            write_mark(self._fd, HighWaterMark(revision=revision, trail=self.trail(revision)))
