"""The servers that bench/api.py compares: ours, and the least that could answer the same.

`python -m bench.serving ours|raw HOME`
Both run under the same uvicorn settings, over TLS, in a process of their own. On stdout they say their port.
"""

import asyncio
import contextlib
import gc
import sys
from pathlib import Path

import uvloop

from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator
from paceline.apiserver.config import Server
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.interface import NAMESPACES
from paceline.cluster.crd_install import live_kinds
from paceline.cluster.pki import prepare_keys
from paceline.errors import AlreadyExists
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.effects import GC_THRESHOLD, OneThread, real_world
from paceline.settings import LOOPBACK, Settings
from paceline.store.high_water_mark import MarkedLog
from paceline.store.store import Store

HEADERS = [(b"content-type", b"application/json")]


class Raw:
    """Answers GET with bytes that were put there, and tells every line that is posted to all who listen."""

    def __init__(self):
        self.bodies = {}
        self.listeners = set()

    async def __call__(self, scope, receive, send):
        match scope["method"]:
            case "GET" if b"watch" in scope["query_string"]:
                await self.listen(send)
            case "GET":
                await answer(send, self.bodies[scope["path"]])
            case "PUT":
                self.bodies[scope["path"]] = await body_of(receive)
                await answer(send, b"")
            case "POST":
                body = await body_of(receive)
                for listener in self.listeners:
                    listener.put_nowait(body)
                await answer(send, body)

    async def listen(self, send):
        queue = asyncio.Queue()
        self.listeners.add(queue)
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        while True:
            lines = [await queue.get()]
            while not queue.empty():
                lines.append(queue.get_nowait())
            await send({"type": "http.response.body", "body": b"".join(lines), "more_body": True})


async def body_of(receive):
    chunks = []
    while True:
        message = await receive()
        chunks.append(message["body"])
        if not message.get("more_body"):
            return b"".join(chunks)


async def answer(send, body):
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, length]})
    await send({"type": "http.response.body", "body": body})


class NoNodes:
    """Runs nothing."""


async def run(which, settings):
    sock = loopback_socket(0)
    port = sock.getsockname()[1]
    world = real_world()
    world.files.make_folder(settings.store.parent)
    keys = prepare_keys(settings, world, port)
    async with asyncio.TaskGroup() as group:
        app = Raw() if which == "raw" else await ours(group, settings, keys, port)
        started = asyncio.Event()
        group.create_task(serve(app, sock, tls=(keys.certificate, keys.key), started=started))
        await started.wait()
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()


async def ours(group, settings, keys, port):
    world = real_world()
    store = Store(MarkedLog(settings.store, mark=settings.mark), OneThread("store"))
    await store.open()
    group.create_task(store.run())
    gate = Authenticator(tokens=keys.tokens, hosts=frozenset({f"{LOOPBACK}:{port}", IN_PROCESS}))
    server = Server(store=store, kinds=live_kinds(store), clock=world.clock, ids=world.ids, gate=gate, nodes=NoNodes())
    app = make_app(server)
    async with LocalCluster(app, token=keys.controller_token) as cluster:
        with contextlib.suppress(AlreadyExists):
            await cluster.create(NAMESPACES, {"metadata": {"name": "default"}})
    return app


if __name__ == "__main__":
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    uvloop.run(run(sys.argv[1], Settings(home=Path(sys.argv[2]))))
