"""What all crash tests share: silence, and the lives in which nobody is killed."""

import logging
import os
from collections.abc import Iterator

import pytest

from tests.crash import replay


@pytest.fixture(scope="package", autouse=True)
def quiet() -> Iterator[None]:
    """Say nothing: a simulated minute of trouble fills a page."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="session", autouse=True)
def shared_lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the workers of one run live each life without crashes once, and not once each."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The folder above a worker's own is the run's.
        folder = tmp_path_factory.getbasetemp().parent / "lives"
        folder.mkdir(exist_ok=True)
        replay.Shared.folder = folder
    yield
    replay.Shared.folder = None
