"""Read-write sessions with the selected cluster."""

import contextlib
from collections.abc import Iterator

from paceline.cli.cluster_options import ClusterOptions, settings
from paceline.sdk.client import Session


@contextlib.contextmanager
def session(reach: ClusterOptions) -> Iterator[Session]:
    """Yield a session and close it at the end of the block."""
    number = reach.number()
    with Session(number.dial, reach.namespace or number.namespace) as opened, reach.hinting():
        yield opened


@contextlib.contextmanager
def session_started(reach: ClusterOptions) -> Iterator[Session]:
    """Yield a session; start the embedded cluster first if it is selected and not running."""
    if reach.is_embedded:
        # Imported here so that other commands do not load it.
        from paceline.cli.ensure_cluster import ensure_running

        ensure_running(settings())
    with session(reach) as opened:
        yield opened
