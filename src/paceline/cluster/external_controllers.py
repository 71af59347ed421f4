"""Run the controllers of our kinds against any Kubernetes cluster: check it first, then lead by a lease."""

import asyncio
import contextlib
import json
import logging
import platform
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from paceline.apimachinery.meta import Key, Object
from paceline.client.http.cluster import Bearer, HttpTransport
from paceline.client.http.transport import Transport
from paceline.client.interface import NAMESPACES, Cluster
from paceline.client.kubeconfig import discover, load, token_in_cluster
from paceline.client.requests import Request
from paceline.client.rest import Verbs
from paceline.client.rest_config import Access, Read
from paceline.cluster.crd_install import define_kinds, own_kinds
from paceline.cluster.rbac import lease_rights, missing_rights, rights, who_am_i
from paceline.cluster.signals import run_until_signalled
from paceline.cluster.wiring import Machine, own_controllers, start
from paceline.controllers.leader_election import Leader, LeaderGuard
from paceline.effects import Clock, Effects
from paceline.errors import AlreadyExists, Forbidden, HostError, NotFound
from paceline.host.cluster_clock import start_clock
from paceline.host.effects import real_world

log = logging.getLogger(__name__)

# The namespace of the lease if all namespaces are managed, and its name.
HOME = "paceline-system"
LEASE = "paceline-controller"
# The suffix of the embedded cluster's version.
EMBEDDED = "+paceline"
# A CRD is stored a moment before its kind is served: how long we wait for those that we have just created, and for
# those that someone else may have created right before.
SERVED_SECONDS, KNOWN_SECONDS, POLL_SECONDS = 60.0, 10.0, 0.2
# How long a token is used before its file, which the kubelet renews, is read again.
TOKEN_SECONDS = 60.0
# Every pod has its own address, and requests to services are not counted.
ANY_CLUSTER = Machine(shares_network=False)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The cluster to manage, and how much of it."""

    access: Access
    # Only this namespace; all of them if it is empty.
    namespace: str = ""
    # The namespace of the lease; if it is empty, the managed namespace, or else our own.
    lease_namespace: str = ""
    installs_kinds: bool = False

    @property
    def lease(self) -> Key:
        """Return the namespace and name of the lease."""
        return self.lease_namespace or self.namespace or HOME, LEASE


def find_access(kubeconfig: str, context: str, environ: Mapping[str, str]) -> Access:
    """Return the access to the cluster: of the given file, else as kubectl finds it, else of the pod we run in."""
    if kubeconfig:
        return load(Path(kubeconfig).expanduser(), Path.read_bytes, context=context)
    return discover(environ, Path.home(), Path.read_bytes, context=context)


def run_controller(choice: Choice, say: Say) -> None:
    """Manage the cluster until a signal; `say` gets the messages for the user."""
    uvloop.run(run_until_signalled(_connected(choice, real_world(), say)))


async def _connected(choice: Choice, world: Effects, say: Say) -> None:
    bearer = pod_token(world.clock, Path.read_bytes) if choice.access.is_of_pod else None
    transport = HttpTransport(choice.access, world.chance, bearer=bearer)
    try:
        say(await check(Verbs(transport), choice))
        clock = start_clock(world.clock, await _server_date(transport))
        await run_leader(transport, replace(world, clock=clock), choice, say)
    finally:
        await transport.close()


async def _server_date(transport: Transport) -> str:
    """Return the server's time: objects have its time stamps, and this machine's clock may be wrong."""
    answer = await transport.send(Request(method="GET", path="/version"))
    return dict(answer.headers).get("date", "")


async def check(cluster: Cluster, choice: Choice) -> str:
    """Check that the controllers can work there; HostError says what is missing, and how to add it."""
    version = str((await _ask(cluster, "/version")).get("gitVersion") or "")
    if version.endswith(EMBEDDED):
        raise HostError(f"{choice.access.server} is an embedded cluster of Paceline: its controllers run already")
    if choice.installs_kinds:
        await _define(cluster)
    if lacking := await _never_served(cluster, SERVED_SECONDS if choice.installs_kinds else KNOWN_SECONDS):
        named = "our kinds" if len(lacking) == len(own_kinds()) else ", ".join(lacking)
        raise HostError(
            f"{choice.access.server} does not know {named}; "
            "type: paceline kube crds | kubectl apply --server-side -f -\n"
            "or start this with --install-crds"
        )
    user = await who_am_i(cluster)
    lease_namespace, lease = choice.lease
    lacked = await missing_rights(cluster, rights(), namespace=choice.namespace)
    where = f"in the namespace {choice.namespace}" if choice.namespace else "in all namespaces"
    lacked = tuple(f"  {line} {where}" for line in lacked)
    for line in await missing_rights(cluster, lease_rights(lease), namespace=lease_namespace):
        lacked += (f"  {line} in the namespace {lease_namespace}",)
    if lacked:
        only = f" --namespace {choice.namespace}" if choice.namespace else ""
        message = f"{user} may not do what the controller must:"
        how = f"`paceline kube crds --with-controller IMAGE{only}` prints a role with all of them"
        raise HostError("\n".join((message, *lacked, how)))
    await _need_namespace(cluster, lease_namespace)
    return f"{choice.access.server} is Kubernetes {version}, knows all {len(own_kinds())} kinds, and lets {user} work"


async def run_leader(transport: Transport, world: Effects, choice: Choice, say: Say) -> None:
    """Wait for the lease and run the controllers while it is held, until cancelled."""
    me = f"{platform.node() or 'controller'}_{world.ids.suffix(6)}"

    def tell(name: str) -> None:
        if name != me:
            say(f"waiting: {name} leads" if name else "waiting: nobody leads yet")

    leader = Leader(cluster=Verbs(transport), clock=world.clock, key=choice.lease, me=me, on_leader=tell)
    fenced = Verbs(LeaderGuard(transport, leader.may_act))

    async def act() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                await start(group, own_controllers(fenced, world, machine=ANY_CLUSTER, namespace=choice.namespace))
                where = f"the namespace {choice.namespace}" if choice.namespace else "all namespaces"
                say(f"leading as {me}: jobs in {where} are looked after")
        finally:
            say("not leading any more")

    await leader.lead(act)


async def _define(cluster: Cluster) -> None:
    try:
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
