"""Logging of our processes: one line per record with its fields, text or JSON, on stderr; a log file is rotated."""

import contextlib
import fcntl
import json
import logging
import os
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from paceline.errors import PacelineError
from paceline.settings import JSON, TEXT

LOG_BYTES = 10 * 1024 * 1024
# Rotated files; paceline.log.1 is the newest.
OLD_LOGS = 3
STDOUT, STDERR = 1, 2

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Line(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__(f"%(asctime)s {process} %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the message, followed by the fields of the record."""
        fields = " ".join(f"{name}={value!r}" for name, value in vars(record).items() if name not in _ORDINARY)
        head, newline, traceback = super().format(record).partition("\n")
        return f"{head} {fields}".rstrip() + newline + traceback


class _JsonLine(logging.Formatter):
    """One JSON object per record: time, level, process, logger, message, then the fields of the record."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON; a traceback is one of its fields."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        # A field never replaces one of the record itself.
        line |= {f"field_{name}" if name in line else name: value for name, value in fields.items()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class _Rotating(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stderr, and rotates the log file if stderr is that file.

    Several processes share the file as their stderr. The first that finds it full renames it; the others reopen it by
    name before their next line.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__(sys.stderr)
        # It is still the log after another process rotated it.
        stderr = str(Path(f"/proc/self/fd/{STDERR}").readlink())
        self._path = path if path is not None and stderr.startswith(str(path.resolve())) else None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, to a new file if the old one is full."""
        if self._path is not None:
            # On a full disk the line may still fit into the old file.
            with contextlib.suppress(OSError):
                follow_log(self._path)
        super().emit(record)


def configure_logging(process: str, path: Path | None = None, *, log_format: str = TEXT) -> None:
    """Log to stderr with the name of the process; `path` is the log file, if any."""
    handler = _Rotating(path)
    handler.setFormatter(_JsonLine(process) if log_format == JSON else _Line(process))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # Anyone who reaches the port can send malformed HTTP; do not log each request.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def remembered_format(started_with: Path) -> str:
    """Return the format of log lines that the last start chose."""
    try:
        return str(json.loads(started_with.read_text()).get("logFormat") or TEXT)
    except (OSError, ValueError, AttributeError):
        return TEXT


def open_log(path: Path) -> int:
    """Return a descriptor for appending to the log file, which only its owner can read."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # The path may be a link to a shared device.
    if stat.S_ISREG(os.fstat(fd).st_mode):
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, 0o600)
    return fd


def follow_log(path: Path, limit: int = LOG_BYTES) -> None:
    """Rotate the log if it is full, and reopen stderr (and stdout, if it is the same file) by name."""
    if _is_at(STDERR, path):
        if os.fstat(STDERR).st_size < limit:
            return
        _rotate(path, limit)
    is_both = os.path.sameopenfile(STDOUT, STDERR)
    fd = open_log(path)
    try:
        os.dup2(fd, STDERR)
        if is_both:
            os.dup2(fd, STDOUT)
    finally:
        os.close(fd)


def _rotate(path: Path, limit: int) -> None:
    """Rename the log and the rotated files; only one of several processes does it."""
    fd = open_log(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        if not _is_at(fd, path) or os.fstat(fd).st_size < limit:
            return
        for number in range(OLD_LOGS - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                _old_log(path, number).rename(_old_log(path, number + 1))
        path.rename(_old_log(path, 1))
    finally:
        os.close(fd)


def _old_log(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _is_at(fd: int, path: Path) -> bool:
    """Return whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except OSError:
        return False


def messages_of(errors: BaseExceptionGroup[PacelineError]) -> tuple[str, ...]:
    """Return the messages of the expected errors in a group without duplicates."""
    return tuple(dict.fromkeys(str(error) for error in leaves(errors)))


def leaves(errors: BaseExceptionGroup[PacelineError]) -> Iterator[BaseException]:
    """Yield the single errors of a group and of the groups in it."""
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
