"""Assign an address to every stable name, and write a hosts file with its peers for every pod.

An address is computed from the name, so that it need not be stored: one of 127.128.0.0/9 on the machine's network, one
of the bridge's subnet where pods have their own networks. Only if two names collide is the second moved to the next
free address, which is stored first.
"""

import hashlib
import json
import logging
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.effects import Files
from paceline.errors import Conflict
from paceline.node.host_info import CannotStart, Folders
from paceline.node.network.network import API_NAMES, SHARED_NETWORK, PodNetwork, uses_host_network

log = logging.getLogger(__name__)

DOMAIN = "svc.cluster.local"
MOVED = "moved.json"
# The kernel's limit.
MAX_HOSTNAME = 64
HEAD = """\
# Written by the Paceline node agent; the same for every pod of this subdomain.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


@dataclass(frozen=True, slots=True, order=True)
class StableName:
    """The name by which peers reach a pod, the same for all attempts."""

    namespace: str
    subdomain: str
    hostname: str
    # Without a subdomain two pods may have the same hostname; they are not peers, and each has its own address.
    pod: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.subdomain}/{self.hostname}"
        return f"{name}/{self.pod}" if self.pod else name

    @property
    def group(self) -> str:
        """Return the key of the hosts file: pods of a subdomain share one."""
        return f"{self.namespace}/{self.subdomain}" if self.subdomain else str(self)

    def spellings(self) -> tuple[str, ...]:
        """Return every form of the name, the longest first: resolvers take the first as the canonical one."""
        if not self.subdomain:
            return (self.hostname,)
        near = f"{self.hostname}.{self.subdomain}"
        full = f"{near}.{self.namespace}"
        return (f"{full}.{DOMAIN}", f"{full}.svc", full, near, self.hostname)


def stable_name(pod: Object) -> StableName:
    spec = pod.get("spec") or {}
    subdomain, hostname = str(spec.get("subdomain") or ""), hostname_of(pod)
    pod_name = "" if subdomain or hostname == name_of(pod) else name_of(pod)
    return StableName(namespace_of(pod), subdomain, hostname, pod_name)


def sandbox_failed(cause: str) -> CannotStart:
    """Return the error for a pod whose sandbox cannot be created, in a kubelet's words."""
    message = f"Failed to create pod sandbox: {cause}"
    return CannotStart("FailedCreatePodSandBox", message, messages=(message,))


def hostname_of(pod: Object) -> str:
    """Return the hostname inside a pod, without a domain."""
    return str((pod.get("spec") or {}).get("hostname") or name_of(pod))[:63].rstrip("-.")


def uts_hostname(pod: Object) -> str:
    """Return the hostname of a pod's sandbox, fully qualified if the pod asks for it; CannotStart if it is too long."""
    spec, name = pod.get("spec") or {}, hostname_of(pod)
    if not spec.get("setHostnameAsFQDN") or not spec.get("subdomain"):
        return name
    full = stable_name(pod).spellings()[0]
    if len(full) > MAX_HOSTNAME:
        message = f"failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long"
        limit = f"{MAX_HOSTNAME} characters is the max, {len(full)} characters requested"
        raise sandbox_failed(f"{message} ({limit})")
    return full


def aliases_text(pod: Object) -> str:
    lines = [
        "\t".join((str(alias["ip"]), *(alias.get("hostnames") or ())))
        for alias in (pod.get("spec") or {}).get("hostAliases") or ()
    ]
    return "\n".join(("\n# Entries added by HostAliases.", *lines, "")) if lines else ""


def hosts_text(members: dict[StableName, IPv4Address], api: str = "") -> str:
    """Return the hosts file of a group; `api` is the API server's address."""
    server = f"{api}\t{' '.join(API_NAMES)}\n" if api else ""
    peers = "".join(f"{address}\t{' '.join(name.spellings())}\n" for name, address in sorted(members.items()))
    return HEAD + server + peers


def preferred_index(name: StableName, count: int) -> int:
    """Return which of `count` addresses a name has unless another name has it."""
    digest = hashlib.sha256(str(name).encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


@dataclass(slots=True, kw_only=True)
class Hosts:
    """The names of all pods of the cluster, bound or not, so that the first pod to start can resolve its peers."""

    files: Files
    folders: Folders
    network: PodNetwork = SHARED_NETWORK
    _addresses: dict[StableName, int] = field(default_factory=dict)
    _owners: dict[int, StableName] = field(default_factory=dict)
    _pods: dict[StableName, set[str]] = field(default_factory=dict)
    _groups: dict[str, set[StableName]] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _moved: dict[str, int] = field(default_factory=dict)
    # Group and text of hostAliases, by uid: such a pod has its own hosts file.
    _aliases: dict[str, tuple[str, str]] = field(default_factory=dict)
    # The names of pods on the host network.
    _on_host: set[StableName] = field(default_factory=set)

    def load(self) -> None:
        """Read which names were moved; a damaged file only means that a name may get another address."""
        self.files.make_folder(self.folders.hosts)
        try:
            moved = {str(name): int(at) for name, at in json.loads(self.files.read(self._journal)).items()}
        except (FileNotFoundError, ValueError, AttributeError):
            moved = {}
        # Without addresses of another network that the cluster had before.
        self._moved = {name: at for name, at in moved.items() if self._first <= at < self._first + self._count}

    def add(self, pod: Object) -> None:
        name = stable_name(pod)
        self._pods.setdefault(name, set()).add(uid_of(pod))
        if uses_host_network(pod):
            self._on_host.add(name)
        if text := aliases_text(pod):
            self._aliases[uid_of(pod)] = (name.group, text)
            self._changed.add(name.group)
        if name not in self._addresses:
            self._assign(name)
            self._groups.setdefault(name.group, set()).add(name)
            self._changed.add(name.group)

    def remove(self, pod: Object) -> None:
        """Remove a pod; its name is removed with the last pod that has it."""
        name = stable_name(pod)
        uids = self._pods.get(name, set())
        uids.discard(uid_of(pod))
        if self._aliases.pop(uid_of(pod), None):
            self.files.remove(self._file(uid_of(pod)))
        if uids or name not in self._addresses:
            return
        del self._pods[name]
        self._moved.pop(str(name), None)
        self._on_host.discard(name)
        address = self._addresses.pop(name)
        if self._owners.get(address) == name:
            del self._owners[address]
        members = self._groups[name.group]
        members.remove(name)
        self._changed.add(name.group)
        if not members:
            del self._groups[name.group]

    def address(self, pod: Object) -> str:
        """Return the address of a pod; Conflict if it was removed meanwhile."""
        if self.network.is_own and uses_host_network(pod):
            return self.network.gateway
        name = stable_name(pod)
        if name not in self._addresses:
            raise Conflict(f"pod {name} was deleted meanwhile")
        return str(IPv4Address(self._addresses[name]))

    def has_network(self, pod: Object) -> bool:
        return self.network.is_own and not uses_host_network(pod)

    def path(self, pod: Object) -> Path:
        return self._file(uid_of(pod) if uid_of(pod) in self._aliases else stable_name(pod).group)

    def flush(self) -> None:
        """Write changed hosts files in place: running pods have them mounted."""
        for group in tuple(self._changed):
            if names := self._groups.get(group):
                members = {name: self._shown(name) for name in names}
                api = self.network.host_address if self.network.api_port else ""
                text = hosts_text(members, api)
                self.files.overwrite(self._file(group), text.encode())
                for uid, (alias_group, aliases) in self._aliases.items():
                    if alias_group == group:
                        self.files.overwrite(self._file(uid), (text + aliases).encode())
            else:
                self.files.remove(self._file(group))
            # Only after the write: what a full disk refused is tried again.
            self._changed.discard(group)

    def try_flush(self) -> None:
        """Write changed hosts files; after a disk error the next change or start tries again."""
        try:
            self.flush()
        except OSError as error:
            log.warning("hosts files not written", extra={"error": str(error)})

    @property
    def _journal(self) -> Path:
        return self.folders.hosts / MOVED

    def _file(self, group: str) -> Path:
        return self.folders.hosts / hashlib.sha256(group.encode()).hexdigest()[:20]

    @property
    def _first(self) -> int:
        """The first address for pods: after the network address and, on a bridge, the gateway."""
        return int(self.network.subnet.network_address) + (2 if self.network.is_own else 1)

    @property
    def _count(self) -> int:
        return self.network.subnet.num_addresses - (3 if self.network.is_own else 2)

    def _shown(self, name: StableName) -> IPv4Address:
        on_host = self.network.is_own and name in self._on_host
        return IPv4Address(self.network.gateway) if on_host else IPv4Address(self._addresses[name])

    def _assign(self, name: StableName) -> None:
        first, count = self._first, self._count
        preferred = self._moved.get(str(name), first + preferred_index(name, count))
        # A stored address stays reserved for its name even before the informer has seen its pod.
        reserved = {at for other, at in self._moved.items() if other != str(name)}
        address = preferred
        if len(self._owners) + len(reserved) >= count and len(self._owners.keys() | reserved) >= count:
            # More names than addresses: two share one, and the second pod waits until the first has ended.
            self._addresses[name] = preferred
            return
        while address in self._owners or address in reserved:
            address = first + (address - first + 1) % count
        if address != preferred:
            self._moved[str(name)] = address
            self.files.write(self._journal, json.dumps(self._moved).encode())
        self._addresses[name] = address
        self._owners[address] = name
