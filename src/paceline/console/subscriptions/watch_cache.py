"""The feeds of all people: one for all tabs of a person that need it, ended a minute after the last of them leaves."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from paceline.client.rest import Verbs
from paceline.console.subscriptions.feeds import Feed, FeedKey
from paceline.console.subscriptions.messages import TooManyRequests
from paceline.effects import Clock, Random

LINGER_SECONDS = 60.0
# Watches and logs of one credential, over all tabs. Its client has 256 connections, and other requests need some, too.
MAX_STREAMS = 200


@dataclass(slots=True)
class _Running:
    feed: Feed
    task: asyncio.Task[None]
    timer: asyncio.TimerHandle | None = None


@dataclass(frozen=True, slots=True)
class WatchCache:
    """The feeds of all people. Only tabs with the same credential share one."""

    clock: Clock
    chance: Random
    # The parent of all feeds.
    tasks: asyncio.TaskGroup
    _running: dict[tuple[str, FeedKey], _Running] = field(default_factory=dict)
    _logs: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def log(self, credential_id: str) -> Iterator[None]:
        """Count a log that is read while the block runs; raise TooManyRequests if there are too many."""
        self._make_room(credential_id, 1)
        self._logs[credential_id] += 1
        try:
            yield
        finally:
            self._logs[credential_id] -= 1

    @contextmanager
    def open(self, credential_id: str, client: Verbs, key: FeedKey) -> Iterator[Feed]:
        """Give a feed of a person, which is started or shared; raise TooManyRequests if there are too many."""
        place = (credential_id, key)
        running = self._running.get(place) or self._start(place, client)
        feed = running.feed
        feed.users += 1
        if running.timer is not None:
            running.timer.cancel()
            running.timer = None
        try:
            yield feed
        finally:
            feed.users -= 1
            if self._running.get(place) is running and not feed.users:
                self._leave(place, running)

    def _start(self, place: tuple[str, FeedKey], client: Verbs) -> _Running:
        credential_id, key = place
        self._make_room(credential_id, len(key.collections))
        feed = Feed(client, key, clock=self.clock, chance=self.chance)
        running = _Running(feed, self.tasks.create_task(feed.run(), name=f"feed of {key.form.value}"))
        self._running[place] = running
        return running

    def _make_room(self, credential_id: str, count: int) -> None:
        """End unused feeds, the oldest first, as far as their connections are needed."""
        mine = [place for place in self._running if place[0] == credential_id]
        used = self._logs[credential_id] + sum(len(key.collections) for _, key in mine)
        for place in mine:
            if used + count > MAX_STREAMS and not self._running[place].feed.users:
                self._end(place)
                used -= len(place[1].collections)
        if used + count > MAX_STREAMS:
            raise TooManyRequests("your tabs together follow too much; close some of them")

    def _leave(self, place: tuple[str, FeedKey], running: _Running) -> None:
        if running.feed.error is not None:
            # The next request is answered by the cluster, not from this cache.
            self._end(place)
            return
        loop = asyncio.get_running_loop()
        running.timer = loop.call_later(LINGER_SECONDS, self._end, place)

    def _end(self, place: tuple[str, FeedKey]) -> None:
        running = self._running.pop(place)
        if running.timer is not None:
            running.timer.cancel()
        running.task.cancel()
