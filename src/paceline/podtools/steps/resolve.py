"""`resolve`: which commit a branch or tag stands for."""

import argparse
from pathlib import Path

from paceline.podtools.git import Repository, resolve
from paceline.podtools.reporting import Reporter


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that name a repository."""
    parser.add_argument("--url", required=True)
    parser.add_argument("--revision", default="")
    parser.add_argument("--secret", type=Path)


def repository_of(asked: argparse.Namespace) -> Repository:
    """Give the repository that was named."""
    return Repository(url=asked.url, revision=asked.revision, secret=asked.secret)


def run(asked: argparse.Namespace, _secret: dict[str, str], _voice: Reporter) -> str:
    """Give the commit."""
    return resolve(repository_of(asked))
