"""The embedded cluster in the background: start it, ask for it, stop it."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from paceline.cluster.logs import open_log
from paceline.errors import HostError
from paceline.host.home_protection import close_home
from paceline.host.lockfile import READY, holder, is_ready
from paceline.settings import LOOPBACK, Settings

START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.02
SAID_BYTES = 65536


def is_running(settings: Settings) -> bool:
    """Tell whether a cluster runs in this folder, be it that its control process is just being started again."""
    return running_pid(settings) is not None


def running_pid(settings: Settings) -> int | None:
    """Return the pid of the control process, or of its supervisor while there is none; None when neither is there."""
    pid = holder(settings.lock)
    return holder(settings.supervisor_lock) if pid is None else pid


def start_in_background(settings: Settings) -> None:
    """Start the cluster and return once it is ready; HostError says why it is not."""
    remember(settings)
    with _in_home(settings):
        log = open_log(settings.log)
    try:
        said = _start(settings, log)
    finally:
        os.close(log)
    if said == READY:
        return
    if is_running(settings):
        # Somebody else was a little quicker.
        wait_ready(settings)
        return
    raise HostError(said or f"the cluster did not start: {_last_words(settings)}; all it said is in {settings.log}")


def wait_ready(settings: Settings, seconds: float = START_SECONDS) -> None:
    """Wait until a cluster that somebody has started is ready; HostError when it ends or takes too long."""
    deadline = time.monotonic() + seconds
    while not is_ready(settings.lock):
        if not is_running(settings) or time.monotonic() > deadline:
            raise HostError(f"the cluster did not start: {_last_words(settings)}; all it said is in {settings.log}")
        time.sleep(LOOK_SECONDS)


def stop(settings: Settings) -> bool:
    """Stop the supervisor, the control process and the agent; pods run on. False when none ran."""
    # The supervisor first, which ends its control process: otherwise it would start another one.
    stopped = [_end(pid) for path in (settings.supervisor_lock, settings.lock) if (pid := holder(path)) is not None]
    return any(stopped)


def _end(pid: int) -> bool:
    """Ask a process to stop, and kill it when it does not; False when it is not there."""
    if pid < 0:
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
    chosen = {
        "images": [list(row) for row in settings.images],
        "port": settings.port,
        "sandbox": settings.has_sandbox,
        "network": settings.network,
        "externalAddress": settings.external_address,
        "devices": [list(row) for row in settings.devices],
    }
    close_home(settings)
    with _in_home(settings):
        beside = settings.started_with.with_suffix(".new")
        beside.write_text(json.dumps(chosen, indent=2) + "\n")
        beside.replace(settings.started_with)


def load_last_settings(home: Path) -> Settings:
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
        network=str(chosen.get("network", "")),
        external_address=str(chosen.get("externalAddress") or LOOPBACK),
        devices=tuple((str(resource), str(devices)) for resource, devices in chosen.get("devices", ())),
    )


def last_port(settings: Settings) -> int:
    """Give the port of the last start, or 0: a kubeconfig somebody copied should go on working."""
    try:
        config = json.loads(settings.kubeconfig.read_text())
        return int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError):
        return 0


def _see_off(process: subprocess.Popen[bytes], *, patience: float) -> None:
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start(settings: Settings, log: int) -> str:
    """Start the supervisor and give what the control process says: that it is ready, why it is not, or nothing."""
    read_end, write_end = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline.cluster.supervisor", str(settings.home), str(write_end)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[write_end],
            start_new_session=True,
            cwd="/",
        )
        os.close(write_end)
        answered, _, _ = select.select([read_end], [], [], START_SECONDS)
        said = os.read(read_end, SAID_BYTES).decode(errors="replace") if answered else None
        if said != READY:
            # It is ending by itself, or too late: nothing of a start that failed is left when this returns.
            _see_off(process, patience=STOP_SECONDS if answered else 0.0)
        if said is not None:
            return said
        return (
            f"the cluster was not ready after {START_SECONDS:.0f} s and was stopped; {settings.log} says how far it got"
        )
    finally:
        os.close(read_end)


@contextmanager
def _in_home(settings: Settings) -> Iterator[None]:
    """Say what is wrong with the folder when it cannot be written."""
    try:
        yield
    except OSError as error:
        hint = "PACELINE_HOME chooses another folder"
        raise HostError(f"cannot write in {settings.home}: {error.strerror}; {hint}") from error


def _last_words(settings: Settings) -> str:
    """Give the last line of the log: of a bug, that is its name."""
    lines = settings.log.read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "it said nothing")
