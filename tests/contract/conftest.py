"""The clusters that the contract is held against: ours without and with a wire, and a real kube-apiserver."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from paceline.api.app import make_app
from paceline.api.gate import Gate, hashed
from paceline.api.server import Server
from paceline.assembly.keys import prepare_keys
from paceline.assembly.kinds import full_scheme
from paceline.assembly.listen import loopback_socket, serve
from paceline.assembly.machine import real_world
from paceline.assembly.settings import LOOPBACK, Settings
from paceline.client.access import Access
from paceline.client.cluster import CRDS, NAMESPACES, Cluster
from paceline.client.direct import DirectCluster
from paceline.client.http import HttpCluster
from paceline.client.kubeconfig import load
from paceline.client.local import IN_PROCESS, App, LocalCluster
from paceline.errors import Busy, Missing
from paceline.kinds import catalog
from paceline.objects.builtin import builtin_components
from paceline.objects.meta import Object
from paceline.store.limits import Limits
from paceline.store.memory import MemoryLog
from paceline.store.store import Store
from paceline.testing.contract.subject import JOBS, Subject
from paceline.testing.realkube import find_assets, real_kube
from paceline.testing.world import SimBlocking, SimChance

CRD_SECONDS = 15.0
# So short a memory that a promise can outlive it.
FORGETFUL = Limits(history=100, batch=16, slack=10)
NUMBERS = itertools.count()

# Opens the cluster for the length of a test.
OpenSubject = Callable[[], AbstractAsyncContextManager[Subject]]


async def settled_in(cluster: Cluster) -> Subject:
    """A subject with a new namespace of its own."""
    name = f"contract-{next(NUMBERS)}"
    await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return Subject(cluster=cluster, namespace=name)


@pytest.fixture(scope="session")
def real_access() -> Iterator[Access]:
    """A real kube-apiserver that serves our job kinds."""
    assets = find_assets()
    if assets is None:
        pytest.skip("no kube-apiserver: type `make kube`, or point KUBEBUILDER_ASSETS at one")
    with real_kube(assets) as kube:
        access = load(kube.kubeconfig, Path.read_bytes)
        with DirectCluster(access) as cluster:
            for crd in catalog.crds(builtin_components()):
                cluster.create(CRDS, crd)
            wait_until_served(cluster)
        yield access


def wait_until_served(cluster: DirectCluster) -> None:
    """A definition that is stored is served a moment later."""
    deadline = time.monotonic() + CRD_SECONDS
    while True:
        try:
            cluster.list(JOBS)
        except Missing:
            assert time.monotonic() < deadline, "the job kinds are not served"
            time.sleep(0.05)
        else:
            return


@asynccontextmanager
async def real_subject(access: Access) -> AsyncIterator[Subject]:
    async with HttpCluster(access, SimChance()) as cluster:
        yield await settled_in(cluster)


@asynccontextmanager
async def our_app(gate: Gate) -> AsyncIterator[App]:
    """Our API server over a store in memory, without controllers and nodes."""
    store = Store(MemoryLog(), SimBlocking(), limits=FORGETFUL)
    await store.open()
    world = real_world()
    server = Server(store=store, scheme=full_scheme(), clock=world.clock, ids=world.ids, gate=gate, nodes=NoNodes())
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
        raise Busy("there is no node")
        yield b""


@asynccontextmanager
async def local_subject() -> AsyncIterator[Subject]:
    gate = Gate(tokens={hashed("secret"): "admin"}, hosts=frozenset({IN_PROCESS}))
    async with our_app(gate) as app, LocalCluster(app, token="secret") as cluster:
        yield await settled_in(cluster)


@asynccontextmanager
async def http_subject(home: Path) -> AsyncIterator[Subject]:
    sock = loopback_socket(0)
    port = sock.getsockname()[1]
    settings = Settings(home=home)
    keys = prepare_keys(settings, real_world(), port)
    gate = Gate(tokens=keys.tokens, hosts=frozenset({f"{LOOPBACK}:{port}"}))
    async with our_app(gate) as app, asyncio.TaskGroup() as group:
        started = asyncio.Event()
        serving = group.create_task(serve(app, sock, tls=(keys.certificate, keys.key), started=started))
        await started.wait()
        try:
            async with HttpCluster(load(settings.kubeconfig, Path.read_bytes), SimChance()) as cluster:
                yield await settled_in(cluster)
        finally:
            serving.cancel()


@pytest.fixture(params=["in-process", "http", pytest.param("real", marks=pytest.mark.kube)])
def open_subject(request: pytest.FixtureRequest, tmp_path: Path) -> OpenSubject:
    if request.param == "in-process":
        return local_subject
    if request.param == "http":
        return lambda: http_subject(tmp_path)
    access = request.getfixturevalue("real_access")
    return lambda: real_subject(access)
