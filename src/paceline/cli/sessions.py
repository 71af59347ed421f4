"""A session with the cluster that a command means, for commands that do more than read."""

import contextlib
from collections.abc import Iterator

from paceline.cli.cluster_options import ClusterOptions, settings
from paceline.sdk.client import Session


@contextlib.contextmanager
def session(reach: ClusterOptions) -> Iterator[Session]:
    """Connect for the length of a block."""
    number = reach.number()
    with Session(number.dial, reach.namespace or number.namespace) as opened, reach.hinting():
        yield opened


@contextlib.contextmanager
def session_started(reach: ClusterOptions) -> Iterator[Session]:
    """Connect for the length of a block; the embedded cluster, if that is meant, is started when it does not run."""
    if reach.is_embedded:
        # Only here: commands that start nothing need not load it.
        from paceline.cli.ensure_cluster import ensure_running

        ensure_running(settings())
    with session(reach) as opened:
        yield opened
