"""Every stable name has an address of its own, and every pod a hosts file that knows its peers.

On the machine's own network an address is one of 127.128.0.0/9, computed from the name, so that nothing has to be kept.
Only where two names fall on one address is the second moved on, and that is written down first.
"""

import hashlib
import json
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from paceline.node.host import Folders
from paceline.objects.meta import Object, name_of, namespace_of, uid_of
from paceline.world import Files

FIRST = int(IPv4Address("127.128.0.1"))
COUNT = 2**23 - 2
DOMAIN = "svc.cluster.local"
MOVED = "moved.json"
HEAD = """\
# Written by the Paceline node agent; the same for every pod of this subdomain.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
"""


@dataclass(frozen=True, slots=True, order=True)
class StableName:
    """What a pod is called by its peers, over all its tries."""

    namespace: str
    subdomain: str
    hostname: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.subdomain}/{self.hostname}"

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
    return StableName(namespace_of(pod), str(spec.get("subdomain") or ""), hostname_of(pod))


def hostname_of(pod: Object) -> str:
    """Give what the machine is called inside a pod."""
    return str((pod.get("spec") or {}).get("hostname") or name_of(pod))[:63].rstrip("-.")


def hosts_text(members: dict[StableName, IPv4Address]) -> str:
    """Write the hosts file of a group."""
    return HEAD + "".join(f"{address}\t{' '.join(name.spellings())}\n" for name, address in sorted(members.items()))


def natural_address(name: StableName) -> int:
    """Compute the address that a name has unless another has it already."""
    digest = hashlib.sha256(str(name).encode()).digest()
    return FIRST + int.from_bytes(digest[:8], "big") % COUNT


@dataclass(slots=True, kw_only=True)
class Hosts:
    """The names of all pods that there are, bound or not, so that peers are known before the first one starts."""

    files: Files
    folders: Folders
    _addresses: dict[StableName, int] = field(default_factory=dict)
    _owners: dict[int, StableName] = field(default_factory=dict)
    _pods: dict[StableName, set[str]] = field(default_factory=dict)
    _groups: dict[str, set[StableName]] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    _moved: dict[str, int] = field(default_factory=dict)

    def load(self) -> None:
        """Read which names were moved; a damaged file costs no more than an address."""
        self.files.make_folder(self.folders.hosts)
        try:
            self._moved = {str(name): int(at) for name, at in json.loads(self.files.read(self._journal)).items()}
        except (FileNotFoundError, ValueError, AttributeError):
            self._moved = {}

    def add(self, pod: Object) -> None:
        """Learn of a pod."""
        name = stable_name(pod)
        self._pods.setdefault(name, set()).add(uid_of(pod))
        if name not in self._addresses:
            self._place(name)
            self._groups.setdefault(name.group, set()).add(name)
            self._changed.add(name.group)

    def remove(self, pod: Object) -> None:
        """Forget a pod; its name goes with the last pod that has it."""
        name = stable_name(pod)
        uids = self._pods.get(name, set())
        uids.discard(uid_of(pod))
        if uids or name not in self._addresses:
            return
        del self._pods[name]
        self._moved.pop(str(name), None)
        del self._owners[self._addresses.pop(name)]
        mates = self._groups[name.group]
        mates.remove(name)
        self._changed.add(name.group)
        if not mates:
            del self._groups[name.group]

    def address(self, pod: Object) -> str:
        """Give the address of a pod that was added."""
        return str(IPv4Address(self._addresses[stable_name(pod)]))

    def path(self, pod: Object) -> Path:
        """Say where the hosts file of a pod lies."""
        return self._file(stable_name(pod).group)

    def flush(self) -> None:
        """Bring the hosts files up to date, in place: running pods have them mounted."""
        for group in tuple(self._changed):
            if names := self._groups.get(group):
                members = {name: IPv4Address(self._addresses[name]) for name in names}
                self.files.overwrite(self._file(group), hosts_text(members).encode())
            else:
                self.files.remove(self._file(group))
            # Only now: what a full disk refused is tried again.
            self._changed.discard(group)

    @property
    def _journal(self) -> Path:
        return self.folders.hosts / MOVED

    def _file(self, group: str) -> Path:
        return self.folders.hosts / hashlib.sha256(group.encode()).hexdigest()[:20]

    def _place(self, name: StableName) -> None:
        wanted = self._moved.get(str(name), natural_address(name))
        # An address that is written down for a name belongs to it also before its pod is seen again.
        reserved = {at for other, at in self._moved.items() if other != str(name)}
        address = wanted
        while address in self._owners or address in reserved:
            address = FIRST + (address - FIRST + 1) % COUNT
        if address != wanted:
            self._moved[str(name)] = address
            self.files.write(self._journal, json.dumps(self._moved).encode())
        self._addresses[name] = address
        self._owners[address] = name
