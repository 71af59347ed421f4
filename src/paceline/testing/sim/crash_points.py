"""Crashes by enumeration: every write that a component makes has a number, and the component can be killed at each.

In     a part of the world, and the name of the component that touches it.
Out    the same part, which counts the writes made through it and kills the component at those that were chosen.
Never  changes what a write does: it happened whole, or not at all.
"""

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterator, MutableMapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Any

import paceline
from paceline.client.requests import Request, Response
from paceline.testing.sim.backend import SimLog
from paceline.testing.sim.effects import SimFiles
from paceline.testing.sim.killable import Killed
from paceline.testing.sim.network import Wire
from paceline.testing.sim.processes import SimProcesses

SOURCE = Path(paceline.__file__).parent
# Whose writes these are: the nearest caller in one of the packages that must survive, else whoever put them together.
PACKAGES = ("store", "node", "controllers")
OTHERS = ("cluster", "environments", "host")

Send = Callable[[Request], Coroutine[Any, Any, Response]]
App = Callable[..., Coroutine[Any, Any, None]]

READING = frozenset({"GET", "HEAD"})
# What counts as a write, by what it is asked of.
WRITES: dict[type, tuple[str, tuple[str, ...]]] = {
    SimLog: ("log", ("append", "compact")),
    SimFiles: ("files", ("write", "overwrite", "make_folder", "make_beneath", "link", "share", "move", "remove")),
    SimProcesses: ("processes", ("start", "signal")),
}


class Moment(StrEnum):
    """When a component is killed: around one of its writes, or between two turns of the loop."""

    # Just before it: it never happens.
    BEFORE = "before"
    # Just after it, before the answer.
    AFTER = "after"
    # Once it was asked for: it happens later, when the component may be back already.
    LATE = "late"
    TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where in the product a write stands."""

    file: str
    function: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWrite:
    """One write of a component, by its number."""

    component: str
    number: int
    call: str
    site: Site
    turn: int

    def __str__(self) -> str:
        return f"{self.component} write {self.number}: {self.call} at {self.site}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """A component, and when it is killed."""

    component: str
    moment: Moment
    number: int

    def __str__(self) -> str:
        return f"{self.component} {self.moment} {self.number}"


@dataclass(slots=True)
class _Born:
    """One process of a component, from its start to its end."""

    is_over: bool = False


@dataclass(slots=True, kw_only=True)
class Taps:
    """Stands between the components and the world. Numbers go on over restarts."""

    # Ends a component's tasks and has it started again; called once it can do nothing any more.
    on_crash: Callable[[str], None]
    # Lets something happen later, whoever asked for it.
    later: Callable[[Coroutine[Any, Any, Any]], None]
    crashes: tuple[Crash, ...] = ()
    # Whether all components die when one does.
    together: bool = False
    writes: list[RecordedWrite] = field(default_factory=list)
    turns: int = 0
    # Where tasks waited between two turns, and at which turn that was first so.
    awaits: dict[Site, int] = field(default_factory=dict)
    # The crashes that have happened.
    done: list[Crash] = field(default_factory=list)
    _counts: dict[str, int] = field(default_factory=dict)
    _born: dict[str, _Born] = field(default_factory=dict)

    def start(self, component: str) -> None:
        """Take note that a component is started."""
        self._born[component] = _Born()

    def between(self, component: str, part: Any) -> Any:
        """Put a tap between a component and a part of the world."""
        tap = _Tap(self, component, self._born[component])
        if isinstance(part, Wire):
            return _Tapped(part, {"send": tap.send(part.send)})
        for kind, (name, calls) in WRITES.items():
            if isinstance(part, kind):
                return _Tapped(part, {call: tap.call(f"{name}.{call}", getattr(part, call)) for call in calls})
        if callable(part):
            return tap.app(part)
        raise TypeError(f"no tap fits {part!r}")

    def turn(self) -> None:
        """Take note that the loop begins another turn, and kill whoever dies at it."""
        self.turns += 1
        if not self.crashes:
            for site in _waiting():
                self.awaits.setdefault(site, self.turns)
        for crash in self.crashes:
            if crash.moment is Moment.TURN and crash.number == self.turns and crash.component in self._born:
                self._crash(crash)

    def begin(self, component: str, call: str) -> RecordedWrite:
        """Give a write its number."""
        number = self._counts[component] = self._counts.get(component, 0) + 1
        write = RecordedWrite(component=component, number=number, call=call, site=_site(), turn=self.turns)
        self.writes.append(write)
        self.check(write, Moment.BEFORE)
        return write

    def check(self, write: RecordedWrite, moment: Moment) -> None:
        """Kill the component if it is to die at this moment of this write."""
        if self.falls(write, moment):
            raise Killed(str(write))

    def falls(self, write: RecordedWrite, moment: Moment) -> bool:
        """Cut the component off if it is to die at this moment of this write, and tell whether it is."""
        crash = Crash(component=write.component, moment=moment, number=write.number)
        if crash not in self.crashes:
            return False
        self._crash(crash)
        return True

    def _crash(self, crash: Crash) -> None:
        if self._born[crash.component].is_over:
            return
        self.done.append(crash)
        for component in tuple(self._born) if self.together else (crash.component,):
            if not self._born[component].is_over:
                self._born[component].is_over = True
                self.on_crash(component)


class _Tapped:
    """A part of the world, some of whose calls are tapped."""

    def __init__(self, part: object, calls: dict[str, Any]) -> None:
        self._part = part
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls.get(name) or getattr(self._part, name)


class _Tap:
    """Counts the writes of one process, which has no effect on anything once it was killed."""

    def __init__(self, taps: Taps, component: str, born: _Born) -> None:
        self._taps = taps
        self._component = component
        self._born = born

    def call(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Tap a call."""
        if inspect.iscoroutinefunction(call):

            @functools.wraps(call)
            async def later(*args: Any, **options: Any) -> Any:
                return await self._around(name, call(*args, **options))

            return later

        @functools.wraps(call)
        def now(*args: Any, **options: Any) -> Any:
            write = self._begin(name)
            try:
                return call(*args, **options)
            finally:
                self._taps.check(write, Moment.AFTER)

        return now

    def send(self, send: Send) -> Send:
        """Tap the requests that change something."""

        async def tapped(request: Request) -> Response:
            if request.method in READING:
                return await send(request)
            answer: Response = await self._around(f"{request.method} {request.path}", send(request))
            return answer

        return tapped

    def app(self, app: App) -> App:
        """Tap the requests that change something, where they go straight into the server."""

        async def tapped(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            if scope["method"] in READING:
                await app(scope, receive, send)
            else:
                await self._around(f"{scope['method']} {scope['path']}", app(scope, receive, send))

        return tapped

    async def _around(self, name: str, call: Coroutine[Any, Any, Any]) -> Any:
        try:
            write = self._begin(name)
        except Killed:
            call.close()
            raise
        if self._taps.falls(write, Moment.LATE):
            self._taps.later(call)
            raise Killed(name)
        try:
            return await call
        finally:
            self._taps.check(write, Moment.AFTER)

    def _begin(self, name: str) -> RecordedWrite:
        if self._born.is_over:
            raise Killed(name)
        return self._taps.begin(self._component, name)


def _site() -> Site:
    """Find who in the product makes the write that is just being made."""
    site: Site | None = None
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the only way to learn who calls
    while frame is not None:
        file = _file(frame.f_code.co_filename)
        package = file.partition("/")[0]
        if package in PACKAGES or (package in OTHERS and site is None):
            site = Site(file=file, function=frame.f_code.co_qualname, line=frame.f_lineno)
            if package in PACKAGES:
                return site
        frame = frame.f_back
    return site or Site(file="", function="", line=0)


def _waiting() -> Iterator[Site]:
    """Find where in the product the tasks of the running loop wait."""
    for task in asyncio.all_tasks(asyncio.get_event_loop()):
        step: Any = task.get_coro()
        while (code := getattr(step, "cr_code", None)) is not None:
            # At every turn for every task: most steps are other people's, and are passed over without a frame.
            if (file := _own_file(code.co_filename)) and step.cr_frame:
                yield Site(file=file, function=code.co_qualname, line=step.cr_frame.f_lineno)
            step = step.cr_await


@functools.cache
def _own_file(path: str) -> str:
    """Give the path of a file of the packages that must survive; nothing for other files."""
    file = _file(path)
    return file if file.partition("/")[0] in PACKAGES else ""


@functools.cache
def _file(path: str) -> str:
    """Give the path of a file of the product from its root; nothing for other files."""
    file = Path(path)
    return file.relative_to(SOURCE).as_posix() if file.is_relative_to(SOURCE) else ""
