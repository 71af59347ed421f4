"""A client that calls the ASGI application without a wire."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

HOST = "cluster.test:6443"
TOKEN = "let-me-in"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
NAMESPACE = "/api/v1/namespaces/default"
PODS = f"{NAMESPACE}/pods"
CONFIG_MAPS = f"{NAMESPACE}/configmaps"
WIDGETS = "/apis/toys.test/v1/namespaces/default/widgets"


@dataclass
class Said:
    """An answer."""

    code: int = 0
    headers: list = field(default_factory=list)
    body: bytes = b""
    is_whole: bool = False

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def message(self):
        return self.json["message"]

    @property
    def causes(self):
        return {cause["field"]: cause["message"] for cause in self.json["details"]["causes"]}

    def header(self, name):
        return [value.decode() for key, value in self.headers if key.decode() == name]


def scope_of(method, path, *, query=None, headers=None):
    """The scope of a request; headers of the caller come instead of the usual ones."""
    given = {"host": HOST, "authorization": f"Bearer {TOKEN}", **(headers or {})}
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": quote(path, safe="/%").encode(),
        "query_string": urlencode(query or {}).encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value is not None],
    }


class Client:
    """Sends requests to an application and reads the answers."""

    def __init__(self, app):
        self.app = app

    async def send(self, method, path, body=None, *, query=None, headers=None):
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        messages = [{"type": "http.request", "body": raw, "more_body": False}]
        said = Said()

        async def receive():
            if messages:
                return messages.pop(0)
            return await asyncio.Event().wait()

        async def send(message):
            if message["type"] == "http.response.start":
                said.code, said.headers = message["status"], message["headers"]
            else:
                said.body += message["body"]
                said.is_whole = not message.get("more_body", False)

        await self.app(scope_of(method, path, query=query, headers=headers), receive, send)
        return said

    async def get(self, path, *, accept=None, **query):
        return await self.send("GET", path, query=query, headers={"accept": accept} if accept else None)

    async def post(self, path, body, **query):
        return await self.send("POST", path, body, query=query, headers={"content-type": "application/json"})

    async def put(self, path, body, **query):
        return await self.send("PUT", path, body, query=query, headers={"content-type": "application/json"})

    async def patch(self, path, body, *, sort=MERGE, **query):
        return await self.send("PATCH", path, body, query=query, headers={"content-type": sort})

    async def delete(self, path, body=None, **query):
        return await self.send("DELETE", path, body, query=query)

    @contextlib.asynccontextmanager
    async def stream(self, path, *, accept=None, **query):
        """Follow a path that grows; leaving the block hangs up."""
        following = Following()
        scope = scope_of("GET", path, query=query, headers={"accept": accept} if accept else None)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.app(scope, following.receive, following.send))
            try:
                yield following
            finally:
                following.hang_up()
                async with asyncio.timeout(30):
                    await running


class Following:
    """A stream while it is read."""

    def __init__(self):
        self.code = 0
        self.writes = 0
        self.gone = asyncio.Event()
        # Cleared: the client does not read, and the server cannot write.
        self.reads = asyncio.Event()
        self.reads.set()
        self._queue = asyncio.Queue()
        self._rest = b""

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    def hang_up(self):
        self.gone.set()

    async def send(self, message):
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.code = message["status"]
        else:
            self.writes += bool(message["body"])
            await self._queue.put((message["body"], message.get("more_body", False)))

    async def chunk(self):
        """The next bytes, or None at the end."""
        async with asyncio.timeout(30):
            body, more = await self._queue.get()
        return body if body or more else None

    async def event(self):
        """The next event of a watch, or None at the end."""
        while b"\n" not in self._rest:
            chunk = await self.chunk()
            if chunk is None:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    async def told(self, count):
        """The next events as (type, name)."""
        events = [await self.event() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name")) for event in events]


def pod(name, **spec):
    """A pod with one container."""
    containers = [{"name": "main", "image": "busybox:1.36"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def config_map(name, labels=None, **data):
    """A config map."""
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def widget(name, **spec):
    """An object of a kind that is not Kubernetes' own."""
    return {
        "apiVersion": "toys.test/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }
