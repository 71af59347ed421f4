"""How pods are connected: each with a network of its own on a bridge, or all on the machine's."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Protocol

from paceline.apimachinery.meta import Object
from paceline.node.host_info import ADDRESS

# Addresses of the machine itself, of which every pod gets one where they share its network.
LOOPBACK = IPv4Network("127.128.0.0/9")
# What the API server is called in every cluster; its certificate is for these names too.
API_NAMES = (
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "kubernetes.default",
    "kubernetes",
)
SHARED = "pods share the machine's network, each with a loopback address of its own"


class Networks(Protocol):
    """The networks of this machine's pods. They outlive the agent, and are found again by it."""

    async def make(self, uid: str, address: str) -> str:
        """Give the file of a pod's network, made if need be; Blocked when another pod still has the address."""
        ...

    async def remove(self, uid: str) -> None:
        """Take a pod's network away, now that nothing runs in it; none is fine."""
        ...

    def pod_uids(self) -> frozenset[str]:
        """Name the pods that have one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNetwork:
    """Which of the two it is on this machine, and why."""

    # Where pods' addresses come from.
    subnet: IPv4Network = LOOPBACK
    # What the node says of it.
    why: str = SHARED
    # Whom pods with a network of their own ask for the addresses of names.
    resolver: str = "/etc/resolv.conf"
    # Where the API server listens at the host's address; none: pods are not told.
    api_port: int = 0

    @property
    def is_own(self) -> bool:
        """Tell whether every pod has a network of its own."""
        return not self.subnet.is_loopback

    @property
    def gateway(self) -> str:
        """Give the machine's own address among the pods'."""
        return str(self.subnet.network_address + 1)

    @property
    def host_address(self) -> str:
        """Give the address at which pods reach the machine."""
        return self.gateway if self.is_own else ADDRESS

    @property
    def variables(self) -> dict[str, str]:
        """Tell where the API server is, in the variables that clients look for.

        It goes by a name, which the hosts file of every pod has: that is what its certificate is for.
        """
        if not self.api_port:
            return {}
        port, place = str(self.api_port), f"tcp://{self.host_address}:{self.api_port}"
        return {
            "KUBERNETES_SERVICE_HOST": API_NAMES[0],
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            "KUBERNETES_PORT": place,
            "KUBERNETES_PORT_443_TCP": place,
            "KUBERNETES_PORT_443_TCP_ADDR": self.host_address,
            "KUBERNETES_PORT_443_TCP_PORT": port,
            "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
        }


SHARED_NETWORK = PodNetwork()


def uses_host_network(pod: Object) -> bool:
    """Tell whether a pod asks for the machine's own network."""
    return bool((pod.get("spec") or {}).get("hostNetwork"))


def has_dns_config(pod: Object) -> bool:
    """Tell whether a pod says something about its name servers."""
    spec = pod.get("spec") or {}
    return spec.get("dnsPolicy") == "None" or bool(spec.get("dnsConfig"))


def resolv_conf_text(pod: Object, machine: str) -> str:
    """Write a pod's list: only its own words when it wants none else, or the machine's with its own added."""
    spec = pod.get("spec") or {}
    own = spec.get("dnsConfig") or {}
    lines = [] if spec.get("dnsPolicy") == "None" else [line.split() for line in machine.splitlines()]
    servers = _all("nameserver", lines, own.get("nameservers") or ())
    searches = _all("search", lines, own.get("searches") or ())
    options = {word.partition(":")[0]: word for word in _all("options", lines, ())}
    options |= {str(each["name"]): _option(each) for each in own.get("options") or ()}
    text = f"search {' '.join(searches)}\n" if searches else ""
    text += "".join(f"nameserver {each}\n" for each in servers)
    return text + (f"options {' '.join(options.values())}\n" if options else "")


def _all(word: str, lines: Iterable[list[str]], more: Iterable[Any]) -> tuple[str, ...]:
    found = [each for line in lines if line[:1] == [word] for each in line[1:]]
    return tuple(dict.fromkeys((*found, *map(str, more))))


def _option(wire: dict[str, Any]) -> str:
    return f"{wire['name']}:{wire['value']}" if wire.get("value") is not None else str(wire["name"])
