"""Back up and restore the objects of a cluster, and continue after a loss that the user has accepted."""

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.cluster.daemon import running_pid
from paceline.effects import Clock
from paceline.errors import HostError
from paceline.host.lockfile import lock_file
from paceline.settings import Settings
from paceline.store.backend import Damaged
from paceline.store.backup import Contents, beside, check, copy_out, fill, last_revision, prepare, salvage
from paceline.store.high_water_mark import HighWaterMark, MarkedLog, read_mark, write_mark
from paceline.store.sqlite import SqliteLog
from paceline.store.sqlite_schema import RESTORE, sync_folder

# How far the revision of a store jumps that may have lost writes, so that no client has seen a later one.
LEAP = 1_000_000_000
# The files of a SQLite database, in an order in which an interrupted move leaves nothing that looks complete.
PARTS = ("-wal", "-shm", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The contents of the new store, and the folder of the old files, if there were any."""

    contents: Contents
    old_files: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLoss:
    """What was lost, and the folder of the old files if they were replaced."""

    message: str
    lost: tuple[str, ...] = ()
    old_files: Path | None = None


def back_up(settings: Settings, target: Path) -> Contents:
    """Copy all objects into one file; the cluster may be running."""
    return copy_out(settings.store, target.absolute())


def check_store(path: Path) -> Contents:
    """Check a store or a backup byte for byte."""
    return check(path.absolute())


def restore(settings: Settings, source: Path, clock: Clock) -> Restored:
    """Replace the store by a backup; clients that watched before must list again."""
    source = source.absolute()
    if not source.is_file() or not source.stat().st_size:
        raise HostError(f"{source} is missing or empty; name a file that `paceline cluster backup` has written")
    with _alone(settings), beside(settings.store) as copy:
        revision = max(last_revision(source), last_revision(settings.store), read_mark(settings.mark).revision) + LEAP
        _copy(source, copy)
        try:
            contents = prepare(copy, revision)
        except Damaged as error:
            problem = str(error).replace(str(copy), str(source)).partition(";")[0]
            raise HostError(f"{problem}; specify an intact file that `paceline cluster backup` has written") from error
        return Restored(contents=contents, old_files=_exchange(settings, copy, clock))


def accept_loss(settings: Settings, clock: Clock) -> AcceptedLoss | None:
    """Continue without what the store has lost; return None when it has lost nothing."""
    with _alone(settings):
        marked = read_mark(settings.mark).revision
        if not settings.store.exists():
            return _begin_anew(settings, marked, clock) if marked else None
        log = MarkedLog(settings.store, mark=settings.mark)
        try:
            with closing(log):
                log.open()
                for _ in (*log.since(log.compacted()), *log.current()):
                    pass
        except Damaged:
            return _save(settings, marked, clock)
        except HostError:
            return _leap(settings, marked)
    return None


def _leap(settings: Settings, marked: int) -> AcceptedLoss:
    """Continue with a store that has lost its last writes; raise HostError when something else is wrong with it."""
    with closing(SqliteLog(settings.store)) as log:
        last = log.open()
        log.renew(max(last, marked) + LEAP)
    _mark(settings)
    return AcceptedLoss(message=f"all writes after revision {last}, up to {marked}, are lost")


def _begin_anew(settings: Settings, marked: int, clock: Clock) -> AcceptedLoss:
    with beside(settings.store) as new:
        fill(new, (), marked + LEAP)
        _exchange(settings, new, clock)
    return AcceptedLoss(message="the store is missing, so the cluster starts empty")


def _save(settings: Settings, marked: int, clock: Clock) -> AcceptedLoss:
    """Create a new store from the intact records of a damaged one, and keep the damaged one."""
    with beside(settings.store) as new:
        copy = new.with_name("damaged.db")
        for part in PARTS:
            if (source := _part(settings.store, part)).exists():
                _copy(source, _part(copy, part))
        saved = salvage(copy)
        if not saved.records:
            raise HostError(f"{settings.store}: no record can be read; {RESTORE}, or move it away and try again")
        last = max(marked, *(record.revision for record in saved.records))
        fill(new, saved.records, last + LEAP)
        old_files = _exchange(settings, new, clock)
    message = f"the store was damaged; {len(saved.records)} objects are intact"
    return AcceptedLoss(message=message, lost=saved.lost, old_files=old_files)


def _exchange(settings: Settings, new: Path, clock: Clock) -> Path | None:
    """Move the old store away and a new one into its place; after a crash in between, the missing store is noticed."""
    store, old_files = settings.store, None
    if any(_part(store, part).exists() for part in PARTS):
        old_files = _new_folder(store.parent, f"replaced-{clock.now():%Y%m%dT%H%M%S}")
        for part in PARTS:
            if (old := _part(store, part)).exists():
                old.rename(old_files / old.name)
    sync_folder(store.parent)
    new.rename(store)
    sync_folder(store.parent)
    _mark(settings)
    return old_files


def _mark(settings: Settings) -> None:
    """Set the high-water mark to the current revision of the store, also when that is lower than before."""
    with closing(SqliteLog(settings.store)) as log:
        revision = log.look()
        trail = log.trail(revision)
    fd = os.open(settings.mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write_mark(fd, HighWaterMark(revision=revision, trail=trail))
        os.fsync(fd)
    finally:
        os.close(fd)


def _new_folder(parent: Path, name: str) -> Path:
    """Create a new folder whose name starts with `name`."""
    for number in itertools.count():
        folder = parent / (f"{name}-{number}" if number else name)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable: numbers do not end")


def _copy(source: Path, target: Path) -> None:
    """Copy a file; only its owner can read the copy."""
    shutil.copyfile(source, target)
    target.chmod(0o600)


def _part(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Lock the store for the block; raise HostError while a cluster uses it."""
    if pid := running_pid(settings):
        message = f"a cluster runs in {settings.home} (pid {pid})"
        raise HostError(f"{message}; stop it with `paceline down`, then try again")
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.store.parent.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise HostError(f"{settings.store.parent} cannot be written: {error.strerror}") from error
    with lock_file(settings.lock):
        yield
