"""Results that stay where they were written: on a claim or in a folder of the machine."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paceline.apimachinery.timestamps import to_wire
from paceline.errors import PacelineError
from paceline.filesystem.handles import FOLDER, closed, open_beneath
from paceline.sdk.client import Session
from paceline.sdk.results.upload_log import ResultFile
from paceline.sdk.submission.job_volumes import folder_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedResults:
    """The location of a job's results, as a text and, if it is on this machine, as a path."""

    where: str
    folder: Path | None = None


def locate_results(session: Session, job: str, output: Mapping[str, Any], *, is_here: bool) -> MountedResults:
    """Return where a job's output is; `is_here` is True if folders of the cluster are on this machine."""
    if directory := output.get("directory"):
        folder = f"{directory.rstrip('/')}/{job}"
        return MountedResults(where=f"{folder} of the machine that ran it", folder=Path(folder) if is_here else None)
    claim, inner = str(output.get("claim")), "/".join(part for part in (output.get("path", "").strip("/"), job) if part)
    where = f"{inner}/ on claim {claim}"
    with suppress(PacelineError):
        if is_here and (root := folder_of(session, claim)):
            return MountedResults(where=f"{where}, which is {root}/{inner}", folder=Path(root, inner))
    return MountedResults(where=where)


def files_below(folder: Path) -> Iterator[ResultFile]:
    """Yield the files of every replica's folder, sorted by name; links are not followed."""
    for member in sorted(entry.name for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)):
        stats: dict[str, os.stat_result] = {}
        with suppress(OSError), closed(os.open(folder / member, FOLDER)) as root:
            folders = [""]
            while folders:
                folders += _look(root, folders.pop(), stats)
        for name in sorted(stats):
            yield _file(member, name, stats[name])


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    """Return the entries of a folder; none if it does not exist or is not readable."""
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _look(root: int, inner: str, stats: dict[str, os.stat_result]) -> list[str]:
    """Add the files of one folder to `stats`, using directory handles, and return its subfolders."""
    folders = []
    with (
        suppress(OSError),
        closed(open_beneath(root, inner)) as place,
        closed(os.open(".", FOLDER, dir_fd=place)) as here,
        os.scandir(here) as entries,
    ):
        for entry in entries:
            name = f"{inner}/{entry.name}" if inner else entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_file(follow_symlinks=False):
                # A file may be deleted while the others are read.
                with suppress(FileNotFoundError):
                    stats[name] = entry.stat(follow_symlinks=False)
    return folders


def _file(member: str, name: str, stat: os.stat_result) -> ResultFile:
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    when = to_wire(datetime.fromtimestamp(int(stat.st_mtime), UTC))
    return ResultFile(member=member, name=shown, size=stat.st_size, time=when)
