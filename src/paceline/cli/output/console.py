"""The one way out: everything this command prints goes through here, and nothing of it can order a terminal about."""

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
    """One stream of the process: results on stdout, everything about the way there on stderr."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_tty = stream.isatty()
        self.has_colour = self.is_tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int | None:
        """Give the columns of the terminal; None when it is none."""
        return shutil.get_terminal_size().columns if self.is_tty else None

    def line(self, text: str = "", colour: str = "") -> None:
        """Print one line of plain words."""
        self.raw(self.paint(text, colour) + "\n")

    def lines(self, lines: Iterable[str]) -> None:
        """Print several lines of plain words."""
        self.raw("".join(plain(line) + "\n" for line in lines))

    def document(self, text: str) -> None:
        """Print a text of many lines; in JSON and YAML odd characters are escaped by then, elsewhere they are shown."""
        self.raw(shown(text if text.endswith("\n") else text + "\n"))

    def log(self, data: bytes) -> None:
        """Print log lines: byte for byte into a file or a pipe, with nothing but colours left on a terminal."""
        if self.is_tty:
            self.raw(coloured(data.decode(errors="replace")))
            return
        self._stream.flush()
        self._stream.buffer.write(data)
        self._stream.buffer.flush()

    def paint(self, text: str, colour: str = "") -> str:
        """Give plain words in a colour, where colours are shown."""
        code = CODES.get(colour)
        return f"\x1b[{code}m{plain(text)}\x1b[0m" if code and self.has_colour else plain(text)

    def raw(self, text: str) -> None:
        """Write a text that was made safe before."""
        self._stream.write(text)
        self._stream.flush()


def out() -> Output:
    """Give what carries results."""
    return Output(sys.stdout)


def err() -> Output:
    """Give what carries everything else."""
    return Output(sys.stderr)


def say_error(message: str) -> None:
    """Say what is wrong, as scripts and people find it."""
    stream = err()
    stream.raw(f"{stream.paint('error:', 'red')} {plain(message)}\n")


def say_warning(message: str) -> None:
    """Say what the server warns of."""
    stream = err()
    stream.raw(f"{stream.paint('warning:', 'yellow')} {plain(message)}\n")


def say_hint(message: str) -> None:
    """Say what could be done next."""
    err().line(f"hint: {message}", "dim")
