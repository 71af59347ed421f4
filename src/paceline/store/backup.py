"""Backups: copies of a store in use, complete checks, and recovery of records from a damaged file."""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import HostError, PacelineError
from paceline.store import sqlite_schema
from paceline.store.backend import Op, Record
from paceline.store.checksums import sum_of
from paceline.store.sqlite import SqliteLog

# Records per commit when a file is filled.
BATCH = 500
READ = "SELECT revision, key, op, created, value, sum FROM {} ORDER BY revision {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Summary of a store: its revision and the number of its objects."""

    revision: int
    objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """The intact records of a damaged file, and the keys of the lost ones, as far as they can be read."""

    records: tuple[Record, ...]
    lost: tuple[str, ...]


def check(path: Path) -> Contents:
    """Read and verify a whole store or backup, in use or not; raise HostError if it is damaged."""
    with closing(SqliteLog(path)) as log:
        revision = log.look()
        return Contents(revision=revision, objects=_count(log))


def copy_out(source: Path, target: Path) -> Contents:
    """Copy a store, in use or not, into one file without its history; the file appears complete or not at all."""
    if not source.is_file():
        raise HostError(f"{source} does not exist; nothing has been stored yet")
    sqlite_schema.refuse_older(source)
    with beside(target) as copy, ExitStack() as undo:
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with sqlite_schema.translate_errors(source):
            sqlite_schema.open_connection(source, undo).execute("VACUUM INTO ?", (str(copy),))
        with closing(SqliteLog(copy, reserve=0)) as log:
            last = log.open()
            _count(log)
            log.compact(last)
            log.pack()
        _sync(copy)
        # Check last, so that nothing changes the file afterwards.
        contents = check(copy)
        copy.replace(target)
        sqlite_schema.sync_folder(target.parent)
    return contents


def prepare(copy: Path, revision: int) -> Contents:
    """Prepare a copy of a backup for serving: verify it, and continue at a later revision."""
    with closing(SqliteLog(copy, reserve=0)) as log:
        log.open()
        objects = _count(log)
        log.renew(revision)
    _sync(copy)
    return Contents(revision=revision, objects=objects)


def last_revision(path: Path) -> int:
    """Return the last revision of a store; 0 if it cannot be read."""
    try:
        with closing(SqliteLog(path)) as log:
            return log.look()
    except PacelineError:
        return 0


def salvage(path: Path) -> Salvage:
    """Return the intact records of a damaged file."""
    intact: dict[int, Record] = {}
    suspects: dict[int, str] = {}
    with ExitStack() as undo:
        db = sqlite_schema.open_connection(path, undo)
        for revision, key, op, created, value, checksum in _readable(db):
            if isinstance(value, bytes) and sum_of((revision, key, op, created), value) == checksum:
                intact[revision] = Record(revision=revision, key=key, op=Op(op), value=value, created=created)
            else:
                suspects[revision] = str(key)
    newest: dict[str, Record] = {}
    for _, record in sorted(intact.items()):
        newest[record.key] = record
    existing = (record for record in newest.values() if record.op is not Op.DELETE)
    lost = {key for revision, key in suspects.items() if revision not in intact}
    return Salvage(
        records=tuple(sorted(existing, key=lambda record: record.revision)), lost=tuple(sorted(map(str, lost)))
    )


def fill(path: Path, records: tuple[Record, ...], revision: int) -> None:
    """Create a store with these records that continues at a revision."""
    with closing(SqliteLog(path, reserve=0)) as log:
        log.open()
        for start in range(0, len(records), BATCH):
            log.append(records[start : start + BATCH])
        log.renew(revision)
    _sync(path)


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Yield a path in a temporary directory next to the target; the directory is deleted when the block ends."""
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        folder.mkdir(mode=0o700)
        yield folder / "objects.db"
    except OSError as error:
        raise HostError(f"{target} cannot be written: {error.strerror}; choose another path") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _count(log: SqliteLog) -> int:
    """Return the number of objects; reading all rows verifies their checksums."""
    for _ in log.since(log.compacted()):
        pass
    return sum(1 for _ in log.current())


def _readable(db: sqlite3.Connection) -> Iterator[tuple[int, str, str, int, object, object]]:
    """Yield every readable row, from both ends, because reading stops at a damaged page."""
    for table in ("current", "log"):
        for order in ("ASC", "DESC"):
            yield from _until_error(db, READ.format(table, order))


def _until_error(db: sqlite3.Connection, query: str) -> Iterable[tuple[int, str, str, int, object, object]]:
    rows: list[tuple[int, str, str, int, object, object]] = []
    try:
        rows.extend(db.execute(query))
    except sqlite3.Error:
        return rows
    return rows


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
