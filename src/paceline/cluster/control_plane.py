"""The control process of the embedded cluster: store, API server and controllers; it also starts the node agent."""

import asyncio
import functools
import gc
import logging
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from zlib import crc32

import uvloop

from paceline.apimachinery.metrics import MetricRegistry
from paceline.apiserver.activity import ActivityTracker
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.config import Nodes, Server
from paceline.apiserver.http_types import App
from paceline.client.in_process import IN_PROCESS, AgentSocket, LocalCluster
from paceline.cluster.agent_supervisor import keep_agent
from paceline.cluster.config import configured_events, configured_records
from paceline.cluster.console.listener import keep_console
from paceline.cluster.crd_install import define_kinds, live_kinds
from paceline.cluster.daemon import last_port
from paceline.cluster.monitoring.process_metrics import process_metrics
from paceline.cluster.pki import Keys, prepare_keys
from paceline.cluster.signals import run_until_signalled
from paceline.cluster.supervisor_keeper import SupervisorProcess, keep_supervisor
from paceline.cluster.wiring import Machine, create_default_objects, publish_api_endpoints, start_controllers
from paceline.controllers.job.reconciler import PORTS
from paceline.effects import Effects
from paceline.errors import HostError
from paceline.host.asgi_server import loopback_socket, pod_sockets, serve, unix_socket
from paceline.host.cluster_clock import ClockKeeper, open_clock
from paceline.host.connection_limits import ConnectionLimiter
from paceline.host.effects import GC_THRESHOLD, OneThread, real_world, release_memory, trim_memory
from paceline.host.home_protection import close_home, protect_from_oom
from paceline.host.listening_sockets import listening_ports
from paceline.host.lockfile import lock_file, mark_ready
from paceline.host.pod_bridge import NetworkChoice, bridge_name, close, prepare
from paceline.host.shim_processes import raise_open_files
from paceline.node.network.network import API_NAMES
from paceline.settings import LOOPBACK, Settings
from paceline.store.high_water_mark import MarkedLog
from paceline.store.store import Store

log = logging.getLogger(__name__)

# `serve` with the application and connection limits bound.
Serving = Callable[..., Coroutine[Any, Any, None]]
# These precede the ports of jobs.
API_PORTS = range(16_000, PORTS.start)


def run_control(settings: Settings, ready: Callable[[], None], supervisor: SupervisorProcess | None = None) -> None:
    """Run the cluster in this process until a signal; call `ready` once it answers requests."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    gc.enable()
    open_files = raise_open_files()
    world = real_world()
    close_home(settings)
    protect_from_oom()
    with lock_file(settings.lock):
        uvloop.run(_run(settings, run_cluster(settings, world, ready, open_files=open_files), supervisor))


async def _run(settings: Settings, cluster: Coroutine[Any, Any, None], supervisor: SupervisorProcess | None) -> None:
    stop = asyncio.Event()

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            if supervisor is not None:
                group.create_task(keep_supervisor(settings, supervisor, stop))
            await cluster

    await run_until_signalled(work(), stop)


def _with_cluster_clock(settings: Settings, world: Effects) -> tuple[Effects, ClockKeeper]:
    """Return the effects with the cluster's clock, which is recorded before the node agent reads it."""
    clock = open_clock(settings.clock, world)
    keeper = ClockKeeper(path=settings.clock, clock=clock, world=world, blocking=OneThread("clock"))
    try:
        keeper.record()
    except OSError as error:
        raise HostError(f"{settings.clock} cannot be written: {error.strerror}") from error
    return replace(world, clock=clock), keeper


async def run_cluster(
    settings: Settings, world: Effects, ready: Callable[[], None], *, open_files: int | None = None
) -> None:
    """Open the store, serve the API, and run the controllers and the agent, until cancelled."""
    world, clock_keeper = _with_cluster_clock(settings, world)
    sock = _api_socket(settings)
    port = sock.getsockname()[1]
    keys = _prepare(settings, world, port)
    marked = MarkedLog(settings.store, mark=settings.mark)
    store = Store(marked, OneThread("store"))
    await store.open()
    nodes = AgentSocket(settings.agent_socket, world.chance)
    visits = ActivityTracker(world.clock)
    try:
        server = replace(_server(keys, store, world, nodes=nodes, port=port), activity=visits)
        app = make_app(server)
        async with asyncio.TaskGroup() as group, LocalCluster(app, token=keys.controller_token) as cluster:
            group.create_task(store.run())
            group.create_task(clock_keeper.run())
            group.create_task(_end_after_failure(store))
            front = ConnectionLimiter(trim=trim_memory)
            started = asyncio.Event()
            group.create_task(serve(app, sock, tls=(keys.certificate, keys.key), started=started, limiter=front))
            await started.wait()
            await _open_to_agent(group, app, settings)
            await create_default_objects(cluster)
            async with asyncio.TaskGroup() as controllers:
                volumes = PurePosixPath(settings.volumes)
                # On a separate thread, because it enters other network namespaces.
                choice = await OneThread("network").run(functools.partial(prepare, settings))
                await _open_to_pods(
                    controllers, functools.partial(serve, app, limiter=front), settings, (choice, port), keys=keys
                )
                await publish_api_endpoints(cluster, choice.gateway, port)
                machine = replace(_machine(settings, keys, choice), visits=visits, metrics=server.metrics)
                # First, because it takes longest, in its own process.
                children = _keep_children(controllers, settings, open_files)
                await define_kinds(cluster)
                await start_controllers(controllers, cluster, world, volumes=volumes, machine=machine)
                for is_ready in children:
                    await is_ready.wait()
                mark_ready(settings.lock)
                ready()
                # Afterwards, because it takes a tenth of the whole start.
                release_memory()
    finally:
        await nodes.close()
        await store.close()
        # The agent has exited by now.
        close(settings)


def _keep_children(
    group: asyncio.TaskGroup, settings: Settings, open_files: int | None
) -> tuple[asyncio.Event, asyncio.Event]:
    """Run the node agent, and the web console when a client connects; return what to wait for."""
    agent_is_ready, console_is_open = asyncio.Event(), asyncio.Event()
    group.create_task(keep_agent(settings, agent_is_ready, open_files=open_files))
    group.create_task(keep_console(settings, api_ports(settings), console_is_open))
    return agent_is_ready, console_is_open


def _api_socket(settings: Settings) -> socket.socket:
    """Return a socket on the port of the last start, or on another one if that is in use."""
    preferred = settings.port or last_port(settings)
    sock = loopback_socket(preferred, api_ports(settings))
    port = sock.getsockname()[1]
    if preferred not in (0, port):
        log.warning(
            "port %d is in use; the API server listens on %d, and copies of its kubeconfig are stale", preferred, port
        )
    return sock


async def _end_after_failure(store: Store) -> None:
    """Raise the error of a failed write to disk, which ends this process: only data read again can be trusted.

    The supervisor restarts it until the disk works.
    """
    raise await store.failed()


def api_ports(settings: Settings) -> Iterator[int]:
    """Yield the ports that the API server of a folder may use, in an order that depends on the folder.

    They are below the kernel's ephemeral ports, which outgoing connections might occupy when the cluster restarts.
    """
    begin = crc32(str(settings.home).encode()) % len(API_PORTS)
    yield from (*API_PORTS[begin:], *API_PORTS[:begin])


def _server(keys: Keys, store: Store, world: Effects, *, nodes: Nodes, port: int) -> Server:
    kinds = live_kinds(store)
    tokens = AccountTokens(key=keys.signing, store=store, scheme=lambda: kinds.scheme, clock=world.clock)
    # A request with another host name comes from a web page that uses DNS rebinding.
    hosts = frozenset({IN_PROCESS, *(f"{name}:{port}" for name in (LOOPBACK, "localhost", *API_NAMES))})
    gate = Authenticator(tokens=keys.tokens, hosts=hosts, account=tokens.caller)
    metrics = MetricRegistry()
    metrics.put("process", *process_metrics())
    return Server(
        store=store,
        metrics=metrics,
        kinds=kinds,
        clock=world.clock,
        ids=world.ids,
        gate=gate,
        nodes=nodes,
        tokens=tokens,
        mounts_tokens=True,
        blocking=OneThread("large"),
    )


async def _open_to_agent(group: asyncio.TaskGroup, app: App, settings: Settings) -> None:
    """Serve the API to the agent on a separate socket, so that other clients cannot use up its connections."""
    started = asyncio.Event()
    group.create_task(serve(app, unix_socket(settings.agent_lane), tls=None, started=started))
    await started.wait()


async def _open_to_pods(
    group: asyncio.TaskGroup, serving: Serving, settings: Settings, where: tuple[NetworkChoice, int], *, keys: Keys
) -> None:
    """Also listen on the bridge, if there is one: pods on it cannot reach the machine's loopback address."""
    choice, port = where
    if not choice.gateway:
        return
    for sock in pod_sockets(choice.gateway, port, bridge_name(settings.home)):
        started = asyncio.Event()
        group.create_task(serving(sock, tls=(keys.certificate, keys.key), started=started))
        await started.wait()


def _machine(settings: Settings, keys: Keys, choice: NetworkChoice) -> Machine:
    """Return the settings of this machine; clusters that share it start at different ports."""
    begin = crc32(str(settings.home).encode()) % (len(PORTS) // 100) * 100
    authority = keys.authority.read_text(encoding="ascii")
    return Machine(
        ports=PORTS[begin:],
        in_use=listening_ports,
        authority=authority,
        external_address=settings.external_address,
        shares_network=choice.subnet is None,
        records=configured_records(settings),
        events=configured_events(settings),
    )


def _prepare(settings: Settings, world: Effects, port: int) -> Keys:
    """Create the files needed before the first request; raise HostError for one that cannot be written."""
    try:
        world.files.make_folder(settings.store.parent)
        return prepare_keys(settings, world, port)
    except OSError as error:
        raise HostError(f"{error.filename or settings.home} cannot be written: {error.strerror}") from error
