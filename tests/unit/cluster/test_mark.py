"""A store that has lost what was acknowledged is refused; a mark that lags behind harms nobody."""

from dataclasses import replace

import pytest

from paceline.errors import HostError
from paceline.store.backend import Op, Record
from paceline.store.high_water_mark import MarkedLog, read_mark


def record(revision):
    return Record(revision=revision, key=f"key-{revision}", op=Op.CREATE, value=b"value", created=revision)


@pytest.fixture
def marked(tmp_path):
    """Opens the log of one folder, as a process does that has just been started."""

    def make():
        store = tmp_path / "objects.db"
        return MarkedLog(store, mark=tmp_path / "revision")

    return make


def write(log, *revisions):
    log.open()
    for revision in revisions:
        log.append((record(revision),))
    log.close()


def test_a_log_that_is_as_far_as_its_mark_opens(marked):
    write(marked(), 1, 2, 3)
    log = marked()
    assert log.open() == 3
    assert [each.revision for each in log.current()] == [1, 2, 3]
    log.close()


def test_a_log_behind_its_mark_is_refused_and_says_how_far_it_is(marked, tmp_path):
    write(marked(), 1, 2)
    older = (tmp_path / "objects.db").read_bytes()
    write(marked(), 3)
    (tmp_path / "objects.db").write_bytes(older)

    with pytest.raises(HostError, match="ends at revision 2, but 3 was acknowledged") as refused:
        marked().open()
    assert "`paceline up --discard-damaged-state` goes on without what is lost" in str(refused.value)


def test_a_log_that_is_gone_is_not_made_anew(marked, tmp_path):
    write(marked(), 1)
    (tmp_path / "objects.db").unlink()

    with pytest.raises(HostError, match="is gone"):
        marked().open()
    assert not (tmp_path / "objects.db").exists()


@pytest.mark.parametrize("harm", [b"", b"\0" * 20, b"00000000000000000001\n", b"not a number"])
def test_a_mark_that_lags_behind_or_is_damaged_is_set_right(marked, tmp_path, harm):
    write(marked(), 1, 2)
    (tmp_path / "revision").write_bytes(harm)

    log = marked()
    assert log.open() == 2
    log.close()
    assert read_mark(tmp_path / "revision").revision == 2


def test_a_removed_mark_means_that_the_loss_is_accepted(marked, tmp_path):
    write(marked(), 1, 2)
    older = (tmp_path / "objects.db").read_bytes()
    write(marked(), 3)
    (tmp_path / "objects.db").write_bytes(older)
    (tmp_path / "revision").unlink()

    log = marked()
    assert log.open() == 2
    log.close()


def test_a_file_with_another_history_is_refused_however_far_it_is(marked, tmp_path):
    write(marked(), 1, 2)
    mark = (tmp_path / "revision").read_bytes()
    for path in tmp_path.iterdir():
        path.unlink()
    log = marked()
    log.open()
    log.append(tuple(replace(record(revision), value=b"other") for revision in (1, 2, 3)))
    log.close()
    (tmp_path / "revision").write_bytes(mark)

    with pytest.raises(HostError, match="up to revision 2 it is not what was acknowledged"):
        marked().open()


def test_a_mark_of_an_earlier_version_is_understood(marked, tmp_path):
    write(marked(), 1, 2)
    (tmp_path / "revision").write_bytes(b"00000000000000000003\n")

    with pytest.raises(HostError, match="ends at revision 2, but 3 was acknowledged"):
        marked().open()
