"""A store under random use does what a list of records and a dict would do."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from paceline.errors import AlreadyExists, Conflict, Expired, NotFound, PacelineError, ServiceUnavailable
from paceline.store.backend import Log, Op, Record, StoreLimits
from paceline.store.sqlite import SqliteLog
from paceline.store.store import Store, Stored
from paceline.store.watch_hub import Ahead, Watch
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.backend import DiskFault, SimLog
from paceline.testing.sim.effects import SimBlocking

# Small, so that batches split, history expires and the log is compacted within a few steps.
LIMITS = StoreLimits(history=9, batch=3, slack=4)

keys = st.sampled_from(["a/1", "a/2", "a/3", "b/1", "b"])
prefixes = st.sampled_from(["", "a/", "b", "c/"])
# A guard as a distance from the revision that would be right.
guards = st.sampled_from([0, 0, 0, 1, -1])
writes = st.tuples(st.sampled_from(Op), keys, guards, st.booleans())


class Model:
    """The truth as the simplest thing that can hold it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.state: dict[str, Stored] = {}

    @property
    def revision(self) -> int:
        return len(self.records)

    def write(self, op: Op, key: str, expected: int | None) -> Stored | type[PacelineError]:
        found = self.state.get(key)
        if op is Op.CREATE and found:
            return AlreadyExists
        if op is not Op.CREATE and not found:
            return NotFound
        if op is not Op.CREATE and found and expected not in (None, found.revision):
            return Conflict
        revision = self.revision + 1
        created = found.created if found else revision
        value = f"{op}@{revision}".encode()
        self.records.append(Record(revision=revision, key=key, op=op, value=value, created=created))
        stored = Stored(key=key, value=value, revision=revision, created=created)
        if op is Op.DELETE:
            del self.state[key]
        else:
            self.state[key] = stored
        return stored


class Follower:
    """A watch and what it still has to be told."""

    def __init__(self, watch: Watch, since: int) -> None:
        self.watch = watch
        self.seen = since


class StoreMachine(RuleBasedStateMachine):
    """Drives a store and the model side by side; subclasses say which log."""

    def make(self) -> Callable[[], Log]:
        log = MemoryLog()
        return lambda: log

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.runner = asyncio.Runner()
        self.make_log = self.make()
        self.has_restarted = False
        self.start()

    @property
    def floor(self) -> int:
        return max(self.model.revision - LIMITS.history, 0)

    def start(self) -> None:
        self.followers: list[Follower] = []
        self.log = self.make_log()
        self.store = Store(self.log, SimBlocking(), limits=LIMITS)
        self.runner.run(self.store.open())
        self.writer = self.runner.get_loop().create_task(self.store.run())

    def stop(self) -> None:
        async def stop() -> None:
            self.writer.cancel()
            with suppress(asyncio.CancelledError):
                await self.writer
            await self.store.close()

        self.runner.run(stop())

    def teardown(self) -> None:
        self.stop()
        self.runner.close()

    async def send(self, op: Op, key: str, expected: int | None) -> Stored:
        def render(revision: int) -> bytes:
            return f"{op}@{revision}".encode()

        if op is Op.CREATE:
            return await self.store.create(key, render)
        if op is Op.REPLACE:
            return await self.store.replace(key, render, expected=expected or 0)
        return await self.store.delete(key, render, expected=expected)

    def expected(self, op: Op, key: str, guard: int, *, unguarded: bool) -> int | None:
        found = self.model.state.get(key)
        right = found.revision if found else self.model.revision
        return None if unguarded and op is Op.DELETE else right + guard

    @rule(wanted=st.lists(writes, min_size=1, max_size=7))
    def write_at_once(self, wanted: list[tuple[Op, str, int, bool]]) -> None:
        sent = [(op, key, self.expected(op, key, guard, unguarded=un)) for op, key, guard, un in wanted]

        async def send() -> list[Stored | BaseException]:
            return await asyncio.gather(*(self.send(*one) for one in sent), return_exceptions=True)

        outcomes = self.runner.run(send())
        for one, outcome in zip(sent, outcomes, strict=True):
            answer = self.model.write(*one)
            assert outcome == answer or type(outcome) is answer

    @rule(prefix=prefixes, back=st.integers(min_value=-2, max_value=14))
    def follow(self, prefix: str, back: int) -> None:
        since = self.model.revision - back
        try:
            watch = self.store.watch(prefix, since)
        except Expired:
            assert since < self.floor
        except Ahead:
            assert since > self.model.revision
        else:
            assert self.floor <= since <= self.model.revision
            self.followers.append(Follower(watch, since))

    @rule(prefix=prefixes, back=st.integers(min_value=-1, max_value=12))
    def list_as_it_was(self, prefix: str, back: int) -> None:
        revision = self.model.revision - back
        try:
            found = self.store.list_at(prefix, revision)
        except Expired:
            # After a start, what came before the kept history is not known.
            assert revision < self.floor or self.has_restarted
        except Ahead:
            assert revision > self.model.revision
        else:
            held: dict[str, bytes] = {}
            for one in self.model.records[: max(revision, 0)]:
                if one.op is Op.DELETE:
                    held.pop(one.key, None)
                elif one.key.startswith(prefix):
                    held[one.key] = one.value
            assert [(each.key, each.value) for each in found] == sorted(held.items())

    @precondition(lambda self: self.followers)
    @rule(which=st.integers(min_value=0), most=st.integers(min_value=1, max_value=20))
    def read(self, which: int, most: int) -> None:
        follower = self.followers[which % len(self.followers)]
        due = [one for one in self.model.records[follower.seen :] if one.key.startswith(follower.watch.prefix)]
        if due and due[0].revision <= self.floor:
            try:
                self.runner.run(anext_of(follower.watch))
            except Expired:
                self.followers.remove(follower)
                return
            raise AssertionError("a follower that missed records was told nothing")
        for record in due[:most]:
            assert follower.watch.position == record.revision - 1
            assert self.runner.run(anext_of(follower.watch)) == record
            follower.seen = record.revision
        if most >= len(due):
            assert follower.watch.position == self.model.revision
            follower.seen = self.model.revision

    @precondition(lambda self: self.followers)
    @rule(which=st.integers(min_value=0))
    def leave(self, which: int) -> None:
        self.followers.pop(which % len(self.followers)).watch.close()

    @rule()
    def start_again(self) -> None:
        self.stop()
        self.has_restarted = True
        self.start()

    @invariant()
    def the_state_is_right(self) -> None:
        assert self.store.revision == self.model.revision
        assert self.store.list("") == tuple(self.model.state[key] for key in sorted(self.model.state))
        under_a = tuple(self.model.state[key] for key in sorted(self.model.state) if key.startswith("a/"))
        assert self.store.list("a/") == under_a
        assert all(self.store.get(key) == found for key, found in self.model.state.items())

    @invariant()
    def the_disk_stays_small(self) -> None:
        assert len(tuple(self.log.since(0))) < LIMITS.history + LIMITS.slack + LIMITS.batch


async def anext_of(watch: Watch) -> Record:
    async with asyncio.timeout(30):
        return await anext(watch)


class SqliteMachine(StoreMachine):
    def make(self) -> Callable[[], Log]:
        self.folder = TemporaryDirectory()
        return lambda: SqliteLog(Path(self.folder.name) / "objects.db")

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class SimMachine(StoreMachine):
    """The simulated disk, which also fails."""

    def make(self) -> Callable[[], Log]:
        self.disk = SimLog()
        return lambda: self.disk

    @rule(key=keys)
    def write_to_a_full_disk(self, key: str) -> None:
        if key in self.model.state:
            return
        self.disk.fail("append", DiskFault.FULL)
        with suppress(ServiceUnavailable):
            self.runner.run(self.send(Op.CREATE, key, None))
            raise AssertionError("a write that is not on the disk was acknowledged")

    @rule(key=keys, new_key=keys, has_room=st.booleans())
    def delete_on_a_full_disk(self, key: str, new_key: str, has_room: bool) -> None:  # noqa: FBT001
        """The reserve is for what ends something; a write that came with it is refused, and so is the next one."""
        if key not in self.model.state or new_key in self.model.state:
            return
        self.free_the_disk()
        self.disk.reserve, self.disk.has_room = True, has_room
        self.disk.fail("append", DiskFault.FULL)

        async def send() -> list[Stored | BaseException]:
            both = (self.send(Op.CREATE, new_key, None), self.send(Op.DELETE, key, None))
            return list(await asyncio.gather(*both, return_exceptions=True))

        refused, deleted = self.runner.run(send())
        assert type(refused) is ServiceUnavailable
        assert deleted == self.model.write(Op.DELETE, key, None)
        if not has_room:
            with suppress(ServiceUnavailable):
                self.runner.run(self.send(Op.CREATE, new_key, None))
                raise AssertionError("the reserve was used up by a write that could wait")
        self.free_the_disk()

    def free_the_disk(self) -> None:
        """Make room, and let the store notice it by a write: it restores its reserve then."""
        self.disk.has_room = True
        with suppress(NotFound):
            self.runner.run(self.send(Op.DELETE, "missing", None))

    @rule(key=keys)
    def lose_the_reply_of_a_write(self, key: str) -> None:
        if key in self.model.state:
            return
        self.disk.fail("append", DiskFault.LOST_REPLY)
        assert self.runner.run(self.send(Op.CREATE, key, None)) == self.model.write(Op.CREATE, key, None)

    @rule(key=keys, next_key=keys)
    def lose_the_reply_and_the_disk(self, key: str, next_key: str) -> None:
        """The outcome is unknown until the next write, which must not hide or repeat it."""
        if key in self.model.state:
            return
        self.disk.fail("append", DiskFault.LOST_REPLY)
        self.disk.fail("since", DiskFault.FULL)
        with suppress(ServiceUnavailable):
            self.runner.run(self.send(Op.CREATE, key, None))
            raise AssertionError("a write of unknown outcome was acknowledged")
        self.model.write(Op.CREATE, key, None)
        answer = self.model.write(Op.DELETE, next_key, None)
        try:
            assert self.runner.run(self.send(Op.DELETE, next_key, None)) == answer
        except NotFound:
            assert answer is NotFound

    @rule()
    def cut_the_power(self) -> None:
        self.stop()
        self.has_restarted = True
        self.disk.crash()
        self.start()

    @rule(fault=st.sampled_from([DiskFault.FULL, DiskFault.LOST_REPLY]))
    def fail_to_compact(self, fault: DiskFault) -> None:
        self.disk.fail("compact", fault)

    @invariant()
    def the_disk_stays_small(self) -> None:
        """Not promised here: compaction fails on purpose."""


QUIET = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TestMemory = StoreMachine.TestCase
TestMemory.settings = settings(QUIET, max_examples=60, stateful_step_count=40)
TestSqlite = SqliteMachine.TestCase
TestSqlite.settings = settings(QUIET, max_examples=20, stateful_step_count=30)
TestSim = SimMachine.TestCase
TestSim.settings = settings(QUIET, max_examples=80, stateful_step_count=40)
