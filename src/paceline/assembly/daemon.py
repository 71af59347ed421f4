"""The embedded cluster in the background: start it, ask for it, stop it."""

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from paceline.assembly.hold import holder
from paceline.assembly.settings import Settings
from paceline.errors import Unavailable

START_SECONDS = 60.0
STOP_SECONDS = 30.0
LAST_LINES = 15


def is_running(settings: Settings) -> bool:
    """Tell whether a control process holds this folder."""
    return holder(settings.lock) is not None


def start_in_background(settings: Settings) -> None:
    """Start the cluster and return once it is ready; Unavailable carries the last lines of its log if it is not."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    remember(settings)
    read_end, write_end = os.pipe()
    with settings.log.open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline.assembly.control", str(settings.home), str(write_end)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=[write_end],
            start_new_session=True,
            cwd="/",
        )
    os.close(write_end)
    try:
        ready, _, _ = select.select([read_end], [], [], START_SECONDS)
        if ready and os.read(read_end, 16):
            return
    finally:
        os.close(read_end)
    if process.poll() is None:
        process.kill()
        process.wait()
    tail = settings.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    raise Unavailable("the cluster did not start; its log ends with:\n  " + "\n  ".join(tail))


def stop(settings: Settings) -> bool:
    """Stop the control process and the agent; pods run on. False when none ran."""
    pid = holder(settings.lock)
    if pid is None or pid < 0:
        return False
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
        gone, _, _ = select.select([process], [], [], STOP_SECONDS)
        if not gone:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            select.select([process], [], [], STOP_SECONDS)
    finally:
        os.close(process)
    return True


def remember(settings: Settings) -> None:
    """Write down the choices of this start, for the processes it starts and for the next start by itself."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen = {"images": [list(row) for row in settings.images], "port": settings.port, "sandbox": settings.has_sandbox}
    settings.started_with.write_text(json.dumps(chosen, indent=2) + "\n")


def recall(home: Path) -> Settings:
    """Read the choices of the last start; a folder that was never started gives the shipped ones."""
    settings = Settings(home=home)
    try:
        chosen = json.loads(settings.started_with.read_text())
    except (OSError, ValueError):
        return settings
    return replace(
        settings,
        images=tuple((str(pattern), str(environment)) for pattern, environment in chosen.get("images", ())),
        port=int(chosen.get("port", 0)),
        has_sandbox=bool(chosen.get("sandbox", True)),
    )
