"""Group commit: what is grouped, what is seen when, and what is said when the disk fails."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from paceline.errors import AlreadyExists, HostError, NotFound, ServiceUnavailable
from paceline.store.backend import DEFAULTS, StoreLimits
from paceline.store.store import Store
from paceline.testing.contract.store import read, running, says
from paceline.testing.sim.backend import DiskFault, SimLog
from paceline.testing.sim.effects import SimBlocking


@pytest.fixture
def log():
    return SimLog()


@asynccontextmanager
async def store_on(log, blocking=None, limits=DEFAULTS):
    async with running(log, blocking or SimBlocking(), limits) as store:
        yield store


async def outcomes(*writes):
    async with asyncio.timeout(30):
        return await asyncio.gather(*writes, return_exceptions=True)


class TestGrouping:
    async def test_many_writers_share_few_commits(self, log, gate):
        async with store_on(log, gate) as store:
            first = asyncio.ensure_future(store.create("first", says("x")))
            gate.opened.clear()
            await gate.arrivals(2)
            rest = [asyncio.ensure_future(store.create(f"a/{number}", says("x"))) for number in range(64)]
            await asyncio.sleep(0)
            gate.opened.set()
            made = await asyncio.gather(first, *rest)
        assert log.batches == [1, 64]
        assert [one.revision for one in made] == list(range(1, 66))

    async def test_writers_that_go_on_share_the_next_commit_with_those_who_waited(self, log, gate):
        async def write_twice(store, name):
            await store.create(f"{name}/1", says("x"))
            await store.create(f"{name}/2", says("x"))

        async with store_on(log, gate) as store:
            gate.opened.clear()
            writers = [asyncio.ensure_future(write_twice(store, name)) for name in range(20)]
            await gate.arrivals(2)
            late = asyncio.ensure_future(store.create("late", says("x")))
            await asyncio.sleep(0)
            gate.opened.set()
            await asyncio.gather(late, *writers)
        assert log.batches == [20, 21]

    async def test_a_batch_has_a_largest_count(self, log):
        async with store_on(log, limits=StoreLimits(batch=10)) as store:
            await asyncio.gather(*(store.create(f"a/{number}", says("x")) for number in range(25)))
        assert log.batches == [10, 10, 5]

    async def test_a_batch_has_a_largest_size(self, log):
        async with store_on(log, limits=StoreLimits(batch_bytes=1000)) as store:
            await asyncio.gather(*(store.create(f"a/{number}", lambda _: bytes(400)) for number in range(7)))
        assert log.batches == [3, 3, 1]

    async def test_a_batch_that_is_refused_whole_costs_no_commit(self, log):
        async with store_on(log) as store:
            await store.create("a", says("x"))
            told = await outcomes(*(store.create("a", says("y")) for _ in range(5)))
        assert {type(one) for one in told} == {AlreadyExists}
        assert log.batches == [1]

    async def test_nothing_is_seen_before_it_is_durable(self, log, gate):
        async with store_on(log, gate) as store:
            gate.opened.clear()
            with store.watch("", 0) as watch:
                write = asyncio.ensure_future(store.create("a", says("x")))
                await gate.arrivals(2)
                assert (store.revision, store.get("a"), store.list(""), watch.oldest) == (0, None, (), None)
                gate.opened.set()
                made = await write
                assert (store.revision, store.get("a"), watch.oldest) == (1, made, 1)

    async def test_writes_past_the_bound_are_turned_away(self, log, gate):
        async with store_on(log, gate, StoreLimits(waiting=3)) as store:
            gate.opened.clear()
            flying = asyncio.ensure_future(store.create("flying", says("x")))
            await gate.arrivals(2)
            waiting = [asyncio.ensure_future(store.create(f"a/{number}", says("x"))) for number in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(ServiceUnavailable, match="3 writes are waiting for the disk"):
                await store.create("one-too-many", says("x"))
            gate.opened.set()
            await asyncio.gather(flying, *waiting)
            assert (await store.create("later", says("x"))).revision == 5


class TestLeaving:
    async def test_a_write_nobody_waits_for_is_not_made(self, log, gate):
        async with store_on(log, gate) as store:
            gate.opened.clear()
            flying = asyncio.ensure_future(store.create("flying", says("x")))
            await gate.arrivals(2)
            left = asyncio.ensure_future(store.create("left", says("x")))
            stayed = asyncio.ensure_future(store.create("stayed", says("x")))
            await asyncio.sleep(0)
            left.cancel()
            gate.opened.set()
            await asyncio.gather(flying, stayed)
            assert [found.key for found in store.list("")] == ["flying", "stayed"]

    async def test_a_write_under_way_is_finished_without_its_writer(self, log, gate):
        async with store_on(log, gate) as store:
            gate.opened.clear()
            write = asyncio.ensure_future(store.create("a", says("x")))
            await gate.arrivals(2)
            write.cancel()
            with suppress(asyncio.CancelledError):
                await write
            gate.opened.set()
            assert (await store.create("b", says("x"))).revision == 2
            assert store.get("a") is not None

    async def test_stopping_answers_everyone(self, log, gate):
        store = Store(log, gate)
        await store.open()
        running_writer = asyncio.ensure_future(store.run())
        gate.opened.clear()
        flying = asyncio.ensure_future(store.create("flying", says("x")))
        await gate.arrivals(2)
        waiting = asyncio.ensure_future(store.create("waiting", says("x")))
        await asyncio.sleep(0)
        running_writer.cancel()
        told = await outcomes(flying, waiting, running_writer)
        assert [type(one) for one in told] == [ServiceUnavailable, ServiceUnavailable, asyncio.CancelledError]
        assert "may or may not have been stored" in str(told[0])
        assert "not known" not in str(told[1])
        with pytest.raises(ServiceUnavailable, match="the store has stopped"):
            await store.create("late", says("x"))
        gate.opened.set()
        await store.close()

    async def test_closing_a_store_that_never_ran_answers_everyone(self, log):
        store = Store(log, SimBlocking())
        await store.open()
        waiting = asyncio.ensure_future(store.create("a", says("x")))
        await asyncio.sleep(0)
        await store.close()
        assert isinstance((await outcomes(waiting))[0], ServiceUnavailable)

    async def test_closing_ends_the_watches(self, log):
        async with store_on(log) as store:
            watch = store.watch("", 0)
        assert [one async for one in watch] == []

    async def test_a_bug_in_a_writer_ends_the_store_and_leaves_nobody_waiting(self, log):
        store = Store(log, SimBlocking())
        await store.open()
        writes = [
            asyncio.ensure_future(store.create("a", says("x"))),
            asyncio.ensure_future(store.create("b", lambda revision: bytes(1 // (revision - 2)))),
            asyncio.ensure_future(store.create("c", says("x"))),
        ]
        with pytest.raises(ZeroDivisionError):
            await store.run()
        assert {type(one) for one in await outcomes(*writes)} == {ServiceUnavailable}
        await store.close()
        assert log.batches == []

    async def test_a_store_that_cannot_be_loaded_lets_go_of_its_log(self, log):
        log.fail("since", DiskFault.FULL)
        with pytest.raises(ServiceUnavailable):
            await Store(log, SimBlocking()).open()
        async with store_on(log) as store:
            assert store.revision == 0


class TestFullDisk:
    async def test_writers_are_told_readers_go_on_and_room_helps(self, log):
        async with store_on(log) as store:
            made = await store.create("a", says("x"))
            with store.watch("", 1) as watch:
                log.fail("append", DiskFault.FULL)
                told = await outcomes(store.create("b", says("x")), store.replace("a", says("y"), expected=1))
                assert [(type(one), str(one)) for one in told] == [
                    (ServiceUnavailable, "the simulated disk is full")
                ] * 2
                assert told[0] is not told[1]
                assert store.list("") == (made,)
                assert (await store.create("c", says("x"))).revision == 2
                assert [one.key for one in await read(watch, 1)] == ["c"]

    async def test_a_refusal_that_rests_on_a_lost_write_is_not_given(self, log):
        async with store_on(log) as store:
            await store.create("taken", says("x"))
            log.fail("append", DiskFault.FULL)
            told = await outcomes(
                store.create("a", says("one")), store.create("a", says("two")), store.create("taken", says("three"))
            )
            assert [type(one) for one in told] == [ServiceUnavailable, ServiceUnavailable, AlreadyExists]


class TestAmbiguousCommit:
    async def test_a_write_that_is_durable_after_all_is_acknowledged(self, log):
        async with store_on(log) as store:
            log.fail("append", DiskFault.LOST_REPLY)
            with store.watch("", 0) as watch:
                made, refused = await outcomes(store.create("a", says("x")), store.create("a", says("y")))
                assert made == store.get("a")
                assert isinstance(refused, AlreadyExists)
                assert (await store.create("b", says("x"))).revision == 2
                assert [one.revision for one in await read(watch, 2)] == [1, 2]

    async def test_what_cannot_be_found_out_now_is_found_out_before_the_next_write(self, log):
        async with store_on(log) as store:
            log.fail("append", DiskFault.LOST_REPLY)
            log.fail("since", DiskFault.FULL, DiskFault.FULL)
            with store.watch("", 0) as watch:
                with pytest.raises(
                    ServiceUnavailable, match="answer was lost; this write may or may not have been stored"
                ):
                    await store.create("a", says("x"))
                assert store.get("a") is None
                with pytest.raises(ServiceUnavailable, match=r"^the simulated disk is full$"):
                    await store.create("b", says("x"))
                with pytest.raises(AlreadyExists):
                    await store.create("a", says("y"))
                assert (await store.create("c", says("x"))).revision == 2
                assert [(one.key, one.revision) for one in await read(watch, 2)] == [("a", 1), ("c", 2)]

    async def test_a_write_cut_short_is_found_by_the_next_store(self, log):
        log.fail("append", DiskFault.BROKEN)
        async with store_on(log) as store:
            with pytest.raises(HostError, match="did not confirm a write; this write may or may not have been stored"):
                await store.create("a", says("x"))
        async with store_on(log) as store:
            assert store.revision == 1
            assert store.get("a") is not None


class TestBrokenDisk:
    async def test_no_write_is_tried_again_and_reads_go_on(self, log, gate):
        async with store_on(log, gate) as store:
            made = await store.create("a", says("x"))
            gate.opened.clear()
            log.fail("append", DiskFault.BROKEN)
            flying = asyncio.ensure_future(store.create("b", says("x")))
            await gate.arrivals(3)
            waiting = asyncio.ensure_future(store.create("c", says("x")))
            await asyncio.sleep(0)
            gate.opened.set()
            assert [type(one) for one in await outcomes(flying, waiting)] == [HostError, HostError]
            with pytest.raises(HostError, match="did not confirm"):
                await store.create("d", says("x"))
            assert store.list("") == (made,)
        assert log.batches == [1, 1]

    async def test_an_acknowledged_write_survives_a_power_cut(self, log):
        async with store_on(log) as store:
            await store.create("a", says("x"))
            log.fail("append", DiskFault.BROKEN)
            await outcomes(store.create("b", says("x")))
        log.crash()
        async with store_on(log) as store:
            assert [found.key for found in store.list("")] == ["a"]

    async def test_a_log_that_does_not_sync_loses_acknowledged_writes(self):
        """The simulation can show the bug it is made for."""
        log = SimLog(lazy=True)
        async with store_on(log) as store:
            await store.create("a", says("x"))
            await store.create("b", says("x"))
            await store.delete("a", says("x"), expected=1)
        log.crash(flushed=1)
        async with store_on(log) as store:
            assert [found.key for found in store.list("")] == ["a"]


class TestClearingAway:
    async def write(self, store, count):
        for _ in range(count):
            await store.create(f"a/{store.revision}", lambda _: bytes(100))
        # Answered in the next turn, and clearing away is the end of this one.
        with pytest.raises(NotFound):
            await store.delete("nothing", says("x"), expected=None)

    async def test_the_log_forgets_what_the_feed_does_not_tell(self, log):
        async with store_on(log, limits=StoreLimits(history=5, slack=3)) as store:
            await self.write(store, 7)
            assert log.compacted() == 0
            await self.write(store, 1)
            assert log.compacted() == 3
            await self.write(store, 3)
            assert log.compacted() == 6
            assert len(store.list("")) == 11

    async def test_a_new_start_does_not_clear_away_again(self, log):
        limits = StoreLimits(history=5, slack=3)
        async with store_on(log, limits=limits) as store:
            await self.write(store, 8)
        log.fail("compact", DiskFault.BROKEN)
        async with store_on(log, limits=limits) as store:
            await self.write(store, 2)
            assert len(store.list("")) == 10

    async def test_large_objects_are_cleared_away_sooner(self, log):
        async with store_on(log, limits=StoreLimits(history_bytes=500)) as store:
            await self.write(store, 9)
            assert log.compacted() == 0
            await self.write(store, 1)
            assert log.compacted() == 5
            await self.write(store, 4)
            assert log.compacted() == 5

    async def test_a_full_disk_only_delays_it(self, log):
        async with store_on(log, limits=StoreLimits(history=5, slack=3)) as store:
            log.fail("compact", DiskFault.FULL)
            await self.write(store, 8)
            assert log.compacted() == 0
            await self.write(store, 1)
            assert log.compacted() == 4

    async def test_a_broken_disk_ends_the_writing(self, log):
        async with store_on(log, limits=StoreLimits(history=5, slack=3)) as store:
            log.fail("compact", DiskFault.BROKEN)
            await self.write(store, 7)
            await store.create("last", says("x"))
            with pytest.raises(HostError, match="history was cleared"):
                await store.create("late", says("x"))
            assert len(store.list("")) == 8

    async def test_a_broken_disk_is_not_cleared(self, log):
        async with store_on(log, limits=StoreLimits(history=5, slack=3)) as store:
            log.fail("compact", DiskFault.FULL)
            await self.write(store, 8)
            log.fail("append", DiskFault.BROKEN)
            await outcomes(store.create("late", says("x")))
        assert log.open() == 9
        assert log.compacted() == 0
