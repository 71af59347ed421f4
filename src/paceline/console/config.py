"""What a console needs from the program that runs it."""

import asyncio
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Protocol

from paceline.client.rest_config import Access
from paceline.effects import Clock, Ids, Random

# The host name of a local console. Browsers resolve it, and every name below it, to this machine without DNS.
LOCAL_DOMAIN = "paceline.localhost"
# Where the build of the page leaves its output.
BUNDLE = Path(__file__).parent / "static"
PAGE_FILE = "index.html"
DAY_SECONDS = 24 * 3600.0


class Seal(Protocol):
    """Encrypts and authenticates bytes with the console's key."""

    def seal(self, data: bytes, purpose: bytes) -> bytes:
        """Return data sealed for a purpose; it cannot be opened for another one."""
        ...

    def open(self, sealed: bytes, purpose: bytes) -> bytes | None:
        """Return the data, or None if it was not sealed with this key for this purpose."""
        ...

    def renew(self) -> None:
        """Replace the key: nothing that was sealed before can be opened any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleConfig:
    """One console: its cluster, its addresses, and the machine it runs on."""

    # The cluster, and the credential of the user who started the console, if it has one.
    access: Access
    clock: Clock
    ids: Ids
    chance: Random
    seal: Seal
    # The parent of all tasks that outlive a request.
    tasks: asyncio.TaskGroup
    # The folder of the built page.
    bundle: Path
    # The values of the Host header under which the console answers, such as "paceline.localhost:16080".
    hosts: frozenset[str]
    # TensorBoards and notebooks are served at LABEL.APPS_HOST; empty if there is no such name.
    apps_host: str = ""
    scheme: str = "http"
    is_embedded: bool = False
    # What people call the cluster: the kubeconfig's context.
    cluster_name: str = ""
    session_seconds: float = 30 * DAY_SECONDS
    # Proxies that have authenticated the person, and pass the person's token on in `Authorization`.
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    # The address of a Prometheus that has the metrics of the cluster's containers; empty if there is none.
    prometheus: str = ""

    @property
    def has_own_credential(self) -> bool:
        """Return whether the console can act as the person who started it."""
        return bool(self.access.token or self.access.client_certificate)
