"""Runs the node agent as a child of the control process, one at a time, and restarts it when it ends."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path

from paceline.errors import HostError
from paceline.host.lockfile import READY, holder
from paceline.settings import Settings

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
POLL_SECONDS = 0.02
# An agent exits when its control process is gone; after this time it is killed.
EXIT_SECONDS = 10.0
# Give up after this many exits without a message before the agent was ever ready.
MAX_SILENT_EXITS = 3


async def keep_agent(settings: Settings, is_ready: asyncio.Event, *, open_files: int | None = None) -> None:
    """Run the node agent and restart it when it ends; raise HostError when it never becomes ready."""
    silent_exits = 0
    while True:
        await wait_for_exit(settings.agent_lock)
        message = await _run(settings, is_ready, open_files)
        if not is_ready.is_set():
            silent_exits += 1
            if message or silent_exits == MAX_SILENT_EXITS:
                raise HostError(message or f"the node agent exits before it is ready; see {settings.log}")
        log.warning("the node agent exited and is restarted")
        await asyncio.sleep(PAUSE_SECONDS)


async def _run(settings: Settings, is_ready: asyncio.Event, open_files: int | None) -> str:
    """Run one agent until it exits; return its message when it was not ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "paceline.cluster.node_agent",
        str(settings.home),
        # The limit of open files for pods, which is lower than ours.
        *(() if open_files is None else (str(open_files),)),
        # The agent exits when this pipe is closed, also when the control process is killed.
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        message = (await process.stdout.readline()).decode(errors="replace").strip() if process.stdout else ""
        if message == READY:
            is_ready.set()
        await process.wait()
    except asyncio.CancelledError:
        await end_process(process)
        raise
    return message


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Terminate a child, and kill it when it does not exit. Pods of an agent keep running."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def wait_for_exit(lock: Path) -> None:
    """Wait until the process that an earlier control process started, and that holds a lock, has exited."""
    deadline = asyncio.get_running_loop().time() + EXIT_SECONDS
    while (pid := holder(lock)) is not None:
        if asyncio.get_running_loop().time() > deadline and pid > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(POLL_SECONDS)
