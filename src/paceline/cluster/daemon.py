"""Start and stop the embedded cluster in the background, and find out whether it runs."""

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
from paceline.settings import LOOPBACK, TEXT, Settings

START_SECONDS = 60.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02
MESSAGE_BYTES = 65536


def is_running(settings: Settings) -> bool:
    """Return whether a cluster runs in this folder, also while its control process is restarted."""
    return running_pid(settings) is not None


def running_pid(settings: Settings) -> int | None:
    """Return the pid of the control process, else of its supervisor, else None."""
    pid = holder(settings.lock)
    return holder(settings.supervisor_lock) if pid is None else pid


def start_in_background(settings: Settings) -> None:
    """Start the cluster and return once it is ready; raise HostError when it does not start."""
    remember(settings)
    with _in_home(settings):
        log = open_log(settings.log)
    try:
        message = _start(settings, log)
    finally:
        os.close(log)
    if message == READY:
        return
    # Another command may have started it at the same time.
    if not wait_ready(settings):
        raise HostError(message or f"the cluster did not start: {_last_log_line(settings)}; see {settings.log}")


def wait_ready(settings: Settings, seconds: float = START_SECONDS) -> bool:
    """Return True once a cluster that another process started is ready, False if none runs any more.

    Raise HostError when it takes too long.
    """
    deadline = time.monotonic() + seconds
    while not is_ready(settings.lock):
        if not is_running(settings):
            return False
        if time.monotonic() > deadline:
            raise HostError(f"the cluster did not start: {_last_log_line(settings)}; see {settings.log}")
        time.sleep(POLL_SECONDS)
    return True


def stop(settings: Settings) -> bool:
    """Stop the supervisor, the control process and the agent; pods keep running. Return False when none ran."""
    # The supervisor first: it stops its control process, which it would otherwise restart.
    stopped = [_end(pid) for path in (settings.supervisor_lock, settings.lock) if (pid := holder(path)) is not None]
    return any(stopped)


def _end(pid: int) -> bool:
    """Terminate a process, and kill it when it does not exit; return False when there is none."""
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
    """Save the settings of this start, for the processes it starts and for an automatic start later."""
    chosen = {
        "images": [list(row) for row in settings.images],
        "port": settings.port,
        "sandbox": settings.has_sandbox,
        "network": settings.network,
        "externalAddress": settings.external_address,
        "devices": [list(row) for row in settings.devices],
        "logFormat": settings.log_format,
    }
    close_home(settings)
    with _in_home(settings):
        partial = settings.started_with.with_suffix(".new")
        partial.write_text(json.dumps(chosen, indent=2) + "\n")
        partial.replace(settings.started_with)


def load_last_settings(home: Path) -> Settings:
    """Return the settings of the last start, or the defaults for a folder that was never started."""
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
        log_format=str(chosen.get("logFormat") or TEXT),
    )


def last_port(settings: Settings) -> int:
    """Return the port of the last start, or 0; reusing it keeps copies of the kubeconfig valid."""
    try:
        config = json.loads(settings.kubeconfig.read_text())
        return int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError):
        return 0


def last_console_port(settings: Settings) -> int:
    """Return the port of the web console, or 0 if it has none yet."""
    try:
        return int(json.loads(settings.console.read_text())["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _wait_or_kill(process: subprocess.Popen[bytes], *, seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start(settings: Settings, log: int) -> str:
    """Start the supervisor and return the message of the control process: READY, an error, or nothing."""
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
        message = os.read(read_end, MESSAGE_BYTES).decode(errors="replace") if answered else None
        if message != READY:
            # It is exiting, or too late: leave no process of a failed start behind.
            _wait_or_kill(process, seconds=STOP_SECONDS if answered else 0.0)
        if message is not None:
            return message
        return f"the cluster was not ready after {START_SECONDS:.0f} s and was stopped; see {settings.log}"
    finally:
        os.close(read_end)


@contextmanager
def _in_home(settings: Settings) -> Iterator[None]:
    """Translate errors of writing to the folder to HostError."""
    try:
        yield
    except OSError as error:
        hint = "PACELINE_HOME chooses another folder"
        raise HostError(f"cannot write in {settings.home}: {error.strerror}; {hint}") from error


def _last_log_line(settings: Settings) -> str:
    """Return the last line of the log, which for a bug is the exception."""
    lines = settings.log.read_text(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "the log is empty")
