"""Where everything lies, and what a person may choose."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
NAMESPACE = "default"
# How pods are connected: all on the machine's network, or each on one of its own.
HOST_NETWORK, OWN_NETWORK = "host", "own"
# How log lines of our own processes are written.
TEXT, JSON = "text", "json"
# A declared device: the resource, and how many of it or which device nodes (several nodes of one device with a plus).
Row = tuple[str, str]

# Every variable that our programs read, or set in pods; a test compares it with the code.
VARIABLES: Mapping[str, str] = {
    "PACELINE_HOME": "Folder of the embedded cluster's state. Default: `paceline` in the user's data folder, "
    "`~/.local/share/paceline`.",
    "PACELINE_CACHE": "Folder of downloads and environments. Default: `~/.cache/paceline`.",
    "PACELINE_UV": "The uv program that builds environments. Default: the one that is installed with Paceline.",
    "PACELINE_KUBECONFIG": "Kubeconfig file of the cluster to use instead of the embedded one, as `--kubeconfig`.",
    "PACELINE_CONTEXT": "Kubeconfig context to use, as `--context`.",
    "PACELINE_GIT_PASSWORD": "Password of a private repository, for `paceline train --git-user`.",
    "PACELINE_ACCESS_KEY_ID": "Access key ID of a bucket, for `paceline volume create --bucket`.",
    "PACELINE_ACCESS_KEY_SECRET": "Access key secret of a bucket, for `paceline volume create --bucket`.",
    "PACELINE_POD_PIDS_LIMIT": "Processes and threads that a pod may have, for `paceline up`. Default: 1,024, or 256 "
    "for each CPU if that is more.",
    "PACELINE_PODTOOLS_IMAGE": "Image of Paceline's containers in the pods of jobs, as `--podtools-image` of "
    "`paceline kube controller`.",
    "PACELINE_DEBUG": "Any value: show the traceback of a bug instead of a message.",
    "PACELINE_DEVICES_RESOURCE": "Set in containers: the devices that the container has, by uuid or number, for each "
    "resource, such as `PACELINE_DEVICES_EXAMPLE_COM_FPGA=0`.",
}


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
    log_format: str = TEXT

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
    def console(self) -> Path:
        """The port of the web console, which stays the same over restarts."""
        return self.home / "console.json"

    @property
    def console_key(self) -> Path:
        """The key of the console's sessions; removing it ends all sessions."""
        return self.keys / "console.key"

    @property
    def console_lock(self) -> Path:
        """Held by the console's process while it runs."""
        return self.home / "console.lock"

    @property
    def log(self) -> Path:
        """What our processes say, when they run in the background; rotated."""
        return self.home / "paceline.log"

    @property
    def started_with(self) -> Path:
        """The choices of the last start, so that a start by itself makes the same ones."""
        return self.home / "settings.json"
