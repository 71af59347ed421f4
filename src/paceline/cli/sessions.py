"""Read-write sessions with the selected cluster."""

import contextlib
from collections.abc import Iterator

from paceline.cli.cluster_options import ClusterOptions, ensure_running, settings
from paceline.sdk.client import Session


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
