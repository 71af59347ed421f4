"""Work that is too much for the loop at once: in slices between which others have their turn, or on another thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeVar

from paceline.effects import Executor

T = TypeVar("T")

# What one turn reads at most: a few milliseconds of reading JSON, or of writing rows of a table.
SLICE_BYTES = 512 * 1024
# What an object costs however small it is.
OBJECT_BYTES = 2048
# A body of this size is read and checked elsewhere; smaller ones take less than going there and back.
LARGE_BYTES = 64 * 1024


async def in_slices(values: Iterable[T], size_of: Callable[[T], int]) -> AsyncIterator[list[T]]:
    """Yield values some at a time; before each next slice everybody else has a turn."""
    some: list[T] = []
    spent = 0
    for value in values:
        some.append(value)
        spent += OBJECT_BYTES + size_of(value)
        if spent >= SLICE_BYTES:
            yield some
            some, spent = [], 0
            await asyncio.sleep(0)
    if some:
        yield some


def count_in_slice(sizes: Sequence[int], most: int) -> int:
    """Return how many of some things are handled together: as many as a slice holds, at least one."""
    spent = 0
    for count, size in enumerate(sizes[:most]):
        spent += OBJECT_BYTES + size
        if count and spent > SLICE_BYTES:
            return count
    return min(most, len(sizes))


class InlineExecutor:
    """Runs everything on the spot."""

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` now."""
        return call()


async def offload(blocking: Executor, size: int, call: Callable[[], T]) -> T:
    """Run a call whose work grows with `size`: at once where that is small, else elsewhere.

    What it reads of the store may be changed meanwhile, so whatever it decides is written under a guard.
    """
    return call() if size < LARGE_BYTES else await blocking.run(call)
