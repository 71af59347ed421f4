"""The machine's clock, in a module of its own because commands of the CLI import nothing else of the machine."""

import time
from datetime import UTC, datetime


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
