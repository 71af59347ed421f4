"""Start the embedded cluster if it is not running."""

import contextlib
from collections.abc import Iterator

from paceline.cli.output.console import err
from paceline.cluster.daemon import is_running, start_in_background, wait_ready
from paceline.errors import HostError
from paceline.sdk.connection import Unreachable
from paceline.settings import Settings


def ensure_running(settings: Settings) -> None:
    """Start the embedded cluster in the background if it is not running; raise Unreachable if it cannot start."""
    if is_running(settings):
        with _host_error_as_unreachable():
            wait_ready(settings)
        return
    err().line(f"No cluster is running; starting one in {settings.home} (paceline down stops it) …", "dim")
    start(settings)


def start(settings: Settings) -> None:
    """Start the embedded cluster and wait until it is ready."""
    with _host_error_as_unreachable():
        start_in_background(settings)


@contextlib.contextmanager
def _host_error_as_unreachable() -> Iterator[None]:
    """Raise Unreachable in place of HostError: a cluster that does not start cannot be reached."""
    try:
        yield
    except HostError as error:
        raise Unreachable(str(error)) from error
