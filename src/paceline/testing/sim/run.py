"""One simulated run: people submit, delete and pause; things break; and every invariant is checked all the time."""

import asyncio
import gc
import hashlib
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from paceline.apimachinery.meta import Object, name_of, namespace_of, revision_of, uid_of
from paceline.client.interface import PODS
from paceline.errors import PacelineError
from paceline.model import well_known_labels
from paceline.presentation.job_copy import copy_of
from paceline.store.backend import Record, StoreLimits
from paceline.testing.sim.backend import DiskFault, SimLog
from paceline.testing.sim.cluster import SimCluster
from paceline.testing.sim.invariants import FINAL, InvariantBroken, Oracle
from paceline.testing.sim.jobs import a_job, is_resizable, where
from paceline.testing.sim.loop import run_simulated
from paceline.testing.sim.network import Weather
from paceline.testing.sim.processes import Course, Intent

NAMES = ("ant", "bee", "cat", "dog", "eel")
# In every so-many-th run jobs are more important than others, and have to wait for room or give way.
RANKED = 5
EXITS = (0, 0, 0, 0, 0, 1, 137, 138, 143)
# By how much the machine's clock is set forwards or backwards.
JUMPS_SECONDS = (-172_800.0, -3600.0, -5.0, 5.0, 3600.0, 172_800.0)
# How often somebody looks whether what was started is ready.
READY_SECONDS = 0.2
# After the faults have stopped, everything must have come to rest within this time.
REST_SECONDS = 900.0
# So little history that whoever was away for long finds it gone.
LIMITS = StoreLimits(history=1000, slack=200, batch=128)


Act = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run came to."""

    seed: int
    events: int
    digest: str
    faults: dict[str, int]


class Failed(Exception):
    """A run broke an invariant; the message says how to see it again."""


class _WatchedLog(SimLog):
    """Tells the oracle of everything that becomes durable."""

    def __init__(self) -> None:
        super().__init__()
        self.tell: Callable[[tuple[Record, ...]], None] = lambda _batch: None

    def sync(self) -> None:
        """Bring what was written to the disk, and say so, also when the caller is told otherwise."""
        batches = tuple(self._cache)
        super().sync()
        for batch in batches:
            self.tell(batch)


@dataclass(slots=True, kw_only=True)
class SimulationRun:
    """The people and the faults of one seed."""

    seed: int
    dice: random.Random = field(init=False)
    cluster: SimCluster = field(init=False)
    oracle: Oracle = field(init=False)
    faults: dict[str, int] = field(default_factory=dict)
    # Writes that were acknowledged to people: store key → uid; gone when they asked for its deletion.
    acked: dict[tuple[str, str], str] = field(default_factory=dict)
    _acked_revision: int = 0

    def __post_init__(self) -> None:
        """Make the machine and whoever watches it."""
        self.dice = random.Random(f"run {self.seed}")  # noqa: S311 - repeatable on purpose
        # Half of the seeds have their controllers behind the network, as they are beside a real Kubernetes.
        self.cluster = SimCluster(seed=self.seed, limits=LIMITS, apart=self.dice.random() < 0.5)
        log = self.cluster.log = _WatchedLog()
        self.oracle = Oracle(cluster=self.cluster)
        log.tell = self.oracle.recorded
        self.cluster.sim.processes.script = self._course

    async def go(self, events: int) -> Report:
        """Live until so many events have happened, then let everything come to rest."""
        await self._bring_up()
        faults = self._choose_faults()
        while len(self.oracle.trace) < events:
            await self._pause()
            act = self.dice.choice(self._acts() + faults) if self.dice.random() < 0.7 else None
            if act is not None:
                await act()
            await self._check()
        await self._come_to_rest()
        await self.cluster.kill_controllers()
        await self.cluster.kill_agent()
        await self.cluster.kill_control()
        digest = hashlib.sha256("\n".join(self.oracle.trace).encode()).hexdigest()
        return Report(seed=self.seed, events=len(self.oracle.trace), digest=digest, faults=self.faults)

    def _acts(self) -> list[Act]:
        return [
            self._submit,
            self._submit,
            self._submit,
            self._delete,
            self._replace,
            self._delete_pod,
            self._pause_job,
            self._suspend_job,
            self._restart_job,
            self._restart_again_and_again,
            self._rerun_job,
            self._resize_job,
        ]

    def _choose_faults(self) -> list[Act]:
        """Switch on some of the faults: each seed is broken in its own way."""
        every = (
            self._kill_control,
            self._kill_agent,
            self._kill_controllers,
            self._kill_both,
            self._cut_power,
            self._jump_clock,
            self._change_weather,
            self._fill_disk,
            self._lose_answers,
            self._lose_shim,
        )
        chosen: list[Act] = [fault for fault in every if self.dice.random() < 0.5]
        if self.cluster.apart and self._change_weather not in chosen:
            chosen.append(self._change_weather)
        return chosen

    async def _check(self) -> None:
        if self.oracle.violation is not None:
            raise self.oracle.violation
        self.oracle.executed()
        error = self.cluster.broken()
        if error is not None:
            raise InvariantBroken(f"a component ended by itself: {error!r}") from error
        store = self.cluster.store
        if store is not None and store.revision < self._acked_revision:
            raise InvariantBroken(
                f"I1: revision {store.revision} is older than {self._acked_revision}, which was acknowledged"
            )

    async def _pause(self) -> None:
        """Let a little happen: some turns, or some time."""
        if self.dice.random() < 0.5:
            for _ in range(self.dice.randrange(40)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(self.dice.expovariate(0.5))

    def _course(self, _intent: Intent) -> Course:
        return Course(
            seconds=self.dice.uniform(0.05, 30.0),
            exit_code=self.dice.choice(EXITS),
            on_term=self.dice.choice((143, 143, 0, None)),
        )

    # People

    async def _submit(self) -> None:
        name = self.dice.choice(NAMES)
        await self._ask(a_job(name, self.dice, ranked=self.seed % RANKED == RANKED - 1))

    async def _delete(self) -> None:
        job = self._some_job()
        if job is None:
            return
        # From the moment it was asked for, the job may be gone, whatever the answer.
        self.acked.pop((where(job).plural, name_of(job)), None)
        await self._try(self.cluster.client().delete(where(job), (namespace_of(job), name_of(job))))

    async def _replace(self) -> None:
        """Delete a job and make another of the same name before anything that follows the deletion has happened."""
        job = self._some_job()
        if job is None:
            return
        self.acked.pop((where(job).plural, name_of(job)), None)
        await self._try(self.cluster.client().delete(where(job), (namespace_of(job), name_of(job))))
        if not self.cluster.apart or self.dice.random() < 0.5:
            # Else controllers behind the network work on with what they know of the old one.
            self._happen("kill control")
            await self.cluster.kill_control()
            self.cluster.start_control()
            while self.cluster.network.app is None:
                await asyncio.sleep(0)
                await self._check()
        again = {key: job[key] for key in ("apiVersion", "kind", "spec")}
        await self._ask({**again, "metadata": {"name": name_of(job), "namespace": namespace_of(job)}})

    async def _delete_pod(self) -> None:
        pods = self.oracle.pods()
        if pods:
            pod = self.dice.choice(pods)
            await self._try(self.cluster.client().delete(PODS, (namespace_of(pod), name_of(pod))))

    async def _pause_job(self) -> None:
        job = self._some_job()
        if job is not None:
            await self._set_paused(job, is_paused=self.dice.random() < 0.5)

    async def _set_paused(self, job: Object, *, is_paused: bool) -> None:
        patch = {"spec": {"runMode": {"pause": {"enabled": is_paused}}}}
        await self._try(self.cluster.client().patch(where(job), (namespace_of(job), name_of(job)), patch))

    async def _suspend_job(self) -> None:
        """Do as a queueing system does."""
        job = self._some_job()
        if job is not None:
            await self._set_suspended(job, is_suspended=self.dice.random() < 0.5)

    async def _set_suspended(self, job: Object, *, is_suspended: bool) -> None:
        patch = {"spec": {"suspend": is_suspended}}
        await self._try(self.cluster.client().patch(where(job), (namespace_of(job), name_of(job)), patch))

    async def _restart_job(self) -> None:
        job = self._some_job()
        if job is not None:
            patch = {"metadata": {"annotations": {well_known_labels.RESTART: f"after-{revision_of(job)}"}}}
            await self._try(self.cluster.client().patch(where(job), (namespace_of(job), name_of(job)), patch))

    async def _restart_again_and_again(self) -> None:
        """Ask once more while the answer to what was asked before is just being written."""
        job = self._some_job()
        if job is None:
            return
        for number in range(4):
            patch = {"metadata": {"annotations": {well_known_labels.RESTART: f"{number} after-{revision_of(job)}"}}}
            await self._try(self.cluster.client().patch(where(job), (namespace_of(job), name_of(job)), patch))
            for _ in range(self.dice.randrange(15)):
                await asyncio.sleep(0)

    async def _rerun_job(self) -> None:
        job = self._some_job()
        if job is not None:
            await self._ask(copy_of(job, self.dice.choice(NAMES)))

    async def _resize_job(self) -> None:
        """Give an elastic job another size."""
        jobs = [job for job in self.oracle.jobs() if is_resizable(job)]
        if jobs:
            job = self.dice.choice(jobs)
            patch = {"spec": {"elastic": {"expectedReplicas": self.dice.randrange(1, 4)}}}
            await self._try(self.cluster.client().patch(where(job), (namespace_of(job), name_of(job)), patch))

    def _some_job(self) -> Object | None:
        jobs = self.oracle.jobs()
        return self.dice.choice(jobs) if jobs else None

    async def _ask(self, job: Object) -> None:
        """Ask for a job; whoever got an answer relies on it."""
        created = await self._try(self.cluster.client().create(where(job), job))
        if created is not None:
            self.acked[where(job).plural, name_of(job)] = uid_of(created)
            self._acked_revision = max(self._acked_revision, int(created["metadata"]["resourceVersion"]))

    async def _try(self, call: Awaitable[Any]) -> Any:
        """Do as people do: when the cluster says no, or nothing, go on with something else."""
        try:
            return await asyncio.wait_for(call, 30)
        except (PacelineError, TimeoutError):
            return None

    # Faults

    def _happen(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1
        self.oracle.say(f"fault {fault}")

    async def _kill_control(self) -> None:
        self._happen("kill control")
        await self.cluster.kill_control()
        await self._bring_up()

    async def _kill_agent(self) -> None:
        self._happen("kill agent")
        await self.cluster.kill_agent()
        await self._bring_up()

    async def _kill_controllers(self) -> None:
        if self.cluster.apart:
            self._happen("kill controllers")
            await self.cluster.kill_controllers()
            await self._bring_up()

    async def _kill_both(self) -> None:
        self._happen("kill both")
        await self.cluster.kill_controllers()
        await self.cluster.kill_control()
        await self._pause()
        await self.cluster.kill_agent()
        await self._pause()
        await self._bring_up()

    async def _cut_power(self) -> None:
        self._happen("cut power")
        await self.cluster.cut_power()
        await self._bring_up()

    async def _jump_clock(self) -> None:
        self._happen("jump clock")
        self.cluster.sim.clock.jump(self.dice.choice(JUMPS_SECONDS))

    async def _change_weather(self) -> None:
        self._happen("change weather")
        self.cluster.network.weather = Weather(
            lost_request=self.dice.choice((0.0, 0.05)),
            lost_reply=self.dice.choice((0.0, 0.05)),
            cut_stream=self.dice.choice((0.0, 0.02)),
            repeated=self.dice.choice((0.0, 0.05)),
            late_seconds=self.dice.choice((0.0, 0.5, 3.0)),
            node_late_seconds=self.dice.choice((0.0, 0.0, 10.0)),
        )

    async def _fill_disk(self) -> None:
        if self.cluster.control is None or not self.cluster.control.ready.is_set():
            # A new cluster on a full disk cannot even begin, and says so; that is another test's.
            return
        self._happen("fill disk")
        self.cluster.log.fail("append", *[DiskFault.FULL] * self.dice.randrange(1, 4))

    async def _lose_answers(self) -> None:
        self._happen("lose the disk's answers")
        self.cluster.log.fail("append", DiskFault.LOST_REPLY)

    async def _lose_shim(self) -> None:
        running = tuple(self.cluster.sim.processes.running())
        if running:
            self._happen("lose shim")
            self.cluster.sim.processes.lose(self.dice.choice(running))

    async def _bring_up(self) -> None:
        """Start what does not run; sometimes it is killed again before it is ready."""
        if self.cluster.control is None:
            self.cluster.start_control()
        if self.cluster.agent is None:
            self.cluster.start_agent()
        if self.cluster.apart and self.cluster.controllers is None:
            self.cluster.start_controllers()
        if self.dice.random() < 0.8:
            await self._all_ready()

    async def _all_ready(self) -> None:
        for component in (self.cluster.control, self.cluster.agent, self.cluster.controllers):
            while component is not None and not component.ready.is_set():
                await asyncio.sleep(READY_SECONDS)
                await self._check()

    async def _come_to_rest(self) -> None:
        """Stop all faults, let jobs on hold go on, and wait until every job is over."""
        self.oracle.say("faults stop")
        self.cluster.network.weather = Weather()
        self.cluster.log.forgive()
        await self._all_ready()
        deadline = self.cluster.sim.clock.monotonic() + REST_SECONDS
        while self.cluster.sim.clock.monotonic() < deadline:
            await asyncio.sleep(5)
            await self._check()
            for job in self.oracle.jobs():
                if (job.get("status") or {}).get("phase") == "Paused":
                    await self._set_paused(job, is_paused=False)
                if job["spec"].get("suspend"):
                    await self._set_suspended(job, is_suspended=False)
            if self._is_over():
                break
        # A moment for what follows the end: clean-up, cascades.
        await asyncio.sleep(60)
        self.oracle.executed()
        self.oracle.at_rest()
        self.oracle.cleaned_up()
        self._check_acked()

    def _is_over(self) -> bool:
        return all((job.get("status") or {}).get("phase") in FINAL for job in self.oracle.jobs())

    def _check_acked(self) -> None:
        """I1: everything that was acknowledged, and neither deleted since nor over and out of time, is there."""
        uids = {uid_of(job) for job in self.oracle.jobs()} | self.oracle.expiring
        for (_plural, name), uid in self.acked.items():
            if uid not in uids:
                raise InvariantBroken(f"I1: job {name} was acknowledged and is gone")


def simulate(seed: int, events: int) -> Report:
    """Run one seed; Failed carries the broken invariant, the last of the trace and the command that shows it again."""
    run: list[SimulationRun] = []

    async def main() -> Report:
        run.append(SimulationRun(seed=seed))
        return await run[0].go(events)

    # Collected at its own moments, garbage would cost a tenth of the time, and run what finalizes it in between.
    gc.disable()
    try:
        return run_simulated(seed, main())
    except Exception as error:
        tail = "\n  ".join(run[0].oracle.trace[-40:]) if run else ""
        again = f"PYTHONHASHSEED=0 .venv/bin/python -m paceline.testing.sim.run {seed} {events}"
        raise Failed(f"seed {seed}: {type(error).__name__}: {error}\n  {tail}\nsee it again: {again}") from error
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.stdout.write(f"{simulate(int(sys.argv[1]), int(sys.argv[2]))}\n")
