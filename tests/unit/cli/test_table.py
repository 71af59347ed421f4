"""Columns line up, also with wide characters, and fit the terminal when there is one."""

import pytest

from paceline.cli.output.table import columns, cut, pairs, table


def test_columns_are_aligned_and_lines_have_no_blanks_at_the_end():
    assert table(("NAME", "AGE"), [("digits", "5s"), ("a", "")]) == ["NAME     AGE", "digits   5s", "a"]


def test_wide_characters_take_two_columns():
    assert columns("训练") == 4
    assert table(("N", "X"), [("训练", "1"), ("abcd", "2")]) == ["N      X", "训练   1", "abcd   2"]


def test_only_the_last_column_is_cut():
    lines = table(("NAME", "REASON"), [("digits", "no room for two pods on this machine")], width=30)

    assert lines[1] == "digits   no room for two pods…"
    assert columns(lines[1]) == 30


def test_a_narrow_terminal_still_shows_something():
    assert table(("NAME", "REASON"), [("a" * 50, "because of it all")], width=20)[1].endswith("   because o…")


@pytest.mark.parametrize(
    ("text", "width", "shown"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("训练完", 4, "训…"), ("", 0, "")]
)
def test_cut(text, width, shown):
    assert cut(text, width) == shown


def test_pairs_leave_out_what_is_empty():
    assert pairs([("Name", "digits"), ("Labels", ""), ("Phase", "Running")]) == ["Name:  digits", "Phase: Running"]
