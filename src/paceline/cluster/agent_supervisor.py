"""The node agent beside the control process: one at a time, started again whenever it ends."""

import asyncio
import contextlib
import logging
import os
import signal
import sys

from paceline.errors import HostError
from paceline.host.lockfile import READY, holder
from paceline.settings import Settings

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0
LOOK_SECONDS = 0.02
# An agent whose control process is gone ends by itself; one that does not is ended.
PATIENCE_SECONDS = 10.0
# Ends without a word before it was ever ready, after which it is not tried again.
MOST_SILENT_ENDS = 3


async def keep_agent(settings: Settings, is_ready: asyncio.Event, *, open_files: int | None = None) -> None:
    """Run the node agent as a process of its own, and again when it ends; HostError when it never gets ready."""
    silent_ends = 0
    while True:
        await _old_one_gone(settings)
        said = await _run(settings, is_ready, open_files)
        if not is_ready.is_set():
            silent_ends += 1
            if said or silent_ends == MOST_SILENT_ENDS:
                raise HostError(said or f"the node agent ends before it is ready; {settings.log} may say why")
        log.warning("the node agent ended and is started again")
        await asyncio.sleep(PAUSE_SECONDS)


async def _run(settings: Settings, is_ready: asyncio.Event, open_files: int | None) -> str:
    """Run one agent to its end; give what it said if it was not ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "paceline.cluster.node_agent",
        str(settings.home),
        # What pods may open, which is not what our own processes may.
        *(() if open_files is None else (str(open_files),)),
        # The agent ends when this pipe does, so that a killed control process leaves no second agent behind.
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        said = (await process.stdout.readline()).decode(errors="replace").strip() if process.stdout else ""
        if said == READY:
            is_ready.set()
        await process.wait()
    except asyncio.CancelledError:
        await _end(process)
        raise
    return said


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask the agent to end, and end it when it does not; pods run on either way."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


async def _old_one_gone(settings: Settings) -> None:
    """Wait until the agent of an earlier control process has ended."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while (pid := holder(settings.agent_lock)) is not None:
        if asyncio.get_running_loop().time() > deadline and pid > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(LOOK_SECONDS)
