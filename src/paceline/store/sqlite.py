"""The log in a SQLite file: synced at every commit, one process at a time, every row covered by checksums."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain as joined
from pathlib import Path

from paceline.errors import HostError, PacelineError, ServiceUnavailable
from paceline.store import sqlite_schema
from paceline.store.backend import Op, Record
from paceline.store.checksums import LogHead, Total, chained, link, sum_of, sum_of_head

READ_CURRENT = "SELECT revision, key, op, created, value, sum FROM current ORDER BY revision"
READ_LOG = "SELECT revision, key, op, created, value, sum, chain, total FROM log WHERE revision > ? ORDER BY revision"
# The last record up to a revision, where the chain of the following records starts.
READ_HEAD = "SELECT revision, chain, total FROM log WHERE revision <= ? ORDER BY revision DESC LIMIT 1"
READ_BASE = "SELECT revision, chain, total, sum FROM base"
INSERT = "INSERT INTO log VALUES "
ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"
# Rows per statement: each statement releases the interpreter's lock, and waits to get it back when
# the event loop is busy.
ROWS = 32
# The order within a batch matters: the newest record of a key wins, and a key is removed if that is a
# deletion.
UPSERT = """
INSERT INTO current (key, revision, op, created, value, sum)
SELECT key, revision, op, created, value, sum FROM log WHERE revision >= ? ORDER BY revision
ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, op = excluded.op,
    created = excluded.created, value = excluded.value, sum = excluded.sum
"""
REMOVE = """
DELETE FROM current WHERE key IN (SELECT key FROM log WHERE revision >= ? AND op = 'delete')
AND op = 'delete'
"""
NEWEST = 2**63 - 1
RESERVE_BYTES = 4 * 1024 * 1024

# In a damaged file, a column of bytes may contain any type.
Row = tuple[int, str, str, int, object, object]


class SqliteLog:
    """A log that survives a power cut once `append` has returned.

    A second file is a reserve: it is deleted when the disk is full, so that objects can still be deleted.
    """

    def __init__(self, path: Path, *, reserve: int = RESERVE_BYTES) -> None:
        self._path = path
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._reserve_bytes = reserve
        self._db: sqlite3.Connection | None = None
        self._release = ExitStack()
        # The end of the log on disk; None if it has to be read.
        self._head: LogHead | None = None
        self._is_checkpointed = True

    def open(self) -> int:
        """Lock and check the file, create it if necessary, and return its last revision."""
        if self._db is not None:
            raise HostError(f"{self._path}: the log is already open; close it first")
        with ExitStack() as undo:
            try:
                sqlite_schema.refuse_older(self._path)
                sqlite_schema.lock(self._path, undo)
                # A clean shutdown leaves no write-ahead log.
                self._is_checkpointed = not self._path.with_name(f"{self._path.name}-wal").exists()
                sqlite_schema.create(self._path)
                with sqlite_schema.translate_errors(self._path):
                    db = sqlite_schema.connect(self._path, undo)
                    head = self._head_at(db, NEWEST)
            except OSError as error:
                raise HostError(f"{self._path}: {error.strerror}; make it writable, then start again") from error
            except ServiceUnavailable as error:
                raise HostError(str(error)) from error
            self._release = undo.pop_all()
        self._db, self._head = db, head
        self.restore_reserve()
        return head.revision

    def look(self) -> int:
        """Open the file for reading, also while another process uses it; all reads see the state at this call."""
        with ExitStack() as undo:
            with sqlite_schema.translate_errors(self._path):
                self._db = sqlite_schema.open_snapshot(self._path, undo)
                head = self._head_at(self._db, NEWEST)
            self._release = undo.pop_all()
        return head.revision

    def current(self) -> Iterable[Record]:
        """Return the newest record of every key; raise HostError if one is damaged or missing."""
        with self._using() as db:
            rows: list[Row] = db.execute(READ_CURRENT).fetchall()
            head = self._head_at(db, NEWEST)
        records = tuple(_record(row, self._path) for row in rows)
        total = Total().change(gone=(), come=(row[5] for row in rows if isinstance(row[5], bytes)))
        if total != head.total:
            raise sqlite_schema.damaged(
                self._path, f"the current objects at revision {head.revision} are not those that were written"
            )
        return records

    def since(self, revision: int) -> Iterable[Record]:
        """Return the stored records after a revision; raise HostError if one is damaged, missing or out of order."""
        with self._using() as db:
            head = self._head_at(db, revision)
            # All at once: a long-lived reader would prevent the write-ahead log from being reset.
            rows = db.execute(READ_LOG, (revision,)).fetchall()
        records = tuple(_record(row[:6], self._path) for row in rows)
        self._check_chain(head, rows)
        return records

    def _check_chain(self, head: LogHead, rows: Sequence[tuple[object, ...]]) -> None:
        chain = head.chain
        for revision, _, _, _, _, checksum, written, total in rows:
            chain = link(chain, _bytes(checksum))
            if total is not None:
                chain = link(chain, _bytes(total))
            if chain != written:
                raise sqlite_schema.damaged(self._path, f"its log is broken before or at revision {revision}")

    def compacted(self) -> int:
        """Return the revision up to which the history is compacted."""
        with self._using() as db:
            return self._base(db).revision

    def trail(self, revision: int) -> str:
        """Return the hash chain at a revision; empty if it is unknown."""
        with self._using() as db:
            head = self._head if self._head and self._head.revision == revision else self._head_at(db, revision)
        return head.chain.hex() if head.revision == revision else ""

    def append(self, batch: tuple[Record, ...]) -> None:
        """Write a batch in one transaction, and sync it to disk."""
        self._checkpoint()
        identities = [(record.revision, record.key, record.op.value, record.created) for record in batch]
        sums = [sum_of(identity, record.value) for identity, record in zip(identities, batch, strict=True)]
        with self._transaction() as db:
            head = self._head or self._head_at(db, NEWEST)
            # Unknown if the commit fails.
            self._head = None
            total = _total_after(db, head, zip(batch, sums, strict=True))
            chains = chained(head, sums, total)
            totals = [None] * (len(batch) - 1) + [total.to_bytes()]
            rows = [
                (*identity, record.value, *hashes)
                for identity, record, *hashes in zip(identities, batch, sums, chains, totals, strict=True)
            ]
            for start in range(0, len(rows), ROWS):
                chunk = rows[start : start + ROWS]
                db.execute(INSERT + ", ".join([ROW] * len(chunk)), list(joined.from_iterable(chunk)))
            first = (batch[0].revision,)
            db.execute(UPSERT, first)
            db.execute(REMOVE, first)
        self._head = LogHead(revision=batch[-1].revision, chain=chains[-1], total=total)

    def _checkpoint(self) -> None:
        """Copy into the database, once, the write-ahead log that an earlier process left.

        One of its syncs may have failed. Then the kernel returns the written data but may never write it to disk, and a
        later sync of the same file still succeeds: only data that is written again can be relied on.
        """
        if self._is_checkpointed:
            return
        # A full disk has no room for it, but then writes are refused anyway.
        with suppress(ServiceUnavailable), self._using() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._is_checkpointed = True

    def compact(self, revision: int) -> None:
        """Delete the history up to a revision; the file reuses its space."""
        with self._transaction() as db:
            head, base = self._head_at(db, revision), self._base(db)
            if revision > base.revision:
                sqlite_schema.write_base(db, replace(head, revision=revision))
            db.execute("DELETE FROM log WHERE revision <= ?", (revision,))
            self._head = None

    def renew(self, revision: int) -> None:
        """Delete all history and continue at a later revision, so that clients with an earlier one list again."""
        with self._transaction() as db:
            head = self._head_at(db, NEWEST)
            chain = link(head.chain, repr(revision).encode())
            sqlite_schema.write_base(db, LogHead(revision=revision, chain=chain, total=head.total))
            db.execute("DELETE FROM log")
            self._head = None

    def pack(self) -> None:
        """Shrink the store to a single file without a write-ahead log, for a backup."""
        with self._using() as db:
            db.execute("VACUUM")
            db.execute("PRAGMA journal_mode = DELETE")

    def release_reserve(self) -> bool:
        """Delete the reserve and truncate the write-ahead log, so that a small batch fits."""
        with suppress(OSError):
            self._reserve.unlink()
            with suppress(PacelineError), self._using() as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return True
        return False

    def restore_reserve(self) -> bool:
        """Allocate the reserve again; return False if there is too little space."""
        if not self._reserve_bytes or self._reserve.exists():
            return True
        # Check first: taking the last space, even for an instant, would make other programs fail.
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < 2 * self._reserve_bytes:
            return False
        try:
            fd = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(fd, 0, self._reserve_bytes)
            finally:
                os.close(fd)
        except OSError:
            with suppress(OSError):
                self._reserve.unlink()
            return False
        return True

    def close(self) -> None:
        """Close the file and release its lock; closing it again has no effect."""
        self._db = self._head = None
        with sqlite_schema.translate_errors(self._path):
            self._release.close()

    def _head_at(self, db: sqlite3.Connection, revision: int) -> LogHead:
        """Return the head at the last stored record up to a revision, or where the log begins."""
        row = db.execute(READ_HEAD, (revision,)).fetchone()
        base = self._base(db)
        if row is None or row[0] <= base.revision:
            return base
        return LogHead(revision=row[0], chain=_bytes(row[1]), total=Total.of(_bytes(row[2])) if row[2] else None)

    def _base(self, db: sqlite3.Connection) -> LogHead:
        row = db.execute(READ_BASE).fetchone()
        if row is not None and isinstance(row[0], int):
            revision, chain, total = row[0], _bytes(row[1]), _bytes(row[2])
            base = LogHead(revision=revision, chain=chain, total=Total.of(total) if total else None)
            if sum_of_head(base) == row[3]:
                return base
        raise sqlite_schema.damaged(self._path, "the row that stores where the log begins is damaged")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using() as db:
            # IMMEDIATE: a transaction that becomes a write later cannot wait for a lock.
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        if self._db is None:
            raise HostError(f"{self._path}: the log is not open")
        with sqlite_schema.translate_errors(self._path):
            yield self._db


def _total_after(db: sqlite3.Connection, head: LogHead, batch: Iterable[tuple[Record, bytes]]) -> Total:
    """Return the total after a batch: with its rows instead of those that they replace."""
    final = {record.key: None if record.op is Op.DELETE else checksum for record, checksum in batch}
    marks = ", ".join("?" * len(final))
    gone = db.execute(f"SELECT sum FROM current WHERE key IN ({marks})", tuple(final)).fetchall()  # noqa: S608
    come = (checksum for checksum in final.values() if checksum is not None)
    return (head.total or Total()).change(gone=(_bytes(row[0]) for row in gone), come=come)


def _record(row: Row, path: Path) -> Record:
    revision, key, op, created, value, checksum = row
    if not isinstance(value, bytes) or sum_of((revision, key, op, created), value) != checksum:
        raise sqlite_schema.damaged(path, f"{key} at revision {revision} is damaged")
    return Record(revision=revision, key=key, op=Op(op), value=value, created=created)


def _bytes(value: object) -> bytes:
    """Return a value that should be bytes; if it is not, return none, which match no checksum."""
    return value if isinstance(value, bytes) else b""
