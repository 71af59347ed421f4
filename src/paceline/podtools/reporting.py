"""What a step tells: lines for its log, and one message for the status of its container.

Every step loads this, and every pod waits for it: no dataclasses here or in `git.py`, which take as long as git does.
"""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

MESSAGE_FILE = Path("/dev/termination-log")
# What Kubernetes keeps of a message.
MOST_BYTES = 4096
# What a secret may say of a bucket, and is no secret: a message without it would say nothing.
PUBLIC = frozenset({"url", "endpoint", "region", "AWS_REGION", "S3_ENDPOINT"})
# Shorter texts are in many words that are no secrets.
SHORTEST_SECRET = 4


class StepFailed(Exception):
    """A step cannot go on; the message says why, with the tool's own words."""


class Reporter:
    """Says things, with every secret taken out of them."""

    __slots__ = ("_said", "message_file", "secrets")

    def __init__(self, *, secrets: tuple[str, ...] = (), message_file: Path = MESSAGE_FILE) -> None:
        self.secrets, self.message_file = secrets, message_file
        self._said = ""

    def log(self, text: str) -> None:
        """Write a line to the log; the same line is not written twice in a row."""
        line = self.hide(text)
        if self._said != line:
            self._said = line
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def conclude(self, text: str) -> None:
        """Leave the one message for the status; a container without such a file has its log."""
        told = self.hide(text).encode()[-MOST_BYTES:].decode(errors="ignore")
        with contextlib.suppress(OSError):
            self.message_file.write_text(told, encoding="utf-8")

    def hide(self, text: str) -> str:
        """Take secrets out of a text."""
        for secret in self.secrets:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "…")
        return text


def counted(number: int, what: str) -> str:
    """Say how many there are of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def hidden(secret: Mapping[str, str]) -> tuple[str, ...]:
    """Give what of a secret nobody may see."""
    return tuple(text for key, text in secret.items() if key not in PUBLIC)


def read_secret(folder: Path | None) -> dict[str, str]:
    """Read the files of a secret, each by the name of its key; StepFailed when there is no such folder."""
    if folder is None:
        return {}
    try:
        files = [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]
        return {path.name: path.read_text(encoding="utf-8").strip("\n") for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise StepFailed(f"the secret cannot be read: {error}") from error
