"""How each of the clusters is opened that the contract is held against."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from paceline.apimachinery.meta import Object
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.config import Server
from paceline.client.http.cluster import HttpCluster
from paceline.client.in_process import IN_PROCESS, App, LocalCluster
from paceline.client.interface import NAMESPACES, Cluster
from paceline.client.kubeconfig import load
from paceline.client.rest_config import Access
from paceline.cluster.crd_install import define_kinds, live_kinds
from paceline.cluster.pki import prepare_keys
from paceline.errors import ServiceUnavailable
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.effects import real_world
from paceline.settings import LOOPBACK, Settings
from paceline.store.backend import StoreLimits
from paceline.store.store import Store
from paceline.testing.contract.target import Subject
from paceline.testing.memory_backend import MemoryLog
from paceline.testing.sim.effects import SimBlocking, SimChance

# So short a memory that a promise can outlive it.
FORGETFUL = StoreLimits(history=100, batch=16, slack=10)
NUMBERS = itertools.count()


async def settled_in(cluster: Cluster) -> Subject:
    """A subject with a new namespace of its own."""
    name = f"contract-{next(NUMBERS)}"
    await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return Subject(cluster=cluster, namespace=name)


@asynccontextmanager
async def real_subject(access: Access) -> AsyncIterator[Subject]:
    async with HttpCluster(access, SimChance()) as cluster:
        yield await settled_in(cluster)


@asynccontextmanager
async def our_app(gate: Authenticator, *, limits: StoreLimits = FORGETFUL) -> AsyncIterator[App]:
    """Our API server over a store in memory, without controllers and nodes."""
    async with app_over(deepcopy(await with_kinds()), gate, limits=limits) as app:
        yield app


LOGS: list[MemoryLog] = []


async def with_kinds() -> MemoryLog:
    """A log in which our kinds are defined: by way of the API, once, because every subject needs it."""
    if not LOGS:
        log, gate = MemoryLog(), Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
        async with app_over(log, gate) as app, LocalCluster(app, token="secret") as cluster:
            await define_kinds(cluster)
        LOGS.append(log)
    return LOGS[0]


@asynccontextmanager
async def app_over(log: MemoryLog, gate: Authenticator, *, limits: StoreLimits = FORGETFUL) -> AsyncIterator[App]:
    store = Store(log, SimBlocking(), limits=limits)
    await store.open()
    world = real_world()
    kinds = live_kinds(store)
    tokens = AccountTokens(key=b"secret", store=store, scheme=lambda: kinds.scheme, clock=world.clock)
    server = Server(
        store=store,
        kinds=kinds,
        clock=world.clock,
        ids=world.ids,
        gate=replace(gate, account=tokens.caller),
        nodes=NoNodes(),
        tokens=tokens,
    )
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(store.run())
        try:
            yield make_app(server)
        finally:
            writing.cancel()
            await store.close()


class NoNodes:
    """Runs nothing, so it has no logs."""

    async def logs(self, namespace: str, pod: Object, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        raise ServiceUnavailable("there is no node")
        yield b""

    async def pass_on(self, scope: object, receive: object, send: object) -> None:
        raise ServiceUnavailable("there is no node")

    async def stats(self) -> Object:
        raise ServiceUnavailable("there is no node")


@asynccontextmanager
async def local_subject() -> AsyncIterator[Subject]:
    gate = Authenticator(tokens={hash_token("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
    async with our_app(gate) as app, LocalCluster(app, token="secret") as cluster:
        yield await settled_in(cluster)


@asynccontextmanager
async def http_subject(home: Path) -> AsyncIterator[Subject]:
    sock = loopback_socket(0)
    port = sock.getsockname()[1]
    settings = Settings(home=home)
    keys = prepare_keys(settings, real_world(), port)
    gate = Authenticator(tokens=keys.tokens, hosts=frozenset({f"{LOOPBACK}:{port}"}))
    async with our_app(gate) as app, asyncio.TaskGroup() as group:
        started = asyncio.Event()
        serving = group.create_task(serve(app, sock, tls=(keys.certificate, keys.key), started=started))
        await started.wait()
        try:
            async with HttpCluster(load(settings.kubeconfig, Path.read_bytes), SimChance()) as cluster:
                yield await settled_in(cluster)
        finally:
            serving.cancel()
