"""Questions to the user, on a terminal only."""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Self, TypeVar

import click

from paceline.cli.output.console import err


def can_ask() -> bool:
    """Return True if stdin and stderr are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def choose(question: str, choices: dict[str, str], default: str) -> str:
    """Return the choice by its first letter; Enter, end of input and a second Ctrl-C select the default."""
    stream = err()
    stream.line(question, "bold")
    for word, meaning in choices.items():
        mark = " (Enter)" if word == default else ""
        stream.raw(f"  {stream.paint(word[0], 'cyan')}  {stream.paint(meaning)}{mark}\n")
    while True:
        try:
            answer = click.prompt("", prompt_suffix="> ", default="", show_default=False, err=True)
        except click.Abort:
            stream.line()
            return default
        if not answer.strip():
            return default
        for word in choices:
            if word.startswith(answer.strip().lower()):
                return word
        stream.line(f"please enter one of: {', '.join(word[0] for word in choices)}")


def confirm(question: str) -> bool:
    """Ask for confirmation; anything but yes means no. Without a terminal, as in scripts, nothing is asked."""
    if not can_ask():
        return True
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        err().line()
        return False


T = TypeVar("T")


class Interrupts:
    """Records Ctrl-C inside the block. If SIGINT was ignored before, it stays ignored."""

    def __init__(self) -> None:
        self.is_pressed = False
        self._previous_handler = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        self._listen()
        return self

    def __exit__(self, *_: object) -> None:
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
