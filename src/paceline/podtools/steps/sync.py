"""`sync`: results are copied while the command runs, and for the last time when it has ended."""

import argparse
import signal
import threading
from pathlib import Path

from paceline.podtools.reporting import Reporter, StepFailed
from paceline.podtools.steps import flush
from paceline.podtools.upload_log import UploadReporter
from paceline.podtools.uploader import Sync

# That somebody listens to the signal to end; the command's containers start once it is there.
READY = Path("/tmp/porter-ready")  # noqa: S108 - of a container of our own
# How long files keep still before they are copied.
LOOK_SECONDS = 2.0
# Looking at more files than this takes so long that it is done more rarely.
MANY = 10_000


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words of a last copy, and where to leave the mark that somebody listens."""
    flush.add_words(parser)
    parser.add_argument("--ready", type=Path, default=READY)


def run(asked: argparse.Namespace, secret: dict[str, str], voice: Reporter) -> str:
    """Copy until we are told to end, and then everything."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    asked.ready.touch()
    sync: Sync | None = None
    teller = UploadReporter(voice)
    while not told.wait(pause_for(sync.count if sync is not None else 0)):
        try:
            sync = sync or flush.begin(asked, secret, teller)
            sync.step()
            teller.reach(sync.bucket.name)
        except (StepFailed, OSError) as error:
            teller.stumble(error)
    return flush.finish(asked, secret, teller)


def pause_for(count: int) -> float:
    """Give the pause between two looks at so many files: looking is not to take the processor from the command."""
    return LOOK_SECONDS * max(1.0, count / MANY)
