"""The steps `resolve` (the commit of a branch or tag) and `clone` (the files of one commit)."""

import argparse
from pathlib import Path

from paceline.podtools.git import Repository, clone, resolve
from paceline.podtools.install_tools import add_target_arguments, copy_tools
from paceline.podtools.reporting import PodStep, Reporter


def add_repository_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True)
    parser.add_argument("--revision", default="")
    parser.add_argument("--secret", type=Path)


def add_clone_arguments(parser: argparse.ArgumentParser) -> None:
    add_repository_arguments(parser)
    parser.add_argument("--commit", required=True)
    add_target_arguments(parser)


def run_resolve(options: argparse.Namespace, _secret: dict[str, str], _reporter: Reporter) -> str:
    """Return the commit."""
    return resolve(_repository(options))


def run_clone(options: argparse.Namespace, _secret: dict[str, str], reporter: Reporter) -> str:
    """Fetch the code, and copy the programs that install its packages."""
    repository = _repository(options)
    clone(repository, options.commit, options.into, options.cache)
    copy_tools(options, reporter)
    return f"{repository.revision_name} of {repository.url} at {options.commit}"


def _repository(options: argparse.Namespace) -> Repository:
    return Repository(url=options.url, revision=options.revision, secret=options.secret)


STEPS = {"resolve": PodStep(add_repository_arguments, run_resolve), "clone": PodStep(add_clone_arguments, run_clone)}
