"""Questions to a person; asked on a terminal only."""

import sys

import click

from paceline.cli.output.console import err


def can_ask() -> bool:
    """Tell whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def choose(question: str, choices: dict[str, str], default: str) -> str:
    """Let a person choose by the first letter; Enter, the end of the input and a second Ctrl-C take the default."""
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
        stream.line(f"please answer one of: {', '.join(word[0] for word in choices)}")


def confirm(question: str) -> bool:
    """Ask whether to go on; anything but yes means no."""
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        err().line()
        return False
