"""A simulated log: a disk with a cache that a power cut empties, and faults on demand."""

from collections import deque
from collections.abc import Iterable
from enum import StrEnum

from paceline.errors import HostError, ServiceUnavailable
from paceline.store.backend import DiskFull, Op, Record
from paceline.testing.memory_backend import MemoryLog


class DiskFault(StrEnum):
    """How a call of the log may go wrong."""

    # Nothing is done; room may come back.
    FULL = "full"
    # It is done and durable, and the caller is told otherwise.
    LOST_REPLY = "lost-reply"
    # The disk does not confirm: what was written lies in the cache, and nobody knows.
    BROKEN = "broken"


class SimLog:
    """Like MemoryLog, but what was not synced is lost in a crash.

    `lazy` plants a bug: appends return before they are synced.
    """

    def __init__(self, *, lazy: bool = False) -> None:
        self.lazy = lazy
        # How many records each append had, for those that want to know how writes were grouped.
        self.batches: list[int] = []
        # Whether room is held back for what must be written on a full disk, and whether there is room for it.
        self.reserve = False
        self.has_room = True
        self._disk = MemoryLog()
        self._cache: list[tuple[Record, ...]] = []
        self._faults: dict[str, deque[DiskFault]] = {}

    def fail(self, call: str, *faults: DiskFault) -> None:
        """Let the next calls of that name (open, since, append, compact) go wrong, one fault each."""
        self._faults.setdefault(call, deque()).extend(faults)

    def forgive(self) -> None:
        """Forget the faults that have not come yet."""
        self._faults.clear()

    def sync(self) -> None:
        """Bring what was written to the disk."""
        for batch in self._cache:
            self._disk.append(batch)
        self._cache.clear()

    def crash(self, *, flushed: int = 0) -> None:
        """Cut the power: of the unsynced batches only the first few happen to be on the disk."""
        del self._cache[flushed:]
        self._disk.close()
        self._disk.open()
        self.sync()
        self._disk.close()

    def open(self) -> int:
        """Take sole hold of the log."""
        self._stumble("open")
        last = self._disk.open()
        return self._cache[-1][-1].revision if self._cache else last

    def current(self) -> Iterable[Record]:
        """Give the newest record of every key, synced or not."""
        records = {record.key: record for record in self._disk.current()}
        for record in self._unsynced():
            records[record.key] = record
        existing = (record for record in records.values() if record.op is not Op.DELETE)
        return sorted(existing, key=lambda record: record.revision)

    def since(self, revision: int) -> Iterable[Record]:
        """Give the kept records after a revision, synced or not."""
        self._stumble("since")
        unsynced = (record for record in self._unsynced() if record.revision > revision)
        return (*self._disk.since(revision), *unsynced)

    def compacted(self) -> int:
        """Tell how far history is gone."""
        return self._disk.compacted()

    def trail(self, revision: int) -> str:
        """Know no hashes."""
        return self._disk.trail(revision)

    def append(self, batch: tuple[Record, ...]) -> None:
        """Write a batch, then sync it."""
        fault = self._stumble("append")
        # Asked first, so that a log that is not open refuses before anything is written.
        self._disk.compacted()
        self._cache.append(batch)
        self.batches.append(len(batch))
        if fault is DiskFault.BROKEN:
            raise HostError("the simulated disk did not confirm a write")
        if not self.lazy:
            self.sync()
        _lose(fault)

    def compact(self, revision: int) -> None:
        """Sync, then forget history up to a revision."""
        fault = self._stumble("compact")
        if fault is DiskFault.BROKEN:
            raise HostError("the simulated disk did not confirm that history was cleared")
        self.sync()
        self._disk.compact(revision)
        _lose(fault)

    def release_reserve(self) -> bool:
        """Give up the reserve, if there is one: then the disk is not full any more."""
        had, self.reserve = self.reserve, False
        return had

    def restore_reserve(self) -> bool:
        """Take the reserve again, unless the disk is still full."""
        self.reserve = self.has_room
        return self.reserve

    def close(self) -> None:
        """Let go of the log; what was not synced stays in the cache until a crash."""
        self._disk.close()

    def _unsynced(self) -> Iterable[Record]:
        return (record for batch in self._cache for record in batch)

    def _stumble(self, call: str) -> DiskFault | None:
        """Take the next fault of a call, and raise the one that comes before anything is done."""
        faults = self._faults.get(call)
        fault = faults.popleft() if faults else None
        if fault is DiskFault.FULL:
            raise DiskFull("the simulated disk is full")
        return fault


def _lose(fault: DiskFault | None) -> None:
    if fault is DiskFault.LOST_REPLY:
        raise ServiceUnavailable("the simulated disk did what was asked, and its answer was lost")
