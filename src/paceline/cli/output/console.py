"""All output of the command goes through this module, which removes terminal control sequences."""

import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import TextIO

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
PHASES = {
    "Succeeded": "green",
    "Completed": "green",
    "Failed": "red",
    "Running": "cyan",
    "Paused": "yellow",
    "Pending": "yellow",
}


class TextOutput:
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


def out() -> TextOutput:
    """Return the stream for results."""
    return TextOutput(sys.stdout)


def err() -> TextOutput:
    """Return the stream for messages."""
    return TextOutput(sys.stderr)


def print_error(message: str) -> None:
    """Print an error message."""
    stream = err()
    stream.raw(f"{stream.paint('error:', 'red')} {plain(message)}\n")


def print_warning(message: str) -> None:
    """Print a warning."""
    stream = err()
    stream.raw(f"{stream.paint('warning:', 'yellow')} {plain(message)}\n")


def print_hint(message: str) -> None:
    """Print a hint."""
    err().line(f"hint: {message}", "dim")


# Escape sequences: CSI, OSC, other strings (DCS, SOS, PM, APC), single escapes; in 7 and 8 bits.
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
_ESCAPE = r"\x1b[ -/]*[0-~]"
SEQUENCE = re.compile(f"{_CSI}|{_STRING}|{_ESCAPE}")
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
RESET = "\x1b[0m"

# Characters that move, hide or reorder the text around them.
_HIDDEN = "\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
ODD = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")


def plain(text: str) -> str:
    """Return one line of plain text: no escape sequences or line breaks, control characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    return ODD.sub(_visible, SEQUENCE.sub("", text).replace("\n", " ").replace("\t", " "))


def coloured(text: str) -> str:
    """Return log lines for a terminal: colours stay and are reset at the end of each line, other sequences go."""
    if not ODD.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not ODD.search(text):
        return text
    return "".join(_coloured_line(line) for line in text.splitlines(keepends=True) or [text])


def _coloured_line(line: str) -> str:
    if not ODD.search(line):
        return line
    body, newline = (line[:-1], "\n") if line.endswith("\n") else (line, "")
    pieces = []
    has_colour, start = False, 0
    for sequence in SEQUENCE.finditer(body):
        pieces.append(ODD.sub(_visible, body[start : sequence.start()]))
        if COLOUR.fullmatch(sequence[0]):
            has_colour = True
            pieces.append(sequence[0])
        start = sequence.end()
    pieces.append(ODD.sub(_visible, body[start:]))
    return "".join(pieces) + (RESET if has_colour else "") + newline


def escaped(text: str) -> str:
    """Escape control characters inside JSON strings and double-quoted YAML strings."""
    return ODD.sub(_escape, text)


def shown(text: str) -> str:
    """Return a multi-line text with control characters made visible."""
    return ODD.sub(_visible, text)


def _escape(match: re.Match[str]) -> str:
    # JSON escapes characters above U+FFFF as surrogate pairs only; YAML output goes through `yaml_text`.
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    return "^?" if code == 0x7F else f"<U+{code:04X}>"
