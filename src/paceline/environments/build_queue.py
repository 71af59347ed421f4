"""Build environments while the agent runs, one build of each at a time: the real EnvironmentProvider."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from paceline.effects import Clock
from paceline.environments.builder import Build, BuildFailed
from paceline.environments.cache import EnvironmentCache, mark_used
from paceline.environments.specs import EnvironmentSpec, EnvironmentSpecs
from paceline.errors import HostError, Invalid
from paceline.node.host_info import CannotStart
from paceline.node.images import ALWAYS, CREATING, NEVER, NOT_PULLED, BuiltEnvironment

# The back-off after a failed build, first and longest, as a kubelet's after a failed pull.
FIRST_SECONDS, LAST_SECONDS = 10.0, 300.0
# How long packages count as up to date: all members of a job start within this time.
FRESH_SECONDS = 60.0
NOT_RENEWED = "the existing environment is used, because the check for newer packages failed"


@dataclass(slots=True, kw_only=True)
class _BuildState:
    """The state of one environment that is not built, or may be out of date."""

    build: Build | None = None
    progress: str = ""
    failure: str = ""
    failures: int = 0
    try_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class BuildQueue:
    """Builds environments with uv while `run` runs."""

    cache: EnvironmentCache
    specs: EnvironmentSpecs
    clock: Clock
    # By the title of a spec.
    _states: dict[str, _BuildState] = field(default_factory=dict, init=False)
    _listeners: list[Callable[[], None]] = field(default_factory=list, init=False)
    _group: asyncio.TaskGroup | None = field(default=None, init=False)

    def listen(self, on_change: Callable[[], None]) -> None:
        self._listeners.append(on_change)

    def open(self, name: str, *, policy: str) -> BuiltEnvironment:
        """Return an environment; CannotStart while it is being built, checked for newer packages, or cannot be."""
        try:
            spec = self.specs.read(name)
        except Invalid as error:
            raise CannotStart(NOT_PULLED, str(error)) from error
        folder = self.cache.folder(spec)
        is_built = folder.exists()
        if is_built and (policy != ALWAYS or not spec.has_unpinned):
            mark_used(folder)
            return BuiltEnvironment(folder=folder)
        if not is_built and policy == NEVER:
            raise CannotStart(NOT_PULLED, f"environment {name} is not built; build it with: paceline env build {name}")
        state = self._states.setdefault(spec.title, _BuildState())
        was_removed = not is_built and not state.failure
        if state.build is None and (was_removed or self.clock.monotonic() >= state.try_at):
            self._begin(spec, state, is_renewal=is_built)
        if state.build is not None:
            raise CannotStart(CREATING, f"building environment {name}{': ' * bool(state.progress)}{state.progress}")
        if not is_built:
            raise CannotStart(NOT_PULLED, state.failure)
        mark_used(folder)
        return BuiltEnvironment(folder=folder, note=state.failure and f"{NOT_RENEWED}: {state.failure}")

    async def run(self) -> None:
        """Run builds until cancelled; then they are stopped."""
        try:
            async with asyncio.TaskGroup() as self._group:
                # Never set: the group exists as long as the agent runs.
                await asyncio.Event().wait()
        finally:
            self._group = None

    def _begin(self, spec: EnvironmentSpec, state: _BuildState, *, is_renewal: bool) -> None:
        if self._group is None:
            raise CannotStart(NOT_PULLED, f"environment {spec.name} is not built, and the agent is shutting down")

        def report(line: str) -> None:
            state.progress = line

        state.build, state.progress = Build(cache=self.cache, spec=spec, is_renewal=is_renewal, report=report), ""
        self._group.create_task(self._build(state.build, state))

    async def _build(self, build: Build, state: _BuildState) -> None:
        try:
            await _run(build)
            state.failures, state.failure = 0, ""
            state.try_at = self.clock.monotonic() + FRESH_SECONDS
        except (BuildFailed, HostError) as error:
            state.failure = str(error)
            state.failures += 1
            # No growing back-off for a missing uv, so that installing it has an effect soon.
            failures = 1 if isinstance(error, HostError) else state.failures
            pause = FRESH_SECONDS if build.is_renewal else min(FIRST_SECONDS * 2 ** (failures - 1), LAST_SECONDS)
            state.try_at = self.clock.monotonic() + pause
        finally:
            state.build = None
        for on_change in self._listeners:
            on_change()


async def _run(build: Build) -> None:
    """Run a build on a thread; when cancelled, stop it and wait until it has cleaned up."""
    task = asyncio.get_running_loop().run_in_executor(None, build.run)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        build.stop()
        with contextlib.suppress(BuildFailed, HostError):
            await task
        raise
