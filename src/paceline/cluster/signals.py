"""Run a program until a signal."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def run_until_signalled(work: Coroutine[Any, Any, None], stop: asyncio.Event | None = None) -> None:
    """Run `work` until SIGTERM, SIGINT or until `stop` is set; raise what it raises."""
    stop = stop or asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        await stop.wait()
        working.cancel()
