"""Ages and durations in kubectl's words."""

from datetime import UTC, datetime, timedelta

import pytest

from paceline.cli.output.table import age, seconds_of, short, stopwatch

AGES = {
    0: "0s",
    1: "1s",
    119: "119s",
    120: "2m",
    200: "3m20s",
    599: "9m59s",
    600: "10m",
    3 * 3600 - 1: "179m",
    3 * 3600: "3h",
    3 * 3600 + 300: "3h5m",
    8 * 3600: "8h",
    47 * 3600: "47h",
    48 * 3600: "2d",
    50 * 3600: "2d2h",
    8 * 86400: "8d",
    729 * 86400: "729d",
    730 * 86400: "2y",
    800 * 86400: "2y70d",
    -5: "0s",
}


@pytest.mark.parametrize(("seconds", "words"), AGES.items())
def test_a_duration_in_short(seconds, words):
    assert short(timedelta(seconds=seconds)) == words


def test_an_age_that_nobody_knows():
    assert age(None, datetime(2030, 1, 1, tzinfo=UTC)) == "<unknown>"


@pytest.mark.parametrize(("seconds", "shown"), [(7.9, "0:07"), (750, "12:30"), (3723, "1:02:03"), (-1, "0:00")])
def test_a_running_clock(seconds, shown):
    assert stopwatch(seconds) == shown


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("0s", 0)])
def test_a_duration_is_read(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5x", "-5s", "1h30", "5 m"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match=text or "^$"):
        seconds_of(text)
