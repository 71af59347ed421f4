"""The scheduling queue of the embedded cluster: which jobs wait for resources, in the order in which they get them.

The scheduler writes the whole queue into one ConfigMap. A place in the status of every job would mean a write for each
waiting job whenever the first one starts; so readers look their job up instead. Other clusters have no such object.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.untrusted import untrusted
from paceline.errors import BadRequest

NAMESPACE, NAME = "kube-system", "paceline-scheduling-queue"
# The object lists at most this many entries, so that it stays small; the others are only counted.
MAX_ENTRIES = 1000
_ENTRIES, _LENGTH = "entries", "length"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """A job, or a pod without a job, that waits for resources."""

    uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePosition:
    """The place of a job in the queue, counted from 1."""

    position: int
    length: int
    # The one directly before it; None for the first one.
    ahead: QueueEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingQueue:
    """All jobs and pods that wait for resources, in the order in which they are scheduled."""

    entries: tuple[QueueEntry, ...] = ()
    length: int = 0

    @classmethod
    def of(cls, entries: Iterable[QueueEntry]) -> "SchedulingQueue":
        """Return the queue of these entries; it lists only the first ones, and counts all."""
        waiting = tuple(entries)
        return cls(entries=waiting[:MAX_ENTRIES], length=len(waiting))

    def position_of(self, uid: str) -> QueuePosition | None:
        """Return the place of a job; None if it does not wait, or is too far behind to be listed."""
        for index, entry in enumerate(self.entries):
            if entry.uid == uid:
                ahead = self.entries[index - 1] if index else None
                return QueuePosition(position=index + 1, length=self.length, ahead=ahead)
        return None

    def data(self) -> dict[str, str]:
        """Return the data of the ConfigMap."""
        rows = [[entry.uid, entry.namespace, entry.name] for entry in self.entries]
        return {_ENTRIES: json.dumps(rows, separators=(",", ":")), _LENGTH: str(self.length)}

    def manifest(self) -> Object:
        """Return the ConfigMap."""
        metadata = {"name": NAME, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.data()}


EMPTY = SchedulingQueue()


def read_queue(config_map: Object | None) -> SchedulingQueue:
    """Return the queue that a ConfigMap holds; an empty one if there is none or it is malformed."""
    try:
        return _read((config_map or {}).get("data") or {})
    except BadRequest:
        return EMPTY


@untrusted
def _read(data: Mapping[str, Any]) -> SchedulingQueue:
    rows = json.loads(data.get(_ENTRIES) or "[]")
    entries = tuple(QueueEntry(uid=str(uid), namespace=str(namespace), name=str(name)) for uid, namespace, name in rows)
    return SchedulingQueue(entries=entries, length=int(data.get(_LENGTH) or len(entries)))
