"""A log in memory with the same contract, for a cluster that ends with its process."""

from collections.abc import Iterable

from paceline.errors import HostError
from paceline.store.backend import Op, Record


class MemoryLog:
    """Keeps records for as long as the object lives; closing and opening again loses nothing."""

    def __init__(self) -> None:
        self._open = False
        self._current: dict[str, Record] = {}
        self._history: list[Record] = []
        self._last = 0
        self._compacted = 0

    def open(self) -> int:
        """Lock the log and return its last revision."""
        if self._open:
            raise HostError("the log is already open; close it first")
        self._open = True
        return self._last

    def current(self) -> Iterable[Record]:
        """Return the newest record of every key."""
        self._check_open()
        return sorted(self._current.values(), key=lambda record: record.revision)

    def since(self, revision: int) -> Iterable[Record]:
        """Return the stored records after a revision."""
        self._check_open()
        return [record for record in self._history if record.revision > revision]

    def compacted(self) -> int:
        """Return the revision up to which the history is compacted."""
        self._check_open()
        return self._compacted

    def trail(self, revision: int) -> str:
        """Return no hash: memory needs no protection against damage."""
        return ""

    def append(self, batch: tuple[Record, ...]) -> None:
        """Store a batch."""
        self._check_open()
        for record in batch:
            if record.op is Op.DELETE:
                self._current.pop(record.key, None)
            else:
                self._current[record.key] = record
            self._last = record.revision
        self._history.extend(batch)

    def compact(self, revision: int) -> None:
        """Delete the history up to a revision."""
        self._check_open()
        self._history = [record for record in self._history if record.revision > revision]
        self._compacted = max(self._compacted, revision)

    def release_reserve(self) -> bool:
        """Return False: there is no reserve."""
        return False

    def restore_reserve(self) -> bool:
        """Return True: no reserve is needed."""
        return True

    def close(self) -> None:
        """Close the log."""
        self._open = False

    def _check_open(self) -> None:
        if not self._open:
            raise HostError("the log is not open")
