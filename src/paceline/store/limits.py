"""How much a store holds back, keeps and lets wait."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one store. A batch must fit into the history several times."""

    # What watchers can still be told: as many revisions, no more bytes, and nothing much older than that.
    history: int = 10_000
    history_bytes: int = 64 * MIB
    history_seconds: float = 3600.0
    # What one commit takes at most.
    batch: int = 512
    batch_bytes: int = 8 * MIB
    # Writes that may wait for a commit before new ones are turned away.
    waiting: int = 4096
    # Revisions beyond the history that the disk may hold before they are cleared away.
    slack: int = 1000


DEFAULTS = Limits()
