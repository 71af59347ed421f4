"""The machine's clock, apart from the rest of the machine: commands that start quickly need it alone."""

import time
from datetime import UTC, datetime


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Tell the wall-clock time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Tell seconds that never run backwards."""
        return time.monotonic()
