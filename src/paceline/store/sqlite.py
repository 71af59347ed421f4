"""The log in a SQLite file: write-ahead log, synced at every commit, one owner at a time, every byte vouched for."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain as joined
from pathlib import Path

from paceline.errors import Busy, PacelineError, Unavailable
from paceline.store import file
from paceline.store.chain import Head, Total, chained, link, sum_of, sum_of_head
from paceline.store.log import Op, Record

READ_CURRENT = "SELECT revision, key, op, created, value, sum FROM current ORDER BY revision"
READ_LOG = "SELECT revision, key, op, created, value, sum, chain, total FROM log WHERE revision > ? ORDER BY revision"
# Where the chain of what comes after a revision begins.
READ_HEAD = "SELECT revision, chain, total FROM log WHERE revision <= ? ORDER BY revision DESC LIMIT 1"
READ_BASE = "SELECT revision, chain, total, sum FROM base"
INSERT = "INSERT INTO log VALUES "
ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"
# Rows per statement: each statement gives up the interpreter's lock, and gets it back late when
# the loop is busy.
ROWS = 32
# The order of keys within a batch matters: the newest record of each wins, and if that is a
# deletion the key goes.
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

# A damaged file may hold anything where bytes were written.
Row = tuple[int, str, str, int, object, object]


class SqliteLog:
    """A log that survives a power cut once `append` has returned.

    Beside the file lies a reserve: room that is given up when the disk is full, so that deletes go on.
    """

    def __init__(self, path: Path, *, reserve: int = RESERVE_BYTES) -> None:
        self._path = path
        self._reserve = path.with_name(f"{path.name}.reserve")
        self._reserve_bytes = reserve
        self._db: sqlite3.Connection | None = None
        self._release = ExitStack()
        # The end of the log as it is on disk; None when that has to be looked up.
        self._head: Head | None = None
        self._is_settled = True

    def open(self) -> int:
        """Lock, check and if need be create the file."""
        if self._db is not None:
            raise Unavailable(f"{self._path}: this log is open already; close it first")
        with ExitStack() as undo:
            try:
                file.lock(self._path, undo)
                # There is none after an orderly end.
                self._is_settled = not self._path.with_name(f"{self._path.name}-wal").exists()
                file.create(self._path)
                with file.told(self._path):
                    db = file.connect(self._path, undo)
                    head = self._head_at(db, NEWEST)
            except OSError as error:
                raise Unavailable(f"{self._path}: {error.strerror}; make it writable, then start again") from error
            except Busy as error:
                raise Unavailable(str(error)) from error
            self._release = undo.pop_all()
        self._db, self._head = db, head
        self.restock()
        return head.revision

    def look(self) -> int:
        """Open the file to read it, beside its owner if it has one; all reads see the moment of this call."""
        with ExitStack() as undo:
            with file.told(self._path):
                self._db = file.look(self._path, undo)
                head = self._head_at(self._db, NEWEST)
            self._release = undo.pop_all()
        return head.revision

    def current(self) -> Iterable[Record]:
        """Read the newest record of every key; Unavailable names one that is damaged, or says that some are missing."""
        with self._using() as db:
            rows: list[Row] = db.execute(READ_CURRENT).fetchall()
            head = self._head_at(db, NEWEST)
        records = tuple(_record(row, self._path) for row in rows)
        found = Total().change(gone=(), come=(row[5] for row in rows if isinstance(row[5], bytes)))
        if found != head.total:
            raise file.damaged(self._path, f"what is current at revision {head.revision} is not what was written")
        return records

    def since(self, revision: int) -> Iterable[Record]:
        """Read the kept records after a revision; Unavailable names one that is damaged, missing or out of order."""
        with self._using() as db:
            head = self._head_at(db, revision)
            # All at once: a reader that lingers keeps the write-ahead log from being reset.
            rows = db.execute(READ_LOG, (revision,)).fetchall()
        records = tuple(_record(row[:6], self._path) for row in rows)
        self._check_chain(head, rows)
        return records

    def _check_chain(self, head: Head, rows: Sequence[tuple[object, ...]]) -> None:
        chain = head.chain
        for revision, _, _, _, _, checksum, written, total in rows:
            chain = link(chain, _bytes(checksum))
            if total is not None:
                chain = link(chain, _bytes(total))
            if chain != written:
                raise file.damaged(self._path, f"its log is broken before or at revision {revision}")

    def compacted(self) -> int:
        """Tell how far history is gone."""
        with self._using() as db:
            return self._base(db).revision

    def trail(self, revision: int) -> str:
        """Give the chain at a revision, if that is known."""
        with self._using() as db:
            head = self._head if self._head and self._head.revision == revision else self._head_at(db, revision)
        return head.chain.hex() if head.revision == revision else ""

    def append(self, batch: tuple[Record, ...]) -> None:
        """Write a batch in one transaction and sync it."""
        self._settle()
        named = [(record.revision, record.key, record.op.value, record.created) for record in batch]
        sums = [sum_of(name, record.value) for name, record in zip(named, batch, strict=True)]
        with self._transaction() as db:
            head = self._head or self._head_at(db, NEWEST)
            # Not known any more, should the commit fail.
            self._head = None
            total = _total_after(db, head, zip(batch, sums, strict=True))
            chains = chained(head, sums, total)
            totals = [None] * (len(batch) - 1) + [total.to_bytes()]
            rows = [
                (*name, record.value, *rest)
                for name, record, *rest in zip(named, batch, sums, chains, totals, strict=True)
            ]
            for start in range(0, len(rows), ROWS):
                some = rows[start : start + ROWS]
                db.execute(INSERT + ", ".join([ROW] * len(some)), list(joined.from_iterable(some)))
            first = (batch[0].revision,)
            db.execute(UPSERT, first)
            db.execute(REMOVE, first)
        self._head = Head(revision=batch[-1].revision, chain=chains[-1], total=total)

    def _settle(self) -> None:
        """Bring home, once, what an earlier process left in the write-ahead log.

        A sync of its may have failed. Then the kernel shows what was written and may never write it to the disk, and a
        later sync of the same file succeeds all the same: only what is written anew can be relied on.
        """
        if self._is_settled:
            return
        # A full disk has no room for it; writes are refused then anyway.
        with suppress(Busy), self._using() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._is_settled = True

    def compact(self, revision: int) -> None:
        """Forget history up to a revision; the room is used again."""
        with self._transaction() as db:
            head, base = self._head_at(db, revision), self._base(db)
            if revision > base.revision:
                file.write_base(db, replace(head, revision=revision))
            db.execute("DELETE FROM log WHERE revision <= ?", (revision,))
            self._head = None

    def renew(self, revision: int) -> None:
        """Forget all history and go on from a later revision, so that whoever knows an earlier one lists again."""
        with self._transaction() as db:
            head = self._head_at(db, NEWEST)
            again = link(head.chain, repr(revision).encode())
            file.write_base(db, Head(revision=revision, chain=again, total=head.total))
            db.execute("DELETE FROM log")
            self._head = None

    def pack(self) -> None:
        """Make the file as small as it can be, and one file only, to be kept or carried elsewhere."""
        with self._using() as db:
            db.execute("VACUUM")
            db.execute("PRAGMA journal_mode = DELETE")

    def relieve(self) -> bool:
        """Give up the reserve, and bring the write-ahead log home, so that a small batch finds room."""
        with suppress(OSError):
            self._reserve.unlink()
            with suppress(PacelineError), self._using() as db:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return True
        return False

    def restock(self) -> bool:
        """Take the reserve again; False when there is too little room for it."""
        if not self._reserve_bytes or self._reserve.exists():
            return True
        # Asked first: taking what little is left, be it for an instant, would hurt others.
        room = os.statvfs(self._path.parent)
        if room.f_bavail * room.f_frsize < 2 * self._reserve_bytes:
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
        """Close the file and release its lock; closed already is fine."""
        self._db = self._head = None
        with file.told(self._path):
            self._release.close()

    def _head_at(self, db: sqlite3.Connection, revision: int) -> Head:
        """Give the head as it was at the last kept record up to a revision, or where the kept log begins."""
        row = db.execute(READ_HEAD, (revision,)).fetchone()
        base = self._base(db)
        if row is None or row[0] <= base.revision:
            return base
        return Head(revision=row[0], chain=_bytes(row[1]), total=Total.of(_bytes(row[2])) if row[2] else None)

    def _base(self, db: sqlite3.Connection) -> Head:
        row = db.execute(READ_BASE).fetchone()
        if row is not None and isinstance(row[0], int):
            revision, chain, total = row[0], _bytes(row[1]), _bytes(row[2])
            base = Head(revision=revision, chain=chain, total=Total.of(total) if total else None)
            if sum_of_head(base) == row[3]:
                return base
        raise file.damaged(self._path, "where its log begins is damaged")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using() as db:
            # IMMEDIATE: a transaction that turns into a write half-way cannot wait for a lock.
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
            raise Unavailable(f"{self._path}: this log is not open")
        with file.told(self._path):
            yield self._db


def _total_after(db: sqlite3.Connection, head: Head, batch: Iterable[tuple[Record, bytes]]) -> Total:
    """Give the total of what is current once a batch is: its rows in place of those that they replace."""
    final = {record.key: None if record.op is Op.DELETE else each for record, each in batch}
    marks = ", ".join("?" * len(final))
    gone = db.execute(f"SELECT sum FROM current WHERE key IN ({marks})", tuple(final)).fetchall()  # noqa: S608
    come = (each for each in final.values() if each is not None)
    return (head.total or Total()).change(gone=(_bytes(row[0]) for row in gone), come=come)


def _record(row: Row, path: Path) -> Record:
    revision, key, op, created, value, checksum = row
    if not isinstance(value, bytes) or sum_of((revision, key, op, created), value) != checksum:
        raise file.damaged(path, f"{key} at revision {revision} is damaged")
    return Record(revision=revision, key=key, op=Op(op), value=value, created=created)


def _bytes(found: object) -> bytes:
    """Give what should be bytes; anything else matches nothing."""
    return found if isinstance(found, bytes) else b""
