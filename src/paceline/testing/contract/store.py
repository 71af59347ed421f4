"""What every log, and a store over any log, promises.

A test module subclasses the suites and gives two fixtures: `make_log`, which makes a log over the same lasting data
each time it is called, and for `StoreSuite` also `blocking`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from paceline.effects import Executor
from paceline.errors import AlreadyExists, BadRequest, Conflict, Expired, HostError, NotFound, TooLarge
from paceline.store.backend import DEFAULTS, Log, Op, Record, StoreLimits
from paceline.store.store import Render, Store
from paceline.store.watch_hub import Ahead, Watch

MakeLog = Callable[[], Log]

# Far beyond anything a healthy store needs; only a broken one gets here.
DEADLINE_SECONDS = 10.0


def record(revision: int, key: str, op: Op = Op.CREATE, created: int = 0) -> Record:
    """Make a record whose bytes say what it is."""
    value = f"{key}@{revision}".encode()
    return Record(revision=revision, key=key, op=op, value=value, created=created or revision)


def says(text: str) -> Render:
    """Make bytes that carry the revision they were written at."""
    return lambda revision: f"{text}@{revision}".encode()


@asynccontextmanager
async def running(log: Log, blocking: Executor, limits: StoreLimits = DEFAULTS) -> AsyncIterator[Store]:
    """Open a store and run its writer for the length of a block."""
    store = Store(log, blocking, limits=limits)
    await store.open()
    try:
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(store.run())
            yield store
            writer.cancel()
    finally:
        await store.close()


async def read(watch: Watch, count: int) -> list[Record]:
    """Read as many records from a watch, within a deadline."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return [await anext(watch) for _ in range(count)]


class LogSuite:
    """The promises of a log alone."""

    def test_a_new_log_is_empty(self, make_log: MakeLog) -> None:
        log = make_log()
        assert log.open() == 0
        assert (tuple(log.current()), tuple(log.since(0)), log.compacted()) == ((), (), 0)
        log.close()

    def test_it_gives_back_what_was_appended(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        records = (record(1, "b"), record(2, "a"), record(3, "b", Op.REPLACE, created=1))
        log.append(records[:2])
        log.append(records[2:])
        assert tuple(log.since(0)) == records
        assert tuple(log.since(2)) == records[2:]
        assert tuple(log.current()) == records[1:]
        log.close()

    def test_a_batch_may_touch_one_key_many_times(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        log.append((record(1, "gone"), record(2, "back"), record(3, "made")))
        log.append(
            (
                record(4, "back", Op.DELETE, created=2),
                record(5, "back"),
                record(6, "gone", Op.REPLACE, created=1),
                record(7, "gone", Op.DELETE, created=1),
                record(8, "brief"),
                record(9, "brief", Op.DELETE, created=8),
            )
        )
        assert [(stored.key, stored.revision) for stored in log.current()] == [("made", 3), ("back", 5)]
        assert [stored.revision for stored in log.since(0)] == list(range(1, 10))
        log.close()

    def test_a_batch_may_be_large(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        records = tuple(record(number, f"key-{number:04}") for number in range(1, 701))
        log.append(records)
        assert tuple(log.since(0)) == records
        assert tuple(log.current()) == records
        log.close()

    def test_any_text_is_a_key_and_any_bytes_are_a_value(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        records = tuple(
            Record(revision=number, key=key, op=Op.CREATE, value=value, created=number)
            for number, (key, value) in enumerate(
                (("", b""), ("a\0b", bytes(range(256))), ("训练/作业", b"\0" * 9000)), 1
            )
        )
        log.append(records)
        assert tuple(log.since(0)) == records
        log.close()

    def test_compaction_forgets_history_and_keeps_the_state(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        log.append((record(1, "a"), record(2, "b"), record(3, "c"), record(4, "a", Op.REPLACE, created=1)))
        log.compact(3)
        assert log.compacted() == 3
        assert [stored.revision for stored in log.since(0)] == [4]
        assert [stored.key for stored in log.current()] == ["b", "c", "a"]
        log.compact(2)
        assert log.compacted() == 3
        log.close()

    def test_opening_again_finds_everything(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        log.append((record(1, "a"), record(2, "b"), record(3, "a", Op.DELETE, created=1)))
        log.compact(1)
        contents = (tuple(log.current()), tuple(log.since(1)), log.compacted())
        log.close()
        log.close()
        log = make_log()
        assert log.open() == 3
        assert (tuple(log.current()), tuple(log.since(1)), log.compacted()) == contents
        log.close()

    def test_the_last_revision_is_known_even_when_all_history_is_gone(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        log.append((record(1, "a"), record(2, "a", Op.DELETE, created=1)))
        log.compact(2)
        log.close()
        log = make_log()
        assert log.open() == 2
        log.close()

    def test_it_has_one_owner_at_a_time(self, make_log: MakeLog) -> None:
        log = make_log()
        log.open()
        with pytest.raises(HostError):
            log.open()
        with pytest.raises(HostError):
            make_log().open()
        log.append((record(1, "a"),))
        log.close()
        assert log.open() == 1
        log.close()

    def test_a_closed_log_refuses(self, make_log: MakeLog) -> None:
        log = make_log()
        calls: tuple[Callable[[], object], ...] = (
            lambda: tuple(log.current()),
            lambda: tuple(log.since(0)),
            log.compacted,
            lambda: log.append((record(1, "a"),)),
            lambda: log.compact(1),
        )
        for call in calls:
            with pytest.raises(HostError, match="not open"):
                call()
        assert log.open() == 0
        log.close()


class GuardSuite:
    """The promises of a store about its writes."""

    async def test_a_created_key_can_be_read(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            created = await store.create("pods/a", says("one"))
            assert (created.key, created.value, created.revision, created.created) == ("pods/a", b"one@1", 1, 1)
            assert store.get("pods/a") == created
            assert store.revision == 1
            assert store.get("pods/b") is None

    async def test_a_name_is_taken_once(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            await store.create("a", says("first"))
            with pytest.raises(AlreadyExists, match="a already exists"):
                await store.create("a", says("second"))
            assert store.revision == 1

    async def test_replace_wants_the_revision_it_was_read_at(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            created = await store.create("a", says("one"))
            changed = await store.replace("a", says("two"), expected=created.revision)
            assert (changed.value, changed.revision, changed.created) == (b"two@2", 2, 1)
            with pytest.raises(Conflict, match="a is at revision 2, not 1"):
                await store.replace("a", says("three"), expected=created.revision)
            with pytest.raises(NotFound, match="b does not exist"):
                await store.replace("b", says("three"), expected=1)
            assert store.get("a") == changed

    async def test_delete_is_guarded_only_if_asked(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            await store.create("a", says("one"))
            with pytest.raises(Conflict):
                await store.delete("a", says("last"), expected=7)
            gone = await store.delete("a", says("last"), expected=1)
            assert (gone.value, gone.revision, gone.created) == (b"last@2", 2, 1)
            assert store.get("a") is None
            with pytest.raises(NotFound):
                await store.delete("a", says("last"), expected=None)
            await store.create("a", says("again"))
            gone = await store.delete("a", says("last"), expected=None)
            assert (gone.revision, gone.created) == (4, 3)

    async def test_guards_see_the_writes_before_them_in_a_batch(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            outcomes = await asyncio.gather(
                store.create("a", says("one")),
                store.create("a", says("two")),
                store.replace("a", says("three"), expected=1),
                store.replace("a", says("four"), expected=1),
                store.delete("a", says("five"), expected=2),
                store.delete("a", says("six"), expected=None),
                store.create("a", says("seven")),
                return_exceptions=True,
            )
            results = [getattr(outcome, "revision", type(outcome)) for outcome in outcomes]
            assert results == [1, AlreadyExists, 2, Conflict, 3, NotFound, 4]
            stored = store.get("a")
            assert stored is not None
            assert (stored.value, stored.created) == (b"seven@4", 4)

    async def test_a_write_that_cannot_be_rendered_fails_alone(self, make_log: MakeLog, blocking: Executor) -> None:
        def refuse(revision: int) -> bytes:
            raise TooLarge(f"revision {revision} is too large")

        async with running(make_log(), blocking) as store:
            outcomes = await asyncio.gather(
                store.create("a", says("one")),
                store.create("b", refuse),
                store.create("c", says("three")),
                return_exceptions=True,
            )
            assert [type(outcome).__name__ for outcome in outcomes] == ["Stored", "TooLarge", "Stored"]
            assert [(record.key, record.revision) for record in store.list("")] == [("a", 1), ("c", 2)]

    async def test_a_key_that_is_not_text_is_refused(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            with pytest.raises(BadRequest):
                await store.create("a/\ud800", says("one"))
            assert (await store.create("a/b", says("one"))).revision == 1

    async def test_a_list_is_a_prefix_in_the_order_of_keys(self, make_log: MakeLog, blocking: Executor) -> None:
        keys = ["pods/b", "pods/a", "pod", "pods", "services/a", "pods/\U0010ffff", "pods/", "作业/a"]
        async with running(make_log(), blocking) as store:
            for key in keys:
                await store.create(key, says(key))
            await store.delete("pods/b", says("gone"), expected=None)
            assert [record.key for record in store.list("pods/")] == ["pods/", "pods/a", "pods/\U0010ffff"]
            assert [record.key for record in store.list("")] == sorted(set(keys) - {"pods/b"})
            assert store.list("nothing") == ()
            assert [record.value for record in store.list("pods/a")] == [b"pods/a@2"]


class WatchSuite:
    """The promises of a store about its feed and about starting again."""

    async def test_a_watch_tells_everything_after_a_revision(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            await store.create("a/1", says("one"))
            await store.create("b/1", says("other"))
            await store.replace("a/1", says("two"), expected=1)
            with store.watch("a/", 1) as late, store.watch("a/", 0) as early:
                await store.delete("a/1", says("three"), expected=3)
                events = await read(early, 3)
                assert [(one.op, one.value, one.revision) for one in events] == [
                    (Op.CREATE, b"one@1", 1),
                    (Op.REPLACE, b"two@3", 3),
                    (Op.DELETE, b"three@4", 4),
                ]
                assert await read(late, 2) == events[1:]

    async def test_listing_then_watching_misses_nothing(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            writes = [asyncio.ensure_future(store.create(f"a/{number}", says("x"))) for number in range(40)]
            await writes[0]
            seen = {record.key for record in store.list("a/")}
            with store.watch("a/", store.revision) as watch:
                events = await read(watch, 40 - len(seen))
            await asyncio.gather(*writes)
            assert seen.isdisjoint(one.key for one in events)
            assert seen | {one.key for one in events} == {f"a/{number}" for number in range(40)}

    async def test_a_revision_that_is_not_kept_has_expired(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking, StoreLimits(history=3, slack=1)) as store:
            for number in range(6):
                await store.create(f"a/{number}", says("x"))
            with pytest.raises(Expired, match="too old resource version: 2"):
                store.watch("", 2)
            with store.watch("", 3) as watch:
                assert [one.revision for one in await read(watch, 3)] == [4, 5, 6]
            assert len(store.list("a/")) == 6

    async def test_a_revision_yet_to_come_is_told_apart(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            await store.create("a", says("x"))
            with pytest.raises(Ahead, match="revision 2 is in the future; the last one is 1"):
                store.watch("", 2)

    async def test_starting_again_finds_state_and_history(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            await store.create("a", says("one"))
            await store.create("b", says("two"))
            await store.delete("a", says("three"), expected=1)
            state = store.list("")
        async with running(make_log(), blocking) as store:
            assert store.revision == 3
            assert store.list("") == state
            with store.watch("", 0) as watch:
                assert [one.value for one in await read(watch, 3)] == [b"one@1", b"two@2", b"three@3"]
            assert (await store.create("a", says("four"))).revision == 4

    async def test_starting_again_keeps_no_more_history(self, make_log: MakeLog, blocking: Executor) -> None:
        async with running(make_log(), blocking) as store:
            for number in range(6):
                await store.create(f"a/{number}", says("x"))
        async with running(make_log(), blocking, StoreLimits(history=2)) as store:
            with pytest.raises(Expired):
                store.watch("", 3)
            with store.watch("", 4) as watch:
                assert [one.revision for one in await read(watch, 2)] == [5, 6]


class StoreSuite(GuardSuite, WatchSuite):
    """Everything a store promises over any log."""
