"""The network of a machine's pods: each with its own on a bridge, or all on the machine's; and their resolv.conf."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, Protocol

from paceline.apimachinery.meta import Object
from paceline.node.host_info import ADDRESS

# Loopback addresses, of which every pod gets one where pods share the machine's network.
LOOPBACK = IPv4Network("127.128.0.0/9")
# The names of the API server in every cluster, which its certificate covers.
API_NAMES = (
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "kubernetes.default",
    "kubernetes",
)
SHARED = "pods share the machine's network, each with a loopback address of its own"


class Networks(Protocol):
    """The networks of this machine's pods. They outlive the agent, and a new agent finds them again."""

    async def make(self, uid: str, address: str) -> str:
        """Return the file of a pod's network, created if missing; CannotStart if another pod still has the address."""
        ...

    async def remove(self, uid: str) -> None:
        """Remove a pod's network, if it has one, after its containers have ended."""
        ...

    def pod_uids(self) -> frozenset[str]:
        """Return the uids of the pods that have a network."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNetwork:
    # The addresses of pods.
    subnet: IPv4Network = LOOPBACK
    # The explanation in the node's status.
    message: str = SHARED
    # The resolv.conf of pods with their own networks.
    resolver: str = "/etc/resolv.conf"
    # The API server's port at the host's address; 0: pods get no variables for it.
    api_port: int = 0

    @property
    def is_own(self) -> bool:
        return not self.subnet.is_loopback

    @property
    def gateway(self) -> str:
        """Return the machine's address in the pods' subnet."""
        return str(self.subnet.network_address + 1)

    @property
    def host_address(self) -> str:
        """Return the address at which pods reach the machine."""
        return self.gateway if self.is_own else ADDRESS

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables by which in-cluster clients find the API server.

        The host is a name from the pod's hosts file, because the certificate is for that name.
        """
        if not self.api_port:
            return {}
        port, url = str(self.api_port), f"tcp://{self.host_address}:{self.api_port}"
        return {
            "KUBERNETES_SERVICE_HOST": API_NAMES[0],
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            "KUBERNETES_PORT": url,
            "KUBERNETES_PORT_443_TCP": url,
            "KUBERNETES_PORT_443_TCP_ADDR": self.host_address,
            "KUBERNETES_PORT_443_TCP_PORT": port,
            "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
        }


SHARED_NETWORK = PodNetwork()


def uses_host_network(pod: Object) -> bool:
    return bool((pod.get("spec") or {}).get("hostNetwork"))


def has_dns_config(pod: Object) -> bool:
    spec = pod.get("spec") or {}
    return spec.get("dnsPolicy") == "None" or bool(spec.get("dnsConfig"))


def resolv_conf_text(pod: Object, machine: str) -> str:
    """Return a pod's resolv.conf: its dnsConfig, added to the machine's resolv.conf unless the dnsPolicy is None."""
    spec = pod.get("spec") or {}
    config = spec.get("dnsConfig") or {}
    lines = [] if spec.get("dnsPolicy") == "None" else [line.split() for line in machine.splitlines()]
    servers = _merged("nameserver", lines, config.get("nameservers") or ())
    searches = _merged("search", lines, config.get("searches") or ())
    options = {option.partition(":")[0]: option for option in _merged("options", lines, ())}
    options |= {str(option["name"]): _option(option) for option in config.get("options") or ()}
    text = f"search {' '.join(searches)}\n" if searches else ""
    text += "".join(f"nameserver {server}\n" for server in servers)
    return text + (f"options {' '.join(options.values())}\n" if options else "")


def _merged(keyword: str, lines: Iterable[list[str]], added: Iterable[Any]) -> tuple[str, ...]:
    values = [value for line in lines if line[:1] == [keyword] for value in line[1:]]
    return tuple(dict.fromkeys((*values, *map(str, added))))


def _option(wire: dict[str, Any]) -> str:
    return f"{wire['name']}:{wire['value']}" if wire.get("value") is not None else str(wire["name"])
