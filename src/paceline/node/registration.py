"""This machine as a Node object, and the lease that says it is alive."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paceline.apimachinery.builtin.taints import without_not_ready
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
# As often a kubelet reports when nothing has changed.
HEARTBEAT = timedelta(minutes=5)
MAX_PODS = 1000
RUNTIME = "paceline://0.1.0"
UNBOXED = (
    "containers run without a sandbox, as `paceline up --no-sandbox` chose: they see the machine as it is, with all "
    "that the agent's user may do; volumes cannot be mounted, and members of a job are not known by name"
)
# Conditions that are not measured yet are not claimed to be bad.
QUIET = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "node agent has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "node agent has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "node agent has sufficient PID available"),
)


def node_object(host: Host) -> Object:
    """Write the part of the node that does not change."""
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
    """Write the node's status; a condition's moment changes only with the condition."""
    plain = {"cpu": str(host.cpus), "memory": f"{host.memory_bytes // 1024}Ki", "pods": str(MAX_PODS)}
    plain |= {"ephemeral-storage": f"{host.disk_bytes // 1024}Ki"} if host.disk_bytes else {}
    plain |= {supply.resource: str(len(supply.devices)) for supply in host.supplies}
    # As the server writes them, so that what was reported is known again.
    amounts = {name: canonical(amount) for name, amount in plain.items()}
    info = {
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
        "kernelVersion": "",
        "osImage": "",
        "operatingSystem": "linux",
        "architecture": "",
        "containerRuntimeVersion": RUNTIME,
        "kubeletVersion": RUNTIME.rpartition("/")[2],
        "kubeProxyVersion": "",
    }
    before = {each["type"]: each for each in old.get("conditions") or ()}
    conditions = [_since(each, before, now) for each in _conditions(host, network, has_sandbox=has_sandbox)]
    return {
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [
            {"type": "InternalIP", "address": network.host_address},
            {"type": "Hostname", "address": host.name},
        ],
        "nodeInfo": info | dict(host.facts),
        "conditions": conditions,
    }


def _conditions(host: Host, network: PodNetwork, *, has_sandbox: bool) -> list[Object]:
    missing = f"bubblewrap is not installed; install it with: {host.install_sandbox}"
    sandbox = (
        ("SandboxReady", "Found", "bubblewrap is installed") if has_sandbox else ("SandboxReady", "Missing", missing)
    )
    if not host.has_sandbox:
        sandbox = ("SandboxReady", "NotWanted", UNBOXED)
    own = ("True", "OwnNetwork") if network.is_own else ("False", "HostNetwork")
    return [
        *(_condition(kind, "False", reason, message) for kind, reason, message in QUIET),
        _condition(sandbox[0], "True" if has_sandbox and host.has_sandbox else "False", *sandbox[1:]),
        _limits_condition(host),
        _condition("PodNetwork", *own, network.message),
        _condition("Ready", "True", "KubeletReady", "node agent is posting ready status"),
    ]


def _limits_condition(host: Host) -> Object:
    which = "cpu, memory and process limits of containers are"
    if host.cgroups is not None:
        return _condition("LimitsEnforced", "True", "ControlGroups", f"{which} enforced")
    said = f"{which} not enforced: this user may not make control groups; root may"
    return _condition("LimitsEnforced", "False", "NotPermitted", said)


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _since(condition: Object, before: dict[str, Object], now: datetime) -> Object:
    old = before.get(condition["type"], {})
    is_same = old.get("status") == condition["status"] and "lastTransitionTime" in old
    beat = old.get("lastHeartbeatTime")
    is_fresh = is_same and beat and now - from_wire(beat) < HEARTBEAT
    return condition | {
        "lastHeartbeatTime": beat if is_fresh else to_wire(now),
        "lastTransitionTime": old["lastTransitionTime"] if is_same else to_wire(now),
    }


def _without_gone(status: Object, old: Object) -> Object:
    """Say also what the node no longer has: what a patch does not name stays."""
    amounts = ("capacity", "allocatable")
    return status | {name: dict.fromkeys(old.get(name) or {}) | status[name] for name in amounts}


@dataclass(slots=True, kw_only=True)
class Registration:
    """Keeps the node and its lease up to date."""

    cluster: Cluster
    clock: Clock
    host: Host
    find_sandbox: Callable[[], str | None]
    network: PodNetwork = SHARED_NETWORK
    _status: Object = field(default_factory=dict)
    _is_open: bool = False

    async def register(self) -> None:
        """Make the node if it is not there, and say what it has; what people wrote on it stays."""
        try:
            node = await self.cluster.create(NODES, node_object(self.host))
        except AlreadyExists:
            node = await self.cluster.get(NODES, "", self.host.name)
        self._status, self._is_open = node.get("status") or {}, False
        try:
            await self._report()
            await self._welcome_pods()
        except ServiceUnavailable as error:
            if not self._status:
                raise
            # It is known from before, so its pods can be looked after while the store takes no writes.
            log.warning("node not reported", extra={"error": str(error)})

    async def keep(self) -> None:
        """Renew until cancelled; trouble with the server is waited out."""
        while True:
            try:
                await self._renew()
                await self._report()
                await self._welcome_pods()
            except NotFound:
                # Somebody deleted the node.
                await self._try_register()
            except PacelineError as error:
                log.warning("node not renewed", extra={"reason": error.reason, "error": str(error)})
            await asyncio.sleep(RENEW_SECONDS)

    async def arrive(self) -> None:
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

    async def _welcome_pods(self) -> None:
        """Take off, once, what keeps pods away from a node that is not ready, now that it has said that it is."""
        while not self._is_open:
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
                # Somebody else wrote on it, and that stays.
                continue
            self._is_open = True

    async def _report(self) -> None:
        now, has_sandbox = self.clock.now(), self.find_sandbox() is not None
        status = node_status(self.host, self._status, has_sandbox=has_sandbox, now=now, network=self.network)
        if any(self._status.get(name) != value for name, value in status.items()):
            change = {"status": _without_gone(status, self._status)}
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
        spec = {"holderIdentity": self.host.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
        lease: Object = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.host.name, "namespace": LEASE_NAMESPACE},
            "spec": spec,
        }
        for where, obj in ((NAMESPACES, namespace), (LEASES, lease)):
            try:
                await self.cluster.create(where, obj)
            except AlreadyExists:
                continue
