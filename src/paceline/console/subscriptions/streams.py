"""The task of one subscription of rows, objects or a view: waits for changes, batches them, and sends them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import to_wire
from paceline.client.rest import Verbs
from paceline.console.subscriptions.feeds import Feed, FeedKey, Form
from paceline.console.subscriptions.messages import Body, ViewRequest, error_message, message
from paceline.console.subscriptions.views import ViewSource
from paceline.console.subscriptions.watch_cache import WatchCache
from paceline.effects import Clock
from paceline.errors import NotFound, TooLarge

# Changes are batched for this long after the last message.
GATHER_SECONDS = 0.1
# Objects of one message: the first ones are on the screen while the others are on the way.
MAX_ROWS, MAX_OBJECTS = 1000, 100
# What all subscriptions of one tab hold together.
MAX_HELD_BYTES = 16 * 1024 * 1024

Send = Callable[[str | bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """What a subscription needs of its tab."""

    client: Verbs
    credential_id: str
    cache: WatchCache
    clock: Clock
    # Waits until the tab takes the frame; subscriptions take turns.
    send: Send
    # How many bytes all subscriptions of the tab hold.
    held_bytes: Callable[[], int]

    def open(self, key: FeedKey) -> AbstractContextManager[Feed]:
        """Return a feed of the tab's person, to be entered."""
        return self.cache.open(self.credential_id, self.client, key)


class LiveStream(Protocol):
    """One subscription. `run` can be cancelled and called again: it resumes where it was."""

    @property
    def held_bytes(self) -> int:
        """Return how many bytes it holds."""
        ...

    async def run(self) -> None:
        """Send until cancelled or at the end; raise a PacelineError that the tab is told."""
        ...


class _Pace:
    """Waits for changes of feeds, and gathers them."""

    def __init__(self, subscription: int, send: Send, feeds: Iterable[Feed], *, optional: Iterable[Feed] = ()) -> None:
        self._subscription = subscription
        self._send = send
        self._required = tuple(feeds)
        self._feeds = (*self._required, *optional)
        self._changed = asyncio.Event()
        self._last_sent = -GATHER_SECONDS
        self._stale_since: datetime | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Notice changes until the block ends."""
        with ExitStack() as stack:
            for feed in self._feeds:
                stack.enter_context(feed.listening(self._changed.set))
            yield

    async def send(self, frame: str | bytes) -> None:
        """Send a message; the next batch is due some time after it."""
        await self._send(frame)
        self._last_sent = asyncio.get_running_loop().time()

    async def wait(self) -> None:
        """Wait for a change and those that follow soon."""
        await self._changed.wait()
        delay = self._last_sent + GATHER_SECONDS - asyncio.get_running_loop().time()
        if delay > 0:
            await asyncio.sleep(delay)

    async def check(self) -> None:
        """Raise the error of a feed; tell the tab whether what it has may be old."""
        self._changed.clear()
        for feed in self._required:
            if feed.error is not None:
                raise feed.error
        since = min((feed.stale_since for feed in self._required if feed.stale_since), default=None)
        if since == self._stale_since:
            return
        self._stale_since = since
        if since is None:
            await self._send(message(self._subscription, "fresh"))
        else:
            await self._send(message(self._subscription, "stale", since=to_wire(since)))


class FeedStream:
    """Rows or objects of a feed."""

    def __init__(self, tab: Tab, subscription: int, key: FeedKey, since: str) -> None:
        self._tab = tab
        self._subscription = subscription
        self._key = key
        # The last revision that the tab has; empty if it has none.
        self._token = since
        self.held_bytes = 0

    async def run(self) -> None:
        """Send what changes until cancelled."""
        with self._tab.open(self._key) as feed:
            pace = _Pace(self._subscription, self._tab.send, (feed,))
            with pace.listening():
                await self._follow(feed, pace)

    async def _follow(self, feed: Feed, pace: _Pace) -> None:
        number = await self._start(feed)
        # Until the tab has the complete list, messages are sent even if they contain no changes.
        is_complete, kind = False, "rows" if self._key.form is Form.ROW else "objects"
        while True:
            await pace.check()
            self._check_size(feed)
            if number == feed.journal.number and (is_complete or not feed.has_synced):
                await pace.wait()
                continue
            changes = feed.changes(number, MAX_ROWS if kind == "rows" else MAX_OBJECTS)
            is_complete = feed.has_synced and not changes.has_more
            await pace.send(changes.body.frame(self._subscription, kind))
            number = changes.number
            self._token = feed.journal.token(number)
            if not changes.has_more:
                await pace.wait()

    async def _start(self, feed: Feed) -> int:
        """Return the number to resume from; send a reset if the tab must start over."""
        number = feed.journal.number_of(self._token) if self._token else 0
        if number is not None:
            return number
        await self._tab.send(message(self._subscription, "reset"))
        return 0

    def _check_size(self, feed: Feed) -> None:
        if self._key.form is Form.ROW:
            return  # Rows are held once for all tabs.
        self.held_bytes = feed.journal.size
        if self._tab.held_bytes() > MAX_HELD_BYTES:
            raise TooLarge(f"this tab would follow more than {MAX_HELD_BYTES >> 20} MiB; narrow the selection")


class ViewStream:
    """A view, rendered again whenever one of its inputs changes."""

    held_bytes = 0

    def __init__(self, tab: Tab, subscription: int, source: ViewSource, request: ViewRequest) -> None:
        self._tab = tab
        self._subscription = subscription
        self._source = source
        self._request = request
        self._inputs = source.inputs(request)
        self._last: Object = {}

    async def run(self) -> None:
        """Send the view whenever it changes, until cancelled."""
        with ExitStack() as stack:
            feeds = {name: stack.enter_context(self._tab.open(key)) for name, key in self._inputs.items()}
            required = [feed for name, feed in feeds.items() if name not in self._source.optional]
            optional = [feed for name, feed in feeds.items() if name in self._source.optional]
            pace = _Pace(self._subscription, self._tab.send, required, optional=optional)
            stack.enter_context(pace.listening())
            while True:
                await pace.check()
                if all(feed.has_synced for feed in required):
                    await self._show(feeds, pace)
                await pace.wait()

    async def _show(self, feeds: Mapping[str, Feed], pace: _Pace) -> None:
        inputs = {name: feed.journal.objects() for name, feed in feeds.items()}
        now = self._tab.clock.now()
        try:
            view = self._source.render(self._request, inputs, now)
        except NotFound as error:
            # It may be created, or created again.
            frame: str | bytes = error_message(self._subscription, error)
            view = {"error": str(error)}
        else:
            revision = max((feed.journal.revision for feed in feeds.values()), key=lambda text: (len(text), text))
            content = orjson.dumps({"view": view, "revision": revision})
            frame = Body.of(content[1:]).frame(self._subscription, "view")
        # A view says when it was made, which alone is not worth a message.
        view = {**view, "now": ""}
        if view != self._last:
            await pace.send(frame)
            self._last = view
