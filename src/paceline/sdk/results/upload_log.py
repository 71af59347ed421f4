"""What containers that copy results say in their logs: which files are kept, and where; no byte of any."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from paceline.errors import PacelineError

# As the porter writes them, which is a program of its own; a test holds the two against each other.
KEPT = re.compile(r"kept (?P<size>\d+) (?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (?P<name>.+)", re.DOTALL)
GOES_TO = "results go to "
COUNT = re.compile(r"(\d+) files?, \d+ bytes?, (?:is|are) in ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """A file that a member of a job has left."""

    member: str
    name: str
    size: int
    # When it was changed last, as Kubernetes writes times.
    time: str


@dataclass(slots=True, kw_only=True)
class UploadLog:
    """What is told of one member's files, log by log, the latest first."""

    member: str
    files: dict[str, ResultFile] = field(default_factory=dict)
    # The last line that is not about a file: all files are uploaded, some are on their way, or an upload failed.
    message: str = ""
    # Whether all was told that there was, so that no earlier log is needed.
    is_whole: bool = False
    # Why logs could not be read.
    unread: list[PacelineError] = field(default_factory=list)

    def hear(self, log: bytes) -> None:
        """Take one more log, of a run before those that were heard."""
        earlier, messages = read_log(self.member, log)
        self.files = {**earlier, **self.files}
        self.message = self.message or (messages[-1] if messages else "")
        self.is_whole = any(line.startswith(GOES_TO) for line in messages)

    def sentence(self) -> str:
        """Say where the files are, and whether the list lacks any; or why there is no list."""
        if not self.message:
            return "; ".join(dict.fromkeys(map(str, self.unread)))
        count = COUNT.match(self.message)
        if count is None or int(count[1]) <= len(self.files):
            return self.message
        lacks = f"only {len(self.files)} of them are listed here, because the log does not reach back far enough"
        return f"{self.message}; {lacks}; .paceline/manifest.json beside them names all"


def read_log(member: str, log: bytes) -> tuple[dict[str, ResultFile], list[str]]:
    """Give the files that a log tells of, by name, and its other lines; the last line of a name holds."""
    files: dict[str, ResultFile] = {}
    others = []
    for line in log.decode(errors="replace").split("\n"):
        match = KEPT.fullmatch(line)
        name = _name(match["name"]) if match else ""
        if match and name:
            files[name] = ResultFile(member=member, name=name, size=int(match["size"]), time=match["time"])
        elif line:
            others.append(line)
    return files, others


def in_order(logs: Iterable[UploadLog]) -> tuple[ResultFile, ...]:
    """Give all files, those of a member by name."""
    return tuple(log.files[name] for log in logs for name in sorted(log.files))


def _name(text: str) -> str:
    """Read a name: plain, or as a JSON string; empty when it is neither."""
    if not text.startswith('"'):
        return text
    try:
        name = json.loads(text)
    except ValueError:
        return ""
    # Half of a pair that only JSON can spell is no text.
    return name.encode(errors="replace").decode() if isinstance(name, str) else ""
