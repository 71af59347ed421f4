"""The curves of a folder: the scalars of all event files beneath it, read on from where the last request stopped.

A run is a folder with event files, named by its path, as in TensorBoard. Points are kept in memory, at most
`MOST_KEPT` of them; a series that is too long for an answer is thinned to buckets, each with its last, lowest and
highest value. Last, lowest and highest value of a whole series are always exact.
"""

import math
import os
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.filesystem.handles import closed, link_to, open_beneath
from paceline.podtools.files.event_records import CorruptRecord
from paceline.podtools.files.paths import folders_beneath, parts_of
from paceline.podtools.files.repeated_rows import read_events
from paceline.podtools.files.tfevents import EventRun, ScalarPoints

# TensorBoard's own rule for the names of event files.
EVENT_FILE = "tfevents"
MOST_RUNS, MOST_FILES = 200, 2_000
# Points of one series in an answer, and of all series together.
MOST_POINTS, MOST_ANSWERED = 2_000, 400_000
# Points in memory, of 24 bytes each; the folders that were asked for first are forgotten.
MOST_KEPT = 4_000_000


@dataclass(slots=True)
class _EventFile:
    """An event file, and how far it was read."""

    identity: tuple[int, int]
    offset: int = 0
    size: int = -1
    fault: str = ""


@dataclass(slots=True)
class _RunFolder:
    """A folder with event files."""

    run: EventRun = field(default_factory=EventRun)
    files: dict[str, _EventFile] = field(default_factory=dict)


class CurveReader:
    """Reads the curves beneath folders of a volume; requests take turns."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._folders: dict[str, dict[str, _RunFolder]] = {}

    def read(self, path: str, *, points: int = MOST_POINTS, tag: str = "") -> dict[str, Any]:
        """Return the runs beneath a folder with their series, as JSON; `tag` selects one series of each."""
        with self._lock:
            runs = self._folders.pop(path, {})
            # The folder that was asked for last is forgotten last.
            self._folders[path] = runs
            is_cut = self._refresh(path, runs)
            self._forget(path)
            chosen = {name: _chosen(folder.run, tag) for name, folder in runs.items()}
            count = sum(map(len, chosen.values()))
            bound = min(points, MOST_POINTS, max(2, MOST_ANSWERED // max(count, 1)))
            listed = [_described(name, runs[name], series, bound) for name, series in sorted(chosen.items())]
        return {"runs": listed, "truncated": is_cut}

    def _forget(self, path: str) -> None:
        kept = {name: sum(folder.run.count for folder in runs.values()) for name, runs in self._folders.items()}
        for name in list(self._folders):
            if sum(kept.values()) <= MOST_KEPT or name == path:
                return
            del self._folders[name], kept[name]

    def _refresh(self, path: str, runs: dict[str, _RunFolder]) -> bool:
        """Read what is new; return whether there are more event files than are read."""
        events, is_cut = _event_files(self._root, path)
        for name in runs.keys() - events.keys():
            del runs[name]
        room = MOST_KEPT
        for name, files in events.items():
            folder = runs.setdefault(name, _RunFolder())
            room -= folder.run.count
            if room < 0:
                return True
            if any(not _goes_on(folder.files.get(file), status) for file, status in files.items()):
                # A file was replaced, or a new one begins: keep the order of the files.
                folder = runs[name] = self._again(folder, files)
            for file, status in files.items():
                self._read_on("/".join((*parts_of(path), name, file)), folder, file, status)
        return is_cut

    def _again(self, folder: _RunFolder, files: dict[str, os.stat_result]) -> _RunFolder:
        is_only_new = all(file not in folder.files or _goes_on(folder.files[file], files[file]) for file in files)
        folder = folder if is_only_new else _RunFolder()
        for file, status in files.items():
            folder.files.setdefault(file, _EventFile(identity=(status.st_dev, status.st_ino)))
        return folder

    def _read_on(self, path: str, folder: _RunFolder, name: str, status: os.stat_result) -> None:
        file = folder.files[name]
        if file.size == status.st_size:
            return
        file.size, file.fault = status.st_size, ""
        try:
            with closed(open_beneath(self._root, path)) as handle, open(link_to(handle), "rb") as stream:  # noqa: PTH123
                stream.seek(file.offset)
                for end in read_events(stream, folder.run):
                    file.offset = end
        except (CorruptRecord, OSError) as error:
            file.fault = f"{name}: {error}"


def _goes_on(file: _EventFile | None, status: os.stat_result) -> bool:
    return file is not None and file.identity == (status.st_dev, status.st_ino) and status.st_size >= file.offset


def _event_files(root: int, path: str) -> tuple[dict[str, dict[str, os.stat_result]], bool]:
    """Return the event files beneath a folder by run, in the order of their names; and whether some were left out."""
    events: dict[str, dict[str, os.stat_result]] = {}
    count = 0
    for name, handle, entries in folders_beneath(root, path):
        files = sorted(entry.name for entry in entries if EVENT_FILE in entry.name)
        for file in files:
            status = os.stat(file, dir_fd=handle, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                continue
            if count >= MOST_FILES or (name not in events and len(events) >= MOST_RUNS):
                return events, True
            events.setdefault(name, {})[file] = status
            count += 1
    return events, False


def _chosen(run: EventRun, tag: str) -> dict[str, ScalarPoints]:
    return {name: points for name, points in run.tags.items() if points.steps and tag in ("", name)}


def _described(name: str, folder: _RunFolder, series: dict[str, ScalarPoints], bound: int) -> dict[str, Any]:
    return {
        "name": name,
        "scalars": [{"tag": tag, **_series(points, bound)} for tag, points in sorted(series.items())],
        "faults": [file.fault for file in folder.files.values() if file.fault],
        "truncated": folder.run.is_truncated,
    }


def _series(points: ScalarPoints, bound: int) -> dict[str, Any]:
    values = points.values
    finite = _finite(values)
    described: dict[str, Any] = {"count": len(values), "last": _point(points, len(values) - 1)}
    if finite:
        described["min"] = _point(points, values.index(min(finite)))
        described["max"] = _point(points, values.index(max(finite)))
    return {**described, **_columns(points, bound)} if bound else described


def _finite(values: Sequence[float]) -> Sequence[float]:
    """Return the numbers that are none of NaN and infinities; most often, a fast look shows that all are."""
    return values if math.isfinite(sum(values)) else [value for value in values if math.isfinite(value)]


def _point(points: ScalarPoints, index: int) -> dict[str, Any]:
    return {"step": points.steps[index], "time": points.times[index], "value": _number(points.values[index])}


def _columns(points: ScalarPoints, bound: int) -> dict[str, Any]:
    """Return the columns of a series, thinned if it has more points than the bound."""
    count = len(points.values)
    ends = range(count) if count <= bound else [(bucket + 1) * count // bound - 1 for bucket in range(bound)]
    columns: dict[str, Any] = {
        "steps": [points.steps[end] for end in ends],
        "times": [points.times[end] for end in ends],
        "values": [_number(points.values[end]) for end in ends],
    }
    if count > bound:
        starts = [0, *(end + 1 for end in ends[:-1])]
        buckets = [_finite(points.values[start : end + 1]) for start, end in zip(starts, ends, strict=True)]
        columns["low"] = [_number(min(bucket, default=math.nan)) for bucket in buckets]
        columns["high"] = [_number(max(bucket, default=math.nan)) for bucket in buckets]
    return columns


def _number(value: float) -> float | str:
    """Return a number as JSON can have it: NaN and infinities are words that float() reads."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
