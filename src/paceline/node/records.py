"""What a shim leaves in its container's folder, read back."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.node import shim
from paceline.objects.times import from_wire
from paceline.world import Files, Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """That an attempt was begun, by which shim and when. No identity: the record was damaged by a power cut."""

    identity: Identity | None
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an attempt ended."""

    exit_code: int
    signal: int | None = None
    reason: str
    message: str = ""
    started_at: datetime | None
    finished_at: datetime
    max_rss_kib: int = 0


def read_started(files: Files, folder: Path) -> Started | None:
    """Read started.json; None when the attempt was never begun."""
    wire = _read(files, folder / shim.STARTED)
    if wire is None:
        return None
    if not wire:
        return Started(identity=None, at=None)
    identity = Identity(pid=wire["pid"], start_ticks=wire["startTicks"], boot_id=wire["bootId"])
    return Started(identity=identity, at=from_wire(wire["startedAt"]))


def read_ended(files: Files, folder: Path) -> Ended | None:
    """Read exit.json; None while there is none, or when it is damaged."""
    wire = _read(files, folder / shim.EXIT)
    if not wire:
        return None
    return Ended(
        exit_code=wire["exitCode"],
        signal=wire["signal"],
        reason=wire["reason"],
        message=wire["message"],
        started_at=from_wire(wire["startedAt"]),
        finished_at=from_wire(wire["finishedAt"]),
        max_rss_kib=wire["maxRssKib"],
    )


def _read(files: Files, path: Path) -> dict[str, Any] | None:
    """Read a record; None when it is missing, empty when it cannot be read."""
    try:
        wire = json.loads(files.read(path))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return wire if isinstance(wire, dict) else {}
