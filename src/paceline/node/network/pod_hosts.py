"""Every stable name has an address of its own, and every pod a hosts file that knows its peers.

An address is computed from the name, so that nothing has to be kept: on the machine's own network one of 127.128.0.0/9,
where pods have networks of their own one of the bridge's.
Only where two names fall on one address is the second moved on, and that is written down first.
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
# The kernel takes no longer one.
MAX_MACHINE_NAME = 64
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
    """What a pod is called by its peers, over all its tries."""

    namespace: str
    subdomain: str
    hostname: str
    # Without a subdomain two pods may have one hostname; they are no peers, and each has an address.
    pod: str = ""

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.subdomain}/{self.hostname}"
        return f"{name}/{self.pod}" if self.pod else name

    @property
    def group(self) -> str:
        """Say with whom the hosts file is shared: the subdomain, or nobody."""
        return f"{self.namespace}/{self.subdomain}" if self.subdomain else str(self)

    def spellings(self) -> tuple[str, ...]:
        """Give every form of the name, the longest first, as resolvers take the first for the canonical one."""
        if not self.subdomain:
            return (self.hostname,)
        near = f"{self.hostname}.{self.subdomain}"
        full = f"{near}.{self.namespace}"
        return (f"{full}.{DOMAIN}", f"{full}.svc", full, near, self.hostname)


def stable_name(pod: Object) -> StableName:
    """Read a pod's stable name."""
    spec = pod.get("spec") or {}
    subdomain, hostname = str(spec.get("subdomain") or ""), hostname_of(pod)
    own = "" if subdomain or hostname == name_of(pod) else name_of(pod)
    return StableName(namespace_of(pod), subdomain, hostname, own)


def sandbox_failed(why: str) -> CannotStart:
    """Say that a pod as a whole cannot be what it wants to be, as a kubelet does."""
    said = f"Failed to create pod sandbox: {why}"
    return CannotStart("FailedCreatePodSandBox", said, messages=(said,))


def hostname_of(pod: Object) -> str:
    """Give what the machine is called inside a pod."""
    return str((pod.get("spec") or {}).get("hostname") or name_of(pod))[:63].rstrip("-.")


def machine_name(pod: Object) -> str:
    """Return the hostname of a pod, the full name if it asks for it; CannotStart when that is too long."""
    spec, name = pod.get("spec") or {}, hostname_of(pod)
    if not spec.get("setHostnameAsFQDN") or not spec.get("subdomain"):
        return name
    full = stable_name(pod).spellings()[0]
    if len(full) > MAX_MACHINE_NAME:
        said = f"failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long"
        why = f"{MAX_MACHINE_NAME} characters is the max, {len(full)} characters requested"
        raise sandbox_failed(f"{said} ({why})")
    return full


def aliases_text(pod: Object) -> str:
    """Write the names that a pod wants to know others by."""
    lines = [
        "\t".join((str(each["ip"]), *(each.get("hostnames") or ())))
        for each in (pod.get("spec") or {}).get("hostAliases") or ()
    ]
    return "\n".join(("\n# Entries added by HostAliases.", *lines, "")) if lines else ""


def hosts_text(members: dict[StableName, IPv4Address], api: str = "") -> str:
    """Write the hosts file of a group; `api` is where the API server is found."""
    server = f"{api}\t{' '.join(API_NAMES)}\n" if api else ""
    peers = "".join(f"{address}\t{' '.join(name.spellings())}\n" for name, address in sorted(members.items()))
    return HEAD + server + peers


def natural_number(name: StableName, count: int) -> int:
    """Compute which of so many addresses a name has unless another has it already."""
    digest = hashlib.sha256(str(name).encode()).digest()
    return int.from_bytes(digest[:8], "big") % count


@dataclass(slots=True, kw_only=True)
class Hosts:
    """The names of all pods that there are, bound or not, so that peers are known before the first one starts."""

    files: Files
    folders: Folders
    network: PodNetwork = SHARED_NETWORK
    _addresses: dict[StableName, int] = field(default_factory=dict)
    _owners: dict[int, StableName] = field(default_factory=dict)
    _pods: dict[StableName, set[str]] = field(default_factory=dict)
    _groups: dict[str, set[StableName]] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _moved: dict[str, int] = field(default_factory=dict)
    # What pods want in their own hosts file beside what their group has, by uid.
    _aliases: dict[str, tuple[str, str]] = field(default_factory=dict)
    # The names of pods that are on the machine's own network.
    _on_host: set[StableName] = field(default_factory=set)

    def load(self) -> None:
        """Read which names were moved; a damaged file costs no more than an address."""
        self.files.make_folder(self.folders.hosts)
        try:
            moved = {str(name): int(at) for name, at in json.loads(self.files.read(self._journal)).items()}
        except (FileNotFoundError, ValueError, AttributeError):
            moved = {}
        # Not those of another network, on which pods were before.
        self._moved = {name: at for name, at in moved.items() if self._first <= at < self._first + self._count}

    def add(self, pod: Object) -> None:
        """Learn of a pod."""
        name = stable_name(pod)
        self._pods.setdefault(name, set()).add(uid_of(pod))
        if uses_host_network(pod):
            self._on_host.add(name)
        if text := aliases_text(pod):
            self._aliases[uid_of(pod)] = (name.group, text)
            self._changed.add(name.group)
        if name not in self._addresses:
            self._place(name)
            self._groups.setdefault(name.group, set()).add(name)
            self._changed.add(name.group)

    def remove(self, pod: Object) -> None:
        """Forget a pod; its name goes with the last pod that has it."""
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
        mates = self._groups[name.group]
        mates.remove(name)
        self._changed.add(name.group)
        if not mates:
            del self._groups[name.group]

    def address(self, pod: Object) -> str:
        """Give the address of a pod that was added; Conflict when it has gone since."""
        if self.network.is_own and uses_host_network(pod):
            return self.network.gateway
        name = stable_name(pod)
        if name not in self._addresses:
            raise Conflict(f"pod {name} went while it was looked at")
        return str(IPv4Address(self._addresses[name]))

    def is_apart(self, pod: Object) -> bool:
        """Tell whether a pod has a network of its own."""
        return self.network.is_own and not uses_host_network(pod)

    def path(self, pod: Object) -> Path:
        """Say where the hosts file of a pod lies."""
        return self._file(uid_of(pod) if uid_of(pod) in self._aliases else stable_name(pod).group)

    def flush(self) -> None:
        """Bring the hosts files up to date, in place: running pods have them mounted."""
        for group in tuple(self._changed):
            if names := self._groups.get(group):
                members = {name: self._shown(name) for name in names}
                api = self.network.host_address if self.network.api_port else ""
                text = hosts_text(members, api)
                self.files.overwrite(self._file(group), text.encode())
                for uid, more in [(uid, more) for uid, (whose, more) in self._aliases.items() if whose == group]:
                    self.files.overwrite(self._file(uid), (text + more).encode())
            else:
                self.files.remove(self._file(group))
            # Only now: what a full disk refused is tried again.
            self._changed.discard(group)

    def try_flush(self) -> None:
        """Bring them up to date if the disk lets us; else it is tried again with the next change, or the next start."""
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
        """The first address for pods: after the network's own name and, on a bridge, the machine's end of it."""
        return int(self.network.subnet.network_address) + (2 if self.network.is_own else 1)

    @property
    def _count(self) -> int:
        return self.network.subnet.num_addresses - (3 if self.network.is_own else 2)

    def _shown(self, name: StableName) -> IPv4Address:
        on_host = self.network.is_own and name in self._on_host
        return IPv4Address(self.network.gateway) if on_host else IPv4Address(self._addresses[name])

    def _place(self, name: StableName) -> None:
        first, count = self._first, self._count
        wanted = self._moved.get(str(name), first + natural_number(name, count))
        # An address that is written down for a name belongs to it also before its pod is seen again.
        reserved = {at for other, at in self._moved.items() if other != str(name)}
        address = wanted
        if len(self._owners) + len(reserved) >= count and len(self._owners.keys() | reserved) >= count:
            # More names than addresses: two may have one, and then the second pod waits until the first has ended.
            self._addresses[name] = wanted
            return
        while address in self._owners or address in reserved:
            address = first + (address - first + 1) % count
        if address != wanted:
            self._moved[str(name)] = address
            self.files.write(self._journal, json.dumps(self._moved).encode())
        self._addresses[name] = address
        self._owners[address] = name
