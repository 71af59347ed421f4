"""The SQLite file of a store: opening it safely, its schema, and translation of its errors."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote

from paceline.errors import HostError, PacelineError, ServiceUnavailable
from paceline.store.backend import Damaged, DiskFull
from paceline.store.checksums import NEW, LogHead, sum_of_head

# The format of the file and of the objects in it. Formats 1 and 2 were never released.
SCHEMA = 3
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
CREATE TABLE base (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    revision INTEGER NOT NULL,
    chain BLOB NOT NULL,
    total BLOB NOT NULL,
    sum BLOB NOT NULL
);
"""
# Bytes of SQLite's headers: of the file, of the write-ahead log, and of each page in that.
PAGE_HEADER, WAL_HEADER, WAL_FRAME = 100, 32, 24
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


def refuse_older(path: Path) -> None:
    """Raise HostError if an older version wrote the file, without opening it: SQLite changes a file that it closes."""
    schema = _stored_schema(path)
    if 0 < schema < SCHEMA:
        raise HostError(
            f"{path} was written by an older Paceline that was never released (its schema is {schema}, this one"
            f" reads {SCHEMA}); stop that version with `paceline down`, then start with a fresh PACELINE_HOME"
        )


def connect(path: Path, undo: ExitStack) -> sqlite3.Connection:
    """Return a connection to the file, with its tables created if it is new."""
    db = open_connection(path, undo)
    schema = _schema(db, path)
    db.execute("PRAGMA journal_mode = WAL")
    # NORMAL would lose acknowledged writes in a power cut.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 2000")
    db.execute("PRAGMA journal_size_limit = 67108864")
    if schema != SCHEMA:
        _create_tables(db)
    _check_pages(db, path)
    return db


def open_snapshot(path: Path, undo: ExitStack) -> sqlite3.Connection:
    """Return a read-only view of the file at this moment, also while another process uses it."""
    if not path.is_file():
        raise HostError(f"{path} does not exist; check the name")
    refuse_older(path)
    db = open_connection(path, undo)
    if _schema(db, path) != SCHEMA:
        raise HostError(f"{path} is empty; check the name")
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


def _create_tables(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for statement in TABLES.split(";"):
            db.execute(statement)
        write_base(db, NEW)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _stored_schema(path: Path) -> int:
    """Return the schema of a file without opening it as a database; 0 if it is new or no database.

    A file that was never checkpointed has its schema only in the write-ahead log.
    """
    with suppress(OSError), path.open("rb") as file:
        if schema := _user_version(file.read(PAGE_HEADER)):
            return schema
    with suppress(OSError), path.with_name(f"{path.name}-wal").open("rb") as log:
        header = log.read(WAL_HEADER)
        page_size = int.from_bytes(header[8:12], "big")
        while len(frame := log.read(WAL_FRAME + page_size)) == WAL_FRAME + page_size and page_size:
            # Frames with another salt are left from before the last checkpoint.
            is_first_page = int.from_bytes(frame[:4], "big") == 1 and frame[8:16] == header[16:24]
            if is_first_page and (schema := _user_version(frame[WAL_FRAME:])):
                return schema
    return 0


def _user_version(page: bytes) -> int:
    return int.from_bytes(page[60:64], "big") if page.startswith(b"SQLite format 3\0") else 0
