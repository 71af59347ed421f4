"""Simulated shims: values whose course a test writes, on the same folders as the real ones."""

import asyncio
import contextlib
import json
import signal as signals
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.effects import Clock, Files, ProcessHandle
from paceline.node.host_info import CannotStart
from paceline.node.images import NOT_PULLED, BuiltEnvironment
from paceline.node.runtime import bwrap, shim
from paceline.node.runtime import cri_log as output

KILLED, TERMINATED = 137, 143


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a simulated container does: how long it runs (None: until told), how it ends, what it says."""

    seconds: float | None = None
    exit_code: int = 0
    # With which code it ends when asked to; None does not listen.
    on_term: int | None = TERMINATED
    output: str = ""
    # What it leaves for the status of its container when it ends by itself.
    message: str = ""
    # Why the program could not be executed.
    start_error: str = ""


Intent = dict[str, Any]


def runs_until_told(_intent: Intent) -> Course:
    """Give the course of a container that ends only when the test or the agent says so."""
    return Course()


@dataclass(slots=True, kw_only=True)
class Shim:
    """One live shim."""

    folder: Path
    identity: ProcessHandle
    intent: Intent
    course: Course
    started_at: datetime
    waiting: list[asyncio.Future[None]] = field(default_factory=list)


class SimProcesses:
    """Shims that obey their script. `ledger` lists every execution, so that a test can see one that came twice."""

    def __init__(self, files: Files, clock: Clock) -> None:
        self.script: Callable[[Intent], Course] = runs_until_told
        self.ledger: list[Path] = []
        self._files = files
        self._clock = clock
        self._live: dict[Path, Shim] = {}
        # Shims that have their folder's lock and have not yet said who they are.
        self._locked: set[Path] = set()
        self._boots = 1
        self._last_pid = 1000

    def stamp_by(self, clock: Clock) -> None:
        """Have shims stamp records and logs by this clock from now on."""
        self._clock = clock

    def boot_id(self) -> str:
        """Tell which simulated boot this is."""
        return f"boot-{self._boots}"

    async def start(self, folder: Path) -> None:
        """Have a shim started; it comes up also when the one who asked for it does not live to see that."""
        await asyncio.shield(asyncio.get_running_loop().create_task(self._come_up(folder)))

    async def _come_up(self, folder: Path) -> None:
        """Run a container's script once, as the real shim would: lock, look, say who it is, begin."""
        await asyncio.sleep(0)
        if self._files.exists(folder / shim.STARTED):
            self._files.remove(folder / shim.INTENT)
            return
        if self.holds(folder):
            return
        self._locked.add(folder)
        try:
            await asyncio.sleep(0)
            intent: Intent = json.loads(self._files.read(folder / shim.INTENT))
            await asyncio.sleep(0)
        except FileNotFoundError:
            return
        finally:
            self._locked.discard(folder)
        self._last_pid += 1
        live = Shim(
            folder=folder,
            identity=ProcessHandle(pid=self._last_pid, start_ticks=len(self.ledger), boot_id=self.boot_id()),
            intent=intent,
            course=self.script(intent),
            started_at=self._clock.now(),
        )
        self._files.write(folder / shim.STARTED, _started(live))
        self._files.remove(folder / shim.INTENT)
        self._live[folder] = live
        self._begin(live)

    def holds(self, folder: Path) -> bool:
        """Tell whether a live shim has this folder."""
        return folder in self._live or folder in self._locked

    def alive(self, handle: ProcessHandle) -> bool:
        """Tell whether this shim still runs."""
        return self._find(handle) is not None

    async def ended(self, handle: ProcessHandle) -> None:
        """Return when this shim is gone."""
        live = self._find(handle)
        if live is not None:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            live.waiting.append(over)
            await over

    def signal(self, handle: ProcessHandle, number: int) -> None:
        """Pass a signal to a shim, which answers as its course says."""
        live = self._find(handle)
        if live is None:
            return
        if number == signals.SIGKILL:
            self.lose(live.folder)
        elif number == signals.SIGQUIT:
            self.finish(live.folder, KILLED)
        elif number == signals.SIGTERM and live.course.on_term is not None:
            self.finish(live.folder, live.course.on_term)

    def running(self) -> dict[Path, Intent]:
        """Give the folders of live shims and what each was asked to run."""
        return {folder: live.intent for folder, live in self._live.items()}

    def finish(self, folder: Path, exit_code: int = 0, *, reason: str = "", message: str = "") -> None:
        """Let a container end: its record is written, then its shim is gone."""
        live = self._live[folder]
        record = {
            "exitCode": exit_code,
            "signal": None,
            "reason": reason or ("Completed" if exit_code == 0 else "Error"),
            "message": message,
            "startedAt": _stamp(live.started_at),
            "finishedAt": _stamp(self._clock.now()),
            "maxRssKib": 0,
            "lostLogBytes": 0,
        }
        with contextlib.suppress(FileNotFoundError):  # Its folder was removed: nobody asks.
            self._files.write(folder / shim.EXIT, shim.encode(record))
        self.lose(folder)

    def lose(self, folder: Path) -> None:
        """Let a shim die without a word, and its container with it."""
        live = self._live.pop(folder)
        for over in live.waiting:
            if not over.done():
                over.set_result(None)

    def reboot(self) -> None:
        """Let the machine come up again: no shim is left, and the boot is another one."""
        for folder in tuple(self._live):
            self.lose(folder)
        self._locked.clear()
        self._boots += 1

    def say(self, folder: Path, text: str, *, stream: str = "stdout") -> None:
        """Let a container write whole lines to its log."""
        path, moment = folder / shim.LOG, _stamp(self._clock.now())
        old = self._files.read(path) if self._files.exists(path) else b""
        lines = "".join(f"{moment} {stream} F {line}\n" for line in text.splitlines())
        self._files.overwrite(path, old + lines.encode())

    def _begin(self, live: Shim) -> None:
        course = live.course
        if course.start_error:
            reason, message = "StartError", course.start_error
            self.finish(live.folder, bwrap.NOT_STARTED, reason=reason, message=message)
            return
        self.ledger.append(live.folder)
        if course.output:
            self.say(live.folder, course.output)
        if course.seconds is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(course.seconds, self._finish_if_alive, live.identity)

    def _finish_if_alive(self, handle: ProcessHandle) -> None:
        if live := self._find(handle):
            self.finish(live.folder, live.course.exit_code, message=live.course.message)

    def _find(self, handle: ProcessHandle) -> Shim | None:
        return next((shim for shim in self._live.values() if shim.identity == handle), None)


def _started(live: Shim) -> bytes:
    handle = live.identity
    record = {"pid": handle.pid, "startTicks": handle.start_ticks, "bootId": handle.boot_id}
    started = {"startedAt": _stamp(live.started_at), "environment": live.intent.get("environment", "")}
    return shim.encode(record | started)


def _stamp(moment: datetime) -> str:
    return output.stamp(int(moment.timestamp() * 1_000_000) * 1000)


class StaticEnvironments:
    """Builds nothing: for nodes on which the user creates all environments."""

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Raise CannotStart."""
        raise CannotStart(NOT_PULLED, f"environment {name} is not built, and this node builds none")

    def listen(self, on_change: Callable[[], None]) -> None:
        """Do nothing."""
