"""Lives whose controllers are killed at one of their writes and started again: the end must be the same."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, name_of, uid_of
from paceline.client.http.transport import Transport
from paceline.client.interface import EVENTS, PODS, SECRETS, SERVICES
from paceline.testing.sim.killable import Killed
from tests.kube.player import attempt_of, place_of
from tests.kube.stage import Stage, Tap, staged
from tests.unit.kinds.manifests import generic, mpi, pytorch, replica

REST_SECONDS, PATIENCE_SECONDS = 0.5, 20.0
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
# Only the embedded API server writes who asked for a change.
_ASKED_BY = re.compile(r"(, created|; resumed)? by admin\b")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A job, what happens to it once it runs, and how it ends.

    Nothing happens before the controllers have said that they saw what was before: else it were chance what they see.
    """

    job: dict[str, Any]
    act: Callable[[Stage, Object], Awaitable[None]]
    phase: str = "Succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was there in the end, in words that do not depend on when it happened and to which object."""

    status: dict[str, Any]
    # Place, attempt and phase of every pod.
    pods: tuple[tuple[str, int, str], ...]
    others: tuple[str, ...]
    # Every pod that ever was, and how many of that name there were.
    made: tuple[tuple[str, int], ...]
    events: frozenset[str]
    writes: int


async def _runs(stage: Stage, job: Object, count: int, attempt: int = 0) -> None:
    """Wait until all members run, in a certain try, and the job says so."""
    await stage.runs(count)

    async def is_told() -> bool:
        status = (await stage.read(job)).get("status") or {}
        told = (status.get("phase"), status.get("attempt"), (status.get("aggregate") or {}).get("running"))
        return told == ("Running", attempt, count)

    await stage.until(is_told)


async def _gang_comes_back(stage: Stage, job: Object) -> None:
    await _runs(stage, job, 2)
    stage.play(lambda place, attempt, _running: 1 if (place, attempt) == ("worker-1", 0) else None)
    await _runs(stage, job, 2, attempt=1)
    stage.play(lambda *_: 0)


async def _member_comes_back(stage: Stage, job: Object) -> None:
    await _runs(stage, job, 2)
    stage.play(lambda place, attempt, _running: 7 if (place, attempt) == ("worker-0", 0) else None)

    async def is_back() -> bool:
        return sorted(map(attempt_of, stage.player.running())) == [0, 1]

    await stage.until(is_back)
    await _runs(stage, job, 2)
    stage.play(lambda *_: 0)


async def _fails(stage: Stage, job: Object) -> None:
    await _runs(stage, job, 2)
    stage.play(lambda place, *_: 3 if place == "worker-1" else None)


async def _ends(stage: Stage, job: Object) -> None:
    await _runs(stage, job, 3)
    stage.play(lambda *_: 0)


async def _pauses(stage: Stage, job: Object) -> None:
    await _runs(stage, job, 2)
    await stage.change(job, {"runMode": {"pause": {"enabled": True}}})
    await stage.becomes(job, "Paused")
    await stage.runs(0)
    await stage.change(job, {"runMode": {"pause": {"enabled": False}}})
    await _runs(stage, job, 2, attempt=1)
    stage.play(lambda *_: 0)


_TWICE = {"policy": "OnFailure", "limit": 2}
LIVES = {
    "a gang that comes back": Life(job=pytorch(), act=_gang_comes_back),
    "a member that comes back alone": Life(job=generic(replica(restartPolicy=_TWICE)), act=_member_comes_back),
    "a job that fails": Life(job=pytorch(runPolicy={"backoffLimit": 0}), act=_fails, phase="Failed"),
    "a job that starts together": Life(job=mpi(), act=_ends),
    "a job that is paused": Life(job=pytorch(), act=_pauses),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """When the controllers are killed, and how the life ends that it is to come to all the same."""

    moment: str
    number: int
    told: Outcome


async def lived(transport: Transport, life: Life, kill: Kill | None = None) -> Outcome:
    """Live a life once, its controllers killed before or after one of their writes and started again."""
    async with staged(transport) as stage:
        tap = Tap(transport)

        def around(when: str, count: int) -> None:
            if kill is not None and (when, count) == (kill.moment, kill.number):
                raise Killed(f"{when} write {count}: {tap.writes[-1]}")

        tap.around = around
        async with asyncio.TaskGroup() as group:
            is_up = asyncio.Event()
            keeper = group.create_task(_kept(stage, tap, is_up))
            job = await stage.submit(life.job)
            await life.act(stage, job)
            await stage.becomes(job, life.phase)
            await _rest(tap, is_up)
            outcome = await _outcome(stage, job, tap)
            deadline = time.monotonic() + PATIENCE_SECONDS
            # On a busy machine news may take longer than a rest.
            while kill is not None and differences(kill.told, outcome) and time.monotonic() < deadline:
                await _rest(tap, is_up)
                outcome = await _outcome(stage, job, tap)
            keeper.cancel()
        return outcome


async def _kept(stage: Stage, tap: Tap, is_up: asyncio.Event) -> None:
    """Run the controllers, and start them again when they were killed."""
    while True:
        is_up.clear()
        try:
            await stage.control(tap)(is_up)
        except* Killed:
            pass


async def _rest(tap: Tap, is_up: asyncio.Event) -> None:
    """Wait until the controllers run and have written nothing for a while."""
    written = -1
    while written != len(tap.writes):
        written = len(tap.writes)
        await is_up.wait()
        await asyncio.sleep(REST_SECONDS)


async def _outcome(stage: Stage, job: Object, tap: Tap) -> Outcome:
    there = await stage.read(job)
    stem = next(iter(stage.player.uids)).split("-")[1]

    def plain(text: str) -> str:
        text = _ASKED_BY.sub("", text).replace("the job is resumed after", "the job resumes after")
        text = _UID.sub("UID", _TIME.sub("TIME", text))
        return text.replace(stem, "STEM").replace(stage.namespace, "NAMESPACE")

    events = [each for each in await stage.all(EVENTS) if each["involvedObject"]["uid"] == uid_of(there)]
    pods = await stage.all(PODS)
    others = [f"{each['kind']} {name_of(each)}" for where in (SERVICES, SECRETS) for each in await stage.all(where)]
    return Outcome(
        status=_picture(there["status"], plain),
        pods=tuple(sorted((place_of(pod), attempt_of(pod), pod["status"]["phase"]) for pod in pods)),
        others=tuple(sorted(map(plain, others))),
        made=tuple(sorted((plain(name), len(uids)) for name, uids in stage.player.uids.items())),
        events=frozenset(f"{each['reason']}: {plain(each['message'])} x{each['count']}" for each in events),
        writes=len(tap.writes),
    )


def differences(told: Outcome, seen: Outcome) -> list[str]:
    """Say how a life that was broken off ended otherwise; a story may be lost with its teller, or told twice."""
    found = [
        f"{part}: {getattr(told, part)}, now {getattr(seen, part)}"
        for part in ("status", "pods", "others", "made")
        if getattr(told, part) != getattr(seen, part)
    ]
    known, heard = ({event.rpartition(" x")[0] for event in each.events} for each in (told, seen))
    return [*found, *(f"event {event}" for event in sorted(heard - known))]


# What depends on who was faster.
_BY_CHANCE = frozenset({"pausedSeconds", "lastLines"})


def _picture(value: Any, plain: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _picture(each, plain) for key, each in value.items() if key not in _BY_CHANCE}
    if isinstance(value, list):
        return [_picture(each, plain) for each in value]
    return plain(value) if isinstance(value, str) else value
