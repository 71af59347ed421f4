"""A client's WebSocket to the agent, and a command that does what a test says."""

import asyncio
import contextlib
from urllib.parse import urlencode

from paceline.node.runtime.exec_types import STDOUT


class Client:
    """What a client sends and gets."""

    def __init__(self, app, path, query, protocols):
        self.sent = []
        # The message at which the server finds the client gone.
        self.leaves_at = ""
        self._news = asyncio.Event()
        self._inbox = asyncio.Queue()
        self._inbox.put_nowait({"type": "websocket.connect"})
        self.scope = {
            "type": "websocket",
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query, doseq=True).encode(),
            "headers": [],
            "subprotocols": list(protocols),
        }
        self._app = app

    async def run(self):
        await self._app(self.scope, self._inbox.get, self._take)

    async def _take(self, message):
        if message["type"] == self.leaves_at:
            raise ConnectionResetError
        self.sent.append(message)
        self._news.set()

    def say(self, channel, data):
        self._inbox.put_nowait({"type": "websocket.receive", "bytes": bytes((channel,)) + data})

    def say_text(self, text):
        self._inbox.put_nowait({"type": "websocket.receive", "text": text})

    def hang_up(self):
        self._inbox.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def heard(self, channel):
        """Wait until something came on a channel."""
        await self._until(lambda: self.on(channel))

    async def told(self, text):
        """Wait for this very text."""
        await self._until(lambda: any(each.get("text") == text for each in self.sent))

    async def accepted(self):
        """Wait until the agent has opened its side."""
        await self._until(lambda: self.sent)

    async def _until(self, is_there):
        async with asyncio.timeout(30):
            while not is_there():
                self._news.clear()
                await self._news.wait()

    def on(self, channel):
        """All that came on a channel."""
        pieces = [each["bytes"] for each in self.sent if each.get("bytes")]
        return b"".join(piece[1:] for piece in pieces if piece[0] == channel)


@contextlib.asynccontextmanager
async def line(app, path, query=(), protocols=("v5.channel.k8s.io",)):
    """Open a line; leaving the block waits until the agent has hung up."""
    client = Client(app, path, query, protocols)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(client.run())
        yield client


class Echo:
    """A command that says back what it reads, and ends with its input."""

    def __init__(self, code=0, pieces=()):
        self.sizes = []
        self.closed = False
        self._code = code
        self._pieces = asyncio.Queue()
        for piece in pieces:
            self._pieces.put_nowait(piece)

    async def output(self):
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def write(self, data):
        self._pieces.put_nowait((STDOUT, data))

    def end_input(self):
        self._pieces.put_nowait(None)

    def resize(self, width, height):
        self.sizes.append((width, height))

    async def code(self):
        return self._code

    def close(self):
        self.closed = True
