"""A bit that has flipped, anywhere in the files of a store: it is noticed, or what is served is what was written.

Served means read, and also written to: whoever goes on with a damaged file must find what was there and what was added,
or be told.
"""

import random
from contextlib import closing
from pathlib import Path

import pytest

from paceline.errors import HostError, PacelineError
from paceline.store.backend import Op, Record
from paceline.store.sqlite import SqliteLog
from tests.crash.batches import batch

PAGE = 4096
BATCHES = 8
COMPACTED = 6


def served(path: Path) -> tuple:
    """Open a file and read all that a server reads of it."""
    with closing(SqliteLog(path, reserve=0)) as log:
        last = log.open()
        compacted = log.compacted()
        return last, compacted, tuple(log.current()), tuple(log.since(compacted))


def go_on(path: Path, last: int) -> tuple[Record, ...]:
    """Write to a file that was opened, one record of every sort, and give what was written."""
    key = "/core/pods/default/{}".format
    added = (
        Record(revision=last + 1, key=key("new"), op=Op.CREATE, value=b"new", created=last + 1),
        Record(revision=last + 2, key=key(3), op=Op.REPLACE, value=b"replaced", created=4),
        Record(revision=last + 3, key=key(5), op=Op.DELETE, value=b"deleted", created=6),
    )
    with closing(SqliteLog(path, reserve=0)) as log:
        log.open()
        log.append(added)
    return added


def expected_after(before: tuple, added: tuple[Record, ...]) -> tuple:
    last, compacted, current, history = before
    held = {record.key: record for record in (*current, *added) if record.op is not Op.DELETE}
    for record in added:
        if record.op is Op.DELETE:
            held.pop(record.key)
    newest = tuple(sorted(held.values(), key=lambda record: record.revision))
    return last + len(added), compacted, newest, (*history, *added)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a small store: with history, without some of it, with room that is free."""
    path = tmp_path_factory.mktemp("whole") / "objects.db"
    with closing(SqliteLog(path, reserve=0)) as log:
        log.open()
        for number in range(1, BATCHES + 1):
            log.append(batch(number))
        log.compact(COMPACTED)
    return path.read_bytes()


@pytest.fixture(scope="module")
def truth(whole, tmp_path_factory):
    path = tmp_path_factory.mktemp("truth") / "objects.db"
    path.write_bytes(whole)
    return served(path)


def outcome(path: Path, data: bytes, truth: tuple) -> str:
    """Tell what becomes of a damaged file; served wrong is the one thing that may not be."""
    for old in path.parent.glob("objects.db*"):
        old.unlink()
    path.write_bytes(data)
    try:
        assert served(path) == truth
    except HostError:
        return "noticed"
    try:
        added = go_on(path, truth[0])
        assert served(path) == expected_after(truth, added)
    except PacelineError:
        return "noticed when written to"
    return "harmless"


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def spots(whole: bytes, count: int, seed: int) -> list[tuple[int, int]]:
    """Choose places: of each page the part that says what is in it, and then anything."""
    dice = random.Random(seed)
    heads = [page + dice.randrange(108 if page == 0 else 16) for page in range(0, len(whole), PAGE)]
    anywhere = [dice.randrange(len(whole)) for _ in range(count)]
    return [(at, dice.randrange(8)) for at in (*heads, *anywhere)]


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_noticed_or_harmless(whole, truth, seed, tmp_path):
    found = [outcome(tmp_path / "objects.db", flipped(whole, at, bit), truth) for at, bit in spots(whole, 60, seed)]
    assert "noticed" in found


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bit", range(8))
def test_each_flipped_bit_is_noticed_or_harmless(whole, truth, bit, tmp_path):
    for at in range(len(whole)):
        outcome(tmp_path / "objects.db", flipped(whole, at, bit), truth)


@pytest.mark.parametrize("seed", range(4))
def test_a_garbled_page_is_noticed_or_harmless(whole, truth, seed, tmp_path):
    dice = random.Random(seed)
    for page in range(0, len(whole), PAGE):
        for garbage in (bytes(PAGE), dice.randbytes(PAGE), whole[PAGE : 2 * PAGE]):
            data = whole[:page] + garbage + whole[page + PAGE :]
            outcome(tmp_path / "objects.db", data, truth)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param("DELETE FROM log WHERE revision = 12", id="a record of the log is missing"),
        pytest.param("DELETE FROM log WHERE revision = 24", id="the last record of the log is missing"),
        pytest.param("DELETE FROM log", id="the whole log is missing"),
        pytest.param("DELETE FROM current WHERE id = 2", id="an object is missing"),
        pytest.param("UPDATE log SET revision = 100 WHERE revision = 12", id="a record is out of order"),
        pytest.param(
            "INSERT INTO log SELECT 25, key, op, created, value, sum, chain, total FROM log WHERE revision = 24",
            id="a record is there twice",
        ),
        pytest.param(
            "INSERT OR REPLACE INTO current SELECT id, l.key, l.revision, l.op, l.created, l.value, l.sum"
            " FROM log l JOIN current c ON c.key = l.key WHERE l.revision = 13",
            id="an object is an older one",
        ),
        pytest.param("UPDATE base SET revision = 7", id="where the log begins is another place"),
        pytest.param("DELETE FROM base", id="where the log begins is not known"),
    ],
)
def test_rows_that_are_whole_but_not_those_that_were_written_are_noticed(whole, harm, tmp_path):
    path = tmp_path / "objects.db"
    path.write_bytes(whole)
    with closing(SqliteLog(path, reserve=0)) as log:
        log.open()
        log._db.execute(harm)
    with pytest.raises(HostError, match="restore a backup"):
        served(path)
