"""Several logs as one, in the order of time."""

from datetime import UTC, datetime

from paceline.model.gang import ReplicaId
from paceline.sdk.follow import Logged
from paceline.sdk.logs.merge import in_time_order, within
from paceline.sdk.logs.sources import LogOptions

FIRST, SECOND = ReplicaId("worker", 0), ReplicaId("ps", 0)


def log(place, *chunks):
    return iter([Logged(place=place, pod=str(place), text=chunk) for chunk in chunks])


def shown(*streams, keeps_stamps=False):
    return [
        f"{piece.place}: {line}"
        for piece in in_time_order(streams, keeps_stamps=keeps_stamps)
        for line in piece.text.decode().splitlines()
    ]


def test_d05_lines_of_all_members_are_in_the_order_of_time_each_with_its_source():
    one = log(FIRST, b"2030-01-01T00:00:01.5Z a\n2030-01-01T00:00:03Z c\n", b"2030-01-01T00:00:09Z e\n")
    two = log(SECOND, b"2030-01-01T00:00:02.000000001Z b\n2030-01-01T00:00:03.1Z d\n")

    assert shown(one, two) == ["worker-0: a", "ps-0: b", "worker-0: c", "ps-0: d", "worker-0: e"]


def test_fractions_and_zones_of_several_nodes_compare_as_times_do():
    one = log(FIRST, b"2030-01-01T00:00:01.49Z a\n2030-01-01T00:00:02Z c\n")
    two = log(SECOND, b"2030-01-01T08:00:01.5+08:00 b\n2030-01-01T08:00:02.000+08:00 d\n")

    assert shown(one, two, keeps_stamps=True) == [
        "worker-0: 2030-01-01T00:00:01.49Z a",
        "ps-0: 2030-01-01T08:00:01.5+08:00 b",
        "worker-0: 2030-01-01T00:00:02Z c",
        "ps-0: 2030-01-01T08:00:02.000+08:00 d",
    ]


def test_empty_lines_stay_and_a_piece_without_a_stamp_follows_its_beginning():
    one = log(FIRST, b"2030-01-01T00:00:01Z \n2030-01-01T00:00:02Z long", b" end\n")
    two = log(SECOND, b"2030-01-01T00:00:05Z last\n")

    assert shown(one, two) == ["worker-0: ", "worker-0: long", "worker-0:  end", "ps-0: last"]


LINES = b"2030-01-01T00:00:01Z a\n2030-01-01T00:00:02Z b\n2030-01-01T00:00:02.5Z c\n2030-01-01T00:00:03Z d\n"


def ask(second, **more):
    return LogOptions(is_followed=False, until=datetime(2030, 1, 1, 0, 0, second, tzinfo=UTC), **more)


def test_s43_nothing_is_shown_that_is_newer_than_until():
    assert b"".join(within([LINES], ask(2))) == b"a\nb\n"
    assert b"".join(within([LINES], ask(3))) == b"a\nb\nc\nd\n"
    assert b"".join(within([LINES], ask(2, has_timestamps=True))).startswith(b"2030-01-01T00:00:01Z a\n")


def test_a_progress_bar_and_a_piece_of_a_line_have_the_time_of_their_beginning():
    bars = [b"2030-01-01T00:00:01Z 1%\r2%\n2030-01-01T00:00:09Z 3%\r4%", b" and on\n"]

    assert b"".join(within(bars, ask(2))) == b"1%\r2%\n"


def test_a_time_that_was_copied_from_a_line_means_that_line_too():
    asked = LogOptions(is_followed=False, until=datetime(2030, 1, 1, 0, 0, 1, 43570, tzinfo=UTC))

    assert b"".join(within([b"2030-01-01T00:00:01.043570003Z a\n"], asked)) == b"a\n"


def test_s44_the_last_lines_are_counted_within_the_times():
    wanted = ask(2, tail=1)

    assert "tailLines" not in wanted.query()
    assert b"".join(within([LINES], wanted)) == b"b\n"
    assert LogOptions(is_followed=False, tail=1).query() == {"tailLines": "1"}
