"""Run the controllers of our kinds against any Kubernetes cluster: check it first, then lead by a lease."""

import asyncio
import contextlib
import gc
import json
import logging
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import uvloop

from paceline.apimachinery.meta import Key, Object
from paceline.apimachinery.metrics import ReadGauge
from paceline.client.http.cluster import Bearer, HttpTransport
from paceline.client.http.transport import Transport
from paceline.client.interface import NAMESPACES, Cluster
from paceline.client.kubeconfig import discover, load, token_in_cluster
from paceline.client.metrics import MeteredTransport
from paceline.client.requests import Request
from paceline.client.rest import Verbs
from paceline.client.rest_config import Access, Read
from paceline.cluster.crd_install import check_kinds, define_kinds, own_kinds
from paceline.cluster.monitoring.probe_server import Probes, probe_socket, serve_probes
from paceline.cluster.monitoring.process_metrics import process_metrics
from paceline.cluster.rbac import lease_rights, missing_rights, rights, who_am_i
from paceline.cluster.signals import run_until_signalled
from paceline.cluster.webhook.manifests import webhook_rights
from paceline.cluster.webhook.server import WebhookServer
from paceline.cluster.wiring import CONTROLLERS, Machine, own_controllers, start
from paceline.controllers.leader_election import Leader, LeaderGuard
from paceline.effects import Clock, Effects
from paceline.errors import AlreadyExists, Forbidden, HostError, NotFound
from paceline.host.cluster_clock import start_clock
from paceline.host.effects import GC_THRESHOLD, real_world
from paceline.model.gang import PodTools
from paceline.plan.queueing.pod_groups import NATIVE_GROUP, NATIVE_VERSIONS

log = logging.getLogger(__name__)

# The namespace of the lease if all namespaces are managed, and its name.
HOME = "paceline-system"
LEASE = "paceline-controller"
# The oldest Kubernetes that has all that we need: CEL rules in CRDs are stable, and pods have sidecars.
OLDEST = (1, 29)
# The suffix of the embedded cluster's version.
EMBEDDED = "+paceline"
# A CRD is stored a moment before its kind is served: how long we wait for those that we have just created, and for
# those that someone else may have created right before.
SERVED_SECONDS, KNOWN_SECONDS, POLL_SECONDS = 60.0, 10.0, 0.2
# A controller is not ready when it could not look after the lease for this long.
SILENT_SECONDS = 30.0
# How long a token is used before its file, which the kubelet renews, is read again.
TOKEN_SECONDS = 60.0
# Every pod has its own address, and requests to services are not counted.
ANY_CLUSTER = Machine(shares_network=False, loses_nodes=True, schedules_gangs=False, is_embedded=False)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The cluster to manage, and how much of it."""

    access: Access
    # Only these namespaces; all of them if it is empty.
    namespaces: tuple[str, ...] = ()
    # The namespace of the lease; if it is empty, the first managed namespace, or else our own.
    lease_namespace: str = ""
    installs_kinds: bool = False
    # Where the validating webhook listens, as HOST:PORT; it is not served if this is empty.
    webhook: str = ""
    # Where probes and metrics are served, as ADDRESS:PORT; nowhere if it is empty.
    metrics_address: str = ""
    # The version of Kubernetes' own PodGroups there; empty if it has none.
    native_groups: str = ""
    # Whether to replace CRDs that are someone else's, or newer.
    adopts_kinds: bool = False
    # The image of our own containers in the pods of jobs.
    tools: PodTools = field(default_factory=PodTools)

    @property
    def lease(self) -> Key:
        """Return the namespace and name of the lease."""
        return self.lease_namespace or next(iter(self.namespaces), HOME), LEASE

    @property
    def where(self) -> str:
        """The managed namespaces, for messages."""
        return f"the namespace {', '.join(self.namespaces)}" if self.namespaces else "all namespaces"


def find_access(kubeconfig: str, context: str, environ: Mapping[str, str]) -> Access:
    """Return the access to the cluster: of the given file, else as kubectl finds it, else of the pod we run in."""
    if kubeconfig:
        return load(Path(kubeconfig).expanduser(), Path.read_bytes, context=context)
    return discover(environ, Path.home(), Path.read_bytes, context=context)


def run_controller(choice: Choice, say: Say) -> None:
    """Manage the cluster until a signal; `say` gets the messages for the user."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    uvloop.run(run_until_signalled(_connected(choice, real_world(), say)))


async def _connected(choice: Choice, world: Effects, say: Say) -> None:
    bearer = pod_token(world.clock, Path.read_bytes) if choice.access.is_of_pod else None
    # First, so that a wrong address is reported at once, and probes are answered while the cluster is checked.
    sock, probes = probe_socket(choice.metrics_address), Probes()
    connections = HttpTransport(choice.access, world.chance, bearer=bearer)
    transport = MeteredTransport(connections)
    probes.registry.put("process", *process_metrics(), transport)
    try:
        async with asyncio.TaskGroup() as group:
            if sock is not None:
                await serve_probes(group, sock, probes)
            cluster = Verbs(transport)
            say(await check(cluster, choice))
            choice = replace(choice, native_groups=await native_groups(cluster))
            clock = start_clock(world.clock, await _server_date(transport))
            if choice.webhook:
                group.create_task(_webhook(transport, clock, choice).run())
            await run_leader(transport, replace(world, clock=clock), choice, say, probes)
    finally:
        await connections.close()


def _webhook(transport: Transport, clock: Clock, choice: Choice) -> WebhookServer:
    """Return the webhook, which every controller serves, also one that does not lead."""
    namespace, _ = choice.lease
    return WebhookServer(cluster=Verbs(transport), clock=clock, address=choice.webhook, namespace=namespace)


async def _server_date(transport: Transport) -> str:
    """Return the server's time: objects have its time stamps, and this machine's clock may be wrong."""
    answer = await transport.send(Request(method="GET", path="/version"))
    return dict(answer.headers).get("date", "")


async def check(cluster: Cluster, choice: Choice) -> str:
    """Check that the controllers can work there; HostError says what is missing, and how to add it."""
    version = await server_version(cluster)
    if version.endswith(EMBEDDED):
        raise HostError(f"{choice.access.server} is an embedded cluster of Paceline: its controllers run already")
    if reason := version_problem(version):
        raise HostError(f"{choice.access.server} is Kubernetes {version}: {reason}")
    if choice.installs_kinds:
        await _define(cluster, adopts=choice.adopts_kinds)
    if lacking := await _never_served(cluster, SERVED_SECONDS if choice.installs_kinds else KNOWN_SECONDS):
        named = "our kinds" if len(lacking) == len(own_kinds()) else ", ".join(lacking)
        raise HostError(
            f"{choice.access.server} does not know {named}; "
            "type: paceline kube crds | kubectl apply --server-side -f -\n"
            "or start this with --install-crds"
        )
    user = await who_am_i(cluster)
    lease_namespace, lease = choice.lease
    lacked: tuple[str, ...] = ()
    for namespace in choice.namespaces or ("",):
        where = f"in the namespace {namespace}" if namespace else "in all namespaces"
        lacked += tuple(f"  {line} {where}" for line in await missing_rights(cluster, rights(), namespace=namespace))
    for line in await missing_rights(cluster, lease_rights(lease), namespace=lease_namespace):
        lacked += (f"  {line} in the namespace {lease_namespace}",)
    if choice.webhook:
        lacked += tuple(f"  {line}" for line in await missing_rights(cluster, webhook_rights(), namespace=""))
    if lacked:
        only = f" --set namespaces={{{','.join(choice.namespaces)}}}" if choice.namespaces else ""
        message = f"{user} may not do what the controller must:"
        how = f"`paceline kube manifests --set image=IMAGE{only}` prints a role with all of them"
        raise HostError("\n".join((message, *lacked, how)))
    await _need_namespace(cluster, lease_namespace)
    return f"{choice.access.server} is Kubernetes {version}, knows all {len(own_kinds())} kinds, and lets {user} work"


async def run_leader(
    transport: Transport, world: Effects, choice: Choice, say: Say, probes: Probes | None = None
) -> None:
    """Wait for the lease and run the controllers while it is held, until cancelled."""
    probes = probes or Probes()
    me = f"{platform.node() or 'controller'}_{world.ids.suffix(6)}"

    def tell(name: str) -> None:
        if name != me:
            say(f"waiting: {name} leads" if name else "waiting: nobody leads yet")

    leader = Leader(cluster=Verbs(transport), clock=world.clock, key=choice.lease, me=me, on_leader=tell)
    fenced = Verbs(LeaderGuard(transport, leader.may_act))
    probes.unready = partial(_why_unready, leader)
    probes.registry.put("leader", _leader_gauge(leader))
    machine = replace(ANY_CLUSTER, metrics=probes.registry, native_groups=choice.native_groups)

    async def act() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for namespace, part in _shares(machine, choice):
                    await start(group, own_controllers(fenced, world, machine=part, namespace=namespace))
                say(f"leading as {me}: jobs in {choice.where} are looked after")
        finally:
            # One that waits watches no jobs, so it cannot count them.
            probes.registry.put(CONTROLLERS)
            say("not leading any more")

    await leader.lead(act)


def _why_unready(leader: Leader) -> str:
    """Return why a controller cannot do its part, leading or waiting; empty if it can."""
    silent = leader.silent_seconds()
    if silent is None:
        return "the lease was not read yet"
    return f"the API server has not answered about the lease for {silent:.0f} s" if silent > SILENT_SECONDS else ""


def _leader_gauge(leader: Leader) -> ReadGauge:
    return ReadGauge(
        name="leader_election_master_status",
        help="Whether this process leads.",
        read=lambda: float(leader.may_act()),
        labels=(("name", LEASE),),
    )


async def native_groups(cluster: Cluster) -> str:
    """Return the version in which the cluster serves Kubernetes' own PodGroups; empty if it does not."""
    for version in NATIVE_VERSIONS:
        try:
            answer = await _ask(cluster, f"/apis/{NATIVE_GROUP}/{version}")
        except NotFound:
            continue
        if any(resource.get("name") == "podgroups" for resource in answer.get("resources") or ()):
            return version
    return ""


def _shares(machine: Machine, choice: Choice) -> Iterator[tuple[str, Machine]]:
    """Yield the managed namespaces, each with a part of the ports: jobs with hostNetwork must not get the same ones."""
    namespaces = choice.namespaces or ("",)
    size = len(machine.ports) // len(namespaces)
    for index, namespace in enumerate(namespaces):
        ports = machine.ports[index * size : (index + 1) * size]
        yield namespace, replace(machine, ports=ports, tools=choice.tools)


async def server_version(cluster: Cluster) -> str:
    """Return the version that the server reports, such as v1.34.4."""
    return str((await _ask(cluster, "/version")).get("gitVersion") or "")


def version_problem(version: str) -> str:
    """Return why a version of Kubernetes is too old; empty if it is not."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) >= OLDEST:
        return ""
    return f"Paceline needs {OLDEST[0]}.{OLDEST[1]} or newer, whose pods have sidecars, which upload the output of jobs"


async def _define(cluster: Cluster, *, adopts: bool) -> None:
    try:
        if not adopts:
            await check_kinds(cluster, how="--adopt-crds replaces them")
        await define_kinds(cluster)
    except* Forbidden as errors:
        user = await who_am_i(cluster)
        raise HostError(
            f"{user} may not define kinds ({errors.exceptions[0]}); ask an administrator to type: "
            "paceline kube crds | kubectl apply --server-side -f -"
        ) from errors


async def _never_served(cluster: Cluster, seconds: float) -> tuple[str, ...]:
    """Return which of our kinds the cluster does not serve after this time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while await _not_served(cluster):  # noqa: ASYNC110 - nothing tells when a kind is served
                await asyncio.sleep(POLL_SECONDS)
    return await _not_served(cluster)


async def _not_served(cluster: Cluster) -> tuple[str, ...]:
    """Return the full names of our kinds that the cluster does not serve."""
    plurals_by_path: dict[str, set[str]] = {}
    for kind in own_kinds().values():
        where = kind.resource
        plurals_by_path.setdefault(f"/apis/{where.group}/{where.version}", set()).add(where.plural)
    lacking = []
    for path, plurals in plurals_by_path.items():
        try:
            served = {str(resource["name"]) for resource in (await _ask(cluster, path))["resources"]}
        except NotFound:
            served = set()
        lacking += [f"{plural}.{path.split('/')[2]}" for plural in plurals - served]
    return tuple(sorted(lacking))


async def _need_namespace(cluster: Cluster, name: str) -> None:
    """Create the namespace of the lease if it is missing."""
    try:
        await cluster.get(NAMESPACES, "", name)
    except Forbidden:
        # We may not read namespaces; creating the lease will fail if it is missing.
        return
    except NotFound:
        try:
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except AlreadyExists:
            return
        except Forbidden as error:
            raise HostError(
                f"the lease needs the namespace {name}, which is not there; type: kubectl create namespace {name}"
            ) from error


def pod_token(clock: Clock, read: Read) -> Bearer:
    """Return a function that reads the pod's token, again after a while: the kubelet renews it before it expires."""
    token, read_at = "", 0.0

    def bearer() -> str:
        nonlocal token, read_at
        now = clock.monotonic()
        if not token or now - read_at > TOKEN_SECONDS:
            token, read_at = token_in_cluster(read), now
        return token

    return bearer


async def _ask(cluster: Cluster, path: str) -> Object:
    async with aclosing(cluster.stream(path, {})) as parts:
        answer: Object = json.loads(b"".join([part async for part in parts]))
    return answer
