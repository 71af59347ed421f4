"""Last-use tracking of Services behind the proxy, in memory only; idle TensorBoards and Notebooks are stopped by it.

Every request counts as use. A request for a page, by its own path or with an HTML Accept header, also counts as
opening, which wakes a sleeping TensorBoard; the background requests of an open page do not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from paceline.apimachinery.meta import Key
from paceline.effects import Clock

# Listeners are called at most this often per Service.
NOTIFY_INTERVAL = timedelta(seconds=5)
# Track at most this many Services; the least recently used entry is dropped.
MAX_SERVICES = 10_000


@dataclass(slots=True)
class _Activity:
    used: datetime
    under_way: int = 0
    opened: datetime | None = None
    notified: datetime | None = None


class ActivityTracker:
    """Counts the requests that are proxied to Services."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._activities: dict[Key, _Activity] = {}
        self._listeners: list[Callable[[str, str], None]] = []

    def listen(self, listener: Callable[[str, str], None]) -> None:
        """Call a function with namespace and name of a Service when it is used."""
        self._listeners.append(listener)

    def used(self, namespace: str, service: str) -> datetime | None:
        """Return when a Service was last used; now, while a response is in progress."""
        activity = self._activities.get((namespace, service))
        if activity is None:
            return None
        return self._clock.now() if activity.under_way else activity.used

    def opened(self, namespace: str, service: str) -> datetime | None:
        """Return when a page of a Service was last opened."""
        activity = self._activities.get((namespace, service))
        return None if activity is None else activity.opened

    def note(self, namespace: str, service: str, *, is_opening: bool) -> None:
        """Record a request to a Service, whether or not a pod answers it."""
        now = self._clock.now()
        # Move the entry to the end, so that the first one is the least recently used.
        activity = self._activities.pop((namespace, service), None) or _Activity(used=now)
        self._activities[namespace, service] = activity
        if len(self._activities) > MAX_SERVICES:
            del self._activities[next(iter(self._activities))]
        activity.used = now
        if is_opening:
            activity.opened = now
        if is_opening or activity.notified is None or now - activity.notified >= NOTIFY_INTERVAL:
            activity.notified = now
            for listener in self._listeners:
                listener(namespace, service)

    @contextmanager
    def under_way(self, namespace: str, service: str) -> Iterator[None]:
        """Count a response or WebSocket as use until it ends."""
        activity = self._activities.get((namespace, service))
        if activity is None:
            yield
            return
        activity.under_way += 1
        try:
            yield
        finally:
            activity.under_way -= 1
            activity.used = self._clock.now()
