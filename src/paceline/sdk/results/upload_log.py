"""The log of an uploader: which files were uploaded, and where to."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from paceline.errors import PacelineError

# The format of the uploader in podtools, which is a separate program; a test compares the two.
KEPT = re.compile(r"kept (?P<size>\d+) (?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (?P<name>.+)", re.DOTALL)
GOES_TO = "results go to "
COUNT = re.compile(r"(\d+) files?, \d+ bytes?, (?:is|are) in ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """An output file of a replica."""

    member: str
    name: str
    size: int
    # Time of the last change, as an RFC 3339 timestamp.
    time: str


@dataclass(slots=True, kw_only=True)
class UploadLog:
    """What the upload logs report about one replica's files; logs are added newest first."""

    member: str
    files: dict[str, ResultFile] = field(default_factory=dict)
    # The last line that is not about a file: all files are uploaded, some are on their way, or an upload failed.
    message: str = ""
    # Whether the logs are complete, so that no earlier log is needed.
    is_whole: bool = False
    # Why logs could not be read.
    unread: list[PacelineError] = field(default_factory=list)

    def hear(self, log: bytes) -> None:
        """Add the log of an earlier run."""
        earlier, messages = read_log(self.member, log)
        self.files = {**earlier, **self.files}
        self.message = self.message or (messages[-1] if messages else "")
        self.is_whole = any(line.startswith(GOES_TO) for line in messages)

    def sentence(self) -> str:
        """Return where the files are and whether the list is incomplete, or why there is no list."""
        if not self.message:
            return "; ".join(dict.fromkeys(map(str, self.unread)))
        count = COUNT.match(self.message)
        if count is None or int(count[1]) <= len(self.files):
            return self.message
        lacks = f"only {len(self.files)} of them are listed here, because the log does not reach back far enough"
        return f"{self.message}; {lacks}; .paceline/manifest.json beside them names all"


def read_log(member: str, log: bytes) -> tuple[dict[str, ResultFile], list[str]]:
    """Return the files in a log by name, and its other lines; the last line about a file wins."""
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
    """Return all files, those of a replica sorted by name."""
    return tuple(log.files[name] for log in logs for name in sorted(log.files))


def _name(text: str) -> str:
    """Return a file name from plain text or a JSON string; empty if it is malformed."""
    if not text.startswith('"'):
        return text
    try:
        name = json.loads(text)
    except ValueError:
        return ""
    # JSON can contain unpaired surrogates, which are not valid text.
    return name.encode(errors="replace").decode() if isinstance(name, str) else ""
