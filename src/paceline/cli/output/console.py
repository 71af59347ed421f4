"""All output of the command goes through this module, which removes terminal control sequences."""

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

from paceline.cli.output.sanitize import coloured, plain, shown

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
PHASES = {
    "Succeeded": "green",
    "Completed": "green",
    "Failed": "red",
    "Running": "cyan",
    "Paused": "yellow",
    "Pending": "yellow",
}


class Output:
    """One output stream: results go to stdout, everything else to stderr."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_tty = stream.isatty()
        self.has_colour = self.is_tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int | None:
        """Return the width of the terminal, or None if the stream is not a terminal."""
        return shutil.get_terminal_size().columns if self.is_tty else None

    def line(self, text: str = "", colour: str = "") -> None:
        """Print one line of plain text."""
        self.raw(self.paint(text, colour) + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Print several lines of plain text."""
        self.raw("".join(plain(line) + "\n" for line in lines))

    def document(self, text: str) -> None:
        """Print a multi-line text. Control characters are shown; JSON and YAML have escaped them already."""
        self.raw(shown(text if text.endswith("\n") else text + "\n"))

    def log(self, data: bytes) -> None:
        """Print log lines: unchanged to a file or pipe, without control sequences except colours to a terminal."""
        if self.is_tty:
            self.raw(coloured(data.decode(errors="replace")))
            return
        self._stream.flush()
        self._stream.buffer.write(data)
        self._stream.buffer.flush()

    def paint(self, text: str, colour: str = "") -> str:
        """Return plain text in a colour if the stream supports colours."""
        code = CODES.get(colour)
        return f"\x1b[{code}m{plain(text)}\x1b[0m" if code and self.has_colour else plain(text)

    def raw(self, text: str) -> None:
        """Write a text that is already sanitized."""
        self._stream.write(text)
        self._stream.flush()


def out() -> Output:
    """Return the stream for results."""
    return Output(sys.stdout)


def err() -> Output:
    """Return the stream for messages."""
    return Output(sys.stderr)


def say_error(message: str) -> None:
    """Print an error message."""
    stream = err()
    stream.raw(f"{stream.paint('error:', 'red')} {plain(message)}\n")


def say_warning(message: str) -> None:
    """Print a warning."""
    stream = err()
    stream.raw(f"{stream.paint('warning:', 'yellow')} {plain(message)}\n")


def say_hint(message: str) -> None:
    """Print a hint."""
    err().line(f"hint: {message}", "dim")
