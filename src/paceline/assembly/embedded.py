"""The control process of the embedded cluster: store, API server, controllers; and the agent beside it."""

import asyncio
import functools
import gc
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from zlib import crc32

import uvloop

from paceline.api.app import Server, make_app
from paceline.api.gate import Gate
from paceline.assembly.controllers import Machine, make_basics, start_controllers
from paceline.assembly.hold import hold, say_ready
from paceline.assembly.keep_agent import keep_agent
from paceline.assembly.keys import Keys, last_port, prepare_keys
from paceline.assembly.kinds import define_kinds, live_kinds
from paceline.assembly.listen import listening_ports, loopback_socket, serve
from paceline.assembly.machine import GC_THRESHOLD, OneThread, real_world
from paceline.assembly.mark import MarkedLog
from paceline.assembly.network import close, prepare
from paceline.assembly.settings import LOOPBACK, Settings
from paceline.client.agent import AgentSocket
from paceline.client.local import IN_PROCESS, LocalCluster
from paceline.control.jobs import PORTS
from paceline.errors import Unavailable
from paceline.store.sqlite import SqliteLog
from paceline.store.store import Store
from paceline.world import World


def run_control(settings: Settings, ready: Callable[[], None]) -> None:
    """Run the cluster in this process until a signal says stop; `ready` is called once it answers."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    world = real_world()
    world.files.make_folder(settings.home)
    with hold(settings.lock):
        uvloop.run(_until_told(settings, world, ready))


async def _until_told(settings: Settings, world: World, ready: Callable[[], None]) -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with asyncio.TaskGroup() as group:
        cluster = group.create_task(run_cluster(settings, world, ready))
        await told.wait()
        cluster.cancel()


async def run_cluster(settings: Settings, world: World, ready: Callable[[], None]) -> None:
    """Open the store, serve the API, run the controllers and the agent, all until cancelled."""
    sock = loopback_socket(settings.port or last_port(settings))
    port = sock.getsockname()[1]
    keys = _prepare(settings, world, port)
    log = MarkedLog(SqliteLog(settings.store), store=settings.store, mark=settings.mark)
    store = Store(log, OneThread("store"))
    await store.open()
    nodes = AgentSocket(settings.agent_socket, world.chance)
    try:
        app = make_app(
            Server(
                store=store,
                kinds=live_kinds(store),
                clock=world.clock,
                ids=world.ids,
                gate=Gate(tokens=keys.tokens, hosts=frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}", IN_PROCESS})),
                nodes=nodes,
            )
        )
        async with asyncio.TaskGroup() as group, LocalCluster(app, token=keys.controller_token) as cluster:
            group.create_task(store.run())
            started = asyncio.Event()
            group.create_task(serve(app, sock, tls=(keys.certificate, keys.key), started=started))
            await started.wait()
            await make_basics(cluster)
            async with asyncio.TaskGroup() as controllers:
                volumes = PurePosixPath(settings.volumes)
                # On a thread of its own, which goes into other networks for a moment.
                choice = await OneThread("network").run(functools.partial(prepare, settings))
                machine = replace(_machine(settings, keys), shares_network=choice.subnet is None)
                # First, for it takes longest, and in a process of its own.
                agent_is_ready = asyncio.Event()
                controllers.create_task(keep_agent(settings, agent_is_ready))
                await define_kinds(cluster)
                await start_controllers(controllers, cluster, world, volumes=volumes, machine=machine)
                await agent_is_ready.wait()
                say_ready(settings.lock)
                ready()
    finally:
        await nodes.close()
        await store.close()
        # The agent has ended by now.
        close(settings)


def _machine(settings: Settings, keys: Keys) -> Machine:
    """Let the cluster of each folder begin at ports of its own: several may share this machine."""
    begin = crc32(str(settings.home).encode()) % (len(PORTS) // 100) * 100
    authority = keys.authority.read_text(encoding="ascii")
    return Machine(ports=PORTS[begin:], in_use=listening_ports, authority=authority)


def _prepare(settings: Settings, world: World, port: int) -> Keys:
    """Make the files that must be there before the first request; Unavailable says which one cannot be made."""
    try:
        world.files.make_folder(settings.store.parent)
        return prepare_keys(settings, world, port)
    except OSError as error:
        raise Unavailable(f"{error.filename or settings.home} cannot be written: {error.strerror}") from error
