"""The feed: history, fan-out, and readers that are slow, early, late or gone."""

import asyncio
import sys

import pytest

from paceline.errors import Expired
from paceline.store.backend import Op, Record, StoreLimits
from paceline.store.watch_hub import Ahead, WatchHub


def record(revision, key="a/1", size=10):
    return Record(revision=revision, key=key, op=Op.REPLACE, value=b"x" * size, created=1)


def feed_of(*records, **limits):
    feed = WatchHub(StoreLimits(**limits))
    feed.publish(records)
    return feed


async def revisions(watch, count):
    async with asyncio.timeout(30):
        return [(await anext(watch)).revision for _ in range(count)]


async def test_a_reader_gets_what_was_kept_and_then_what_comes():
    feed = feed_of(record(1), record(2, "b/1"), record(3))
    with feed.watch("a/", 0) as watch:
        feed.publish([record(4), record(5, "b/1"), record(6)])
        assert await revisions(watch, 4) == [1, 3, 4, 6]


async def test_a_reader_that_waits_is_woken():
    feed = feed_of()
    with feed.watch("", 0) as watch:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(revisions(watch, 2))
            await asyncio.sleep(0)
            feed.publish([record(1)])
            await asyncio.sleep(0)
            feed.publish([record(2)])
        assert reading.result() == [1, 2]


async def test_a_cancelled_wait_loses_nothing():
    feed = feed_of()
    with feed.watch("", 0) as watch:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(revisions(watch, 1))
            await asyncio.sleep(0)
            feed.publish([record(1)])
            waiting.cancel()
        assert waiting.cancelled()
        assert await revisions(watch, 1) == [1]


async def test_a_reader_may_take_all_that_waits_at_once():
    feed = feed_of(record(1), record(2))
    with feed.watch("", 0) as watch:
        assert [one.revision for one in await watch.take()] == [1, 2]
        feed.publish([record(3)])
        assert [one.revision for one in await watch.take()] == [3]
    assert await watch.take() == ()


async def test_a_reader_that_does_not_read_is_cut_and_others_are_not():
    feed = feed_of(history=4)
    slow, quick = feed.watch("a/", 0), feed.watch("a/", 0)
    elsewhere = feed.watch("b/", 0)
    for number in range(1, 10):
        feed.publish([record(number)])
        assert await revisions(quick, 1) == [number]
    with pytest.raises(Expired, match="changes after revision 0 are no longer kept"):
        await anext(slow)
    with pytest.raises(Expired):
        await slow.take()
    assert slow.position == 0
    feed.publish([record(10, "b/1"), record(11, "a/1")])
    assert await revisions(elsewhere, 1) == [10]
    assert await revisions(quick, 1) == [11]


async def test_a_reader_that_waits_when_it_is_cut_is_told():
    feed = feed_of(history=2)
    with feed.watch("", 0) as watch:
        feed.publish([record(1), record(2), record(3)])
        with pytest.raises(Expired):
            await revisions(watch, 1)


async def test_a_slow_reader_is_cut_before_it_holds_more_than_the_history():
    feed = feed_of(history=8)
    held = feed.watch("", 0)
    for number in range(1, 50):
        feed.publish([record(number)])
        assert len(held._unread) <= 8
    assert feed._watches == {}
    assert feed._behind == {}


async def test_a_reader_who_reads_half_is_cut_where_it_stands():
    feed = feed_of(history=4)
    watch = feed.watch("", 0)
    feed.publish([record(1), record(2), record(3)])
    assert await revisions(watch, 2) == [1, 2]
    feed.publish([record(4), record(5), record(6)])
    assert await revisions(watch, 1) == [3]
    feed.publish([record(7), record(8)])
    with pytest.raises(Expired, match="changes after revision 3 are"):
        await anext(watch)
    assert watch.position == 3


async def test_a_reader_of_a_quiet_prefix_is_never_cut():
    feed = feed_of(history=3)
    with feed.watch("quiet/", 0) as watch:
        feed.publish([record(number) for number in range(1, 20)])
        feed.publish([record(20, "quiet/1")])
        assert await revisions(watch, 1) == [20]


def test_history_is_bounded_by_revisions():
    feed = feed_of(*(record(number) for number in range(1, 8)), history=3)
    with pytest.raises(Expired, match=r"too old resource version: 3 \(4\)"):
        feed.watch("", 3)
    feed.watch("", 4).close()


def test_history_is_bounded_by_bytes():
    feed = feed_of(*(record(number, size=100) for number in range(1, 8)), history_bytes=250)
    assert feed.floor == 5
    assert feed.dropped == 500


def test_a_revision_yet_to_come_is_refused():
    feed = feed_of(record(1))
    with pytest.raises(Ahead):
        feed.watch("", 2)


async def test_the_position_is_never_ahead_of_what_was_given():
    feed = feed_of(record(1), record(2, "b/1"), record(3))
    watch = feed.watch("a/", 0)
    assert watch.position == 0
    assert await revisions(watch, 1) == [1]
    assert watch.position == 2
    assert await revisions(watch, 1) == [3]
    feed.publish([record(4, "b/1")])
    assert watch.position == 4
    feed.publish([record(5)])
    assert watch.position == 4
    watch.close()
    assert watch.position == 4


async def test_closing_ends_the_reading():
    feed = feed_of(record(1))
    watch = feed.watch("", 0)
    watch.close()
    watch.close()
    feed.publish([record(2)])
    assert [one async for one in watch] == []


async def test_a_reader_that_leaves_does_not_take_others_along():
    feed = feed_of()
    one, two, three = feed.watch("a/", 0), feed.watch("a/", 0), feed.watch("", 0)
    one.close()
    feed.publish([record(1)])
    assert await revisions(two, 1) == [1]
    two.close()
    feed.publish([record(2)])
    assert await revisions(three, 2) == [1, 2]


async def test_closing_the_feed_ends_every_watch():
    feed = feed_of(record(1))
    watches = [feed.watch("", 0), feed.watch("", 1), feed.watch("a/", 1)]
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(watches[2].take())
        await asyncio.sleep(0)
        feed.close()
    assert waiting.result() == ()
    assert [[one async for one in watch] for watch in watches] == [[], [], []]


@pytest.mark.parametrize("prefixes", [1, 400])
def test_a_record_costs_its_readers_only(prefixes):
    """Counted in calls, which are the same on every machine."""
    feed = feed_of()
    for number in range(prefixes):
        feed.watch(f"elsewhere/{number:04}/", 0)
    feed.watch("a/", 0)
    calls = 0

    def count(_frame, event, _arg):
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        feed.publish([record(1)])
    finally:
        sys.setprofile(before)
    assert calls < 25


def test_history_is_bounded_by_age():
    feed = feed_of(record(1), record(2), history_seconds=100)
    feed.age(1000)
    feed.publish([record(3)])
    feed.age(1050)
    feed.publish([record(4)])
    assert feed.floor == 0

    feed.age(1100)

    assert feed.floor == 2
    with pytest.raises(Expired, match=r"too old resource version: 1 \(2\)"):
        feed.watch("", 1)
    assert feed.watch("", 2).oldest == 3
    feed.age(1151)
    assert feed.floor == 3
    feed.age(5000)
    assert feed.floor == feed.revision == 4
    assert feed.watch("", 4).position == 4


def test_a_feed_remembers_few_moments():
    feed = feed_of(history_seconds=100)
    for now in range(1000):
        feed.age(now)
    assert len(feed._moments) <= 5


async def test_a_reader_that_has_yet_to_read_what_is_too_old_is_told_so():
    feed = feed_of(history_seconds=100)
    with feed.watch("", 0) as watch, feed.watch("", 0) as quick:
        feed.publish([record(1)])
        assert len(await quick.take()) == 1
        feed.age(0)
        feed.age(100)
        with pytest.raises(Expired, match="too slow"):
            await anext(watch)
        feed.publish([record(2)])
        assert [one.revision for one in await quick.take()] == [2]


async def test_a_nudged_reader_looks_and_finds_nothing():
    feed = feed_of()
    with feed.watch("", 0) as watch:
        async with asyncio.TaskGroup() as group:
            taking = group.create_task(watch.take())
            await asyncio.sleep(0)
            watch.nudge()
        assert taking.result() == ()
        assert not watch.is_over
