"""The state files of containers: records of their shims and of the agent, read as the view of a pod."""

import contextlib
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.name_validation import label_problem
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.timestamps import from_wire, to_wire_micro
from paceline.effects import Effects, Files, Processes, ProcessHandle
from paceline.node.host_info import Folders, joined
from paceline.node.lifecycle.view import ContainerAttempt, ExitRecord, PodView, StartRecord
from paceline.node.logs.logs import with_message_from_log
from paceline.node.runtime import shim

# Marks that the postStart hook has run; without it, the next agent runs the hook again.
POST_START_DONE = "hooked"
# The container's termination message.
MESSAGE, MESSAGE_BYTES = "message", 4096


def read_view(world: Effects, folders: Folders, pod: Object, *, address: str, host_address: str) -> PodView:
    """Read the latest attempt of each of a pod's containers, and how the previous one ended."""
    uid = uid_of(pod)
    attempts: dict[str, ContainerAttempt] = {}
    previous: dict[str, ExitRecord] = {}
    for container in containers_of(pod):
        name = str(container["name"])
        numbers = attempt_numbers(world, folders, uid, name)
        for number in numbers[-1:]:
            folder = folders.attempt(uid, name, number)
            attempt = read_attempt(world.files, world.processes, folder)
            ended = attempt.ended and with_message_from_log(container, attempt.ended, world.files, folder)
            attempts[name] = replace(attempt, ended=ended)
        for number in numbers[-2:-1]:
            folder = folders.attempt(uid, name, number)
            if record := read_ended(world.files, folder):
                previous[name] = with_message_from_log(container, record, world.files, folder)
    return PodView(
        pod=pod,
        attempts=attempts,
        previous=previous,
        boot_id=world.processes.boot_id(),
        address=address,
        host_address=host_address,
    )


def latest_attempts(world: Effects, folders: Folders, uid: str, names: Iterable[str]) -> dict[str, ContainerAttempt]:
    """Read the latest attempt of each container that has one."""
    latest = ((name, latest_folder(world, folders, uid, name)) for name in names)
    return {name: read_attempt(world.files, world.processes, folder) for name, folder in latest if folder}


def running_shims(world: Effects, folders: Folders, pod: Object) -> dict[str, ProcessHandle]:
    """Return the shims of a pod's running containers, by container."""
    names = [str(container["name"]) for container in containers_of(pod)]
    attempts = latest_attempts(world, folders, uid_of(pod), names)
    return {name: attempt.shim for name, attempt in attempts.items() if attempt.is_running and attempt.shim}


def latest_folder(world: Effects, folders: Folders, uid: str, name: str) -> Path | None:
    """Return the folder of a container's latest attempt."""
    numbers = attempt_numbers(world, folders, uid, name)
    return folders.attempt(uid, name, numbers[-1]) if numbers else None


def attempt_numbers(world: Effects, folders: Folders, uid: str, name: str) -> list[int]:
    """List the attempts of a container that have a folder, the oldest first."""
    if label_problem(name):
        return []  # Such a name never becomes a path, so nothing can have been started under it.
    entries = world.files.names(folders.container(uid, name))
    return sorted(int(entry) for entry in entries if entry.isdecimal())


def read_attempt(files: Files, processes: Processes, folder: Path) -> ContainerAttempt:
    """Read one attempt of a container from its folder."""
    # In this order: a shim writes started.json while it holds the lock, and exit.json before it releases it.
    started = read_started(files, folder)
    has_shim = processes.holds(folder)
    return ContainerAttempt(
        restarts=int(folder.name),
        started=started,
        ended=read_ended(files, folder),
        has_shim=has_shim,
        stop_requested_at=_read_stop_request(files, folder),
        is_post_start_done=files.exists(joined(folder, POST_START_DONE)),
    )


def read_started(files: Files, folder: Path) -> StartRecord | None:
    """Read started.json; None when the attempt never began."""
    record = _read(files, joined(folder, shim.STARTED))
    if record is None:
        return None
    if not record:
        return StartRecord(identity=None, at=None)
    return StartRecord(
        identity=ProcessHandle(pid=record["pid"], start_ticks=record["startTicks"], boot_id=record["bootId"]),
        at=from_wire(record["startedAt"]),
        environment=record["environment"],
    )


def read_ended(files: Files, folder: Path) -> ExitRecord | None:
    """Read exit.json; None while there is none, or when it is damaged."""
    record = _read(files, joined(folder, shim.EXIT))
    if not record:
        return None
    began = record["startedAt"]
    return ExitRecord(
        exit_code=record["exitCode"],
        signal=record["signal"],
        reason=record["reason"],
        message=record["message"] or _termination_message(files, folder),
        started_at=from_wire(began) if began else None,
        finished_at=from_wire(record["finishedAt"]),
        max_rss_kib=record["maxRssKib"],
    )


def write_ended(files: Files, folder: Path, ended: ExitRecord) -> None:
    """Write the exit record of an attempt whose shim did not live to do so."""
    began = ended.started_at
    record = {
        "exitCode": ended.exit_code,
        "signal": ended.signal,
        "reason": ended.reason,
        "message": ended.message,
        "startedAt": to_wire_micro(began) if began else None,
        "finishedAt": to_wire_micro(ended.finished_at),
        "maxRssKib": ended.max_rss_kib,
        "lostLogBytes": 0,
    }
    files.write(folder / shim.EXIT, shim.encode(record))


def write_stop_request(files: Files, folder: Path, now: datetime, number: int | None = None) -> None:
    """Record that a container was asked to stop, and a signal that replaces its own, for its shim and the next agent.

    The file is not synced: a power cut ends the container anyway.
    """
    request = to_wire_micro(now) if number is None else f"{to_wire_micro(now)} {number}"
    files.overwrite(folder / shim.STOP_REQUEST, request.encode(), 0o600)


def write_post_start_done(files: Files, folder: Path) -> None:
    """Record that the postStart hook has run; when the disk is full, the next agent runs it again."""
    with contextlib.suppress(OSError):
        files.overwrite(folder / POST_START_DONE, b"", 0o600)


def _read_stop_request(files: Files, folder: Path) -> datetime | None:
    try:
        return from_wire(files.read(joined(folder, shim.STOP_REQUEST)).decode().partition(" ")[0])
    except (FileNotFoundError, ValueError):
        return None


def _termination_message(files: Files, folder: Path) -> str:
    try:
        begin = max(files.size(folder / MESSAGE) - MESSAGE_BYTES, 0)
        return files.read_range(folder / MESSAGE, begin, MESSAGE_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _read(files: Files, path: Path) -> dict[str, Any] | None:
    """Read a record; None when it is missing, empty when it is damaged."""
    try:
        record = json.loads(files.read(path))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
