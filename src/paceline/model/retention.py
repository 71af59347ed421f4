"""How much is kept of what has ended: logs of pods, records of jobs, events."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """The limits of the archive of logs; the oldest logs are removed first."""

    age: timedelta = timedelta(days=30)
    bytes: int = 10 * 1024**3
    pods: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPolicy:
    """How many records are kept, and for how long; the oldest are removed first."""

    age: timedelta = timedelta(days=90)
    jobs: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPolicy:
    """How many events are kept, and for how long after they were last seen; the oldest are removed first."""

    age: timedelta = timedelta(days=7)
    events: int = 10_000
