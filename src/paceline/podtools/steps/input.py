"""`input`: the files of a bucket, laid out for the command."""

import argparse
from pathlib import Path, PurePosixPath

from paceline.podtools.object_store import Where, open_bucket
from paceline.podtools.output_tree import OWN
from paceline.podtools.reporting import Reporter, counted
from paceline.podtools.uploader import bring_all


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that name a bucket, and where its files go."""
    add_bucket_words(parser)
    parser.add_argument("--into", type=Path, required=True)


def add_bucket_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that name a bucket."""
    for name in ("--url", "--endpoint", "--region"):
        parser.add_argument(name, default="")
    parser.add_argument("--secret", type=Path)


def where_of(asked: argparse.Namespace, secret: dict[str, str]) -> Where:
    """Give the bucket that was named, as its owner describes it."""
    return Where(url=asked.url, endpoint=asked.endpoint, region=asked.region, secret=secret)


def run(asked: argparse.Namespace, secret: dict[str, str], _voice: Reporter) -> str:
    """Bring all files."""
    bucket = open_bucket(where_of(asked, secret))
    # What we wrote about results is no result.
    every = {name: size for name, size in bucket.names() if OWN not in name.split("/")}
    # A store may have a folder as an empty object of its own.
    folders = {str(folder) for name in every for folder in PurePosixPath(name).parents}
    files = {name: size for name, size in every.items() if size or name not in folders}
    bring_all(asked.into, bucket, files)
    return f"{counted(len(files), 'file')}, {counted(sum(files.values()), 'byte')}, of {bucket.name}"
