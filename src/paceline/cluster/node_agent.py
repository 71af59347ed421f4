"""`python -m paceline.cluster.node_agent HOME [FILES]`: the node agent's process; it ends when its standard input does.

It writes to its standard output that it is ready, or why it is not.
"""

import asyncio
import contextlib
import gc
import logging
import os
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

# Before the other imports: these make no garbage, and looking for it takes a sixth of their time.
if __name__ == "__main__":
    gc.disable()

import uvloop

from paceline.client.event_recorder import Recorder
from paceline.client.http.cluster import HttpCluster
from paceline.client.rest_config import from_json
from paceline.cluster.config import configured_devices, configured_environments, configured_images, configured_retention
from paceline.cluster.daemon import last_port, load_last_settings
from paceline.cluster.host_facts import find_sandbox, look_at_host
from paceline.cluster.logs import configure_logging, messages_of
from paceline.cluster.signals import run_until_signalled, stop_with_parent
from paceline.effects import ProcessHandle
from paceline.environments.build_queue import BuildQueue
from paceline.environments.cache import cache_folder, environment_cache
from paceline.errors import HostError, PacelineError
from paceline.host.asgi_server import serve, unix_socket
from paceline.host.cluster_clock import open_clock
from paceline.host.effects import GC_THRESHOLD, OneThread, Threads, real_world, release_memory
from paceline.host.gpu_stats import GPUMeter
from paceline.host.home_protection import close_home, private_folders, protect_from_oom, sweep_memory
from paceline.host.lockfile import READY, lock_file
from paceline.host.mounts import RealMounts
from paceline.host.pod_bridge import pod_network
from paceline.host.proc_stats import are_listening, measure
from paceline.host.resources import find_device_pools
from paceline.host.shim_processes import ContainerExec, RealProcesses, raise_open_files
from paceline.host.tcp_proxy import OpenPorts
from paceline.node.agent import EVENTS_AT_ONCE, Agent
from paceline.node.host_info import Folders, Host
from paceline.node.images import Images
from paceline.node.network.service_proxy import ServiceProxy
from paceline.node.server.api import HostFunctions, make_app, make_port_proxy
from paceline.node.server.stats import Stats, VolumeUsage
from paceline.node.usage.recorder import UsageRecorder
from paceline.settings import Settings

log = logging.getLogger(__name__)

# Folders of ended pods are archived in parallel: a disk syncs several files in the time of one.
FILE_THREADS = 4


def main() -> int:
    """Run until a signal or until the control process has ended; log an expected error as one line."""
    settings = load_last_settings(Path(sys.argv[1]))
    configure_logging("agent", settings.log, log_format=settings.log_format)
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    gc.enable()
    protect_from_oom()
    soft = raise_open_files()
    open_files = int(sys.argv[2]) if len(sys.argv) > 2 else soft
    failed = ""
    try:
        settings.agent.mkdir(parents=True, exist_ok=True, mode=0o700)
        close_home(settings)
        sweep_memory()
        with lock_file(settings.agent_lock):
            uvloop.run(_run_until_told(settings, open_files))
    except* PacelineError as errors:
        failed = "; ".join(messages_of(errors))
    if failed:
        log.error("%s", failed)
        _answer(failed)
    return 1 if failed else 0


def _answer(text: str) -> None:
    # The control process may have ended by now.
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{text}\n".encode())


async def _run_until_told(settings: Settings, open_files: int) -> None:
    stop = asyncio.Event()
    stop_with_parent(stop)
    await run_until_signalled(_run_agent(settings, open_files), stop)


async def _run_agent(settings: Settings, open_files: int) -> None:
    access = from_json(settings.agent_access, Path.read_bytes)
    if access is None:
        raise HostError(f"{settings.agent_access} is damaged; `paceline up` rewrites it")
    world = real_world()
    clock = open_clock(settings.clock, world)
    processes = RealProcesses(mark=str(settings.home), clock_offset=clock.offset, open_files=open_files)
    world = replace(world, clock=clock, processes=processes)
    network, networks = pod_network(settings)
    network = replace(network, api_port=last_port(settings))
    if networks is not None:
        await networks.find()
    builds = BuildQueue(cache=environment_cache(os.environ), specs=configured_environments(settings), clock=clock)
    # The agent has its own socket, which needs no certificate.
    access = replace(access, server=access.server.replace("https://", "http://", 1))
    async with HttpCluster(access, world.chance, socket=settings.agent_lane) as cluster, asyncio.TaskGroup() as group:
        host = _host(settings)
        agent = Agent(
            cluster=cluster,
            world=world,
            blocking=Threads("files", FILE_THREADS),
            recorder=Recorder(cluster, world.clock, component="paceline-agent", at_once=EVENTS_AT_ONCE),
            host=host,
            folders=Folders(root=settings.agent),
            images=Images(rows=configured_images(settings), environments=builds, host=host, files=world.files),
            find_sandbox=find_sandbox,
            log_retention=configured_retention(settings),
            command=ContainerExec(processes=processes).run,
            network=network,
            networks=networks,
            mounts=RealMounts(root=Folders(root=settings.agent).mounts),
        )
        machine = _machine(agent, processes)
        ready, started = asyncio.Event(), asyncio.Event()
        group.create_task(builds.run())
        group.create_task(agent.run(ready))
        await ready.wait()
        group.create_task(machine.stats.run())
        if machine.stats.volumes is not None:
            group.create_task(machine.stats.volumes.run())
        if networks is not None:
            group.create_task(networks.run())
        group.create_task(
            serve(make_app(agent, machine), unix_socket(settings.agent_socket), tls=None, started=started)
        )
        await started.wait()
        group.create_task(_proxy(agent, machine, OpenPorts(address=settings.external_address, group=group)).run())
        _answer(READY)
        # Afterwards, because it takes a tenth of the whole start.
        release_memory()


def _proxy(agent: Agent, machine: HostFunctions, ports: OpenPorts) -> ServiceProxy:
    """Return the proxy of external Service ports; it reaches pods as the API server's proxy does."""
    return ServiceProxy(
        cluster=agent.cluster,
        chance=agent.world.chance,
        recorder=agent.recorder,
        address=ports.address,
        ports=ports,
        pods=agent.pods.cache,
        address_of=make_port_proxy(agent, machine).address_of,
    )


def _host(settings: Settings) -> Host:
    """Return the facts about this machine, with the user's settings."""
    device_pools = find_device_pools(configured_devices(settings))
    disk = shutil.disk_usage(settings.home).total
    return replace(
        look_at_host(),
        device_pools=device_pools,
        has_sandbox=settings.has_sandbox,
        disk_bytes=disk,
        private_folders=private_folders(settings, cache_folder(os.environ)),
    )


def _volume_usage(agent: Agent) -> VolumeUsage:
    """Return the measurement of claims, on a thread of its own: a large claim takes long."""
    return VolumeUsage(
        files=agent.world.files,
        clock=agent.world.clock,
        blocking=OneThread("sizes"),
        claims=agent.starter.claims,
        volumes=agent.starter.volumes,
    )


def _machine(agent: Agent, processes: RealProcesses) -> HostFunctions:
    """Return the functions of this machine that the agent's API needs."""
    # A thread of its own: a measurement must not wait for a folder that takes long to remove.
    blocking = OneThread("measure")
    recorder = UsageRecorder(
        files=agent.world.files,
        folders=agent.folders,
        devices=agent.starter.devices,
        measure_gpus=GPUMeter().measure,
    )
    recorder.start()
    stats = Stats(
        world=agent.world,
        host=agent.host,
        folders=agent.folders,
        pods=agent.pods.cache,
        measure=measure,
        blocking=blocking,
        volumes=_volume_usage(agent),
        record=recorder.record,
    )

    async def listens(shims: tuple[ProcessHandle, ...], address: str, port: int) -> bool:
        return await blocking.run(partial(are_listening, shims, address, port))

    return HostFunctions(run=ContainerExec(processes=processes).run, listens=listens, stats=stats)


if __name__ == "__main__":
    sys.exit(main())
