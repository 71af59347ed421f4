"""As a program: our API server over a real store, without controllers and nodes, until it is killed."""

import asyncio
import sys
from pathlib import Path

from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.config import Server
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.cluster.crd_install import live_kinds
from paceline.cluster.wiring import create_default_objects
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.effects import OneThread, real_world
from paceline.settings import LOOPBACK
from paceline.store.backend import StoreLimits
from paceline.store.high_water_mark import MarkedLog
from paceline.store.store import Store
from tests.contract.subjects import NoNodes

TOKEN = "secret"
# So short a history that it is cleared away again and again.
LIMITS = StoreLimits(history=200, slack=50)


async def main(folder: Path) -> None:
    path = folder / "objects.db"
    log = MarkedLog(path, mark=folder / "revision")
    store = Store(log, OneThread("store"), limits=LIMITS)
    await store.open()
    sock = loopback_socket(0)
    port = sock.getsockname()[1]
    gate = Authenticator(tokens={hash_token(TOKEN): "admin"}, hosts=frozenset({f"{LOOPBACK}:{port}", IN_PROCESS}))
    world = real_world()
    app = make_app(
        Server(store=store, kinds=live_kinds(store), clock=world.clock, ids=world.ids, gate=gate, nodes=NoNodes())
    )
    async with asyncio.TaskGroup() as group, LocalCluster(app, token=TOKEN) as cluster:
        group.create_task(store.run())
        await create_default_objects(cluster)
        started = asyncio.Event()
        group.create_task(serve(app, sock, tls=None, started=started))
        await started.wait()
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
