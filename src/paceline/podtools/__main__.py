"""`python -m paceline.podtools STEP …`: one step in a pod; it ends with 0, or with 1 and the reason as its message."""

import argparse
import sys
from importlib import import_module
from types import ModuleType

from paceline.podtools.reporting import Reporter, StepFailed, hidden, read_secret

# Each is a module of its own in `steps/`, with `add_words` and `run`.
STEPS = ("resolve", "clone", "unpack", "input", "restore", "sync", "flush")


def main(words: list[str] | None = None) -> int:
    """Do one step."""
    step, asked = _understood(sys.argv[1:] if words is None else words)
    voice = Reporter()
    try:
        secret = read_secret(asked.secret)
        voice = Reporter(secrets=hidden(secret))
        said: str = step.run(asked, secret, voice)
    except (StepFailed, OSError) as error:
        voice.log(str(error))
        voice.conclude(str(error))
        return 1
    voice.log(said)
    voice.conclude(said)
    return 0


def _understood(words: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """Load the step that the first word names, and only that one; it knows what the others mean."""
    parser = argparse.ArgumentParser(prog="python -m paceline.podtools", allow_abbrev=False)
    parser.add_argument("step", choices=STEPS)
    name = parser.parse_args(words[:1]).step
    step = import_module(f"paceline.podtools.steps.{name}")
    inner = argparse.ArgumentParser(prog=f"{parser.prog} {name}", allow_abbrev=False)
    inner.set_defaults(secret=None)
    step.add_words(inner)
    return step, inner.parse_args(words[1:])


if __name__ == "__main__":
    sys.exit(main())
