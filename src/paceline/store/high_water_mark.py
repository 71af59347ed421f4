"""A high-water mark outside the store, which shows at the next start whether acknowledged writes were lost.

SQLite treats a damaged or missing write-ahead log as one that was never written, and the directory of an unmounted disk
looks like a new one. The mark records the last acknowledged revision.
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


class MarkedLog:
    """A log that refuses to open if it is behind its mark."""

    def __init__(self, log: Log, *, store: Path, mark: Path) -> None:
        self._log = log
        self._store = store
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
        if marked.revision and not self._store.exists():
            discard_hint = (
                "`paceline up --discard-damaged-state` begins with an empty cluster, which ends the jobs that still run"
            )
            raise HostError(f"{self._store} is gone; mount its disk again, or {RESTORE}; {discard_hint}")
        last = self._log.open()
        if lost := self._lost(marked, last):
            self._log.close()
            discard_hint = "`paceline up --discard-damaged-state` goes on without what is lost"
            raise HostError(f"{self._store} has lost writes: {lost}; {RESTORE}; {discard_hint}")
        self._write(last)
        return last

    def _lost(self, marked: HighWaterMark, last: int) -> str:
        """Return how the store differs from the acknowledged one, or ""."""
        if last < marked.revision:
            return f"it ends at revision {last}, but {marked.revision} was acknowledged"
        trail = self._log.trail(marked.revision)
        if trail and marked.trail and trail != marked.trail:
            return f"up to revision {marked.revision} it is not what was acknowledged, but another file's history"
        return ""

    def current(self) -> Iterable[Record]:
        return self._log.current()

    def since(self, revision: int) -> Iterable[Record]:
        return self._log.since(revision)

    def compacted(self) -> int:
        return self._log.compacted()

    def trail(self, revision: int) -> str:
        return self._log.trail(revision)

    def append(self, batch: tuple[Record, ...]) -> None:
        """Store a batch durably, then move the mark."""
        self._log.append(batch)
        self._write(batch[-1].revision)

    def compact(self, revision: int) -> None:
        self._log.compact(revision)

    def release_reserve(self) -> bool:
        return self._log.release_reserve()

    def restore_reserve(self) -> bool:
        return self._log.restore_reserve()

    def close(self) -> None:
        self._log.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, revision: int) -> None:
        # The mark may lag behind: it is not synced, which would cost as much as the batch, and an error does not fail
        # the batch, which is durable already.
        with contextlib.suppress(OSError):
            write_mark(self._fd, HighWaterMark(revision=revision, trail=self._log.trail(revision)))
