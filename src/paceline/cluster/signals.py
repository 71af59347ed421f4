"""A program works until a signal tells it to stop."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def run_until_signalled(work: Coroutine[Any, Any, None], told: asyncio.Event | None = None) -> None:
    """Work until SIGTERM, SIGINT or whoever else sets `told` says stop; what the work raises is raised here."""
    told = told or asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        await told.wait()
        working.cancel()
