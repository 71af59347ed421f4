"""The two servers that get the same requests: a real kube-apiserver, and ours; both without controllers and nodes."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from paceline.apiserver.auth.authentication import Authenticator
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import STORAGE_CLASSES
from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.cluster.crd_install import define_kinds
from paceline.cluster.pki import prepare_keys
from paceline.cluster.wiring import create_default_objects, default_class
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.effects import real_world
from paceline.settings import LOOPBACK, Settings
from paceline.store.backend import StoreLimits
from paceline.testing.api_diff import Place
from paceline.testing.definitions import define_kinds as define_kinds_there
from paceline.testing.real.kube import real_kube
from paceline.testing.sim.effects import SimChance
from tests.contract.subjects import our_app


@contextlib.contextmanager
def the_real_one(assets: Path) -> Iterator[Place]:
    """A real kube-apiserver that serves our job kinds."""
    with real_kube(assets) as kube:
        with DirectCluster(load(kube.kubeconfig, Path.read_bytes)) as cluster:
            define_kinds_there(cluster)
            cluster.create(STORAGE_CLASSES, default_class())
        yield Place(host=kube.server.removeprefix("https://"), ca_file=kube.ca_file, token=kube.token)


@contextlib.contextmanager
def ours(home: Path) -> Iterator[Place]:
    """Our API server over a store in memory, behind a real socket."""
    ready, places = threading.Event(), []
    stop = None

    async def run() -> None:
        nonlocal stop
        stop = (asyncio.get_running_loop(), asyncio.Event())
        async with serving(home) as place:
            places.append(place)
            ready.set()
            await stop[1].wait()

    def main() -> None:
        try:
            asyncio.run(run())
        finally:
            ready.set()

    thread = threading.Thread(target=main, name="our server")
    thread.start()
    ready.wait()
    try:
        yield places[0]
    finally:
        if stop is not None and places:
            stop[0].call_soon_threadsafe(stop[1].set)
        thread.join()


@contextlib.asynccontextmanager
async def serving(home: Path):
    sock = loopback_socket(0)
    port = sock.getsockname()[1]
    settings = Settings(home=home)
    keys = prepare_keys(settings, real_world(), port)
    gate = Authenticator(tokens=keys.tokens, hosts=frozenset({f"{LOOPBACK}:{port}"}))
    async with our_app(gate, limits=StoreLimits()) as app, asyncio.TaskGroup() as group:
        started = asyncio.Event()
        task = group.create_task(serve(app, sock, tls=(keys.certificate, keys.key), started=started))
        await started.wait()
        access = load(settings.kubeconfig, Path.read_bytes)
        (home / "authority.crt").write_bytes(access.ca)
        try:
            async with HttpCluster(access, SimChance()) as cluster:
                await create_default_objects(cluster)
                await define_kinds(cluster)
            yield Place(host=f"{LOOPBACK}:{port}", ca_file=home / "authority.crt", token=access.token)
        finally:
            task.cancel()
