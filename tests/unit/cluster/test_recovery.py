"""Backups that are whole, restores that nobody mistakes for what was there, and losses that a person has accepted."""

import sqlite3
from contextlib import closing

import pytest

from paceline.cluster.backup import LEAP, accept_loss, back_up, check_store, restore
from paceline.errors import HostError
from paceline.host.clock import RealClock
from paceline.host.lockfile import lock_file
from paceline.settings import Settings
from paceline.store.backend import Op, Record
from paceline.store.backup import Contents
from paceline.store.high_water_mark import MarkedLog, read_mark

CLOCK = RealClock()


@pytest.fixture
def settings(tmp_path):
    settings = Settings(home=tmp_path / "home")
    settings.store.parent.mkdir(parents=True)
    return settings


def opened(settings):
    log = MarkedLog(settings.store, mark=settings.mark)
    log.open()
    return closing(log)


def record(revision, key, op=Op.CREATE):
    return Record(revision=revision, key=key, op=op, value=f"{key}@{revision}".encode() * 40, created=revision)


def write(settings, *keys):
    with opened(settings) as log:
        last = read_mark(settings.mark).revision
        for number, key in enumerate(keys, last + 1):
            log.append((record(number, key),))


def keys(settings):
    with opened(settings) as log:
        return [found.key for found in log.current()]


def test_a_backup_taken_while_the_store_is_in_use_holds_what_was_acknowledged(settings, tmp_path):
    target = tmp_path / "backup"
    with opened(settings) as log:
        log.append((record(1, "a"), record(2, "b")))
        log.append((record(3, "a", Op.DELETE),))
        assert back_up(settings, target) == Contents(revision=3, objects=1)
        log.append((record(4, "late"),))
        assert check_store(settings.store) == Contents(revision=4, objects=2)
    assert check_store(target) == Contents(revision=3, objects=1)
    assert target.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"home", "backup"}


def test_a_damaged_store_makes_no_backup(settings, tmp_path):
    write(settings, "a", "b")
    data = settings.store.read_bytes()
    settings.store.write_bytes(data.replace(b"b@2b@2", b"b@2c@2"))
    with pytest.raises(HostError, match="b at revision 2 is damaged"):
        back_up(settings, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_a_store_that_was_never_written_makes_no_backup(settings, tmp_path):
    with pytest.raises(HostError, match="nothing has been stored yet"):
        back_up(settings, tmp_path / "backup")


def test_a_place_that_cannot_be_written_is_named(settings, tmp_path):
    write(settings, "a")
    with pytest.raises(HostError, match="nowhere/backup cannot be written: No such file"):
        back_up(settings, tmp_path / "nowhere" / "backup")


def test_a_restored_store_goes_on_from_a_revision_that_nobody_has_seen(settings, tmp_path):
    write(settings, "a", "b")
    back_up(settings, tmp_path / "backup")
    write(settings, "c", "d")

    restored = restore(settings, tmp_path / "backup", CLOCK)

    assert restored.contents == Contents(revision=4 + LEAP, objects=2)
    assert settings.store.stat().st_mode & 0o777 == 0o600
    with opened(settings) as log:
        assert [found.key for found in log.current()] == ["a", "b"]
        assert log.compacted() == 4 + LEAP
        log.append((record(5 + LEAP, "e"),))
    assert keys(settings) == ["a", "b", "e"]
    assert check_store(restored.old_files / "objects.db") == Contents(revision=4, objects=4)


def test_a_restore_on_a_machine_that_has_nothing_works(settings, tmp_path):
    write(settings, "a")
    back_up(settings, tmp_path / "backup")
    other = Settings(home=tmp_path / "other")

    restored = restore(other, tmp_path / "backup", CLOCK)

    assert restored.old_files is None
    assert keys(other) == ["a"]


def test_a_damaged_backup_is_refused_and_nothing_is_changed(settings, tmp_path):
    write(settings, "a")
    backup = tmp_path / "backup"
    back_up(settings, backup)
    backup.write_bytes(backup.read_bytes().replace(b"a@1a@1", b"a@1b@1"))
    write(settings, "b")
    with pytest.raises(HostError, match=r"backup: a at revision 1 is damaged; specify an intact file"):
        restore(settings, backup, CLOCK)
    assert keys(settings) == ["a", "b"]
    with pytest.raises(HostError, match="a at revision 1 is damaged"):
        check_store(backup)


@pytest.mark.parametrize("data", [b"", b"kind: Pod\n" * 900])
def test_what_is_no_backup_is_refused_and_nothing_is_changed(settings, tmp_path, data):
    write(settings, "a")
    (tmp_path / "backup").write_bytes(data)
    with pytest.raises(HostError, match="backup"):
        restore(settings, tmp_path / "backup", CLOCK)
    assert keys(settings) == ["a"]


def test_nothing_is_restored_under_a_running_cluster(settings, tmp_path):
    write(settings, "a")
    back_up(settings, tmp_path / "backup")
    with (
        lock_file(settings.lock),
        pytest.raises(HostError, match=r"a cluster runs in .*; stop it with `paceline down`"),
    ):
        restore(settings, tmp_path / "backup", CLOCK)


def test_two_restores_keep_both_stores_aside(settings, tmp_path):
    write(settings, "a")
    back_up(settings, tmp_path / "backup")
    first, second = (restore(settings, tmp_path / "backup", CLOCK).old_files for _ in range(2))
    assert first != second
    assert (first / "objects.db").exists()
    assert (second / "objects.db").exists()


def test_a_store_that_fell_behind_goes_on_once_that_is_accepted(settings):
    write(settings, "a", "b")
    older = settings.store.read_bytes()
    write(settings, "c")
    settings.store.write_bytes(older)
    with pytest.raises(HostError, match="lost writes"):
        keys(settings)

    accepted = accept_loss(settings, CLOCK)

    assert accepted.message == "all writes after revision 2, up to 3, are lost"
    assert keys(settings) == ["a", "b"]
    assert read_mark(settings.mark).revision == 3 + LEAP
    assert accept_loss(settings, CLOCK) is None


def test_a_store_that_is_gone_begins_anew_once_that_is_accepted(settings):
    write(settings, "a", "b")
    settings.store.unlink()

    assert "starts empty" in accept_loss(settings, CLOCK).message

    assert keys(settings) == []
    assert read_mark(settings.mark).revision == 2 + LEAP


def test_of_a_damaged_store_goes_on_what_is_whole_once_that_is_accepted(settings):
    write(settings, "a", "b", "c")
    with opened(settings) as log:
        log.compact(3)
    data = settings.store.read_bytes()
    settings.store.write_bytes(data.replace(b"b@2b@2", b"b@2c@2"))

    accepted = accept_loss(settings, CLOCK)

    assert accepted.lost == ("b",)
    assert keys(settings) == ["a", "c"]
    assert (accepted.old_files / "objects.db").read_bytes() != data


def test_what_the_log_still_holds_mends_what_is_current(settings):
    write(settings, "a", "b", "c")
    with closing(sqlite3.connect(settings.store)) as db, db:
        db.execute("DELETE FROM current WHERE key = 'b'")

    accepted = accept_loss(settings, CLOCK)

    assert accepted.lost == ()
    assert keys(settings) == ["a", "b", "c"]


def test_what_cannot_be_read_at_all_is_left_alone(settings):
    write(settings, "a")
    settings.store.write_bytes(b"kind: Pod\n" * 900)
    with pytest.raises(HostError, match="no record can be read"):
        accept_loss(settings, CLOCK)
    assert settings.store.read_bytes().startswith(b"kind: Pod")


def test_a_store_of_an_older_version_is_not_a_loss(settings):
    write(settings, "a")
    with closing(sqlite3.connect(settings.store)) as db, db:
        db.execute("PRAGMA user_version = 2")
    before = settings.store.read_bytes()
    with pytest.raises(HostError, match="start with a fresh PACELINE_HOME"):
        accept_loss(settings, CLOCK)
    assert settings.store.read_bytes() == before


def test_a_store_of_a_newer_version_is_not_a_loss(settings):
    write(settings, "a")
    with closing(sqlite3.connect(settings.store)) as db, db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(HostError, match="newer Paceline"):
        accept_loss(settings, CLOCK)
