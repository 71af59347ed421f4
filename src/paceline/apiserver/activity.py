"""Who looks into what runs behind services: when last, and whether somebody does now. Kept in memory only.

A request of any sort is a use. Opening is more: a page that was asked for by its own path or as a page, by which a
sleeping TensorBoard is woken; what an open page asks for by itself all day is not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from paceline.apimachinery.meta import Key
from paceline.effects import Clock

# Those who listen hear of a service's visits at most this often.
NOTIFY_INTERVAL = timedelta(seconds=5)
# So many services are remembered; of the one that was used longest ago it is forgotten when.
MAX_SERVICES = 10_000


@dataclass(slots=True)
class _Activity:
    """What is known of one service."""

    used: datetime
    under_way: int = 0
    opened: datetime | None = None
    told: datetime | None = None


class ActivityTracker:
    """Counts the requests that are passed on to services."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._books: dict[Key, _Activity] = {}
        self._hear: list[Callable[[str, str], None]] = []

    def listen(self, hear: Callable[[str, str], None]) -> None:
        """Tell of visits: namespace and service."""
        self._hear.append(hear)

    def used(self, namespace: str, service: str) -> datetime | None:
        """Tell when a service was last asked for anything; now, while an answer is under way."""
        book = self._books.get((namespace, service))
        if book is None:
            return None
        return self._clock.now() if book.under_way else book.used

    def opened(self, namespace: str, service: str) -> datetime | None:
        """Tell when a page of a service was last opened."""
        book = self._books.get((namespace, service))
        return None if book is None else book.opened

    def note(self, namespace: str, service: str, *, is_opening: bool) -> None:
        """Write down that a service was asked for something, whether or not anybody answers."""
        now = self._clock.now()
        # The newest last, so that the first is the one to forget.
        book = self._books.pop((namespace, service), None) or _Activity(used=now)
        self._books[namespace, service] = book
        if len(self._books) > MAX_SERVICES:
            del self._books[next(iter(self._books))]
        book.used = now
        if is_opening:
            book.opened = now
        if is_opening or book.told is None or now - book.told >= NOTIFY_INTERVAL:
            book.told = now
            for hear in self._hear:
                hear(namespace, service)

    @contextmanager
    def under_way(self, namespace: str, service: str) -> Iterator[None]:
        """Count an answer, or a line, as use until it ends."""
        book = self._books.get((namespace, service))
        if book is None:
            yield
            return
        book.under_way += 1
        try:
            yield
        finally:
            book.under_way -= 1
            book.used = self._clock.now()
