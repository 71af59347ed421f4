"""A whole embedded cluster on simulated time: the real API, store, controllers and agent, on a simulated machine."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from paceline.apimachinery.meta import Object
from paceline.apiserver.app import make_app
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.apiserver.auth.service_account_tokens import AccountTokens
from paceline.apiserver.config import Server
from paceline.client.event_recorder import Recorder
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.rest import Verbs
from paceline.cluster.crd_install import define_kinds, live_kinds
from paceline.cluster.wiring import create_default_objects, start_controllers
from paceline.effects import Effects
from paceline.errors import ServiceUnavailable
from paceline.host.cluster_clock import ClockKeeper, ClusterClock, open_clock
from paceline.node.agent import EVENTS_AT_ONCE, Agent
from paceline.node.host_info import Device, DevicePool, Folders, Host
from paceline.node.images import Images
from paceline.node.network.service_proxy import Route, ServiceProxy
from paceline.node.runtime.exec_types import ExecRequest, RunExec
from paceline.store.backend import DEFAULTS, Log, StoreLimits
from paceline.store.store import Store
from paceline.testing.fixed_kinds import fixed_kinds
from paceline.testing.sim.backend import SimLog
from paceline.testing.sim.effects import SimBlocking, SimWorld, sim_world
from paceline.testing.sim.killable import Grip, Killed
from paceline.testing.sim.network import Network, Wire
from paceline.testing.sim.processes import StaticEnvironments

TOKEN = "simulated"  # noqa: S105 - opens nothing but a simulation
GPUS = DevicePool(resource="nvidia.com/gpu", devices=(Device(number=0), Device(number=1)))
HOST = Host(
    name="sim",
    is_root=False,
    uid=1000,
    gid=1000,
    cpus=4,
    memory_bytes=8 << 30,
    disk_bytes=64 << 30,
    device_pools=(GPUS,),
)
EXTERNAL = "192.0.2.9"
ROOT = Path("/sim/agent")
VOLUMES = PurePosixPath("/sim/volumes")
CLOCK = Path("/sim/clock.json")

# What stands between a component, named first, and a part of the world that it touches.
Seam = Callable[[str, Any], Any]


def _nothing_between(_component: str, part: Any) -> Any:
    return part


class NoLogs:
    """The logs of simulated containers are not asked for."""

    def logs(self, _namespace: str, _pod: Object, _query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Refuse."""
        raise ServiceUnavailable("simulated containers have no logs")

    async def pass_on(self, _scope: object, _receive: object, _send: object) -> None:
        """Refuse."""
        raise ServiceUnavailable("simulated containers cannot be entered")

    async def stats(self) -> Object:
        """Refuse."""
        raise ServiceUnavailable("simulated containers use nothing")


class SimCommand:
    """A command in a container that has nothing to say and ends well at once, as hooks do that go well."""

    async def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Give nothing."""
        nothing: tuple[tuple[int, bytes], ...] = ()
        for piece in nothing:
            yield piece

    async def write(self, data: bytes) -> None:
        """Read nothing."""

    def end_input(self) -> None:
        """Read nothing."""

    def resize(self, width: int, height: int) -> None:
        """Have no terminal."""

    async def code(self) -> int:
        """End well."""
        return 0

    def close(self) -> None:
        """Have ended already."""


async def run_well(_order: ExecRequest) -> SimCommand:
    """Run a command that goes well."""
    return SimCommand()


class SimPorts:
    """Ports of a simulated machine: nobody calls there, and they are free."""

    def __init__(self) -> None:
        self.open_ports: set[int] = set()

    def open(self, port: int, _route: Route) -> None:
        """Listen; what listens already must not."""
        assert port not in self.open_ports
        self.open_ports.add(port)

    async def close(self, port: int) -> None:
        """Listen no more."""
        await asyncio.sleep(0)
        self.open_ports.remove(port)


async def _no_way(_pod: Object, _port: int) -> None:
    """Return no address: there is no network."""


@dataclass(slots=True, kw_only=True)
class Component:
    """One simulated process: a task, and the handles through which it touches the world."""

    task: asyncio.Task[None]
    grips: tuple[Grip, ...]
    ready: asyncio.Event

    async def kill(self) -> None:
        """End it as kill -9 does: nothing it still tries has an effect."""
        for grip in self.grips:
            grip.let_go()
        self.task.cancel()
        with contextlib.suppress(BaseException):
            await self.task


@dataclass(slots=True, kw_only=True)
class SimCluster:
    """The machine, the disk, the network and the processes of one simulated cluster."""

    seed: int
    seam: Seam = _nothing_between
    limits: StoreLimits = DEFAULTS
    # Whether the controllers are a process of their own, as they are beside a real Kubernetes.
    apart: bool = False
    # Whether our kinds are defined by way of the API at every start, or simply there, which is faster.
    defines: bool = False
    sim: SimWorld = field(init=False)
    log: SimLog = field(init=False)
    network: Network = field(init=False)
    control: Component | None = None
    agent: Component | None = None
    controllers: Component | None = None
    # What the agent listens at for callers from outside.
    ports: SimPorts = field(default_factory=SimPorts)
    # Set while the store is open, for checks that look at it directly.
    # What runs commands in containers; nothing does, unless a test wants it to before the agent starts.
    command: RunExec | None = None
    store: Store | None = None

    def __post_init__(self) -> None:
        """Make an empty machine; nothing runs yet."""
        self.sim = sim_world(self.seed, follows_loop=True)
        self.log = SimLog()
        self.network = Network(dice=random.Random(f"network {self.seed}"))  # noqa: S311 - repeatable on purpose

    def client(self) -> Verbs:
        """Give a client that reaches the cluster over the simulated network, as a user would."""
        return Verbs(Wire(self.network, token=TOKEN), on_warning=_ignore)

    @property
    def clock(self) -> ClusterClock:
        """The cluster's clock as a process that starts now would go on with it."""
        return open_clock(CLOCK, self.sim.world(), lambda: round(self.sim.clock.monotonic() * 1e9))

    def clock_keeper(self) -> ClockKeeper:
        """Open the cluster's clock for a process that starts, and record it, as the control process does."""
        clock = self.clock
        keeper = ClockKeeper(path=CLOCK, clock=clock, world=self.sim.world(), blocking=SimBlocking())
        self.sim.files.make_folder(CLOCK.parent)
        keeper.record()
        self.sim.processes.stamp_by(clock)
        return keeper

    def start_control(self) -> Component:
        """Start the control process: store, API, controllers."""
        ready, log = asyncio.Event(), Grip(self.seam("control", self.log))
        task = asyncio.get_running_loop().create_task(self._control(cast("Log", log), ready), name="control")
        self.control = Component(task=task, grips=(log,), ready=ready)
        return self.control

    def start_agent(self) -> Component:
        """Start the agent process."""
        ready = asyncio.Event()
        parts = (self.sim.files, self.sim.processes, Wire(self.network, token=TOKEN, is_node=True))
        files, processes, wire = (Grip(self.seam("agent", part)) for part in parts)
        world = Effects(
            clock=self.clock_keeper().clock,
            ids=self.sim.ids,
            chance=self.sim.chance,
            files=cast("Any", files),
            processes=cast("Any", processes),
        )
        cluster = Verbs(cast("Any", wire), on_warning=_ignore)
        task = asyncio.get_running_loop().create_task(self._agent(world, cluster, ready), name="agent")
        self.agent = Component(task=task, grips=(files, processes, wire), ready=ready)
        return self.agent

    def start_controllers(self) -> Component:
        """Start the controllers, where they are a process of their own."""
        ready, wire = asyncio.Event(), Grip(self.seam("controllers", Wire(self.network, token=TOKEN)))
        cluster = Verbs(cast("Any", wire), on_warning=_ignore)
        task = asyncio.get_running_loop().create_task(self._controllers(cluster, ready), name="controllers")
        self.controllers = Component(task=task, grips=(wire,), ready=ready)
        return self.controllers

    async def kill_control(self) -> None:
        """Kill the control process; what the operating system had already taken is kept."""
        if self.control is not None:
            self.network.app, self.network.group = None, None
            await self.control.kill()
            self.control = None
            self.log.close()

    async def kill_agent(self) -> None:
        """Kill the agent; its shims and their containers run on."""
        if self.agent is not None:
            await self.agent.kill()
            self.agent = None

    async def kill_controllers(self) -> None:
        """Kill the controllers, where they are a process of their own; the server lives on."""
        if self.controllers is not None:
            await self.controllers.kill()
            self.controllers = None

    async def cut_power(self) -> None:
        """Cut the machine's power: everything that runs is gone, and everything that was not synced."""
        await self.kill_control()
        await self.kill_agent()
        await self.kill_controllers()
        self.log.crash()
        self.sim.files.crash()
        self.sim.processes.reboot()

    def broken(self) -> BaseException | None:
        """Give the bug that ended a component by itself, if one did."""
        for component in (self.control, self.agent, self.controllers):
            if component is not None and component.task.done() and not component.task.cancelled():
                return component.task.exception() or RuntimeError(f"{component.task.get_name()} ended by itself")
        return None

    async def _control(self, log: Log, ready: asyncio.Event) -> None:
        keeper = self.clock_keeper()
        world = replace(self.sim.world(), clock=keeper.clock)
        store = Store(log, SimBlocking(), limits=self.limits)
        await store.open()
        gate = Authenticator(tokens={hash_token(TOKEN): "admin"}, hosts=frozenset({IN_PROCESS}))
        kinds = live_kinds(store) if self.defines else fixed_kinds(store)
        tokens = AccountTokens(key=TOKEN.encode(), store=store, scheme=lambda: kinds.scheme, clock=world.clock)
        server = Server(store=store, kinds=kinds, clock=world.clock, ids=world.ids, gate=gate, nodes=NoLogs())
        app = make_app(replace(server, tokens=tokens))
        try:
            local = LocalCluster(self.seam("control", app), token=TOKEN, on_warning=_ignore)
            async with asyncio.TaskGroup() as group, local as cluster:
                group.create_task(store.run())
                group.create_task(keeper.run())
                await create_default_objects(cluster)
                if self.defines:
                    await define_kinds(cluster)
                self.store, self.network.app, self.network.group = store, app, group
                async with asyncio.TaskGroup() as controllers:
                    if not self.apart:
                        await start_controllers(controllers, cluster, world, volumes=VOLUMES)
                    ready.set()
        finally:
            self.store, self.network.app, self.network.group = None, None, None

    async def _controllers(self, cluster: Verbs, ready: asyncio.Event) -> None:
        # They start at the server's time, which is the cluster's.
        world = replace(self.sim.world(), clock=self.clock)
        async with asyncio.TaskGroup() as group:
            await start_controllers(group, cluster, world, volumes=VOLUMES)
            ready.set()

    async def _agent(self, world: Effects, cluster: Verbs, ready: asyncio.Event) -> None:
        agent = Agent(
            cluster=cluster,
            world=world,
            blocking=SimBlocking(),
            recorder=Recorder(cluster, world.clock, component="paceline-agent", at_once=EVENTS_AT_ONCE),
            host=HOST,
            folders=Folders(root=ROOT),
            images=Images(rows=(), environments=StaticEnvironments(), host=HOST, files=world.files),
            find_sandbox=lambda: "/usr/bin/bwrap",
            command=self.command,
        )
        # The ports of a process that was killed are free again.
        self.ports = SimPorts()
        entrances = ServiceProxy(
            cluster=cluster,
            chance=world.chance,
            recorder=agent.recorder,
            address=EXTERNAL,
            ports=self.ports,
            pods=agent.pods.cache,
            address_of=_no_way,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.run(ready))
            await ready.wait()
            group.create_task(entrances.run())


def _ignore(_text: str) -> None:
    """Nobody reads warnings here."""


__all__ = ["Component", "Killed", "SimCluster"]
