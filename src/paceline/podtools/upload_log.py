"""Reports every uploaded file in the log, so that a reader of the log needs no credentials for the bucket.

A line is `kept SIZE TIME NAME`, with the file's modification time; of several lines for one name the last one counts.
The log of every run lists all files in the bucket, also those of earlier runs, so the log of the last run is enough.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from paceline.podtools.output_tree import Stamp
from paceline.podtools.reporting import Reporter

DESTINATION = "results go to "
# Nodes keep at least the newest 10 MiB of a log: repeat the list before its first line can be gone.
REPEAT_BYTES = 4 * 1024 * 1024
# The last second of a year with four digits.
LATEST_SECOND = 253_402_300_799


class UploadReporter:
    """Reports the destination and the uploaded files: once, and again before the log may have lost them."""

    def __init__(self, reporter: Reporter, *, repeat_bytes: int = REPEAT_BYTES) -> None:
        self._reporter, self._repeat_bytes = reporter, repeat_bytes
        self._destination = ""
        self._reported: dict[str, Stamp] = {}
        # The size of everything since the complete list was written, and of that list.
        self._written = self._list_size = 0

    def reached(self, destination: str) -> None:
        """Report the destination; again after a failure, to show that the failure is over."""
        if self._destination != destination:
            self._destination = destination
            self._reporter.log(f"{DESTINATION}{destination}")

    def failed(self, error: Exception) -> None:
        """Report an error that is followed by another attempt."""
        self._destination = ""
        self._reporter.log(f"{error}; it is tried again")

    def report_files(self, files: Iterable[tuple[str, Stamp]]) -> None:
        """Report the uploaded files that are new or have changed."""
        repeats = self._written > max(self._repeat_bytes, 2 * self._list_size)
        if repeats:
            self._reported, self._written = {}, 0
        is_complete_list = not self._reported
        changed = {name: stamp for name, stamp in files if self._reported.get(name) != stamp}
        lines = [kept_line(self._reporter.redact(name), stamp) for name, stamp in changed.items()]
        if repeats:
            lines.insert(0, f"{DESTINATION}{self._destination}")
        if lines:
            self._reporter.log("\n".join(lines))
        self._reported |= changed
        self._written += sum(map(len, lines))
        if is_complete_list:
            self._list_size = self._written


def kept_line(name: str, stamp: Stamp) -> str:
    """Return the line of one file; a name that could be misread is written as a JSON string."""
    is_plain = name.isprintable() and name == name.strip() and not name.startswith('"')
    seconds = min(max(stamp.mtime_ns // 10**9, 0), LATEST_SECOND)
    time = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"kept {stamp.size} {time} {name if is_plain else json.dumps(name)}"
