"""The supervisor beside the control process: one at a time, started again when it is killed."""

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
class Supervisor:
    """The process that started this one; one in front is a command that somebody sees."""

    pid: int
    is_in_front: bool


async def keep_supervisor(settings: Settings, supervisor: Supervisor, told: asyncio.Event) -> None:
    """Start another supervisor when this process has lost its own; behind a command in front, end with it instead."""
    await _gone(supervisor.pid)
    if supervisor.is_in_front:
        told.set()
        return
    while True:
        log.warning("the supervisor ended and is started again")
        await _run(settings, told)
        await asyncio.sleep(PAUSE_SECONDS)


async def _run(settings: Settings, told: asyncio.Event) -> None:
    """Run one supervisor, which adopts this process, to its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "paceline.cluster.supervisor", str(settings.home), "--adopt", str(os.getpid())),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    try:
        await process.wait()
    except asyncio.CancelledError:
        if told.is_set():
            # This process is not to be started again. After a bug it is.
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        raise


async def _gone(pid: int) -> None:
    """Wait for the end of the process that started this one."""
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
