"""Whole stores as files: copied while they are in use, checked byte for byte, and saved from a file that is damaged."""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import PacelineError, Unavailable
from paceline.store import file
from paceline.store.chain import sum_of
from paceline.store.log import Op, Record
from paceline.store.sqlite import SqliteLog

# Records per commit when a file is filled.
SOME = 500
READ = "SELECT revision, key, op, created, value, sum FROM {} ORDER BY revision {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a store holds."""

    revision: int
    objects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvage:
    """What was still whole in a damaged file, and the keys of what was not, as far as they can be read."""

    records: tuple[Record, ...]
    lost: tuple[str, ...]


def check(path: Path) -> Contents:
    """Read every byte that matters of a store or of a backup, in use or not; Unavailable says what is wrong with it."""
    with closing(SqliteLog(path)) as log:
        revision = log.look()
        return Contents(revision=revision, objects=_count(log))


def copy_out(source: Path, target: Path) -> Contents:
    """Copy a store, in use or not, into one file without its history; the file appears whole or not at all."""
    if not source.is_file():
        raise Unavailable(f"{source} is not there; nothing has been stored yet")
    with beside(target) as copy, ExitStack() as undo:
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with file.told(source):
            file.plain(source, undo).execute("VACUUM INTO ?", (str(copy),))
        with closing(SqliteLog(copy, reserve=0)) as log:
            last = log.open()
            _count(log)
            log.compact(last)
            log.pack()
        _sync(copy)
        # After everything that could have changed it: what is on the disk is what is looked at.
        contents = check(copy)
        copy.replace(target)
        file.sync_folder(target.parent)
    return contents


def prepare(copy: Path, revision: int) -> Contents:
    """Make a copy of a backup ready to be served: checked, of today's schema, going on from a later revision."""
    with closing(SqliteLog(copy, reserve=0)) as log:
        log.open()
        objects = _count(log)
        log.renew(revision)
    _sync(copy)
    return Contents(revision=revision, objects=objects)


def last_revision(path: Path) -> int:
    """Tell how far a store came, as far as that can be told; 0 when it cannot."""
    try:
        with closing(SqliteLog(path)) as log:
            return log.look()
    except PacelineError:
        return 0


def salvage(path: Path) -> Salvage:
    """Read what is whole in a damaged file."""
    whole: dict[int, Record] = {}
    suspects: dict[int, str] = {}
    with ExitStack() as undo:
        db = file.plain(path, undo)
        for revision, key, op, created, value, checksum in _readable(db):
            if isinstance(value, bytes) and sum_of((revision, key, op, created), value) == checksum:
                whole[revision] = Record(revision=revision, key=key, op=Op(op), value=value, created=created)
            else:
                suspects[revision] = str(key)
    newest: dict[str, Record] = {}
    for _, record in sorted(whole.items()):
        newest[record.key] = record
    there = (record for record in newest.values() if record.op is not Op.DELETE)
    lost = {key for revision, key in suspects.items() if revision not in whole}
    return Salvage(records=tuple(sorted(there, key=lambda record: record.revision)), lost=tuple(sorted(map(str, lost))))


def fill(path: Path, records: tuple[Record, ...], revision: int) -> None:
    """Make a new store that holds these records and goes on from a revision."""
    with closing(SqliteLog(path, reserve=0)) as log:
        log.open()
        for start in range(0, len(records), SOME):
            log.append(records[start : start + SOME])
        log.renew(revision)
    _sync(path)


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Give a place for a new file in a folder beside its target, which goes when the block ends."""
    folder = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        folder.mkdir(mode=0o700)
        yield folder / "objects.db"
    except OSError as error:
        raise Unavailable(f"{target} cannot be written: {error.strerror}; choose another place") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _count(log: SqliteLog) -> int:
    """Read everything, which checks it, and count the objects."""
    for _ in log.since(log.compacted()):
        pass
    return sum(1 for _ in log.current())


def _readable(db: sqlite3.Connection) -> Iterator[tuple[int, str, str, int, object, object]]:
    """Give every row that can be reached, from both ends, since a damaged page stops whoever comes to it."""
    for table in ("current", "log"):
        for order in ("ASC", "DESC"):
            yield from _until_stopped(db, READ.format(table, order))


def _until_stopped(db: sqlite3.Connection, query: str) -> Iterable[tuple[int, str, str, int, object, object]]:
    found: list[tuple[int, str, str, int, object, object]] = []
    try:
        found.extend(db.execute(query))
    except sqlite3.Error:
        return found
    return found


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
