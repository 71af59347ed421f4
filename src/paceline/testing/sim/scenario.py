"""Lives that can be lived again: the same people, the same programs, with a crash somewhere, and the same end.

In     a Life: what people do, and how every program runs, as a function of its name and try and of nothing else.
Out    the Outcome: what is there when everything has come to rest, in words that do not depend on when it happened.
Never  helps a component: whoever was killed is started again, and that is all.
"""

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, labels_of, name_of, uid_of
from paceline.client.interface import Collection
from paceline.errors import AlreadyExists, Conflict, NotFound, PacelineError
from paceline.kinds.kind_types import GROUP, SERVICE_GROUP
from paceline.kinds.registry import stem_of
from paceline.model import well_known_labels
from paceline.store.backend import DEFAULTS, Op, Record, StoreLimits
from paceline.testing.sim.backend import SimLog
from paceline.testing.sim.cluster import ROOT, Component, SimCluster
from paceline.testing.sim.crash_points import Crash, RecordedWrite, Site, Taps
from paceline.testing.sim.invariants import InvariantBroken, Oracle
from paceline.testing.sim.loop import SimLoop, run_simulated
from paceline.testing.sim.processes import Course, Intent

SEED = 1
# The components of an embedded cluster, and the one that is a process of its own beside another cluster.
EMBEDDED = ("control", "agent")
COMPONENTS = (*EMBEDDED, "controllers")
# How long people wait for what must happen, in virtual seconds.
PATIENCE_SECONDS = 300.0
# After so long without anybody doing anything, everything has come to rest.
REST_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What happens in one run, whoever is killed in it."""

    name: str
    act: Callable[["Stage"], Awaitable[None]]
    # Given the container's name, that of its pod without what is drawn by lot, and which try of it this is.
    course: Callable[[str, str, int], Course]
    # What an earlier version of the product has stored: key and object.
    stored: tuple[tuple[str, Object], ...] = ()
    limits: StoreLimits = DEFAULTS
    # Reasons of stories about jobs that depend on who is faster; a node that is late is one in every life.
    may_say: frozenset[str] = frozenset({"Unschedulable"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashPlan:
    """Who is killed when, and for how long it is gone."""

    crashes: tuple[Crash, ...] = ()
    # Whether all components die when one does.
    together: bool = False
    # Whether the controllers are a process of their own.
    apart: bool = False
    down_seconds: float = 1.0
    # How long what comes late takes.
    late_turns: int = 0

    @property
    def components(self) -> tuple[str, ...]:
        """Name the processes that there are."""
        return COMPONENTS if self.apart else EMBEDDED

    def __str__(self) -> str:
        texts = [str(crash) for crash in self.crashes]
        texts += ["together"] if self.together else []
        texts += [f"after-turns {self.late_turns}"] if self.late_turns else []
        return " ".join([*texts, f"down {self.down_seconds:g}"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was there in the end, and how it came to it."""

    # Everything that the store holds, but for events; times, ids, revisions and names drawn by lot are taken out.
    objects: dict[str, Any]
    # Every program that was executed: pod, container, try.
    executed: Counter[str]
    running: Counter[str]
    # Every pod there ever was: its phase and the exit codes of its containers when it was last seen.
    ends: dict[str, str]
    # The files in the agent's folder.
    files: Counter[str]
    # About what, reason and message: how often it was told.
    events: dict[tuple[str, str, str], int]
    writes: tuple[RecordedWrite, ...]
    turns: int
    awaits: dict[Site, int]
    # The first write and the first turn after both components were up.
    first: dict[str, int]
    plan: CrashPlan
    done: tuple[Crash, ...]
    trace: tuple[str, ...]


class _Disk(SimLog):
    """Tells of everything that becomes durable."""

    def __init__(self, tell: Callable[[tuple[Record, ...]], None]) -> None:
        super().__init__()
        self._tell = tell

    def sync(self) -> None:
        """Bring what was written to the disk, and say so."""
        batches = tuple(self._cache)
        super().sync()
        for batch in batches:
            self._tell(batch)


class Stage:
    """One life on one simulated cluster."""

    def __init__(self, life: Life, plan: CrashPlan) -> None:
        self._life = life
        self._plan = plan
        self.taps = Taps(on_crash=self._fall, later=self._late, crashes=plan.crashes, together=plan.together)
        self.cluster = SimCluster(seed=SEED, seam=self.taps.between, limits=life.limits, apart=plan.apart)
        self.cluster.log = _Disk(self._recorded)
        self.cluster.sim.processes.script = self._course
        self.oracle = Oracle(cluster=self.cluster)
        self.names = Names()
        self._news = asyncio.Event()
        # Bounded by the crashes that were chosen.
        self._fallen: asyncio.Queue[str] = asyncio.Queue()
        self._down: set[str] = set()
        self._tries: Counter[tuple[str, str]] = Counter()
        self._ends: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._first: dict[str, int] = {}
        self._group: asyncio.TaskGroup

    async def live(self) -> Outcome:
        """Live to the end, then look at what is there."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        loop.on_turn = self.taps.turn
        self._store()
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                keeper = group.create_task(self._keep())
                await self._live()
                keeper.cancel()
        except BaseExceptionGroup as error:
            raise error.exceptions[0] from None
        loop.on_turn = lambda: None
        outcome = self._outcome()
        for component in reversed(self._plan.components):
            await self._kill(component)
        return outcome

    async def _live(self) -> None:
        components = self._plan.components
        for component in components:
            self._start(component)
        await self._up()
        self._first = {name: 1 + sum(w.component == name for w in self.taps.writes) for name in components}
        self._first["turn"] = self.taps.turns
        await self._life.act(self)
        await self._rest()
        self.oracle.executed()
        self.oracle.at_rest()

    # People

    async def create(self, where: Collection, obj: Object) -> None:
        """Create an object, and ask again until the answer is that it is there."""
        await self._insist(lambda: self.cluster.client().create(where, obj), fine=AlreadyExists)

    async def delete(self, where: Collection, name: str, *, policy: str = "Background") -> None:
        """Delete an object, and ask again until the answer is that it is gone or going."""
        options = {"propagationPolicy": policy}
        await self._insist(lambda: self.cluster.client().delete(where, ("default", name), options), fine=NotFound)

    async def patch(self, where: Collection, name: str, patch: Object) -> None:
        """Change an object, and ask again until it is changed."""
        await self._insist(lambda: self.cluster.client().patch(where, ("default", name), patch), fine=AlreadyExists)

    async def until(self, description: str, holds: Callable[["Stage"], object]) -> None:
        """Wait until something holds of what is stored."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while not holds(self):
            self._check()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                self._check()
                raise InvariantBroken(f"I13: waited {PATIENCE_SECONDS:.0f} s for: {description}") from None
            self._news.clear()
        self._check()

    def find(self, plural: str, name: str) -> Object | None:
        """Give an object as it is stored; a pod goes by its name without what is drawn by lot."""
        for key, obj in self.oracle.objects.items():
            if key.split("/")[2] == plural and self.names.plain(name_of(obj)) == name:
                return obj
        return None

    def phase(self, plural: str, name: str) -> str:
        """Give the phase of an object, or nothing."""
        obj = self.find(plural, name) or {}
        return str((obj.get("status") or {}).get("phase") or "")

    def lose_shim(self, pod: str) -> None:
        """Kill the shims of a pod, as a stranger could."""
        for folder in tuple(self.cluster.sim.processes.running()):
            if self.names.plain(str(folder)).find(f"/{pod}/") >= 0:
                self.cluster.sim.processes.lose(folder)

    async def _insist(self, ask: Callable[[], Awaitable[Any]], *, fine: type[PacelineError]) -> None:
        while True:
            try:
                await ask()
            except fine:
                return
            except PacelineError as error:
                if not error.retry or isinstance(error, Conflict):
                    raise
                await asyncio.sleep(0.5)
            else:
                return

    # The machine

    def _store(self) -> None:
        log = self.cluster.log
        log.open()
        for revision, (key, obj) in enumerate(self._life.stored, start=1):
            metadata = {**obj["metadata"], "resourceVersion": str(revision)}
            value = json.dumps({**obj, "metadata": metadata}).encode()
            log.append((Record(revision=revision, key=key, op=Op.CREATE, value=value, created=revision),))
        log.close()

    def _start(self, component: str) -> None:
        self.taps.start(component)
        cluster = self.cluster
        starts = {
            "control": cluster.start_control,
            "agent": cluster.start_agent,
            "controllers": cluster.start_controllers,
        }
        starts[component]()

    async def _kill(self, component: str) -> None:
        cluster = self.cluster
        kills = {"control": cluster.kill_control, "agent": cluster.kill_agent, "controllers": cluster.kill_controllers}
        await kills[component]()

    def _fall(self, component: str) -> None:
        """Cut a component off at once; what it still tries has no effect any more."""
        fallen = self._component(component)
        if component == "control":
            self.cluster.network.app, self.cluster.network.group = None, None
        self._down.add(component)
        if fallen is not None:
            fallen.task.cancel()
        self._fallen.put_nowait(component)

    def _late(self, call: Coroutine[Any, Any, Any]) -> None:
        """Let what a dead component asked for happen after a while; nobody hears the answer."""

        async def happen() -> None:
            for _ in range(self._plan.late_turns):
                await asyncio.sleep(0)
            with contextlib.suppress(PacelineError):
                await call

        self._group.create_task(happen())

    async def _keep(self) -> None:
        """Start again what was killed."""
        while True:
            component = await self._fallen.get()
            await self._kill(component)
            await asyncio.sleep(self._plan.down_seconds)
            self._start(component)
            self._down.discard(component)

    def _component(self, name: str) -> Component | None:
        cluster = self.cluster
        processes = {"control": cluster.control, "agent": cluster.agent, "controllers": cluster.controllers}
        return processes[name]

    async def _up(self) -> None:
        for component in self._plan.components:
            deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
            while component in self._down or not (process := self._component(component)) or not process.ready.is_set():
                self._check()
                if asyncio.get_running_loop().time() > deadline:
                    raise InvariantBroken(f"I13: waited {PATIENCE_SECONDS:.0f} s for {component} to come up")
                await asyncio.sleep(0.05)

    async def _rest(self) -> None:
        """Wait until nobody was killed for a while."""
        crashes = -1
        while crashes != len(self.taps.done):
            crashes = len(self.taps.done)
            await self._up()
            await asyncio.sleep(REST_SECONDS)
        self._check()

    def _check(self) -> None:
        if self.oracle.violation is not None:
            raise self.oracle.violation
        error = None if self._down else self.cluster.broken()
        if error is not None:
            raise InvariantBroken(f"a component ended by itself: {error!r}") from error

    def _recorded(self, batch: tuple[Record, ...]) -> None:
        self.names.learn(batch)
        self.oracle.recorded(batch)
        try:
            self.oracle.executed()
            for record in batch:
                if record.key.startswith("/core/pods/"):
                    self._pod_recorded(json.loads(record.value))
        except InvariantBroken as error:
            self.oracle.violation = self.oracle.violation or error
        self._news.set()

    def _pod_recorded(self, pod: Object) -> None:
        status = pod.get("status") or {}
        codes = {
            str(container["name"]): state["exitCode"]
            for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
            if (state := container["state"].get("terminated"))
        }
        self._ends[self.names.plain(name_of(pod))] = f"{status.get('phase')} {codes}"
        address = status.get("podIP")
        if address and self._addresses.setdefault(uid_of(pod), address) != address:
            raise InvariantBroken(f"the address of {name_of(pod)} was {self._addresses[uid_of(pod)]}, is {address}")

    def _course(self, intent: Intent) -> Course:
        pod, container = intent["pod"], str(intent["container"])
        tried = self._tries[pod["uid"], container]
        self._tries[pod["uid"], container] += 1
        return self._life.course(container, self.names.plain(str(pod["name"])), tried)

    def _outcome(self) -> Outcome:
        plain, processes = self.names.plain, self.cluster.sim.processes
        events: dict[tuple[str, str, str], int] = {}
        objects: dict[str, Any] = {}
        uids = {uid_of(obj) for obj in self.oracle.objects.values()}
        for key, obj in self.oracle.objects.items():
            if key.startswith("/core/events/"):
                about = obj["involvedObject"]
                event = plain(f"{about['kind']} {about['name']}"), obj["reason"], plain(obj["message"])
                events[event] = events.get(event, 0) + int(obj.get("count", 1))
            else:
                if (uid := labels_of(obj).get(well_known_labels.JOB_UID)) is not None:
                    # A copy of events, which a process that dies loses; and of a job that was deleted while the
                    # controllers were down, only what they had seen before: deleting never waits for a record.
                    status = obj.get("status") or {}
                    status.pop("events", None)
                    if uid not in uids:
                        obj.pop("status", None)
                if key.startswith("/discovery.k8s.io/"):
                    # How often it was written depends on who was there at the time.
                    del obj["metadata"]["generation"]
                objects[plain(key)] = self.names.picture(obj)
        return Outcome(
            objects=objects,
            executed=Counter(plain("/".join(folder.parts[-4:])) for folder in processes.ledger),
            running=Counter(plain("/".join(folder.parts[-4:])) for folder in processes.running()),
            ends=self._ends,
            files=Counter(plain(str(path)) for path in _tree(self.cluster, ROOT / "pods")),
            events=events,
            writes=tuple(self.taps.writes),
            turns=self.taps.turns,
            awaits=self.taps.awaits,
            first=self._first,
            plan=self._plan,
            done=tuple(self.taps.done),
            trace=tuple(self.oracle.trace),
        )


def _tree(cluster: SimCluster, folder: Path) -> Iterator[Path]:
    for name in cluster.sim.files.names(folder):
        yield folder / name
        yield from _tree(cluster, folder / name)


_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"127\.(1[3-9]|[2-9])\d+\.\d+\.\d+|127\.12[89]\.\d+\.\d+")
_BY_LOT = frozenset({"managedFields", "resourceVersion", "pausedSeconds", "ports"})


@dataclass(slots=True)
class Names:
    """Takes out of names and texts what depends on the order in which things happened."""

    _uids: dict[str, str] = field(default_factory=dict)
    _lots: dict[str, str] = field(default_factory=dict)

    def learn(self, batch: tuple[Record, ...]) -> None:
        """Take note of the objects that there are."""
        for record in batch:
            obj = json.loads(record.value)
            uid = uid_of(obj)
            if uid in self._uids:
                continue
            if record.key.startswith((f"/{GROUP}/", f"/{SERVICE_GROUP}/")):
                # A TensorBoard of a job is called after the job's stem, and has one of its own.
                self._lots[self.plain(stem_of(obj))] = self.plain(name_of(obj))
            self._lots[uid[:8]] = "UID"
            self._uids[uid] = self.plain(name_of(obj))

    def plain(self, text: str) -> str:
        """Give a text without uids, times, addresses and what is drawn by lot."""
        text = _UID.sub(lambda match: self._uids.get(match[0], "UID"), text)
        for lot, name in self._lots.items():
            if lot in text:
                text = text.replace(lot, name)
        return _ADDRESS.sub("ADDRESS", _TIME.sub("TIME", text))

    def picture(self, value: Any) -> Any:
        """Give an object with all of its texts plain."""
        if isinstance(value, dict):
            return {key: self.picture(item) for key, item in value.items() if key not in _BY_LOT}
        if isinstance(value, list):
            return [self.picture(item) for item in value]
        return self.plain(value) if isinstance(value, str) else value


UNBROKEN = CrashPlan()


def live(life: Life, plan: CrashPlan = UNBROKEN) -> Outcome:
    """Live a life once; a broken invariant has the trace of the run among its notes."""
    stages: list[Stage] = []

    async def main() -> Outcome:
        stages.append(Stage(life, plan))
        return await stages[0].live()

    try:
        return run_simulated(SEED, main())
    except InvariantBroken as error:
        error.add_note("\n".join(stages[0].oracle.trace))
        raise
