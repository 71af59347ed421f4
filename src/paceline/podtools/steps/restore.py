"""`restore`: what an earlier try of the same job left, back in its folder."""

import argparse

from paceline.podtools.reporting import Reporter, counted
from paceline.podtools.steps import flush
from paceline.podtools.uploader import restore

add_words = flush.add_words


def run(asked: argparse.Namespace, secret: dict[str, str], _voice: Reporter) -> str:
    """Bring back what is not there any more."""
    bucket = flush.open_kept(asked, secret)
    count = restore(asked.folder, bucket, asked.job)
    return f"{counted(count, 'file')} of an earlier try came back from {bucket.name}"
