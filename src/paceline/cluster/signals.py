"""Run a program until a signal, or until the process that started it has ended."""

import asyncio
import os
import signal
import sys
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


def stop_with_parent(stop: asyncio.Event) -> None:
    """Set `stop` when standard input ends: it is a pipe from the process that started this one."""
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _read_on, stop)


def _read_on(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()
