"""`python -m paceline.cluster.console.server HOME FD`: the console's process, which listens on the socket FD.

It ends when its standard input does, and when no client has been connected for a while.
"""

import asyncio
import gc
import logging
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import uvloop

from paceline.client import kubeconfig
from paceline.client.http.cluster import HttpCluster
from paceline.client.rest_config import Access, from_json
from paceline.cluster.console.seal import AesSeal, seal_of
from paceline.cluster.daemon import load_last_settings
from paceline.cluster.logs import configure_logging, leaves, messages_of
from paceline.cluster.signals import run_until_signalled, stop_with_parent
from paceline.console.app import build_app
from paceline.console.auth import Gate
from paceline.console.config import BUNDLE, LOCAL_DOMAIN, ConsoleConfig, Seal
from paceline.console.sessions import Login
from paceline.console.token_login import name_of_caller
from paceline.effects import Effects
from paceline.errors import HostError, PacelineError
from paceline.host.asgi_server import loopback_socket, serve
from paceline.host.cluster_clock import open_clock
from paceline.host.connection_limits import ConnectionLimiter
from paceline.host.effects import GC_THRESHOLD, real_world, release_memory, trim_memory
from paceline.host.lockfile import lock_file
from paceline.settings import LOOPBACK, Settings

log = logging.getLogger(__name__)

# The process ends when no client has been connected for this long; open tabs are connected.
IDLE_SECONDS = 15 * 60.0
# Called with the console's address, and a one-time code if the kubeconfig has a credential.
Announce = Callable[[str, str], None]


def main() -> int:
    """Run the console of an embedded cluster; log an expected error as one line."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    settings = load_last_settings(Path(sys.argv[1]))
    configure_logging("console", settings.log, log_format=settings.log_format)
    sock, failed = socket.socket(fileno=int(sys.argv[2])), ""
    sock.set_inheritable(False)
    try:
        with lock_file(settings.console_lock):
            uvloop.run(_run_until_idle(settings, sock))
    except* PacelineError as errors:
        failed = "; ".join(messages_of(errors))
    if failed:
        log.error("%s", failed)
    return 1 if failed else 0


async def _run_until_idle(settings: Settings, sock: socket.socket) -> None:
    stop = asyncio.Event()
    stop_with_parent(stop)
    await run_until_signalled(run_embedded(settings, sock, stop), stop)


async def run_embedded(
    settings: Settings, sock: socket.socket, stop: asyncio.Event, idle_seconds: float = IDLE_SECONDS
) -> None:
    """Serve the console of an embedded cluster, and set `stop` when no client has been connected for a while."""
    access = from_json(settings.kubeconfig, Path.read_bytes)
    if access is None:
        raise HostError(f"{settings.kubeconfig} is damaged; `paceline up` rewrites it")
    world = real_world()
    world = replace(world, clock=open_clock(settings.clock, world))
    seal = seal_of(settings.console_key, world)
    limiter = ConnectionLimiter(trim=trim_memory)
    async with asyncio.TaskGroup() as group:
        config = config_of(access, sock, world, seal=seal, tasks=group)
        app = build_app(replace(config, is_embedded=True, cluster_name="paceline"))
        group.create_task(serve(app, sock, tls=None, started=asyncio.Event(), limiter=limiter))
        release_memory()
        log.info("ready")
        await wait_until_idle(limiter, idle_seconds)
        log.info("no client has been connected for %g minutes: the console stops", idle_seconds / 60)
        stop.set()


async def wait_until_idle(limiter: ConnectionLimiter, seconds: float) -> None:
    """Return when there has been no connection for some time."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    while loop.time() - last < seconds:
        await asyncio.sleep(seconds / 30)
        if limiter.count:
            last = loop.time()


def run_in_front(file: str, context: str, announce: Announce, *, prometheus: str = "") -> None:
    """Serve a console before the cluster of a kubeconfig until a signal; without a file, look for one as kubectl does.

    Raise HostError for a kubeconfig that cannot be read, Unreachable if the cluster does not answer.
    """
    if file:
        access = kubeconfig.load(Path(file).expanduser(), Path.read_bytes, context=context)
    else:
        access = kubeconfig.discover(os.environ, Path.home(), Path.read_bytes, context=context)
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    failed: list[BaseException] = []
    try:
        uvloop.run(run_until_signalled(_serve_in_front(access, context, announce, prometheus)))
    except* PacelineError as errors:
        failed = list(leaves(errors))
    if failed:
        raise failed[0]


async def _serve_in_front(access: Access, context: str, announce: Announce, prometheus: str) -> None:
    world = real_world()
    sock = loopback_socket(0)
    # The sessions of a console in the foreground end with it.
    seal = AesSeal(world.ids.secret().encode())
    async with asyncio.TaskGroup() as group:
        config = config_of(access, sock, world, seal=seal, tasks=group)
        app = build_app(replace(config, cluster_name=context, prometheus=prometheus))
        started = asyncio.Event()
        group.create_task(serve(app, sock, tls=None, started=started))
        await started.wait()
        announce(f"http://{LOCAL_DOMAIN}:{sock.getsockname()[1]}", await _own_code(app, access, world))


async def _own_code(app: Gate, access: Access, world: Effects) -> str:
    """Return a one-time code for the owner of the kubeconfig; empty if it has no credential."""
    if not app.runtime.config.has_own_credential:
        return ""
    async with HttpCluster(access, world.chance) as cluster:
        return app.runtime.codes.create(Login(name=await name_of_caller(cluster)))


def config_of(
    access: Access, sock: socket.socket, world: Effects, *, seal: Seal, tasks: asyncio.TaskGroup
) -> ConsoleConfig:
    """Return the configuration of a console on this machine's loopback address."""
    port = sock.getsockname()[1]
    return ConsoleConfig(
        access=access,
        clock=world.clock,
        ids=world.ids,
        chance=world.chance,
        seal=seal,
        tasks=tasks,
        bundle=BUNDLE,
        hosts=frozenset(f"{name}:{port}" for name in (LOCAL_DOMAIN, "localhost", LOOPBACK)),
        apps_host=f"{LOCAL_DOMAIN}:{port}",
    )


if __name__ == "__main__":
    sys.exit(main())
