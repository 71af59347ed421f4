"""Log lines come whole, in order and once, wherever the stream is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.presentation.log_lines import MAX_HELD, LogLines, whole_lines

T0 = b"2030-01-01T12:00:00.000000001Z "
T1 = b"2030-01-01T12:00:00.5Z "
T2 = b"2030-01-01T12:00:00.51Z "


def test_stamps_are_taken_off_and_kept_on_demand():
    assert LogLines().feed(T0 + b"a\n" + T1 + b"b\n") == b"a\nb\n"
    assert LogLines(keeps_stamps=True).feed(T0 + b"a\n") == T0 + b"a\n"


def test_half_a_line_waits_for_its_other_half():
    lines = LogLines()

    assert lines.feed(T0 + b"ab") == b""
    assert lines.feed(b"c\n" + T1 + b"d") == b"abc\n"
    assert lines.end() == b"d"


def test_only_the_stamp_at_the_start_of_a_line_goes():
    assert LogLines().feed(T0 + b"at " + T1 + b"x\n") == b"at " + T1 + b"x\n"


def test_a_carriage_return_does_not_end_a_line():
    assert LogLines().feed(T0 + b"10%\r20%\r\n" + T1 + b"b\n") == b"10%\r20%\r\nb\n"


def test_a_server_that_sends_no_stamps_is_passed_on():
    lines = LogLines()

    assert lines.feed(b"a\nb\n") == b"a\nb\n"
    assert lines.since == ""


def test_after_a_break_nothing_comes_twice():
    lines = LogLines()
    lines.feed(T0 + b"a\n" + T1 + b"b\n" + T1 + b"c\n")
    lines.resume()

    assert lines.since == T1.decode().strip()
    assert lines.feed(T0 + b"a\n" + T1 + b"b\n" + T1 + b"c\n" + T1 + b"d\n" + T2 + b"e\n") == b"d\ne\n"


def test_lines_of_one_moment_are_counted_over_several_chunks():
    lines = LogLines()
    for text in (b"a", b"b"):
        lines.feed(T1 + text + b"\n")
    lines.resume()

    assert lines.feed(T1 + b"a\n") == b""
    assert lines.feed(T1 + b"b\n" + T1 + b"c\n") == b"c\n"


def test_a_line_without_end_is_passed_on_in_pieces():
    lines = LogLines()
    long = b"x" * (MAX_HELD + 1)

    assert lines.feed(T0 + long) == long
    assert lines.feed(b"y\n") == b"y\n"


STAMPS = (T0, T1, T2, b"2030-01-01T12:00:01Z ")


@given(
    st.lists(
        st.tuples(st.sampled_from(range(4)), st.binary(max_size=5).filter(lambda text: b"\n" not in text)), max_size=12
    ),
    st.lists(st.integers(0, 400), max_size=4),
    st.integers(1, 40),
)
def test_a_log_that_is_cut_anywhere_arrives_whole_and_once(entries, cuts, size):
    log = b"".join(STAMPS[moment] + text + b"\n" for moment, text in sorted(entries, key=lambda entry: entry[0]))
    plain = b"".join(text + b"\n" for _, text in sorted(entries, key=lambda entry: entry[0]))
    lines, got = LogLines(), b""
    for cut in (*sorted(cuts), len(log)):
        # The server starts again at the second of the last line: in this log, that is its beginning.
        lines.resume()
        sent = log[:cut]
        got += b"".join(lines.feed(sent[i : i + size]) for i in range(0, len(sent), size))

    assert got + lines.end() == plain


def test_a_reader_that_knows_the_last_stamp_goes_on_after_it():
    lines = LogLines(keeps_stamps=True)
    lines.start_after(T1.decode().strip(), 2)

    assert lines.feed(T0 + b"a\n" + T1 + b"b\n" + T1 + b"c\n" + T1 + b"d\n") == T1 + b"d\n"


def test_a_progress_bar_is_seen_before_its_line_ends():
    lines = LogLines(keeps_stamps=True)
    lines.feed(T0 + b"a\n" + T1 + b"10%\r")

    assert lines.peek() == T1 + b"10%\r"
    assert lines.feed(b"20%\r") == b""
    assert lines.peek() == b"20%\r"
    assert lines.peek() == b""
    assert lines.feed(b"30%\n" + T2 + b"b\n") == b"30%\n" + T2 + b"b\n"


def test_half_a_line_that_was_seen_goes_on_after_a_break():
    lines = LogLines(keeps_stamps=True)
    lines.feed(T0 + b"a\n" + T1 + b"10%\r")
    lines.peek()
    lines.resume()

    assert lines.feed(T0 + b"a\n" + T1 + b"10%\r20%\r\n") == b"20%\r\n"


def test_half_a_line_that_is_gone_after_a_break_is_ended():
    lines = LogLines(keeps_stamps=True)
    lines.feed(T0 + b"a\n" + T1 + b"10%\r")
    lines.peek()
    lines.resume()

    assert lines.feed(T2 + b"c\n") == b"\n" + T2 + b"c\n"


def test_half_a_stamp_is_not_seen():
    lines = LogLines(keeps_stamps=True)
    lines.feed(T0[:20])

    assert lines.peek() == b""


@pytest.mark.parametrize("size", [1, 3, 100])
def test_whole_lines_are_cut_at_line_breaks(size):
    text = b"one\ntwo\nthree"
    pieces = list(whole_lines(text[i : i + size] for i in range(0, len(text), size)))

    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
