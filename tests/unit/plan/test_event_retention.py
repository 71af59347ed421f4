"""Events are kept by age and number, the latest ones longest."""

from datetime import UTC, datetime, timedelta

import pytest

from paceline.model.retention import EventPolicy
from paceline.plan.event_retention import KnownEvent, known, sift

NOW = datetime(2030, 1, 8, tzinfo=UTC)


def event(**fields):
    metadata = {"namespace": "n", "name": "e", "uid": "u", "resourceVersion": "7"}
    return {"metadata": {**metadata, "creationTimestamp": "2030-01-01T00:00:00Z"}, **fields}


def seen(**age):
    moment = NOW - timedelta(**age)
    return KnownEvent(namespace="n", name=str(age), uid="u", revision="7", seen=moment)


SEEN = {
    "a repetition counts": ({"firstTimestamp": "2030-01-01T00:00:00Z", "lastTimestamp": "2030-01-05T00:00:00Z"}, 5),
    "so does a series": (
        {"eventTime": "2030-01-01T00:00:00.5Z", "series": {"lastObservedTime": "2030-01-06T00:00:00Z"}},
        6,
    ),
    "without a time, its creation": ({}, 1),
    "a time of the future is not believed": ({"lastTimestamp": "2099-01-05T00:00:00Z"}, 1),
    "nor is one that cannot be read": ({"lastTimestamp": "yesterday"}, 1),
}


@pytest.mark.parametrize(("fields", "day"), SEEN.values(), ids=SEEN)
def test_when_an_event_was_last_seen(fields, day):
    assert known(event(**fields), NOW).seen == datetime(2030, 1, day, tzinfo=UTC)


def test_events_that_were_not_seen_for_long_go():
    old, young = seen(days=8), seen(days=6)

    assert sift((young, old), EventPolicy(), NOW) == ([young], [old])


def test_of_too_many_the_oldest_go():
    events = [seen(hours=hours) for hours in (3, 1, 2)]

    retained, expired = sift(events, EventPolicy(events=2), NOW)

    assert retained == [seen(hours=2), seen(hours=1)]
    assert expired == [seen(hours=3)]


def test_both_limits_hold():
    events = [seen(days=9), seen(days=8), seen(hours=2), seen(hours=1)]

    assert sift(events, EventPolicy(events=3), NOW) == (events[2:], events[:2])
    assert sift(events, EventPolicy(events=1), NOW) == (events[3:], events[:3])
    assert sift(events, EventPolicy(age=timedelta.max, events=0), NOW) == ([], events)
    assert sift((), EventPolicy(), NOW) == ([], [])
