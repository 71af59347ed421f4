"""The SQLite log: what it says when the file, the disk or a neighbour is not as it should be."""

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from paceline.errors import HostError, ServiceUnavailable
from paceline.store import sqlite_schema as file
from paceline.store.sqlite import SqliteLog
from paceline.testing.contract.store import record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "objects.db"


@pytest.fixture
def log(path):
    with closing(SqliteLog(path)) as log:
        log.open()
        yield log


def filled(path, count=50):
    with closing(SqliteLog(path)) as log:
        log.open()
        log.append(tuple(record(number, f"key-{number}") for number in range(1, count + 1)))


def change(path, statement):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


def test_only_the_owner_can_read_the_files(log, path):
    log.append((record(1, "a"),))
    modes = {found.name: found.stat().st_mode & 0o777 for found in path.parent.iterdir()}
    assert set(modes) == {f"objects.db{end}" for end in ("", "-wal", "-shm", ".lock", ".reserve")}
    assert set(modes.values()) == {0o600}


def test_every_commit_is_synced(log):
    assert log._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert log._db.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.usefixtures("log")
def test_a_second_owner_is_told_who_the_first_is(path):
    with pytest.raises(HostError, match=f"objects.db is in use by process {os.getpid()}; stop that process first"):
        SqliteLog(path).open()


def test_a_holder_that_left_no_name_is_unknown(path):
    with path.with_name("objects.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(HostError, match="in use by process unknown"):
            SqliteLog(path).open()


def test_a_dead_owner_is_no_owner(path):
    script = (
        "import os, sys; from pathlib import Path; from paceline.store.sqlite import SqliteLog;"
        "SqliteLog(Path(sys.argv[1])).open(); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", script, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    with closing(SqliteLog(path)) as log:
        assert log.open() == 0


def test_a_file_of_a_newer_version_is_refused_and_left_alone(path):
    filled(path)
    change(path, "PRAGMA user_version = 4")
    with pytest.raises(HostError, match=r"written by a newer Paceline \(its schema is 4, this one reads up to 3\)"):
        SqliteLog(path).open()
    change(path, "PRAGMA user_version = 3")
    with closing(SqliteLog(path)) as log:
        assert log.open() == 50


def test_a_file_that_is_not_a_database_is_refused(path):
    path.write_bytes(b"apiVersion: v1\n" * 1000)
    with pytest.raises(HostError, match="the file is not a database"):
        SqliteLog(path).open()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(HostError, match=r"nowhere/objects.db: No such file or directory"):
        SqliteLog(tmp_path / "nowhere" / "objects.db").open()


def test_a_folder_in_place_of_the_file_is_named(path):
    path.mkdir()
    with pytest.raises(HostError, match="Is a directory"):
        SqliteLog(path).open()


@pytest.mark.parametrize(
    "damage",
    [
        "value = CAST('other' AS BLOB)",
        "value = 'text'",
        "created = 3",
        "op = 'nothing'",
        "sum = x'00'",
    ],
)
@pytest.mark.parametrize("table", ["current", "log"])
def test_a_damaged_row_is_named_and_not_served(path, table, damage):
    filled(path)
    change(path, f"UPDATE {table} SET {damage} WHERE key = 'key-7'")
    with closing(SqliteLog(path)) as log:
        log.open()
        with pytest.raises(HostError, match="key-7 at revision 7 is damaged; restore a backup"):
            tuple(log.current() if table == "current" else log.since(0))


def test_a_damaged_key_is_named_as_far_as_it_can_be(path):
    filled(path)
    change(path, "UPDATE current SET key = CAST(x'6b65792dff' AS TEXT) WHERE key = 'key-7'")
    with closing(SqliteLog(path)) as log:
        log.open()
        with pytest.raises(HostError, match="key-\ufffd at revision 7 is damaged"):
            log.current()


def test_a_damaged_page_is_reported(path):
    filled(path, 500)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 12)
    with pytest.raises(HostError, match=r"objects.db: the file is damaged; restore a backup"):
        SqliteLog(path).open()


def test_a_program_that_holds_the_file_delays_writes_only(path, monkeypatch):
    monkeypatch.setattr(file, "PATIENCE_SECONDS", 0.05)
    with closing(SqliteLog(path)) as log, closing(sqlite3.connect(path, isolation_level=None)) as other:
        log.open()
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ServiceUnavailable, match="another program has locked the file"):
            log.append((record(1, "a"),))
        assert log.current() == ()
        other.execute("ROLLBACK")
        log.append((record(1, "a"),))
        assert len(log.current()) == 1


def test_a_file_that_cannot_be_locked_at_the_start_is_reported(path, monkeypatch):
    monkeypatch.setattr(file, "PATIENCE_SECONDS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HostError, match="another program has locked the file"):
            SqliteLog(path).open()


def test_a_read_only_file_refuses_writes_until_it_is_not(log):
    log._db.execute("PRAGMA query_only = 1")
    with pytest.raises(ServiceUnavailable, match="the file is read-only; writes succeed again when it is writable"):
        log.append((record(1, "a"),))
    log._db.execute("PRAGMA query_only = 0")
    log.append((record(1, "a"),))
    assert len(log.since(0)) == 1


def test_a_batch_that_fails_half_way_leaves_nothing(log):
    log.append((record(1, "a"),))
    with pytest.raises(HostError, match=r"SQLite failed: UNIQUE constraint failed: log.revision"):
        log.append((*(record(number, f"b-{number}") for number in range(2, 60)), record(1, "c")))
    assert [found.key for found in log.since(0)] == ["a"]
    assert [found.key for found in log.current()] == ["a"]
    log.append((record(2, "b"),))
    assert log._db.in_transaction is False


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("SQLITE_FULL", ServiceUnavailable, "the disk is full"),
        ("SQLITE_IOERR_WRITE", ServiceUnavailable, "the disk refuses writes"),
        ("SQLITE_IOERR_SHMSIZE", ServiceUnavailable, "the disk refuses writes"),
        ("SQLITE_IOERR_FSYNC", HostError, "did not confirm a write; check the disk, then start again"),
        ("SQLITE_IOERR_DIR_FSYNC", HostError, "did not confirm a write"),
        ("SQLITE_IOERR_READ", HostError, "the disk cannot be read"),
        ("SQLITE_READONLY_DBMOVED", ServiceUnavailable, "the file is read-only"),
        ("SQLITE_CANTOPEN_ISDIR", HostError, "the file cannot be opened"),
        ("SQLITE_LOCKED_SHAREDCACHE", ServiceUnavailable, "another program has locked the file"),
        ("SQLITE_CORRUPT_INDEX", HostError, "the file is damaged"),
        ("SQLITE_MISUSE", HostError, r"SQLite failed: odd \(SQLITE_MISUSE\)"),
    ],
)
def test_every_failure_says_who_must_act(path, name, kind, said):
    error = sqlite3.OperationalError("odd")
    error.sqlite_errorname = name
    with pytest.raises(kind, match=f"objects.db: .*{said}"), file.translate_errors(path):
        raise error


WRITER = """
import sys
from pathlib import Path
from paceline.store.backend import Op, Record
from paceline.store.sqlite import SqliteLog

log = SqliteLog(Path(sys.argv[1]))
last = log.open()
while True:
    batch = tuple(
        Record(revision=last + n, key=f"key-{(last + n) % 50}", op=Op.REPLACE, value=bytes(2000), created=1)
        for n in range(1, 8)
    )
    log.append(batch)
    last += 7
    print(last, flush=True)
    if last % 140 == 0:
        log.compact(last - 100)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(path):
    acknowledged = 0
    for lines in (1, 30, 75):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(lines):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        with closing(SqliteLog(path)) as log:
            last = log.open()
            assert acknowledged <= last <= acknowledged + 7
            assert [one.revision for one in log.since(0)] == list(range(log.compacted() + 1, last + 1))
            assert {one.key: one.revision for one in log.since(last - 50)} == {
                one.key: one.revision for one in log.current()
            }


def files_beside(path):
    """Everything in the folder of a store, by name."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@pytest.mark.parametrize("is_checkpointed", [True, False])
@pytest.mark.parametrize("use", [SqliteLog.open, SqliteLog.look])
def test_a_file_of_an_older_unreleased_version_is_refused_and_stays_as_it_is(path, use, is_checkpointed):
    """The second one was killed before SQLite brought anything from the write-ahead log into the file."""
    if is_checkpointed:
        filled(path)
        change(path, "PRAGMA user_version = 2")
    else:
        script = (
            "import os, sys; from pathlib import Path; from paceline.store import sqlite_schema;"
            "from paceline.store.sqlite import SqliteLog; sqlite_schema.SCHEMA = 2;"
            "SqliteLog(Path(sys.argv[1])).open(); os.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", script, path], check=False)
        assert path.with_name("objects.db-wal").stat().st_size
    before = files_beside(path)
    with pytest.raises(HostError) as refusal:
        use(SqliteLog(path))
    assert str(refusal.value) == (
        f"{path} was written by an older Paceline that was never released (its schema is 2, this one reads 3); "
        "stop that version with `paceline down`, then start with a fresh PACELINE_HOME"
    )
    assert files_beside(path) == before


def test_a_file_of_the_first_schema_is_refused_and_stays_as_it_is(path):
    old = Path(__file__).parents[2] / "data" / "store-schema-1.db"
    path.write_bytes(old.read_bytes())
    with pytest.raises(HostError, match="older Paceline that was never released"):
        SqliteLog(path).open()
    assert files_beside(path) == {path.name: old.read_bytes()}


def test_whoever_looks_sees_one_moment_and_disturbs_nobody(log, path):
    log.append((record(1, "a"),))
    with closing(SqliteLog(path)) as other:
        assert other.look() == 1
        log.append((record(2, "b"),))
        assert len(other.current()) == 1
        assert other.trail(1) == log.trail(1) != ""
    assert len(log.current()) == 2


def test_the_trail_tells_one_history_from_another(tmp_path):
    def trail_of(name, *batches):
        with closing(SqliteLog(tmp_path / name)) as log:
            log.open()
            for batch in batches:
                log.append(batch)
            return log.trail(2)

    one = trail_of("one", (record(1, "a"),), (record(2, "b"),))
    assert one == trail_of("same", (record(1, "a"),), (record(2, "b"),), (record(3, "c"),))
    assert one != trail_of("other", (record(1, "x"),), (record(2, "b"),))
    assert trail_of("short", (record(1, "a"),)) == ""


def test_a_renewed_log_forgets_its_history_and_nothing_else(log):
    log.append((record(1, "a"), record(2, "b")))
    log.renew(1000)
    assert log.compacted() == 1000
    assert log.since(0) == ()
    assert [found.revision for found in log.current()] == [1, 2]
    log.append((record(1001, "c"),))
    assert [found.key for found in log.current()] == ["a", "b", "c"]
    assert [found.key for found in log.since(1000)] == ["c"]


@pytest.mark.parametrize("damage", ["revision = 9", "revision = 1", "chain = x'00'", "sum = x'00'"])
def test_without_history_the_place_where_it_would_go_on_is_vouched_for_too(path, damage):
    filled(path)
    with closing(SqliteLog(path)) as log:
        log.open()
        log.compact(50)
    change(path, f"UPDATE base SET {damage}")
    with pytest.raises(HostError, match="the row that stores where the log begins is damaged; restore a backup"):
        SqliteLog(path).open()


def test_what_a_killed_process_left_is_written_anew_before_anything_is_added(tmp_path):
    """A sync of its may have failed, after which the kernel shows what the disk may not have."""
    path, wal = tmp_path / "objects.db", tmp_path / "objects.db-wal"
    killed = SqliteLog(path)
    killed.open()
    killed.append((record(1, "a"),))
    left = {each: each.read_bytes() for each in (path, wal)}
    killed.close()
    for each, data in left.items():
        each.write_bytes(data)

    with closing(SqliteLog(path)) as log:
        assert log.open() == 1
        assert wal.read_bytes() == left[wal], "looking changes nothing"
        log.append((record(2, "b"),))

        # The first is home by now, and only the second lies in the log.
        assert path.stat().st_size > len(left[path])
        (tmp_path / "copy").mkdir()
        (tmp_path / "copy" / "objects.db").write_bytes(path.read_bytes())
    with closing(SqliteLog(tmp_path / "copy" / "objects.db")) as log:
        assert log.open() == 1
