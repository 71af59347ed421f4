"""A console before our own API server, in virtual time: tabs that read or stall, a cluster that breaks, and logs."""

import asyncio
import gzip
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from starlette.applications import Starlette

from paceline.apimachinery.meta import name_of, uid_of
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.apiserver.http_types import Account, Caller
from paceline.client.http.transport import Unreachable
from paceline.client.in_process import IN_PROCESS, LocalTransport
from paceline.client.interface import NAMESPACES, NODES, PODS, Collection
from paceline.client.requests import Request
from paceline.client.rest import Verbs
from paceline.console import live, logs
from paceline.console.responses import error_response
from paceline.console.subscriptions.watch_cache import WatchCache
from paceline.errors import BadRequest, PacelineError
from paceline.node.logs.logs import log_query, read_log
from paceline.node.runtime import cri_log, shim
from paceline.store.backend import StoreLimits
from paceline.store.store import Store
from paceline.testing.fixed_kinds import fixed_kinds
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, sim_world
from paceline.testing.sim.loop import run_simulated
from tests.unit.kinds.manifests import pytorch

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
GENERIC = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="genericjobs")
TOKENS = {hash_token(name): name for name in ("ada", "bob", "controller")}
PATIENCE = 3600.0
REMEMBERS = StoreLimits(history=10_000, batch=64, slack=10)


class Link:
    """The connection of one credential to the API server, which can be cut."""

    def __init__(self, inner, group):
        self._inner = inner
        self._group = group
        self._open = set()
        self.requests = []
        self.is_down = False
        # After how many bytes the next log streams break off, one entry per stream.
        self.cuts = []

    @property
    def watched(self):
        """The paths that are being watched now."""
        return [target for target, _ in self._open if "watch=true" in target]

    def cut(self):
        """Break all streams, and refuse everything until `mend`."""
        self.is_down = True
        for _, queue in self._open:
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(Unreachable("the stream broke off"))

    def mend(self):
        self.is_down = False

    async def send(self, request):
        self.requests.append(request.target)
        if self.is_down:
            raise Unreachable("nothing answers")
        return await self._inner.send(request)

    async def stream(self, request):
        self.requests.append(request.target)
        if self.is_down:
            raise Unreachable("nothing answers")
        room = self.cuts.pop(0) if self.cuts and "/log?" in request.target else None
        queue = asyncio.Queue(4)
        pump = self._group.create_task(self._pump(request, queue))
        entry = (request.target, queue)
        self._open.add(entry)
        try:
            while (chunk := await queue.get()) is not None:
                if isinstance(chunk, Exception):
                    raise chunk
                if room is not None and len(chunk) > room:
                    yield chunk[:room]
                    raise Unreachable("the stream was cut")
                room = None if room is None else room - len(chunk)
                yield chunk
        finally:
            self._open.discard(entry)
            pump.cancel()

    async def _pump(self, request, queue):
        chunks = self._inner.stream(request)
        try:
            async for chunk in chunks:
                await queue.put(chunk)
            await queue.put(None)
        except PacelineError as error:
            await queue.put(error)
        finally:
            await chunks.aclose()


class LogNode:
    """A node whose containers write what a test tells them, in log files as on a real node."""

    def __init__(self, world):
        self.world = world
        # Deleted pods whose logs are archived: uid -> (namespace, name, exit code).
        self.archived = {}

    def folder(self, uid, restarts=0):
        return Path("/node") / uid / str(restarts)

    def write(self, uid, text, *, restarts=0, stamp=None):
        """Write output that the node reads at once, so that all of it has one stamp."""
        stamp = stamp or cri_log.stamp(int(self.world.clock.now().timestamp() * 1_000_000) * 1000).encode()
        stream = cri_log.CriStream("stdout", 1)
        entries = stream.take(text, stamp) + stream.flush(stamp)
        self.world.files.make_folder(self.folder(uid, restarts))
        self.world.files.append(self.folder(uid, restarts) / shim.LOG, entries)

    def end(self, uid, *, restarts=0):
        self.world.files.write(self.folder(uid, restarts) / shim.EXIT, b"{}")

    async def logs(self, namespace, pod, query):
        restarts = max(
            (int(status["restartCount"]) for status in pod["status"].get("containerStatuses") or ()), default=0
        )
        if query.get("previous") == "true":
            restarts -= 1
        if restarts < 0 or not self.world.files.exists(self.folder(uid_of(pod), restarts) / shim.LOG):
            raise BadRequest(f'container "main" in pod "{name_of(pod)}" is waiting to start: ContainerCreating')
        async for chunk in self._read(uid_of(pod), restarts, query):
            yield chunk

    async def _read(self, uid, restarts, query):
        options = log_query(query, self.world.clock.now())
        async for chunk in read_log(self.world.files, self.folder(uid, restarts), options):
            yield chunk

    async def pass_on(self, scope, receive, send):
        query = dict(pair.split("=") for pair in scope["query_string"].decode().split("&") if pair)
        parts = scope["raw_path"].decode().strip("/").split("/")
        body = await self._history(parts[parts.index("history") + 1 :], query)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def _history(self, parts, query):
        if len(parts) == 1:
            items = [
                {"pod": name, "namespace": space, "uid": uid, "goneAt": "2030-01-01T00:00:00Z", "tries": tries}
                for uid, (space, name, tries) in self.archived.items()
                if name == query["pod"]
            ]
            return json.dumps({"items": items}).encode()
        query = {name: value.replace("%3A", ":") for name, value in query.items() if name not in ("uid", "container")}
        uid = next(iter(self.archived))
        return b"".join([chunk async for chunk in self._read(uid, 0, query)])

    async def stats(self):
        return {}


@dataclass
class Page:
    """A tab, which stores messages as the front end does."""

    app: object
    person: object
    sent: asyncio.Queue = field(default_factory=asyncio.Queue)
    heard: list = field(default_factory=list)
    frames: int = 0
    wire_bytes: int = 0
    # Cleared: the tab takes nothing.
    reads: asyncio.Event = field(default_factory=asyncio.Event)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    items: dict = field(default_factory=dict)
    revisions: dict = field(default_factory=dict)
    logs: dict = field(default_factory=dict)
    is_open: bool = False
    is_aborted: bool = False

    async def run(self):
        self.reads.set()
        await self.sent.put({"type": "websocket.connect"})
        scope = {"type": "websocket", "path": "/api/live", "headers": [], "query_string": b"", "subprotocols": []}
        await self.app({**scope, "state": {"person": self.person, "abort": self._abort}}, self.sent.get, self._take)
        self.is_open = False
        self.news.set()

    def _abort(self):
        self.is_aborted = True

    async def tell(self, **message):
        await self.sent.put({"type": "websocket.receive", "text": json.dumps(message)})

    async def subscribe(self, message, **fields):
        """Subscribe to rows or objects, and wait for the complete list."""
        await self.tell(**message, **fields)
        await self.until(lambda: message["id"] in self.revisions)

    async def leave(self):
        await self.sent.put({"type": "websocket.disconnect", "code": 1001})
        await self.until(lambda: not self.is_open)

    async def until(self, condition):
        """Wait until messages to the tab fulfil a condition; only the simulation limits the time."""
        while not condition():
            self.news.clear()
            await self.news.wait()

    def messages(self, kind, number=None):
        return [message for message in self.heard if message["type"] == kind and number in (None, message.get("id"))]

    async def hear(self, kind, number=None, *, count=1):
        """The count-th message of a type."""
        await self.until(lambda: len(self.messages(kind, number)) >= count)
        return self.messages(kind, number)[count - 1]

    async def _take(self, message):
        await self.reads.wait()
        if message["type"] == "websocket.accept":
            self.is_open = True
        if message["type"] == "websocket.send":
            self.frames += 1
            self._read(message)
        self.news.set()

    def _read(self, message):
        data = message.get("bytes")
        self.wire_bytes += len(data if data is not None else message["text"])
        if data is None:
            self._keep(json.loads(message["text"]))
        elif data[4] == 0:
            number = int.from_bytes(data[:4], "big")
            self.logs[number] = self.logs.get(number, b"") + data[5:]
        else:
            self._keep(json.loads(gzip.decompress(data[5:])))

    def _keep(self, message):
        self.heard.append(message)
        number, items = message.get("id"), self.items.setdefault(message.get("id"), {})
        if message["type"] == "reset":
            items.clear()
        for row in message.get("rows") or ():
            items[row[0]] = row
        for obj in message.get("objects") or ():
            items[uid_of(obj)] = obj
        for uid in message.get("deleted") or ():
            items.pop(uid, None)
        if message.get("more") is False:
            self.revisions[number] = message["revision"]

    def names(self, number):
        return sorted(
            item[2] if isinstance(item, list) else name_of(item) for item in self.items.get(number, {}).values()
        )


@dataclass
class Stage:
    """A cluster, a console before it, and the people who use it."""

    world: object
    node: LogNode
    group: asyncio.TaskGroup
    api: object
    cluster: Verbs
    links: dict = field(default_factory=dict)
    pages: list = field(default_factory=list)
    caches: list = field(default_factory=list)
    people: dict = field(default_factory=dict)
    app: object = None

    def start_console(self):
        """Start a console that knows nothing of an earlier one."""
        inner = Starlette(routes=[*live.ROUTES, *logs.ROUTES], exception_handlers={PacelineError: _failed})
        cache = WatchCache(self.world.clock, self.world.chance, self.group)
        self.caches.append(cache)
        config = SimpleNamespace(clock=self.world.clock, chance=self.world.chance)
        runtime = SimpleNamespace(config=config, watch_cache=cache)

        async def app(scope, receive, send):
            await inner({**scope, "state": {**scope.get("state", {}), "runtime": runtime}}, receive, send)

        self.app = app

    def person(self, name):
        if name not in self.people:
            link = self.links[name] = Link(LocalTransport(self.api, self.group, token=name), self.group)
            self.people[name] = SimpleNamespace(name=name, client=Verbs(link), credential_id=name)
        return self.people[name]

    async def page(self, name="ada"):
        """Open a tab."""
        page = Page(self.app, self.person(name))
        self.pages.append(page)
        self.group.create_task(page.run())
        await page.until(lambda: page.is_open)
        return page

    async def subscribed(self, message, name="ada", **fields):
        """Open a tab that has the complete list of a subscription."""
        page = await self.page(name)
        await page.subscribe(message, **fields)
        return page

    async def get(self, path, name="ada"):
        """Ask the console by HTTP."""
        person = self.person(name)

        async def app(scope, receive, send):
            await self.app({**scope, "state": {"person": person, "abort": lambda: None}}, receive, send)

        return await LocalTransport(app, self.group).send(Request(method="GET", path=path))

    async def job(self, name, *, namespace="default", **spec):
        manifest = pytorch(name=name, **spec)
        manifest["metadata"] = {"name": name, "namespace": namespace}
        return await self.cluster.create(JOBS, manifest)

    async def set_phase(self, name, phase, *, namespace="default"):
        job = await self.cluster.get(JOBS, namespace, name)
        return await self.cluster.replace(JOBS, {**job, "status": {"phase": phase}}, subresource="status")

    async def pod(self, name, *, restarts=0, state=None, **metadata):
        """A pod whose only container is in a state."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", **metadata},
            "spec": {"nodeName": "node", "containers": [{"name": "main", "image": "busybox"}]},
        }
        created = await self.cluster.create(PODS, pod)
        return await self.set_container(created, restarts=restarts, state=state)

    async def set_container(self, pod, *, restarts=0, state=None, last_state=None, phase="Running"):
        pod = await self.cluster.get(PODS, "default", name_of(pod))
        container = {
            "name": "main",
            "image": "busybox",
            "imageID": "",
            "ready": True,
            "restartCount": restarts,
            "state": state or {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
            "lastState": last_state or {},
        }
        return await self.cluster.replace(
            PODS, {**pod, "status": {"phase": phase, "containerStatuses": [container]}}, subresource="status"
        )

    async def close(self):
        """Close all tabs, and wait until all feeds and streams have ended."""
        for page in self.pages:
            page.reads.set()
            await page.sent.put({"type": "websocket.disconnect", "code": 1001})
        for cache in self.caches:
            await wait_for(lambda cache=cache: all(not running.feed.users for running in cache._running.values()))
            for place in tuple(cache._running):
                cache._end(place)
        await wait_for(lambda: len(self.group._tasks) == 1)


async def wait_for(condition):
    """Let virtual time pass until a condition holds."""
    while not condition():  # noqa: ASYNC110 - conditions have no event to wait for, and virtual time costs nothing
        await asyncio.sleep(0.01)


async def _failed(_request, error):
    return error_response(error)


def visitor(token):
    """Return the account of a token that may only read, and only in the namespace `team`."""
    if token != "visitor":
        return None
    return Caller(name="system:serviceaccount:team:visitor", account=Account(namespace="team", name="visitor", uid="v"))


@asynccontextmanager
async def staged(limits):
    world = sim_world(follows_loop=True)
    store = Store(MemoryLog(), SimBlocking(), limits=limits)
    await store.open()
    node = LogNode(world)
    server = Server(
        store=store,
        kinds=fixed_kinds(store),
        clock=world.clock,
        ids=world.ids,
        gate=Authenticator(tokens=TOKENS, hosts=frozenset({IN_PROCESS}), account=visitor),
        nodes=node,
    )
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.run())
        api = make_app(server)
        cluster = Verbs(LocalTransport(api, group, token="controller"))
        stage = Stage(world=world, node=node, group=group, api=api, cluster=cluster)
        stage.start_console()
        for name in ("default", "team"):
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await cluster.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
        try:
            yield stage
        finally:
            await stage.close()
            writing.cancel()


def play(scene, *, seed=0, limits=REMEMBERS):
    """Run a scene on a stage, in virtual time."""

    async def main():
        async with asyncio.timeout(PATIENCE), staged(limits) as stage:
            await scene(stage)

    run_simulated(seed, main())
