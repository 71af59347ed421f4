"""Long work on the event loop: in slices that let other tasks run, or on another thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeVar

from paceline.effects import Executor

T = TypeVar("T")

# Bytes per slice: a few milliseconds of decoding JSON or rendering rows.
SLICE_BYTES = 512 * 1024
# Fixed cost of an object.
OBJECT_BYTES = 2048
# Smaller bodies take less time than switching threads.
LARGE_BYTES = 64 * 1024


async def in_slices(values: Iterable[T], size_of: Callable[[T], int]) -> AsyncIterator[list[T]]:
    """Yield values in slices; other tasks run between two slices."""
    batch: list[T] = []
    spent = 0
    for value in values:
        batch.append(value)
        spent += OBJECT_BYTES + size_of(value)
        if spent >= SLICE_BYTES:
            yield batch
            batch, spent = [], 0
            await asyncio.sleep(0)
    if batch:
        yield batch


def count_in_slice(sizes: Sequence[int], most: int) -> int:
    spent = 0
    for count, size in enumerate(sizes[:most]):
        spent += OBJECT_BYTES + size
        if count and spent > SLICE_BYTES:
            return count
    return min(most, len(sizes))


class InlineExecutor:
    async def run(self, call: Callable[[], T]) -> T:
        return call()


async def offload(blocking: Executor, size: int, call: Callable[[], T]) -> T:
    """Run a call whose cost grows with `size`: small ones here, large ones in the executor.

    The store may change while it runs, so the result must be written with a precondition.
    """
    return call() if size < LARGE_BYTES else await blocking.run(call)
