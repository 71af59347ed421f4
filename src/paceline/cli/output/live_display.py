"""A terminal with a log that scrolls and one line that stays at the bottom; elsewhere, plain lines."""

import shutil
from collections.abc import Callable

from paceline.cli.output.console import Output
from paceline.cli.output.table import columns, cut

CLEAR = "\r\x1b[2K"
# Ticks and changes redraw a line that stands no more often than this.
REDRAW_SECONDS = 0.1


class Screen:
    """Log lines go to `out`, everything else to `err`; on a terminal the last line of `err` is the status line."""

    def __init__(self, out: Output, err: Output, monotonic: Callable[[], float]) -> None:
        self._out, self._err, self._monotonic = out, err, monotonic
        self._is_drawn = False
        self._drawn_at = float("-inf")

    @property
    def is_live(self) -> bool:
        """Tell whether there is a status line at all."""
        return self._err.is_tty

    @property
    def err(self) -> Output:
        """Give the stream that notes go to, for its colours."""
        return self._err

    def log(self, data: bytes) -> None:
        """Print log lines where the status line was; it is drawn again below them."""
        self._wipe()
        self._out.log(data)

    def note(self, text: str, colour: str = "") -> None:
        """Print a line about the job where the status line was."""
        self._wipe()
        self._err.line(text, colour)

    def bottom(self, text: str) -> None:
        """Draw the status line, whose parts are safe already; a line that stands is not redrawn all the time."""
        if not self.is_live:
            return
        now = self._monotonic()
        if self._is_drawn and now - self._drawn_at < REDRAW_SECONDS:
            return
        self._err.raw((CLEAR if self._is_drawn else "") + text)
        self._is_drawn, self._drawn_at = True, now

    def close(self) -> None:
        """Take the status line away."""
        self._wipe()

    def _wipe(self) -> None:
        if self._is_drawn:
            self._err.raw(CLEAR)
            self._is_drawn = False


def fit(parts: list[tuple[str, str]], out: Output) -> str:
    """Join coloured parts into one line that does not wrap; the last part gives way first."""
    room = shutil.get_terminal_size().columns - 1
    shown = []
    for text, colour in parts:
        short = cut(text, max(room, 0)) if columns(text) > room else text
        if room <= 0:
            break
        shown.append(out.paint(short, colour))
        room -= columns(short)
    return "".join(shown)
