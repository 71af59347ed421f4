"""Read-write sessions with the selected cluster, and the start of the embedded one."""

import contextlib
from collections.abc import Iterator

from paceline.cli.cluster_options import ClusterOptions, settings
from paceline.cli.output.console import err
from paceline.errors import HostError
from paceline.sdk.client import Session
from paceline.sdk.connection import Unreachable
from paceline.settings import Settings


@contextlib.contextmanager
def open_session(cluster: ClusterOptions) -> Iterator[Session]:
    """Yield a session and close it at the end of the block."""
    number = cluster.number()
    with Session(number.dial, cluster.namespace or number.namespace) as opened, cluster.hinting():
        yield opened


@contextlib.contextmanager
def open_session_or_start(cluster: ClusterOptions) -> Iterator[Session]:
    """Yield a session; start the embedded cluster first if it is selected and not running."""
    if cluster.is_embedded:
        ensure_running(settings())
    with open_session(cluster) as opened:
        yield opened


def ensure_running(settings: Settings) -> None:
    """Start the embedded cluster in the background if it is not running; raise Unreachable if it cannot start."""
    # Imported here so that other commands do not load it.
    from paceline.cluster.daemon import is_running, wait_ready

    if is_running(settings):
        with _host_error_as_unreachable():
            wait_ready(settings)
        return
    err().line(f"No cluster is running; starting one in {settings.home}. To stop it: paceline down", "dim")
    start(settings)


def start(settings: Settings) -> None:
    """Start the embedded cluster and wait until it is ready."""
    from paceline.cluster.daemon import start_in_background

    with _host_error_as_unreachable():
        start_in_background(settings)


@contextlib.contextmanager
def _host_error_as_unreachable() -> Iterator[None]:
    """Raise Unreachable in place of HostError: a cluster that does not start cannot be reached."""
    try:
        yield
    except HostError as error:
        raise Unreachable(str(error)) from error
