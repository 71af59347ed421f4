"""Make sure that the embedded cluster runs, and say so when it had to be started."""

import contextlib
from collections.abc import Iterator

from paceline.cli.output.console import err
from paceline.cluster.daemon import is_running, start_in_background, wait_ready
from paceline.errors import HostError
from paceline.sdk.connection import Unreachable
from paceline.settings import Settings


def ensure_running(settings: Settings) -> None:
    """Start the embedded cluster in the background when it does not run; Unreachable when it cannot be started."""
    if is_running(settings):
        with _unreached():
            wait_ready(settings)
        return
    err().line(f"No cluster is running; starting one in {settings.home} (paceline down stops it) …", "dim")
    start(settings)


def start(settings: Settings) -> None:
    """Start the embedded cluster and wait until it answers."""
    with _unreached():
        start_in_background(settings)


@contextlib.contextmanager
def _unreached() -> Iterator[None]:
    """A cluster that does not start is one that cannot be reached."""
    try:
        yield
    except HostError as error:
        raise Unreachable(str(error)) from error
