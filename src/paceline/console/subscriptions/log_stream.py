"""The task of one log subscription: sends bytes as they arrive, within the credit that the tab has given."""

import asyncio
from collections import deque
from contextlib import aclosing

from paceline.apimachinery.timestamps import to_wire
from paceline.console.subscriptions.log_source import PodLogSource
from paceline.console.subscriptions.messages import LogSubscription, log_frame, message
from paceline.console.subscriptions.streams import MAX_HELD_BYTES, Tab
from paceline.effects import Random
from paceline.errors import PacelineError

# How many bytes may be in flight before the tab gives credit for more.
WINDOW_BYTES = 1024 * 1024
FRAME_BYTES = 128 * 1024
# Smaller frames are sent only when nothing else is buffered.
LEAST_BYTES = 16 * 1024
# What is read ahead of the tab.
BUFFER_BYTES = 256 * 1024
# After this long without output an incomplete line is sent, such as a progress bar.
QUIET_SECONDS = 0.25


class LogFeed:
    """One log. It reads no further than the tab can take."""

    def __init__(self, tab: Tab, subscription: int, request: LogSubscription, chance: Random) -> None:
        self._tab = tab
        self._subscription = subscription
        self._source = PodLogSource(client=tab.client, request=request, chance=chance, on_state=self._note)
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._under_way = 0
        self._is_read = False
        self._error: PacelineError | None = None
        self._is_lost = self._was_lost = False
        # Set when the writer, or the reader, has something to do.
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def held_bytes(self) -> int:
        """Return how many bytes are buffered for the tab."""
        return self._buffered

    def credit(self, count: int) -> None:
        """Count bytes that the tab has processed."""
        self._under_way = max(self._under_way - count, 0)
        self._wake.set()

    async def run(self) -> None:
        """Send the log until its end; after it was cancelled, it goes on after the last line that was read."""
        self._source.lines.resume()
        with self._tab.cache.log(self._tab.credential_id):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read())
                group.create_task(self._write())
        if self._error is not None:
            raise self._error
        code = self._source.exit_code
        await self._tab.send(message(self._subscription, "end", **({} if code is None else {"exitCode": code})))

    async def _read(self) -> None:
        try:
            async with aclosing(self._source.read()) as chunks:
                async for chunk in chunks:
                    self._append(chunk)
                    await self._wait_for_room()
        except PacelineError as error:
            self._error = error
        self._is_read = True
        self._wake.set()

    def _append(self, chunk: bytes) -> None:
        if chunk:
            self._pieces.append(chunk)
            self._buffered += len(chunk)
        self._wake.set()

    async def _wait_for_room(self) -> None:
        while self._buffered > BUFFER_BYTES or self._tab.held_bytes() > MAX_HELD_BYTES:
            self._room.clear()
            await self._room.wait()

    async def _write(self) -> None:
        while not (self._is_read and not self._pieces):
            await self._tell_state()
            frame = self._next_frame()
            if frame:
                await self._send(frame)
            else:
                await self._wait()
        await self._tell_state()

    async def _send(self, frame: bytes) -> None:
        try:
            await self._tab.send(log_frame(self._subscription, frame))
        except asyncio.CancelledError:
            # The frame was not sent: the tab never cancels a frame that is being sent.
            self._pieces.appendleft(frame)
            self._buffered += len(frame)
            self._under_way -= len(frame)
            raise
        self._room.set()

    async def _wait(self) -> None:
        """Wait for output or for room at the tab; show an incomplete line when there is none for a while."""
        try:
            is_quiet = not self._pieces and self._source.lines.has_unseen
            async with asyncio.timeout(QUIET_SECONDS if is_quiet else None):
                await self._wake.wait()
        except TimeoutError:
            self._append(self._source.lines.peek())
        self._wake.clear()

    def _next_frame(self) -> bytes:
        """Take what comes next out of the buffer, as much as the tab has room for."""
        size = min(self._buffered, FRAME_BYTES, WINDOW_BYTES - self._under_way)
        if size < min(self._buffered, LEAST_BYTES):
            return b""
        pieces, missing = [], size
        while missing:
            piece = self._pieces.popleft()
            if len(piece) > missing:
                self._pieces.appendleft(piece[missing:])
                piece = piece[:missing]
            pieces.append(piece)
            missing -= len(piece)
        self._buffered -= size
        self._under_way += size
        return b"".join(pieces)

    def _note(self, error: PacelineError | None) -> None:
        self._is_lost = error is not None
        self._wake.set()

    async def _tell_state(self) -> None:
        """Tell the tab when the cluster does not answer, and when it does again."""
        if self._is_lost == self._was_lost:
            return
        self._was_lost = self._is_lost
        if self._is_lost:
            await self._tab.send(message(self._subscription, "stale", since=to_wire(self._tab.clock.now())))
        else:
            await self._tab.send(message(self._subscription, "fresh"))
