"""What a shim leaves in its container's folder, read back; and the two things the agent adds."""

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.name_validation import label_problem
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.timestamps import from_wire, to_wire_micro
from paceline.effects import Effects, Files, Processes, ProcessHandle
from paceline.node.host_info import ADDRESS, Folders
from paceline.node.lifecycle.view import Ended, Problem, Seen, Started, Try
from paceline.node.logs.logs import with_message_from_log
from paceline.node.runtime import shim

# When the container was asked to stop, and perhaps by which signal; written by the agent, so that the next one need not
# ask again.
ASKED = shim.ASKED
# That the hook after the start has run; without it, the next agent runs it again.
HOOKED = "hooked"
# The program's last words, for the pod's status.
MESSAGE, MESSAGE_BYTES = "message", 4096


def read_try(files: Files, processes: Processes, folder: Path) -> Try:
    """Read one try of a container from its folder."""
    # In this order: whoever wrote `started` held the lock by then, and has left its record when it no longer does.
    started = read_started(files, folder)
    is_held = processes.holds(folder)
    return Try(
        restarts=int(folder.name),
        started=started,
        ended=read_ended(files, folder),
        is_held=is_held,
        asked_at=_read_asked(files, folder),
        is_greeted=files.exists(folder / HOOKED),
    )


def read_started(files: Files, folder: Path) -> Started | None:
    """Read started.json; None when the try was never begun."""
    wire = _read(files, folder / shim.STARTED)
    if wire is None:
        return None
    if not wire:
        return Started(identity=None, at=None)
    return Started(
        identity=ProcessHandle(pid=wire["pid"], start_ticks=wire["startTicks"], boot_id=wire["bootId"]),
        at=from_wire(wire["startedAt"]),
        environment=wire["environment"],
    )


def read_ended(files: Files, folder: Path) -> Ended | None:
    """Read exit.json; None while there is none, or when it is damaged."""
    wire = _read(files, folder / shim.EXIT)
    if not wire:
        return None
    began = wire["startedAt"]
    return Ended(
        exit_code=wire["exitCode"],
        signal=wire["signal"],
        reason=wire["reason"],
        message=wire["message"] or _last_words(files, folder),
        started_at=from_wire(began) if began else None,
        finished_at=from_wire(wire["finishedAt"]),
        max_rss_kib=wire["maxRssKib"],
    )


def write_ended(files: Files, folder: Path, ended: Ended) -> None:
    """Record the end of a try whose shim did not live to do so."""
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


def write_asked(files: Files, folder: Path, now: datetime, number: int | None = None) -> None:
    """Remember that a container was asked to stop, and by which signal if not its own, for its shim to read.

    A power cut ends the container anyway.
    """
    words = [to_wire_micro(now), *([] if number is None else [str(number)])]
    files.overwrite(folder / ASKED, " ".join(words).encode(), 0o600)


def write_hooked(files: Files, folder: Path) -> None:
    """Remember that the hook after the start has run; where a full disk refuses it, the next agent runs it again."""
    with contextlib.suppress(OSError):
        files.overwrite(folder / HOOKED, b"", 0o600)


def _read_asked(files: Files, folder: Path) -> datetime | None:
    try:
        return from_wire(files.read(folder / ASKED).decode().partition(" ")[0])
    except (FileNotFoundError, ValueError):
        return None


def _last_words(files: Files, folder: Path) -> str:
    try:
        begin = max(files.size(folder / MESSAGE) - MESSAGE_BYTES, 0)
        return files.read_range(folder / MESSAGE, begin, MESSAGE_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _read(files: Files, path: Path) -> dict[str, Any] | None:
    """Read a record; None when it is missing, empty when it cannot be read."""
    try:
        wire = json.loads(files.read(path))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return wire if isinstance(wire, dict) else {}


def look(world: Effects, folders: Folders, pod: Object, *, address: str, problems: Mapping[str, Problem]) -> Seen:
    """Read the latest try of each of a pod's containers, and how the one before ended."""
    uid = uid_of(pod)
    specs = {str(each["name"]): each for each in containers_of(pod)}
    tries, before = tries_of(world, folders, uid, specs), _before(world, folders, uid, specs)
    for name, each in tries.items():
        if each.ended is not None:
            folder = folders.attempt(uid, name, each.restarts)
            tries[name] = replace(each, ended=with_message_from_log(specs[name], each.ended, world.files, folder))
        if name in before:
            folder = folders.attempt(uid, name, each.restarts - 1)
            before[name] = with_message_from_log(specs[name], before[name], world.files, folder)
    return Seen(
        pod=pod,
        tries=tries,
        before=before,
        problems=problems,
        boot_id=world.processes.boot_id(),
        address=address,
        host_address=ADDRESS,
    )


def tries_of(world: Effects, folders: Folders, uid: str, names: Iterable[str]) -> dict[str, Try]:
    """Read the latest try of each container that has one."""
    latest = ((name, latest_folder(world, folders, uid, name)) for name in names)
    return {name: read_try(world.files, world.processes, folder) for name, folder in latest if folder}


def latest_folder(world: Effects, folders: Folders, uid: str, name: str) -> Path | None:
    """Find the folder of a container's latest try."""
    numbers = numbers_of(world, folders, uid, name)
    return folders.attempt(uid, name, numbers[-1]) if numbers else None


def numbers_of(world: Effects, folders: Folders, uid: str, name: str) -> list[int]:
    """List the tries of a container that have a folder, the oldest first."""
    if label_problem(name):
        return []  # Such a name is never made a path; nothing can have been started under it.
    return sorted(int(each) for each in world.files.names(folders.container(uid, name)) if each.isdecimal())


def _before(world: Effects, folders: Folders, uid: str, names: Iterable[str]) -> dict[str, Ended]:
    found = {}
    for name in names:
        numbers = numbers_of(world, folders, uid, name)
        if len(numbers) > 1 and (ended := read_ended(world.files, folders.attempt(uid, name, numbers[-2]))):
            found[name] = ended
    return found
