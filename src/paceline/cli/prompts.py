"""Questions to the user, on a terminal only."""

import sys

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
    """Ask for confirmation; anything but yes means no."""
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        err().line()
        return False
