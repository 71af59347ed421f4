"""Register this machine as a Node, and renew its status and lease."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paceline import __version__
from paceline.apimachinery.builtin.scheduling import without_not_ready
from paceline.apimachinery.meta import Object
from paceline.apimachinery.quantity import canonical
from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.client.interface import LEASES, NAMESPACES, NODES, Cluster
from paceline.effects import Clock
from paceline.errors import AlreadyExists, Conflict, NotFound, PacelineError, ServiceUnavailable
from paceline.node.host_info import Host
from paceline.node.network.network import SHARED_NETWORK, PodNetwork

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_SECONDS = 10.0
RETRY_SECONDS = 0.5
# How often a kubelet reports when nothing has changed.
HEARTBEAT = timedelta(minutes=5)
MAX_PODS = 1000
RUNTIME = f"paceline://{__version__}"
NO_SANDBOX = (
    "containers run without a sandbox because of `paceline up --no-sandbox`: they see the whole machine with all "
    "privileges of the agent's user; volumes cannot be mounted, and the replicas of a job do not resolve by name"
)
# Conditions that are not measured are reported as good.
UNMEASURED = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "node agent has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "node agent has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "node agent has sufficient PID available"),
)


def node_object(host: Host) -> Object:
    """Return the node without its status."""
    facts = dict(host.facts)
    labels = {
        "kubernetes.io/hostname": host.name,
        "kubernetes.io/os": facts.get("operatingSystem", ""),
        "kubernetes.io/arch": facts.get("architecture", ""),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host.name, "labels": {name: value for name, value in labels.items() if value}},
        "spec": {},
    }


def node_status(
    host: Host, old: Object, *, has_sandbox: bool, now: datetime, network: PodNetwork = SHARED_NETWORK
) -> Object:
    """Return the node's status; a condition's transition time changes only with its status."""
    capacity = {"cpu": str(host.cpus), "memory": f"{host.memory_bytes // 1024}Ki", "pods": str(MAX_PODS)}
    capacity |= {"ephemeral-storage": f"{host.disk_bytes // 1024}Ki"} if host.disk_bytes else {}
    capacity |= {pool.resource: str(len(pool.devices)) for pool in host.device_pools}
    # As the server stores them, so that an unchanged status is not written again.
    amounts = {name: canonical(amount) for name, amount in capacity.items()}
    required = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "architecture", "kubeProxyVersion")
    versions = {"containerRuntimeVersion": RUNTIME, "kubeletVersion": RUNTIME.rpartition("/")[2]}
    info = {**dict.fromkeys(required, ""), "operatingSystem": "linux", **versions}
    previous = {condition["type"]: condition for condition in old.get("conditions") or ()}
    conditions = _conditions(host, network, has_sandbox=has_sandbox)
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [
            {"type": "InternalIP", "address": network.host_address},
            {"type": "Hostname", "address": host.name},
        ],
        "nodeInfo": info | dict(host.facts),
        "conditions": [_with_times(condition, previous, now) for condition in conditions],
    }


def _conditions(host: Host, network: PodNetwork, *, has_sandbox: bool) -> list[Object]:
    if not host.has_sandbox:
        sandbox = ("False", "NotWanted", NO_SANDBOX)
    elif has_sandbox:
        sandbox = ("True", "Found", "bubblewrap is installed")
    else:
        sandbox = ("False", "Missing", f"bubblewrap is not installed; install it with: {host.install_sandbox}")
    pod_network = ("True", "OwnNetwork") if network.is_own else ("False", "HostNetwork")
    return [
        *(_condition(kind, "False", reason, message) for kind, reason, message in UNMEASURED),
        _condition("SandboxReady", *sandbox),
        _limits_condition(host),
        _condition("PodNetwork", *pod_network, network.message),
        _condition("Ready", "True", "KubeletReady", "node agent is posting ready status"),
    ]


def _limits_condition(host: Host) -> Object:
    subject = "cpu, memory and process limits of containers are"
    if host.cgroups is not None:
        return _condition("LimitsEnforced", "True", "ControlGroups", f"{subject} enforced")
    message = f"{subject} not enforced: this user may not create cgroups; run the agent as root"
    return _condition("LimitsEnforced", "False", "NotPermitted", message)


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _with_times(condition: Object, previous: dict[str, Object], now: datetime) -> Object:
    old = previous.get(condition["type"], {})
    is_same = old.get("status") == condition["status"] and "lastTransitionTime" in old
    heartbeat = old.get("lastHeartbeatTime")
    is_fresh = is_same and heartbeat and now - from_wire(heartbeat) < HEARTBEAT
    return condition | {
        "lastHeartbeatTime": heartbeat if is_fresh else to_wire(now),
        "lastTransitionTime": old["lastTransitionTime"] if is_same else to_wire(now),
    }


def _removing_absent(status: Object, old: Object) -> Object:
    """Return a merge patch that also removes the resources that the node no longer has."""
    amounts = ("capacity", "allocatable")
    return status | {name: dict.fromkeys(old.get(name) or {}) | status[name] for name in amounts}


@dataclass(slots=True, kw_only=True)
class Registration:
    """Keeps the Node and its Lease up to date."""

    cluster: Cluster
    clock: Clock
    host: Host
    find_sandbox: Callable[[], str | None]
    network: PodNetwork = SHARED_NETWORK
    _status: Object = field(default_factory=dict)
    _is_schedulable: bool = False

    async def register(self) -> None:
        """Create the Node if it does not exist, and report its status; labels and taints of users stay."""
        try:
            node = await self.cluster.create(NODES, node_object(self.host))
        except AlreadyExists:
            node = await self.cluster.get(NODES, "", self.host.name)
        self._status, self._is_schedulable = node.get("status") or {}, False
        try:
            await self._report()
            await self._remove_not_ready_taint()
        except ServiceUnavailable as error:
            if not self._status:
                raise
            # The Node exists already, so its pods can be reconciled while the store takes no writes.
            log.warning("node not reported", extra={"error": str(error)})

    async def run(self) -> None:
        """Renew until cancelled; errors of the server are logged and retried."""
        while True:
            try:
                await self._renew()
                await self._report()
                await self._remove_not_ready_taint()
            except NotFound:
                # A user deleted the Node.
                await self._try_register()
            except PacelineError as error:
                log.warning("node not renewed", extra={"reason": error.reason, "error": str(error)})
            await asyncio.sleep(RENEW_SECONDS)

    async def register_with_retry(self) -> None:
        """Register, however long it takes until the server answers."""
        while True:
            if await self._try_register():
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _try_register(self) -> bool:
        try:
            await self.register()
        except PacelineError as error:
            log.warning("node not registered", extra={"reason": error.reason, "error": str(error)})
            return False
        return True

    async def _remove_not_ready_taint(self) -> None:
        """Remove the not-ready taint, once, after the node has reported that it is ready."""
        while not self._is_schedulable:
            node = await self.cluster.get(NODES, "", self.host.name)
            taints = without_not_ready(node)
            change: Object = {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                "spec": {"taints": taints or None},
            }
            try:
                if taints is not None:
                    await self.cluster.patch(NODES, ("", self.host.name), change)
            except Conflict:
                # Another client changed the Node: read it again.
                continue
            self._is_schedulable = True

    async def _report(self) -> None:
        now, has_sandbox = self.clock.now(), self.find_sandbox() is not None
        status = node_status(self.host, self._status, has_sandbox=has_sandbox, now=now, network=self.network)
        if any(self._status.get(name) != value for name, value in status.items()):
            change = {"status": _removing_absent(status, self._status)}
            written = await self.cluster.patch(NODES, ("", self.host.name), change, subresource="status")
            self._status = written.get("status") or status

    async def _renew(self) -> None:
        now = to_wire_micro(self.clock.now())
        key = (LEASE_NAMESPACE, self.host.name)
        try:
            await self.cluster.patch(LEASES, key, {"spec": {"renewTime": now}})
        except NotFound:
            await self._make_lease(now)

    async def _make_lease(self, now: str) -> None:
        namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LEASE_NAMESPACE}}
        lease: Object = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.host.name, "namespace": LEASE_NAMESPACE},
            "spec": {"holderIdentity": self.host.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
        }
        for resource, obj in ((NAMESPACES, namespace), (LEASES, lease)):
            with contextlib.suppress(AlreadyExists):
                await self.cluster.create(resource, obj)
