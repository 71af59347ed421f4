"""`flush`: the last copy of results, after which nobody writes any more."""

import argparse
import threading
from pathlib import Path

from paceline.podtools.object_store import Bucket, open_bucket
from paceline.podtools.reporting import Reporter, StepFailed
from paceline.podtools.steps.input import add_bucket_words, where_of
from paceline.podtools.upload_log import UploadReporter
from paceline.podtools.uploader import Manifest, Sync

# How often a last copy is tried, and the pause in between.
LAST_TRIES, PAUSE_SECONDS = 12, 4.0


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that name a folder of results, whose they are, and where they are kept."""
    add_bucket_words(parser)
    parser.add_argument("--from", dest="folder", type=Path, required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--job", required=True)


def open_kept(asked: argparse.Namespace, secret: dict[str, str]) -> Bucket:
    """Open the folder of the bucket where results are kept."""
    return open_bucket(where_of(asked, secret), asked.prefix)


def begin(asked: argparse.Namespace, secret: dict[str, str], teller: UploadReporter) -> Sync:
    """Begin to copy, with what is there already."""
    bucket = open_kept(asked, secret)

    def tell(manifest: Manifest) -> None:
        teller.reach(bucket.name)
        teller.tell((name, kept.stamp) for name, kept in manifest.files.items())

    return Sync(root=asked.folder, bucket=bucket, job=asked.job, tell=tell)


def run(asked: argparse.Namespace, secret: dict[str, str], voice: Reporter) -> str:
    """Copy everything, again and again if need be."""
    return finish(asked, secret, UploadReporter(voice))


def finish(asked: argparse.Namespace, secret: dict[str, str], teller: UploadReporter) -> str:
    """Copy everything, and give the sentence that says so; what was told before is not told again."""
    waits = threading.Event()
    for left in reversed(range(LAST_TRIES)):
        try:
            sync = begin(asked, secret, teller)
            return sync.finish().say(sync.bucket.name)
        except (StepFailed, OSError) as error:
            if not left:
                raise
            teller.stumble(error)
            waits.wait(PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")
