"""The machine's clock, in a module of its own because commands of the CLI import nothing else of the machine."""

import time
from datetime import UTC, datetime


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()
