"""Lets the control process restart its supervisor when that is killed."""

import asyncio
import contextlib
import logging
import os
import sys
from dataclasses import dataclass

from paceline.settings import Settings

log = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorProcess:
    """The process that started this one; in the foreground it is a command in a terminal."""

    pid: int
    is_in_front: bool


async def keep_supervisor(settings: Settings, supervisor: SupervisorProcess, stop: asyncio.Event) -> None:
    """Start another supervisor when this process has lost its own; in the foreground, stop instead."""
    await _wait_for_exit(supervisor.pid)
    if supervisor.is_in_front:
        stop.set()
        return
    while True:
        log.warning("the supervisor exited and is restarted")
        await _run(settings, stop)
        await asyncio.sleep(PAUSE_SECONDS)


async def _run(settings: Settings, stop: asyncio.Event) -> None:
    """Run one supervisor, which adopts this process, until it exits."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "paceline.cluster.supervisor", str(settings.home), "--adopt", str(os.getpid())),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    try:
        await process.wait()
    except asyncio.CancelledError:
        if stop.is_set():
            # Stop the supervisor only on request: after a bug it must restart this process.
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        raise


async def _wait_for_exit(pid: int) -> None:
    """Wait until the process that started this one has exited."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        if os.getppid() != pid:
            return
        loop.add_reader(pidfd, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
