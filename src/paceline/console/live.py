"""The WebSocket of a tab: rows, objects, views and logs, each by subscription."""

import asyncio
import logging
from dataclasses import dataclass

from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from paceline.console.config import ConsoleConfig
from paceline.console.people import person_of
from paceline.console.runtime import runtime_of
from paceline.console.subscriptions.feeds import FeedKey, Form
from paceline.console.subscriptions.log_stream import LogFeed
from paceline.console.subscriptions.messages import (
    MAX_MESSAGE_BYTES,
    Credit,
    LogSubscription,
    Malformed,
    ObjectsRequest,
    Request,
    RowsRequest,
    Subscribe,
    TooManyRequests,
    Unsubscribe,
    ViewRequest,
    Visibility,
    error_message,
    message,
    read_message,
)
from paceline.console.subscriptions.streams import FeedStream, LiveStream, Tab, ViewStream
from paceline.console.subscriptions.views import VIEWS, job_rows_key
from paceline.errors import AlreadyExists, BadRequest, PacelineError

log = logging.getLogger(__name__)

MAX_SUBSCRIPTIONS = 64
MAX_LOGS = 24
# A tab that reads nothing for this long is disconnected.
STALL_SECONDS = 30.0
PING_SECONDS = 7.0
# A tab that is hidden for this long gets only rows.
HIDDEN_SECONDS = 60.0


class Disconnected(Exception):
    """Ends all tasks of a tab that is gone."""


class Stalled(Exception):
    """Ends all tasks of a tab that reads nothing."""


@dataclass(slots=True)
class Subscription:
    """One subscription: what it is, and the task that runs it; none while the tab is hidden."""

    request: Subscribe
    stream: LiveStream
    task: asyncio.Task[None] | None = None


class LiveConnection:
    """The subscriptions of one tab."""

    def __init__(self, websocket: WebSocket, tasks: asyncio.TaskGroup) -> None:
        runtime, person = runtime_of(websocket), person_of(websocket)
        self._config: ConsoleConfig = runtime.config
        self._websocket = websocket
        # Ends with the connection.
        self._tasks = tasks
        self._subscriptions: dict[int, Subscription] = {}
        self._hiding: asyncio.Task[None] | None = None
        # Frames of all subscriptions take turns, in the order in which they are ready.
        self._turn = asyncio.Lock()
        self._tab = Tab(
            client=person.client,
            credential_id=person.credential_id,
            cache=runtime.watch_cache,
            clock=runtime.config.clock,
            send=self.send,
            held_bytes=self._held_bytes,
        )

    async def send(self, frame: str | bytes) -> None:
        """Send a frame when the tab has taken those before it."""
        kind = "text" if isinstance(frame, str) else "bytes"
        async with self._turn:
            try:
                async with asyncio.timeout(STALL_SECONDS):
                    await self._websocket.send({"type": "websocket.send", kind: frame})
            except TimeoutError as error:
                raise Stalled from error
            except (WebSocketDisconnect, OSError) as error:
                raise Disconnected from error

    async def ping(self) -> None:
        """Send the tab a ping now and then until cancelled, so that it notices a lost console."""
        while True:
            await self.send(message(None, "ping", time=int(self._config.clock.now().timestamp())))
            await asyncio.sleep(PING_SECONDS)

    async def receive(self) -> None:
        """Carry out what the tab asks for until it leaves."""
        while True:
            event = await self._websocket.receive()
            if event["type"] == "websocket.disconnect":
                raise Disconnected
            try:
                number, request = _read(event.get("text"))
                await self._take(number, request)
            except Malformed as error:
                await self.send(error_message(error.subscription, error))

    async def _take(self, number: int, request: Request) -> None:
        subscription = self._subscriptions.get(number)
        match request:
            case Visibility(is_hidden=is_hidden):
                self._show_or_hide(is_hidden=is_hidden)
            case Unsubscribe():
                # Nothing of the subscription is sent after this. One that has ended already is not an error.
                if subscription is not None:
                    del self._subscriptions[number]
                    self._stop(subscription)
            case Credit(bytes=count):
                if subscription is not None and isinstance(subscription.stream, LogFeed):
                    subscription.stream.credit(count)
            case _:
                try:
                    self._subscribe(number, request)
                except PacelineError as error:
                    await self.send(error_message(number, error))

    def _subscribe(self, number: int, request: Subscribe) -> None:
        others = [subscription.request for subscription in self._subscriptions.values()]
        if number in self._subscriptions:
            raise AlreadyExists(f"there is a subscription {number} already")
        if len(others) >= MAX_SUBSCRIPTIONS:
            raise TooManyRequests(f"a tab may have {MAX_SUBSCRIPTIONS} subscriptions")
        if (
            isinstance(request, LogSubscription)
            and sum(isinstance(other, LogSubscription) for other in others) >= MAX_LOGS
        ):
            raise TooManyRequests(f"a tab may read {MAX_LOGS} logs at once")
        subscription = Subscription(request, self._stream_of(number, request))
        self._subscriptions[number] = subscription
        self._start(number, subscription)

    def _stream_of(self, number: int, request: Subscribe) -> LiveStream:
        match request:
            case RowsRequest(resource=resource, namespace=namespace, since=since):
                if resource != "jobs":
                    raise BadRequest(f"resource: there are no rows of {resource!r}, only of 'jobs'")
                return FeedStream(self._tab, number, job_rows_key(namespace), since)
            case ObjectsRequest(collection=collection, select=select, since=since):
                key = FeedKey(collections=(collection,), select=select, form=Form.OBJECT)
                return FeedStream(self._tab, number, key, since)
            case ViewRequest(of=of):
                if of not in VIEWS:
                    raise BadRequest(f"of: there is no view {of!r}; there are: {', '.join(VIEWS)}")
                return ViewStream(self._tab, number, VIEWS[of], request)
            case LogSubscription():
                return LogFeed(self._tab, number, request, self._config.chance)

    def _start(self, number: int, subscription: Subscription) -> None:
        subscription.task = self._tasks.create_task(self._run(number, subscription))

    def _stop(self, subscription: Subscription) -> None:
        if subscription.task is not None:
            subscription.task.cancel()
            subscription.task = None

    async def _run(self, number: int, subscription: Subscription) -> None:
        try:
            await subscription.stream.run()
        except PacelineError as error:
            await self.send(error_message(number, error))
        if self._subscriptions.get(number) is subscription:
            del self._subscriptions[number]

    def _show_or_hide(self, *, is_hidden: bool) -> None:
        if self._hiding is not None:
            self._hiding.cancel()
            self._hiding = None
        if is_hidden:
            self._hiding = self._tasks.create_task(self._hide())
            return
        for number, subscription in self._subscriptions.items():
            if subscription.task is None:
                self._start(number, subscription)

    async def _hide(self) -> None:
        await asyncio.sleep(HIDDEN_SECONDS)
        # No frame is under way, so a stream knows what the tab has.
        async with self._turn:
            for subscription in self._subscriptions.values():
                if not isinstance(subscription.request, RowsRequest):
                    self._stop(subscription)

    def _held_bytes(self) -> int:
        return sum(subscription.stream.held_bytes for subscription in self._subscriptions.values())


def _read(text: str | None) -> tuple[int, Request]:
    if text is None or len(text) > MAX_MESSAGE_BYTES:
        raise Malformed(f"a message must be text of at most {MAX_MESSAGE_BYTES} bytes")
    return read_message(text)


async def follow(websocket: WebSocket) -> None:
    """Serve a tab until it leaves."""
    await websocket.accept()
    is_stalled = False
    try:
        async with asyncio.TaskGroup() as tasks:
            connection = LiveConnection(websocket, tasks)
            tasks.create_task(connection.ping())
            await connection.receive()
    except* Disconnected:
        pass
    except* Stalled:
        is_stalled = True
    if is_stalled:
        log.info("a tab has taken nothing for %.0f seconds", STALL_SECONDS)
        # A closing handshake would wait for the tab as well.
        websocket.state.abort()


ROUTES: tuple[BaseRoute, ...] = (WebSocketRoute("/api/live", follow),)
