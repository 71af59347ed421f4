"""The real side of node/images.py: builds run beside the agent, one of each environment at a time."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.effects import Clock
from paceline.environments.builder import Build, Environments, NotBuilt
from paceline.environments.cache import mark_used
from paceline.environments.specs import Recipe, Recipes
from paceline.errors import HostError, Invalid
from paceline.node.host_info import CannotStart
from paceline.node.images import ALWAYS, CREATING, NEVER, NOT_PULLED, BuiltEnvironment

# As long waits a kubelet after a pull that failed: at first, and at most.
FIRST_SECONDS, LAST_SECONDS = 10.0, 300.0
# How long nobody looks for newer packages again: all members of a job start within it.
FRESH_SECONDS = 60.0
NOT_LOOKED = "what was built before is used, because newer packages could not be had"


@dataclass(slots=True, kw_only=True)
class _Work:
    """What is known of one environment that is not there, or may be out of date."""

    build: Build | None = None
    line: str = ""
    failure: str = ""
    failures: int = 0
    try_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class RealWorkshop:
    """Has environments built by uv while `run` runs."""

    place: Environments
    recipes: Recipes
    clock: Clock
    # By the title of a recipe.
    _work: dict[str, _Work] = field(default_factory=dict, init=False)
    _listeners: list[Callable[[], None]] = field(default_factory=list, init=False)
    _group: asyncio.TaskGroup | None = field(default=None, init=False)

    def listen(self, on_change: Callable[[], None]) -> None:
        """Have a call made whenever a build has ended."""
        self._listeners.append(on_change)

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Give an environment; CannotStart while there is none or a newer one is looked for, and its build is begun."""
        try:
            recipe = self.recipes.read(name)
        except Invalid as error:
            raise CannotStart(NOT_PULLED, str(error)) from error
        folder = self.place.folder(recipe)
        is_there = folder.exists()
        if is_there and (policy != ALWAYS or not recipe.is_open):
            mark_used(folder)
            return BuiltEnvironment(folder=folder)
        if not is_there and policy == NEVER:
            raise CannotStart(
                NOT_PULLED, f"environment {name} is not built; build it with: paceline image build {name}"
            )
        work = self._work.setdefault(recipe.title, _Work())
        is_removed = not is_there and not work.failure
        if work.build is None and (is_removed or self.clock.monotonic() >= work.try_at):
            self._begin(recipe, work, is_renewal=is_there)
        if work.build is not None:
            raise CannotStart(CREATING, f"building environment {name}{': ' * bool(work.line)}{work.line}")
        if not is_there:
            raise CannotStart(NOT_PULLED, work.failure)
        mark_used(folder)
        return BuiltEnvironment(folder=folder, note=work.failure and f"{NOT_LOOKED}: {work.failure}")

    async def run(self) -> None:
        """Let builds run until cancelled; then they end at once."""
        try:
            async with asyncio.TaskGroup() as self._group:
                # Nothing sets it: the group is there for as long as the agent runs.
                await asyncio.Event().wait()
        finally:
            self._group = None

    def _begin(self, recipe: Recipe, work: _Work, *, is_renewal: bool) -> None:
        if self._group is None:
            raise CannotStart(NOT_PULLED, f"environment {recipe.name} is not built, and the agent is about to end")

        def say(line: str) -> None:
            work.line = line

        work.build, work.line = Build(place=self.place, recipe=recipe, is_renewal=is_renewal, say=say), ""
        self._group.create_task(self._build(work.build, work))

    async def _build(self, build: Build, work: _Work) -> None:
        try:
            await _to_its_end(build)
            work.failures, work.failure = 0, ""
            work.try_at = self.clock.monotonic() + FRESH_SECONDS
        except (NotBuilt, HostError) as error:
            work.failure = str(error)
            work.failures += 1
            # Whoever installs uv need not wait long.
            tries = 1 if isinstance(error, HostError) else work.failures
            pause = FRESH_SECONDS if build.is_renewal else min(FIRST_SECONDS * 2 ** (tries - 1), LAST_SECONDS)
            work.try_at = self.clock.monotonic() + pause
        finally:
            work.build = None
        for tell in self._listeners:
            tell()


async def _to_its_end(build: Build) -> None:
    """Run a build on a thread; when told to end, end uv and wait until it has left nothing."""
    working = asyncio.get_running_loop().run_in_executor(None, build.run)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        build.stop()
        with contextlib.suppress(NotBuilt, HostError):
            await working
        raise
