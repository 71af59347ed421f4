"""What a step tells: lines for its log, and one message for the status of its container."""

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import PacelineError

MESSAGE_FILE = Path("/dev/termination-log")
# What Kubernetes keeps of a message.
MOST_BYTES = 4096
# What a secret may say of a bucket, and is no secret: a message without it would say nothing.
PUBLIC = frozenset({"url", "endpoint", "region", "AWS_REGION", "S3_ENDPOINT"})
# Shorter texts are in many words that are no secrets.
SHORTEST_SECRET = 4


class Stopped(PacelineError):
    """A step cannot go on; the message says why, with the tool's own words."""

    code, reason = 500, "StepFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Says things, with every secret taken out of them."""

    secrets: tuple[str, ...] = ()
    message_file: Path = MESSAGE_FILE
    said: list[str] = field(default_factory=list)

    def log(self, text: str) -> None:
        """Write a line to the log; the same line is not written twice in a row."""
        line = self.hide(text)
        if self.said[-1:] != [line]:
            self.said[:] = [line]
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
    """Read the files of a secret, each by the name of its key; Stopped when there is no such folder."""
    if folder is None:
        return {}
    try:
        files = [path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]
        return {path.name: path.read_text(encoding="utf-8").strip("\n") for path in files}
    except (OSError, UnicodeDecodeError) as error:
        raise Stopped(f"the secret cannot be read: {error}") from error
