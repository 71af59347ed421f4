"""The SQLite file of a store: opening it safely, its schema and migrations, and translation of its errors."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

from paceline.errors import HostError, PacelineError, ServiceUnavailable
from paceline.store.backend import Damaged, DiskFull
from paceline.store.checksums import NEW, LogHead, Total, chained, link, sum_of_head

SCHEMA = 2
# How long a write waits for another program that has locked the file.
PATIENCE_SECONDS = 5.0
RESTORE = "restore a backup with `paceline cluster restore FILE`"
SALVAGE = "`paceline up --discard-damaged-state` continues with the intact objects"

TABLES = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    op TEXT NOT NULL,
    created INTEGER NOT NULL,
    value BLOB NOT NULL,
    sum BLOB NOT NULL,
    chain BLOB,
    total BLOB
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
"""
BASE_TABLE = """
CREATE TABLE base (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    revision INTEGER NOT NULL,
    chain BLOB NOT NULL,
    total BLOB NOT NULL,
    sum BLOB NOT NULL
);
"""
WRITE_BASE = "INSERT OR REPLACE INTO base VALUES (0, ?, ?, ?, ?)"

# Prefix of SQLite's error name, specific ones first: the error to raise, and what to do.
MEANINGS: tuple[tuple[str, type[PacelineError], str], ...] = (
    (
        "SQLITE_FULL",
        DiskFull,
        "the disk is full; deletes still work, and other writes succeed again when there is space",
    ),
    ("SQLITE_READONLY", ServiceUnavailable, "the file is read-only; writes succeed again when it is writable"),
    ("SQLITE_BUSY", ServiceUnavailable, "another program has locked the file; close that program"),
    ("SQLITE_LOCKED", ServiceUnavailable, "another program has locked the file; close that program"),
    (
        "SQLITE_IOERR_FSYNC",
        HostError,
        "the disk did not confirm a write; check the disk, then start again",
    ),
    (
        "SQLITE_IOERR_DIR_FSYNC",
        HostError,
        "the disk did not confirm a write; check the disk, then start again",
    ),
    ("SQLITE_IOERR_READ", HostError, "the disk cannot be read; check the disk, then start again"),
    ("SQLITE_IOERR_SHORT_READ", Damaged, f"the file is damaged; {RESTORE}; {SALVAGE}"),
    ("SQLITE_IOERR_CORRUPTFS", HostError, "the file system is damaged; check the disk, then start again"),
    (
        "SQLITE_IOERR",
        DiskFull,
        "the disk refuses writes (full, over quota, read-only or failing); they succeed again when it works",
    ),
    ("SQLITE_CORRUPT", Damaged, f"the file is damaged; {RESTORE}; {SALVAGE}"),
    ("SQLITE_NOTADB", Damaged, f"the file is not a database; {RESTORE}, or move it away"),
    # A table or column is missing; our statements cannot fail otherwise.
    ("SQLITE_ERROR", Damaged, f"the file is damaged; {RESTORE}; {SALVAGE}"),
    ("SQLITE_CANTOPEN", HostError, "the file cannot be opened; check the directory and its permissions"),
)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as ours, with a message for the operator."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        for prefix, kind, meaning in MEANINGS:
            if name.startswith(prefix):
                raise kind(f"{path}: {meaning}") from error
        raise HostError(f"{path}: SQLite failed: {error} ({name})") from error


def damaged(path: Path, problem: str) -> Damaged:
    """Return the error for a damaged file, with what the operator can do."""
    return Damaged(f"{path}: {problem}; {RESTORE}; {SALVAGE}")


def lock(path: Path, undo: ExitStack) -> None:
    """Take the lock file next to the file, for as long as the file is open."""
    lock_file = path.with_name(f"{path.name}.lock")
    fd = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    undo.callback(os.close, fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(fd, 32).decode(errors="replace").strip() or "unknown"
        raise HostError(f"{path} is in use by process {holder}; stop that process first") from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


def create(path: Path) -> None:
    """Create the file if it does not exist, with access for its owner only, and make that durable."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make created, renamed and removed entries of a directory survive a power cut."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def connect(path: Path, undo: ExitStack) -> sqlite3.Connection:
    """Return a connection to the file, migrated to the current schema."""
    db = open_connection(path, undo)
    schema = _schema(db, path)
    db.execute("PRAGMA journal_mode = WAL")
    # NORMAL would lose acknowledged writes in a power cut.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 2000")
    db.execute("PRAGMA journal_size_limit = 67108864")
    if schema != SCHEMA:
        _migrate(db, path, schema)
    _check_pages(db, path)
    return db


def open_snapshot(path: Path, undo: ExitStack) -> sqlite3.Connection:
    """Return a read-only view of the file at this moment, also while another process uses it."""
    if not path.is_file():
        raise HostError(f"{path} does not exist; check the name")
    db = open_connection(path, undo)
    schema = _schema(db, path)
    if schema != SCHEMA:
        raise HostError(f"{path} is empty or of an older version (its schema is {schema}); `paceline up` migrates it")
    db.execute("BEGIN")
    _check_pages(db, path)
    return db


def open_connection(path: Path, undo: ExitStack) -> sqlite3.Connection:
    """Return a connection to a file as it is, writable if its permissions allow it."""
    mode = "rw" if os.access(path, os.W_OK) else "ro"
    # Only one thread at a time makes calls, but not always the same one.
    db = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=PATIENCE_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    undo.enter_context(closing(db))
    # A checksum detects damaged text and can name the record; a decoding error could not.
    db.text_factory = partial(str, encoding="utf-8", errors="replace")
    return db


def _schema(db: sqlite3.Connection, path: Path) -> int:
    schema = int(db.execute("PRAGMA user_version").fetchone()[0])
    if not 0 <= schema <= SCHEMA:
        raise HostError(
            f"{path} was written by a newer Paceline (its schema is {schema}, this one"
            f" reads up to {SCHEMA}); install that version or restore an older backup"
        )
    return schema


def _check_pages(db: sqlite3.Connection, path: Path) -> None:
    """Let SQLite check its pages: our checksums do not cover the indexes that writes use."""
    if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
        raise damaged(path, "the file is damaged")


def write_base(db: sqlite3.Connection, head: LogHead) -> None:
    """Store where the log begins."""
    total = head.total.to_bytes() if head.total else b""
    db.execute(WRITE_BASE, (head.revision, head.chain, total, sum_of_head(head)))


def _migrate(db: sqlite3.Connection, path: Path, schema: int) -> None:
    if schema:
        _keep_old(db, path, schema)
    db.execute("BEGIN IMMEDIATE")
    try:
        if schema:
            _from_1(db)
        else:
            for statement in TABLES.split(";"):
                db.execute(statement)
            db.execute(BASE_TABLE)
            write_base(db, NEW)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _keep_old(db: sqlite3.Connection, path: Path, schema: int) -> None:
    """Copy the file before it is migrated, so that the version that wrote it can still use the copy."""
    copy = path.with_name(f"{path.name}.schema-{schema}")
    copy.unlink(missing_ok=True)
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db.execute("VACUUM INTO ?", (str(copy),))


def _from_1(db: sqlite3.Connection) -> None:
    """Add the chain and the total to a file that has only sums; reading verifies these later."""
    db.execute("ALTER TABLE log ADD COLUMN chain BLOB")
    db.execute("ALTER TABLE log ADD COLUMN total BLOB")
    compacted = int(db.execute("SELECT revision FROM compacted").fetchone()[0])
    sums = [row[0] for row in db.execute("SELECT sum FROM current")]
    total = Total().change(gone=(), come=sums)
    rows = db.execute("SELECT revision, sum FROM log ORDER BY revision").fetchall()
    base = LogHead(revision=compacted, chain=link(NEW.chain, repr(compacted).encode()), total=None if rows else total)
    db.execute(BASE_TABLE)
    write_base(db, base)
    if rows:
        chains = chained(base, (row[1] for row in rows), total)
        links = ((chain, row[0]) for chain, row in zip(chains, rows, strict=True))
        db.executemany("UPDATE log SET chain = ? WHERE revision = ?", links)
        db.execute("UPDATE log SET total = ? WHERE revision = ?", (total.to_bytes(), rows[-1][0]))
    db.execute("DROP TABLE compacted")
