"""An event loop on which time is virtual and a seed decides who goes next: the same seed, the same run."""

import asyncio
import itertools
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from paceline.testing.sim.killable import Killed

T = TypeVar("T")

# So many turns without time passing mean that somebody spins.
MAX_TURNS_AT_ONE_MOMENT = 100_000


class Stuck(Exception):
    """Nothing can ever happen again, or nothing lets time pass."""


class _Selector(selectors.SelectSelector):
    """Lets time pass instead of waiting for it; there is no input in a simulation."""

    def __init__(self, loop: "SimLoop") -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("every task waits for something that nobody will do")
        self._loop.pass_time(timeout)
        return []


class _Task(asyncio.Task[Any]):
    """A task whose place in a set depends on when it was made, not on where in memory it happens to lie."""

    def __init__(self, number: int, *args: Any, **options: Any) -> None:
        self._number = number
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimLoop(asyncio.SelectorEventLoop):
    """Runs tasks in an order drawn from the seed, and jumps to the next timer when all of them wait."""

    def __init__(self, seed: int) -> None:
        self._virtual = 0.0
        self._turns = 0
        # Told before every turn, for whoever has something happen between two of them.
        self.on_turn: Callable[[], None] = lambda: None
        self._dice = random.Random(f"loop {seed}")  # noqa: S311 - repeatable on purpose
        super().__init__(_Selector(self))
        numbers = itertools.count()
        self.set_task_factory(lambda loop, coro, **options: _Task(next(numbers), coro, loop=loop, **options))

    def time(self) -> float:
        """Tell the virtual seconds since the start."""
        return self._virtual

    def pass_time(self, seconds: float) -> None:
        """Let virtual time pass."""
        if seconds > 0:
            self._virtual += seconds
            self._turns = 0

    def _run_once(self) -> None:
        self.on_turn()
        self._turns += 1
        if self._turns > MAX_TURNS_AT_ONE_MOMENT:
            raise Stuck(f"{MAX_TURNS_AT_ONE_MOMENT} turns at {self._virtual:.3f} s: somebody spins")
        ready = self._ready  # type: ignore[attr-defined]
        if len(ready) > 1:
            # By hand: `random.shuffle` draws each number with care that a simulation of millions of turns pays for.
            draw = self._dice.random
            for last in range(len(ready) - 1, 0, -1):
                other = int(draw() * (last + 1))
                ready[last], ready[other] = ready[other], ready[last]
        super()._run_once()  # type: ignore[misc]


def _handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Pass over what killed components still try; everything else is said as ever."""
    if not isinstance(context.get("exception"), Killed):
        loop.default_exception_handler(context)


def run_simulated(seed: int, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=lambda: SimLoop(seed)) as runner:
        runner.get_loop().set_exception_handler(_handle)
        return runner.run(main)
