"""How our processes speak: one line per thing, with its fields, on stderr."""

import logging
import sys
from collections.abc import Iterator

from paceline.errors import PacelineError

_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Line(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__(f"%(asctime)s {process} %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Write the constant message first, then the fields that came with it."""
        fields = " ".join(f"{name}={value!r}" for name, value in vars(record).items() if name not in _ORDINARY)
        head, newline, rest = super().format(record).partition("\n")
        return f"{head} {fields}".rstrip() + newline + rest


def say_to_stderr(process: str) -> None:
    """Send everything that is logged to stderr, marked with which process says it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(process))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def known(errors: BaseExceptionGroup[PacelineError]) -> tuple[str, ...]:
    """Give what the known errors of a group say, each once; known errors need no traceback."""
    return tuple(dict.fromkeys(str(error) for error in _leaves(errors)))


def _leaves(errors: BaseExceptionGroup[PacelineError]) -> Iterator[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
