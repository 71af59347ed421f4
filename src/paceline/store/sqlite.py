"""The log in a SQLite file: write-ahead log, synced at every commit, one owner at a time."""

import fcntl
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from paceline.errors import Busy, PacelineError, Unavailable
from paceline.store.log import Op, Record

SCHEMA = 1
# How long a program that looks into the file may hold up a write.
PATIENCE_SECONDS = 5.0
SUM_BYTES = 16

TABLES = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    op TEXT NOT NULL,
    created INTEGER NOT NULL,
    value BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE TABLE current (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    op TEXT NOT NULL,
    created INTEGER NOT NULL,
    value BLOB NOT NULL,
    sum BLOB NOT NULL
);
CREATE TABLE compacted (id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL);
INSERT INTO compacted VALUES (0, 0);
"""
READ_CURRENT = """
SELECT revision, key, op, created, value, sum FROM current ORDER BY revision
"""
READ_LOG = """
SELECT revision, key, op, created, value, sum FROM log WHERE revision > ? ORDER BY revision
"""
READ_LAST = """
SELECT max(coalesce((SELECT max(revision) FROM log), 0), revision) FROM compacted
"""
INSERT = "INSERT INTO log VALUES "
ROW = "(?, ?, ?, ?, ?, ?)"
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

# A damaged file may hold anything where bytes were written.
Row = tuple[int, str, str, int, object, object]

# SQLite's name for a failure, from the special to the general: who acts, and how.
MEANINGS: tuple[tuple[str, type[PacelineError], str], ...] = (
    ("SQLITE_FULL", Busy, "the disk is full; writes go on as soon as there is room"),
    ("SQLITE_READONLY", Busy, "it is read-only; writes go on as soon as it can be written"),
    ("SQLITE_BUSY", Busy, "another program holds it locked; close that program"),
    ("SQLITE_LOCKED", Busy, "another program holds it locked; close that program"),
    (
        "SQLITE_IOERR_FSYNC",
        Unavailable,
        "the disk did not confirm a write; check the disk, then start again",
    ),
    (
        "SQLITE_IOERR_DIR_FSYNC",
        Unavailable,
        "the disk did not confirm a write; check the disk, then start again",
    ),
    ("SQLITE_IOERR_READ", Unavailable, "the disk does not read; check the disk, then start again"),
    (
        "SQLITE_IOERR",
        Busy,
        "the disk refuses writes (full, over quota, read-only or failing); they go on when it works",
    ),
    ("SQLITE_CORRUPT", Unavailable, "it is damaged; restore a backup"),
    ("SQLITE_NOTADB", Unavailable, "it is not a database; move it away or restore a backup"),
    ("SQLITE_CANTOPEN", Unavailable, "it cannot be opened; check the folder and its permissions"),
)


class SqliteLog:
    """A log that survives a power cut once `append` has returned."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._release = ExitStack()

    def open(self) -> int:
        """Lock, check and if need be create the file."""
        if self._db is not None:
            raise Unavailable(f"{self._path}: this log is open already; close it first")
        with ExitStack() as undo:
            try:
                _lock(self._path, undo)
                _create(self._path)
                with _told(self._path):
                    db = self._connect(undo)
                    last = int(db.execute(READ_LAST).fetchone()[0])
            except OSError as error:
                raise Unavailable(f"{self._path}: {error.strerror}; make it writable, then start again") from error
            except Busy as error:
                raise Unavailable(str(error)) from error
            self._release = undo.pop_all()
        self._db = db
        return last

    def _connect(self, undo: ExitStack) -> sqlite3.Connection:
        # Calls come from one thread at a time, but not always from the same one.
        db = sqlite3.connect(
            self._path,
            timeout=PATIENCE_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        undo.enter_context(closing(db))
        # Damaged text is found by its checksum, which can name it; a decoder's error could not.
        db.text_factory = partial(str, encoding="utf-8", errors="replace")
        schema = db.execute("PRAGMA user_version").fetchone()[0]
        if schema > SCHEMA:
            raise Unavailable(
                f"{self._path} was written by a newer Paceline (its schema is {schema}, this one"
                f" reads up to {SCHEMA}); install that version or restore an older backup"
            )
        db.execute("PRAGMA journal_mode = WAL")
        # NORMAL would lose acknowledged writes when the power goes.
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA wal_autocheckpoint = 2000")
        db.execute("PRAGMA journal_size_limit = 67108864")
        if schema == 0:
            db.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
        return db

    def current(self) -> Iterable[Record]:
        """Read the newest record of every key; Unavailable names one that is damaged."""
        return self._read(READ_CURRENT, ())

    def since(self, revision: int) -> Iterable[Record]:
        """Read the kept records after a revision; Unavailable names one that is damaged."""
        return self._read(READ_LOG, (revision,))

    def _read(self, query: str, values: tuple[int, ...]) -> tuple[Record, ...]:
        with self._using() as db:
            # All at once: a reader that lingers keeps the write-ahead log from being reset.
            rows: list[Row] = db.execute(query, values).fetchall()
        return tuple(_record(row, self._path) for row in rows)

    def compacted(self) -> int:
        """Tell how far history is gone."""
        with self._using() as db:
            return int(db.execute("SELECT revision FROM compacted").fetchone()[0])

    def append(self, batch: tuple[Record, ...]) -> None:
        """Write a batch in one transaction and sync it."""
        rows = [_row(record) for record in batch]
        with self._transaction() as db:
            for start in range(0, len(rows), ROWS):
                some = rows[start : start + ROWS]
                values = [value for row in some for value in row]
                db.execute(INSERT + ", ".join([ROW] * len(some)), values)
            first = (batch[0].revision,)
            db.execute(UPSERT, first)
            db.execute(REMOVE, first)

    def compact(self, revision: int) -> None:
        """Forget history up to a revision; the room is used again."""
        with self._transaction() as db:
            db.execute("DELETE FROM log WHERE revision <= ?", (revision,))
            db.execute("UPDATE compacted SET revision = max(revision, ?)", (revision,))

    def close(self) -> None:
        """Close the file and release its lock; closed already is fine."""
        self._db = None
        with _told(self._path):
            self._release.close()

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
        with _told(self._path):
            yield self._db


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say what SQLite's errors mean for whoever runs the machine."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        for prefix, kind, meaning in MEANINGS:
            if name.startswith(prefix):
                raise kind(f"{path}: {meaning}") from error
        raise Unavailable(f"{path}: SQLite failed: {error} ({name})") from error


def _lock(path: Path, undo: ExitStack) -> None:
    """Take the lock beside the file for as long as the file is open."""
    beside = path.with_name(f"{path.name}.lock")
    fd = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    undo.callback(os.close, fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(fd, 32).decode(errors="replace").strip() or "unknown"
        raise Unavailable(f"{path} is in use by process {holder}; stop that one first") from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


def _create(path: Path) -> None:
    """Make sure that the file is there, for its owner only, and stays there after a power cut."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _row(record: Record) -> Row:
    named = (record.revision, record.key, record.op.value, record.created)
    return *named, record.value, _sum(named, record.value)


def _record(row: Row, path: Path) -> Record:
    revision, key, op, created, value, checksum = row
    if not isinstance(value, bytes) or _sum((revision, key, op, created), value) != checksum:
        raise Unavailable(f"{path}: {key} at revision {revision} is damaged; restore a backup")
    return Record(revision=revision, key=key, op=Op(op), value=value, created=created)


def _sum(named: tuple[int, str, str, int], value: bytes) -> bytes:
    digest = hashlib.blake2b(repr(named).encode(), digest_size=SUM_BYTES)
    digest.update(value)
    return digest.digest()
