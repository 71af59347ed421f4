"""`unpack`: an archive of the author's, laid out for the command."""

import argparse
from pathlib import Path

from paceline.podtools import install_tools
from paceline.podtools.reporting import Reporter, counted
from paceline.podtools.unpack import unpack


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that name an archive, and where it goes."""
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--digest", required=True)
    install_tools.add_words(parser)


def run(asked: argparse.Namespace, _secret: dict[str, str], voice: Reporter) -> str:
    """Lay out the code, and what installs its packages."""
    count = unpack(asked.file, asked.digest, asked.into)
    install_tools.lay_out(asked, voice)
    return f"{counted(count, 'file')} of the archive {asked.digest}"
