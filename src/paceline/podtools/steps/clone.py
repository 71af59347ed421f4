"""`clone`: one commit of a repository, laid out for the command."""

import argparse

from paceline.podtools import install_tools
from paceline.podtools.git import clone
from paceline.podtools.reporting import Reporter
from paceline.podtools.steps import resolve


def add_words(parser: argparse.ArgumentParser) -> None:
    """Take the words that name a repository, its commit, and where it goes."""
    resolve.add_words(parser)
    parser.add_argument("--commit", required=True)
    install_tools.add_words(parser)


def run(asked: argparse.Namespace, _secret: dict[str, str], voice: Reporter) -> str:
    """Bring the code, and what installs its packages."""
    repository = resolve.repository_of(asked)
    clone(repository, asked.commit, asked.into, asked.cache)
    install_tools.lay_out(asked, voice)
    return f"{repository.wanted} of {repository.url} at {asked.commit}"
