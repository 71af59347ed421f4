"""The interface of steps: lines for the log, one message for the container's status, errors and secrets.

Every step loads this module, and every pod waits for it. Do not use dataclasses or `typing` here or in `git.py`:
importing them takes as long as git does.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

MESSAGE_FILE = Path("/dev/termination-log")
# Kubernetes keeps this much of a message.
MAX_MESSAGE_BYTES = 4096
# Keys of a Secret that describe a bucket; a message without their values would say nothing.
PUBLIC_KEYS = frozenset({"url", "endpoint", "region", "AWS_REGION", "S3_ENDPOINT"})
# Shorter texts are part of many ordinary words.
MIN_SECRET_LENGTH = 4


class StepFailed(Exception):
    """A step cannot continue; the message contains the output of the tool that failed."""


class Reporter:
    """Writes log lines and the termination message, without secrets."""

    __slots__ = ("_last_line", "message_file", "secrets")

    def __init__(self, *, secrets: tuple[str, ...] = (), message_file: Path = MESSAGE_FILE) -> None:
        self.secrets, self.message_file = secrets, message_file
        self._last_line = ""

    def log(self, text: str) -> None:
        """Write a line to the log, unless the last line was the same."""
        line = self.redact(text)
        if self._last_line != line:
            self._last_line = line
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def conclude(self, text: str) -> None:
        """Write the termination message; a container without such a file has only its log."""
        message = self.redact(text).encode()[-MAX_MESSAGE_BYTES:].decode(errors="ignore")
        with contextlib.suppress(OSError):
            self.message_file.write_text(message, encoding="utf-8")

    def redact(self, text: str) -> str:
        """Return a text with every secret replaced by an ellipsis."""
        for secret in self.secrets:
            if len(secret) >= MIN_SECRET_LENGTH:
                text = text.replace(secret, "…")
        return text


# Runs a step with its options and the values of its secret, and returns the message for the container's status.
Run = Callable[[argparse.Namespace, dict[str, str], Reporter], str]


class PodStep:
    """A step: the function that adds its options to a parser, and the function that runs it."""

    __slots__ = ("add_arguments", "run")

    def __init__(self, add_arguments: Callable[[argparse.ArgumentParser], None], run: Run) -> None:
        self.add_arguments, self.run = add_arguments, run


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def hidden_values(secret: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of a secret that must not be shown."""
    return tuple(value for key, value in secret.items() if key not in PUBLIC_KEYS)


def read_secret(folder: Path | None) -> dict[str, str]:
    """Return the values of a mounted Secret by key; raise StepFailed when it cannot be read."""
    if folder is None:
        return {}
    try:
        files = [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]
        return {path.name: path.read_text(encoding="utf-8").strip("\n") for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise StepFailed(f"the secret cannot be read: {error}") from error
