"""Read-write sessions with the selected cluster."""

import contextlib
from collections.abc import Iterator

from paceline.apimachinery.scheme import no_faults
from paceline.cli.cluster_options import ClusterOptions, ensure_running, settings
from paceline.sdk.client import Session
from paceline.sdk.submission.submit import FindFaults


@contextlib.contextmanager
def open_session(cluster: ClusterOptions, *, find_claim_faults: FindFaults = no_faults) -> Iterator[Session]:
    """Yield a session and close it at the end of the block."""
    number = cluster.number()
    namespace = cluster.namespace or number.namespace
    with Session(number.dial, namespace, find_claim_faults=find_claim_faults) as opened, cluster.hinting():
        yield opened


@contextlib.contextmanager
def open_session_or_start(cluster: ClusterOptions, *, find_claim_faults: FindFaults = no_faults) -> Iterator[Session]:
    """Yield a session; start the embedded cluster first if it is selected and not running."""
    if cluster.is_embedded:
        ensure_running(settings())
    with open_session(cluster, find_claim_faults=find_claim_faults) as opened:
        yield opened
