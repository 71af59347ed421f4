"""Limits of a store: history, batches and queued writes."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLimits:
    """Limits of one store. The history must be several times as large as a batch."""

    # History for watches: number of revisions, bytes, and approximate age.
    history: int = 10_000
    history_bytes: int = 64 * MIB
    history_seconds: float = 3600.0
    # Maximum size of one commit.
    batch: int = 512
    batch_bytes: int = 8 * MIB
    # Writes that may wait for a commit before further ones are rejected.
    waiting: int = 4096
    # Revisions beyond the history that may stay on disk before they are compacted.
    slack: int = 1000


DEFAULTS = StoreLimits()
