"""Which environments are built, how large they are, when they were used, and the end of those that nobody uses."""

import contextlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from paceline.environments.builder import ABOUT, Environments, remove, size_of
from paceline.host.lockfile import is_locked

PROCESSES = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One environment on disk."""

    folder: Path
    name: str
    version: str
    bytes: int
    # Seconds since the epoch.
    used_at: float
    is_in_use: bool


def built(place: Environments) -> tuple[Built, ...]:
    """List what is built, by name; folders that say nothing of themselves are not ours."""
    folders = [each for each in _folders(place.root) if not each.name.startswith(".") and (each / ABOUT).is_file()]
    used = in_use(tuple(folders))
    return tuple(_read(folder, is_in_use=folder in used) for folder in sorted(folders))


def mark_used(folder: Path) -> None:
    """Remember that an environment was used now."""
    with contextlib.suppress(OSError):
        os.utime(folder / ABOUT)


def prune(place: Environments, *, unused_seconds: float) -> tuple[Built, ...]:
    """Remove environments that were not used for so long, and what broken builds left; give what went."""
    gone = []
    for each in built(place):
        if each.is_in_use or time.time() - each.used_at < unused_seconds:
            continue
        # Out of sight in one step: a start from here on builds it anew.
        aside = each.folder.with_name(f".{each.folder.name}.old")
        remove(aside)
        each.folder.rename(aside)
        if in_use((aside, each.folder)):
            # A container began in the meantime: it keeps its files.
            aside.rename(each.folder)
            continue
        gone.append(each)
    for leftover in _folders(place.root):
        if leftover.name.startswith(".") and _is_leftover(leftover):
            remove(leftover)
    return tuple(gone)


def _is_leftover(folder: Path) -> bool:
    """Tell what was put aside, or was left by a build that did not live to its end, from a build under way."""
    title = folder.name.removesuffix(".new")
    return folder.name.endswith(".old") or (title != folder.name and not is_locked(folder.with_name(f"{title}.lock")))


def in_use(folders: tuple[Path, ...]) -> frozenset[Path]:
    """Find which folders running containers see: their mounts name them, or their environment does."""
    found: set[Path] = set()
    for entry in PROCESSES.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            seen = (entry / "mountinfo").read_bytes() + (entry / "environ").read_bytes()
            found |= {folder for folder in folders if os.fsencode(folder) in seen}
    return frozenset(found)


def _read(folder: Path, *, is_in_use: bool) -> Built:
    try:
        about, used_at = json.loads((folder / ABOUT).read_text()), (folder / ABOUT).stat().st_mtime
    except (OSError, ValueError):
        about, used_at = {}, folder.stat().st_mtime
    return Built(
        folder=folder,
        name=str(about.get("name") or folder.name),
        version=str(about.get("version") or ""),
        bytes=int(about.get("bytes") or size_of(folder)),
        used_at=used_at,
        is_in_use=is_in_use,
    )


def _folders(root: Path) -> tuple[Path, ...]:
    try:
        return tuple(path for path in root.iterdir() if path.is_dir())
    except FileNotFoundError:
        return ()
