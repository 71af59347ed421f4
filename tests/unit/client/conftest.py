"""A loop without waiting, dice without luck, and a server that says what it is told to."""

import asyncio
import json
import socket
import ssl
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from paceline.client.in_process import LocalCluster
from paceline.client.rest_config import Access
from paceline.testing.sim.loop import SimLoop
from tests.unit.client.identities import make_identities
from tests.unit.client.wire import Wire

SECONDS_OF_A_TEST = 100_000.0


class Middle:
    """Dice that always fall in the middle."""

    def fraction(self):
        return 0.5


@dataclass
class Answer:
    """What a server says to one request: a status, lines of JSON, and whether it then hangs on."""

    lines: list
    status: int = 200
    stays: bool = False
    headers: dict = field(default_factory=dict)


@dataclass
class Script:
    """A server that answers in the order it was told to, notes the requests, and hangs on at the end."""

    lists: list = field(default_factory=list)
    watches: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    hung_up: list = field(default_factory=list)

    async def __call__(self, scope, receive, send):
        await receive()
        target = scope["path"] + "?" + scope["query_string"].decode()
        self.requests.append((asyncio.get_running_loop().time(), scope["method"], target))
        answers = self.watches if "watch=true" in target else self.lists
        answer = answers.pop(0) if answers else Answer([], stays=True)
        headers = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        for line in answer.lines:
            body = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
            await send({"type": "http.response.body", "body": body, "more_body": True})
        if answer.stays:
            message = await receive()
            self.hung_up.append(message["type"])
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    @property
    def watched(self):
        return [(when, target) for when, _, target in self.requests if "watch=true" in target]

    @property
    def listed(self):
        return [target for _, _, target in self.requests if "watch=true" not in target]


@pytest.fixture
def chance():
    return Middle()


@pytest.fixture
def script():
    return Script()


@pytest.fixture
def hurry():
    """Runs a coroutine in a world where waiting takes no time."""
    with asyncio.Runner(loop_factory=lambda: SimLoop(seed=0)) as runner:
        yield lambda coroutine: runner.run(within(coroutine))


async def within(coroutine):
    async with asyncio.timeout(SECONDS_OF_A_TEST):
        return await coroutine


@pytest.fixture
def with_cluster(hurry, script):
    """Runs `use(cluster)` against the scripted server."""

    def run(use):
        async def main():
            async with LocalCluster(script) as cluster:
                return await use(cluster)

        return hurry(main())

    return run


@pytest.fixture
def answer():
    return Answer


@pytest.fixture
def pod():
    """Makes a pod as a server would send it."""

    def make(name, revision, *, uid="", owner="", **meta):
        metadata = {
            "namespace": "team",
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(revision),
            **meta,
        }
        if owner:
            metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}

    return make


@pytest.fixture
def pods_page(answer):
    """Makes the answer to a list of pods."""

    def make(revision, *items, after=""):
        meta = {"resourceVersion": str(revision), "continue": after}
        body = {"apiVersion": "v1", "kind": "PodList", "metadata": meta, "items": items}
        return answer([body])

    return make


@pytest.fixture
def wires():
    """Starts scripted servers on real sockets, and stops them after the test."""
    with ExitStack() as stack:

        def start(listener, tls=None):
            wire = Wire(listener, tls)
            thread = threading.Thread(target=wire.serve, daemon=True)
            thread.start()
            # A shutdown wakes the thread that accepts; closing alone would not.
            stack.callback(thread.join, 5)
            stack.callback(wire.over.set)
            stack.callback(listener.close)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            return wire

        yield start


@pytest.fixture
def wire(wires):
    """A scripted server on a loopback port."""
    return wires(socket.create_server(("127.0.0.1", 0)))


@pytest.fixture
def wire_access(wire):
    return Access(server=f"http://127.0.0.1:{wire.listener.getsockname()[1]}", token="secret")


@pytest.fixture(scope="session")
def identities():
    """An authority and what it signed: a server named `api.test`, and a client; all PEM."""
    return make_identities()


@pytest.fixture
def tls_files(identities, tmp_path):
    """What the server named `api.test` speaks TLS with."""
    for name in ("authority", "server", "server_key"):
        (tmp_path / name).write_bytes(getattr(identities, name))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server", tmp_path / "server_key")
    context.load_verify_locations(tmp_path / "authority")
    return context
