"""Where everything lies, and what a person may choose."""

from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
NAMESPACE = "default"
# How pods are connected: all on the machine's network, or each on one of its own.
HOST_NETWORK, OWN_NETWORK = "host", "own"
# A declared device: the resource, and how many of it or which device nodes (several nodes of one device with a plus).
Row = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One embedded cluster: all its state is under `home`."""

    home: Path
    # Rows of the image table, the user's before the shipped ones: (pattern, environment).
    images: tuple[tuple[str, str], ...] = ()
    # 0 takes the port of the last time, or any free one.
    port: int = 0
    has_sandbox: bool = True
    # One of the two above; empty: not asked for.
    network: str = ""
    # Where services of type NodePort and LoadBalancer are reached, by anybody who reaches the address.
    external_address: str = LOOPBACK
    # Declared devices: (resource, how many or which device nodes).
    devices: tuple[tuple[str, str], ...] = ()

    @property
    def kubeconfig(self) -> Path:
        """Where clients find the address, the certificate authority and a token."""
        return self.home / "kubeconfig"

    @property
    def store(self) -> Path:
        """Where the objects lie."""
        return self.home / "store" / "objects.db"

    @property
    def mark(self) -> Path:
        """How far the store had come; apart from it, because it is there to notice that the store is gone."""
        return self.home / "revision"

    @property
    def keys(self) -> Path:
        """Where certificates and hashed tokens lie."""
        return self.home / "keys"

    @property
    def volumes(self) -> Path:
        """Where the folders of claims lie."""
        return self.home / "volumes"

    @property
    def agent(self) -> Path:
        """Where the node agent keeps its pods."""
        return self.home / "agent"

    @property
    def agent_lock(self) -> Path:
        """Held by the node agent while it runs."""
        return self.agent / "lock"

    @property
    def agent_socket(self) -> Path:
        """Where the node agent answers."""
        return self.home / "agent.sock"

    @property
    def agent_lane(self) -> Path:
        """Where the API server answers the node agent alone, however many others there are."""
        return self.home / "api.sock"

    @property
    def agent_access(self) -> Path:
        """Where the node agent finds the address and its own token."""
        return self.keys / "agent.kubeconfig"

    @property
    def pod_network(self) -> Path:
        """What was decided about the network of pods."""
        return self.home / "network.json"

    @property
    def clock(self) -> Path:
        """Where the cluster's time is continued from."""
        return self.home / "clock.json"

    @property
    def lock(self) -> Path:
        """Held, and filled with its pid, by the control process while it runs."""
        return self.home / "lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held, and filled with its pid, by the supervisor of the control process while it runs."""
        return self.home / "supervisor.lock"

    @property
    def log(self) -> Path:
        """What our processes say, when they run in the background; rotated by journal.py."""
        return self.home / "paceline.log"

    @property
    def started_with(self) -> Path:
        """The choices of the last start, so that a start by itself makes the same ones."""
        return self.home / "settings.json"
