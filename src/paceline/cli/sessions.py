"""A session with the cluster that a command means, for commands that do more than read."""

import contextlib
from collections.abc import Iterator

from paceline.cli.reach import Reach
from paceline.sdk.session import Session


@contextlib.contextmanager
def session(reach: Reach) -> Iterator[Session]:
    """Connect for the length of a block."""
    number = reach.number()
    with Session(number.dial, reach.namespace or number.namespace) as opened, reach.hinting():
        yield opened
