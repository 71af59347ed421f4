"""A terminal with scrolling logs and a status line at the bottom; plain lines elsewhere."""

import shutil
from collections.abc import Callable

from paceline.cli.output.console import Output
from paceline.cli.output.table import columns, cut

CLEAR = "\r\x1b[2K"
# The minimum time between two redraws of the status line.
REDRAW_SECONDS = 0.1


class Screen:
    """Log lines go to `out`, everything else to `err`; on a terminal the last line of `err` is the status line."""

    def __init__(self, out: Output, err: Output, monotonic: Callable[[], float]) -> None:
        self._out, self._err, self._monotonic = out, err, monotonic
        self._is_drawn = False
        self._drawn_at = float("-inf")

    @property
    def is_live(self) -> bool:
        """Return True if there is a status line."""
        return self._err.is_tty

    @property
    def err(self) -> Output:
        """Return the stream of the notes, for its colours."""
        return self._err

    def log(self, data: bytes) -> None:
        """Print log lines in place of the status line, which is redrawn below them."""
        self._wipe()
        self._out.log(data)

    def note(self, text: str, colour: str = "") -> None:
        """Print a line about the job in place of the status line."""
        self._wipe()
        self._err.line(text, colour)

    def bottom(self, text: str) -> None:
        """Draw the status line from sanitized parts, at most once per REDRAW_SECONDS."""
        if not self.is_live:
            return
        now = self._monotonic()
        if self._is_drawn and now - self._drawn_at < REDRAW_SECONDS:
            return
        self._err.raw((CLEAR if self._is_drawn else "") + text)
        self._is_drawn, self._drawn_at = True, now

    def close(self) -> None:
        """Remove the status line."""
        self._wipe()

    def _wipe(self) -> None:
        if self._is_drawn:
            self._err.raw(CLEAR)
            self._is_drawn = False


def fit(parts: list[tuple[str, str]], out: Output) -> str:
    """Join coloured parts into one line that does not wrap; the end is cut first."""
    room = shutil.get_terminal_size().columns - 1
    shown = []
    for text, colour in parts:
        short = cut(text, max(room, 0)) if columns(text) > room else text
        if room <= 0:
            break
        shown.append(out.paint(short, colour))
        room -= columns(short)
    return "".join(shown)
