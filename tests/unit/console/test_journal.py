"""A tab that names its last revision gets exactly the changes since then, or is told to begin again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.console.subscriptions import journal as journals
from paceline.console.subscriptions.journal import Journal


def put(journal, uid, revision):
    journal.put(uid, str(revision), json.dumps([uid, revision]).encode())


def catch_up(journal, items, number, limit=1000):
    """Apply changes as a tab does; return the number that the tab has then."""
    while True:
        delta = journal.delta(number, limit)
        items.update(dict(map(json.loads, delta.values)))
        for uid in delta.deleted:
            items.pop(uid, None)
        number = delta.number
        if not delta.has_more:
            return number


steps = st.lists(st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from("abcdef")), max_size=30)


@given(steps, steps, st.integers(1, 4))
def test_a_tab_that_comes_back_at_any_time_has_what_the_journal_has(missed_steps, later_steps, limit):
    journal, current, tab = Journal(1), {}, {}
    place, token = 0, ""
    for part in (missed_steps, later_steps):
        for revision, (step, uid) in enumerate(part, start=journal.number):
            if step == "put":
                put(journal, uid, revision)
                current[uid] = revision
            else:
                journal.drop(uid)
                current.pop(uid, None)
        place = catch_up(journal, tab, journal.number_of(token) if token else 0, limit)
        token = journal.token(place)

    assert tab == current


def test_the_same_revision_again_is_no_change():
    journal = Journal(1)
    put(journal, "a", 5)
    place = catch_up(journal, {}, 0)
    put(journal, "a", 5)

    assert journal.delta(place, 10).values == ()


def test_another_journal_does_not_know_the_place():
    one, other = Journal(1), Journal(2)
    for journal in (one, other):
        put(journal, "a", 5)

    assert one.number_of(one.token(1)) == 1
    assert other.number_of(one.token(1)) is None


@pytest.mark.parametrize(
    "token", ["", "5", "5.", "x.0000011", "5.00000", "5.000001x", "5.0000019", "5.000001" + "9" * 50]
)
def test_a_place_that_cannot_be_is_not_known(token):
    journal = Journal(1)
    put(journal, "a", 5)

    assert journal.number_of(token) in (None, 1)
    assert journal.number_of(token) is None or token == "x.0000011"


def test_deletions_that_are_forgotten_make_a_tab_begin_again(monkeypatch):
    monkeypatch.setattr(journals, "MAX_DELETIONS", 2)
    journal = Journal(1)
    for uid in "abcde":
        put(journal, uid, 1)
    early = journal.token(journal.number)
    journal.drop("a")
    late = journal.token(journal.number)
    for uid in "bcd":
        journal.drop(uid)

    assert journal.number_of(early) is None
    assert journal.number_of(late) is None
    assert journal.number_of(journal.token(journal.number)) == journal.number


def test_the_whole_part_of_a_revision_is_the_highest_resource_version():
    journal = Journal(7)
    for revision in (9, 10, 8):
        put(journal, f"uid-{revision}", revision)

    assert int(float(journal.token(3))) == 10


def test_the_size_is_that_of_what_is_there():
    journal = Journal(1)
    put(journal, "a", 1)
    put(journal, "b", 1)
    put(journal, "a", 22)
    journal.drop("b")

    assert journal.size == len(json.dumps(["a", 22]))
