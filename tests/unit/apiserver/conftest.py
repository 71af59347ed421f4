"""An API server over a store in memory, in a simulated world, with one kind of its own."""

import asyncio

import pytest

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.field_errors import changes, invalid, not_found
from paceline.apimachinery.scheme import Column, Resource, Scheme
from paceline.apiserver.activity import ActivityTracker
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import LiveKinds
from paceline.store.backend import StoreLimits
from paceline.store.store import Store
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, sim_world
from tests.unit.apiserver.client import HOST, TOKEN, Client


def widget_faults(obj, lookup):
    name = obj["spec"].get("config")
    known = lookup("configmaps", obj["metadata"]["namespace"])
    return () if name is None or name in known else (not_found("spec.config", name),)


def widget_changes(new, old):
    hint = "field is immutable; only spec.paused may change"
    return tuple(invalid(path, value, hint) for path, value in changes(old["spec"], new["spec"], ("paused",)))


WIDGET = Resource(
    group="toys.test",
    version="v1",
    kind="Widget",
    plural="widgets",
    short_names=("wd",),
    subresources=("status",),
    schema_name="test.toys.v1.Widget",
    schema={
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "format": "int32", "minimum": 1},
                    "mode": {"type": "string", "enum": ["Fast", "Slow"]},
                    "paused": {"type": "boolean"},
                    "config": {"type": "string"},
                    "limits": {
                        "type": "object",
                        "additionalProperties": {
                            "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"
                        },
                    },
                    "parts": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                        },
                    },
                    "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    },
    columns=(Column(name="Phase", path=".status.phase"), Column(name="Size", path=".spec.size", type="integer")),
    check=widget_faults,
    check_change=widget_changes,
)


class Nodes:
    """Nodes whose logs a test writes, and whose answers it says."""

    def __init__(self):
        self.passed = []
        self.answer = [
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]},
            {"type": "http.response.body", "body": b"the pod's own"},
        ]
        self.summary = {"node": {"nodeName": "n1"}, "pods": []}
        self.asked = []
        self.was_asked = asyncio.Event()
        self.closed = asyncio.Event()
        self.queue = asyncio.Queue()

    async def logs(self, namespace, pod, query):
        self.asked.append((namespace, pod["metadata"]["name"], dict(query)))
        self.was_asked.set()
        try:
            while (chunk := await self.queue.get()) is not None:
                if isinstance(chunk, Exception):
                    raise chunk
                yield chunk
        finally:
            self.closed.set()

    async def pass_on(self, scope, receive, send):
        self.passed.append(scope)
        if isinstance(self.answer, Exception):
            raise self.answer
        for message in self.answer:
            await send(message)

    async def stats(self):
        return self.summary


@pytest.fixture
def world():
    return sim_world(seed=1)


@pytest.fixture
def nodes():
    return Nodes()


@pytest.fixture
def limits():
    return StoreLimits(history=50, batch=16, slack=10)


@pytest.fixture
def log():
    return MemoryLog()


@pytest.fixture
async def store(log, limits):
    store = Store(log, SimBlocking(), limits=limits)
    await store.open()
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.run())
        yield store
        writing.cancel()
        await store.close()


@pytest.fixture
def visits(world):
    return ActivityTracker(world.clock)


@pytest.fixture
async def client(store, world, nodes, visits):
    components = builtin_components()
    server = Server(
        store=store,
        kinds=LiveKinds(Scheme(resources=(*builtin_resources(), WIDGET), components=components), store),
        clock=world.clock,
        ids=world.ids,
        gate=Authenticator(tokens={hash_token(TOKEN): "tester"}, hosts=frozenset({HOST})),
        nodes=nodes,
        activity=visits,
    )
    client = Client(make_app(server))
    await client.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return client
