"""What is kept, told file by file in the log: whoever reads it knows what there is, and needs no key of the bucket.

A line is `kept SIZE TIME NAME`, with the time of the file itself; of several lines of one name the last one holds. The
log of every run tells all that is kept, also by runs before it, so that the last run's is enough.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime

from paceline.podtools.output_tree import Stamp
from paceline.podtools.reporting import Reporter

GOES_TO = "results go to "
# Nodes keep the newest 10 MiB of a log, or more: all is told again before the first line could be gone.
AGAIN_BYTES = 4 * 1024 * 1024
# The last second that can be written with a year of four digits.
LATEST_SECOND = 253_402_300_799


class UploadReporter:
    """Tells what is kept and where; each fact once, and again when it may have been forgotten."""

    def __init__(self, voice: Reporter, *, again_bytes: int = AGAIN_BYTES) -> None:
        self._voice, self._again_bytes = voice, again_bytes
        self._place = ""
        self._told: dict[str, Stamp] = {}
        # How much was said since all was told, and how much that was.
        self._since = self._whole = 0

    def reach(self, place: str) -> None:
        """Say where results go; again after trouble, because then it is over."""
        if self._place != place:
            self._place = place
            self._voice.log(f"{GOES_TO}{place}")

    def stumble(self, error: Exception) -> None:
        """Say what is in the way."""
        self._place = ""
        self._voice.log(f"{error}; it is tried again")

    def tell(self, files: Iterable[tuple[str, Stamp]]) -> None:
        """Tell of the files that are kept those that were not told of as they are now."""
        is_again = self._since > max(self._again_bytes, 2 * self._whole)
        if is_again:
            self._told, self._since = {}, 0
        is_first = not self._told
        new = {name: stamp for name, stamp in files if self._told.get(name) != stamp}
        lines = [kept_line(self._voice.hide(name), stamp) for name, stamp in new.items()]
        if is_again:
            lines.insert(0, f"{GOES_TO}{self._place}")
        if lines:
            self._voice.log("\n".join(lines))
        self._told |= new
        self._since += sum(map(len, lines))
        if is_first:
            self._whole = self._since


def kept_line(name: str, stamp: Stamp) -> str:
    """Write one file that is kept; a name that a reader of lines could mistake is a JSON string."""
    is_plain = name.isprintable() and name == name.strip() and not name.startswith('"')
    seconds = min(max(stamp.mtime_ns // 10**9, 0), LATEST_SECOND)
    moment = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"kept {stamp.size} {moment} {name if is_plain else json.dumps(name)}"
