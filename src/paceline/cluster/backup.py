"""Backups of a cluster's objects, putting one in place, and going on after a loss that a person has accepted."""

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

# Revisions that nobody has seen: so far does a store jump that may have forgotten some.
LEAP = 1_000_000_000
# A database, and what SQLite keeps beside it; in an order in which no part is left that could be taken for a whole.
PARTS = ("-wal", "-shm", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What is served now, and where the files lie that were served before, if there were any."""

    contents: Contents
    aside: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a loss came to."""

    told: str
    lost: tuple[str, ...] = ()
    aside: Path | None = None


def back_up(settings: Settings, target: Path) -> Contents:
    """Copy all objects into one file, while the cluster runs or not."""
    return copy_out(settings.store, target.absolute())


def check_store(path: Path) -> Contents:
    """Check a store or a backup byte for byte."""
    return check(path.absolute())


def restore(settings: Settings, source: Path, clock: Clock) -> Restored:
    """Put a backup in place of the store; whoever watched before has to list again."""
    source = source.absolute()
    if not source.is_file() or not source.stat().st_size:
        raise HostError(f"{source} is not there or empty; name a file that `paceline cluster backup` has written")
    with _alone(settings), beside(settings.store) as copy:
        revision = max(last_revision(source), last_revision(settings.store), read_mark(settings.mark).revision) + LEAP
        _copy(source, copy)
        try:
            contents = prepare(copy, revision)
        except Damaged as error:
            problem = str(error).replace(str(copy), str(source)).partition(";")[0]
            raise HostError(f"{problem}; specify an intact file that `paceline cluster backup` has written") from error
        return Restored(contents=contents, aside=_exchange(settings, copy, clock))


def accept_loss(settings: Settings, clock: Clock) -> Accepted | None:
    """Go on without what a store has lost; None when it has lost nothing."""
    with _alone(settings):
        marked = read_mark(settings.mark).revision
        if not settings.store.exists():
            return _begin_anew(settings, marked, clock) if marked else None
        log = MarkedLog(SqliteLog(settings.store), store=settings.store, mark=settings.mark)
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


def _leap(settings: Settings, marked: int) -> Accepted:
    """Go on with a store that has forgotten its last writes; what else may be wrong with it is said as ever."""
    with closing(SqliteLog(settings.store)) as log:
        last = log.open()
        log.renew(max(last, marked) + LEAP)
    _mark(settings)
    return Accepted(told=f"what was written after revision {last}, up to {marked}, is lost")


def _begin_anew(settings: Settings, marked: int, clock: Clock) -> Accepted:
    with beside(settings.store) as new:
        fill(new, (), marked + LEAP)
        _exchange(settings, new, clock)
    return Accepted(told="the store is gone, so the cluster begins empty")


def _save(settings: Settings, marked: int, clock: Clock) -> Accepted:
    """Make a new store of what is whole in a damaged one, which is kept."""
    with beside(settings.store) as new:
        copy = new.with_name("damaged.db")
        for part in PARTS:
            if (found := _part(settings.store, part)).exists():
                _copy(found, _part(copy, part))
        saved = salvage(copy)
        if not saved.records:
            raise HostError(f"{settings.store}: nothing in it can be read; {RESTORE}, or move it away and try again")
        last = max(marked, *(record.revision for record in saved.records))
        fill(new, saved.records, last + LEAP)
        aside = _exchange(settings, new, clock)
    told = f"the store was damaged; {len(saved.records)} objects are whole"
    return Accepted(told=told, lost=saved.lost, aside=aside)


def _exchange(settings: Settings, new: Path, clock: Clock) -> Path | None:
    """Move the store aside and a new one into its place; a crash in between leaves no store, which is noticed."""
    store, aside = settings.store, None
    if any(_part(store, part).exists() for part in PARTS):
        aside = _new_folder(store.parent, f"replaced-{clock.now():%Y%m%dT%H%M%S}")
        for part in PARTS:
            if (old := _part(store, part)).exists():
                old.rename(aside / old.name)
    sync_folder(store.parent)
    new.rename(store)
    sync_folder(store.parent)
    _mark(settings)
    return aside


def _mark(settings: Settings) -> None:
    """Let the mark say how far the store is now, be it another store than before."""
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
    """Make a folder whose name begins so, and which was not there."""
    for number in itertools.count():
        folder = parent / (f"{name}-{number}" if number else name)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable: numbers do not end")


def _copy(source: Path, target: Path) -> None:
    """Copy a file; only its owner may read the copy."""
    shutil.copyfile(source, target)
    target.chmod(0o600)


def _part(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Keep every other process from the store; HostError while a cluster runs on it."""
    if pid := running_pid(settings):
        there = f"a cluster runs in {settings.home} (pid {pid})"
        raise HostError(f"{there}; stop it with `paceline down`, then try again")
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        settings.store.parent.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise HostError(f"{settings.store.parent} cannot be written: {error.strerror}") from error
    with lock_file(settings.lock):
        yield
