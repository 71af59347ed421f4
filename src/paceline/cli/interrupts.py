"""Handle Ctrl-C: the first press is recorded, a second one in a row ends the command."""

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class Interrupts:
    """Records Ctrl-C inside the block. If SIGINT was ignored before, it stays ignored."""

    def __init__(self) -> None:
        self.is_pressed = False
        self._previous_handler = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        self._listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._previous_handler)

    def paused(self, ask: Callable[[], T]) -> T:
        """Clear the recorded Ctrl-C and ask, with the original signal handler in place."""
        self.is_pressed = False
        signal.signal(signal.SIGINT, self._previous_handler)
        try:
            return ask()
        finally:
            self._listen()

    def _listen(self) -> None:
        if self._previous_handler is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_pressed:
            raise KeyboardInterrupt
        self.is_pressed = True
