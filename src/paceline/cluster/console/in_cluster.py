"""The console as a Deployment: it has no rights in the cluster, and everybody logs in with a token of their own."""

import asyncio
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from paceline.client.kubeconfig import POD_CA, server_in_cluster
from paceline.client.rest_config import Access, Read, read_file
from paceline.cluster.console.seal import AesSeal
from paceline.cluster.logs import leaves
from paceline.cluster.signals import run_until_signalled
from paceline.console.app import PROBES, build_app
from paceline.console.config import BUNDLE, DAY_SECONDS, LOCAL_DOMAIN, ConsoleConfig, Seal
from paceline.effects import Effects
from paceline.errors import HostError, PacelineError
from paceline.host.asgi_server import serve, tcp_socket
from paceline.host.connection_limits import ConnectionLimiter
from paceline.host.effects import GC_THRESHOLD, real_world, trim_memory
from paceline.settings import LOOPBACK

MIN_KEY_BYTES = 16
HTTPS = "https"

Address = tuple[str, int]
Network = IPv4Network | IPv6Network
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConsole:
    """A console for many people: where it listens, and by which addresses browsers reach it."""

    # The API server, without any credential.
    access: Access
    listen: Address
    # Another address for probes; `/healthz` is answered at `listen` in any case.
    health: Address | None = None
    # What people type, such as https://console.example.com; if empty, the names of this machine (port forwarding).
    urls: tuple[str, ...] = ()
    # TensorBoards and notebooks are at LABEL.APPS_HOST; if empty, below paceline.localhost or nowhere.
    apps_host: str = ""
    trusted_proxies: tuple[Network, ...] = ()
    # The key of the cookies, the same in all replicas.
    key: bytes = field(default=b"", repr=False)
    tls: tuple[Path, Path] | None = None
    session_seconds: float = 30 * DAY_SECONDS
    name: str = ""


def parse_address(text: str) -> Address:
    """Return the host and port of an address to listen on, such as 0.0.0.0:8080 or [::]:8080."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise HostError(f"{text!r} is not an address to listen on; write for example 0.0.0.0:8080")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - a console in a cluster serves other machines


def parse_url(text: str) -> str:
    """Return the address that people type, as browsers write it in Origin."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", HTTPS) or not parts.hostname or parts.path.strip("/") or parts.query:
        raise HostError(f"{text!r} is not an address of a console; write for example https://console.example.com")
    default = ":443" if parts.scheme == HTTPS else ":80"
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default)}"


def parse_apps_host(text: str) -> str:
    """Return the domain of a name such as *.console.example.com."""
    star, _, domain = text.lower().partition(".")
    if star != "*" or not domain or "*" in domain or "/" in domain:
        raise HostError(f"{text!r} is not a wildcard name; write for example *.console.example.com")
    return domain


def parse_proxy(text: str) -> Network:
    """Return the addresses of a trusted proxy, such as 10.0.0.0/8."""
    try:
        return ip_network(text)
    except ValueError as error:
        raise HostError(f"{text!r} is not an address or a network of proxies: {error}") from error


def read_key(path: Path, read: Read) -> bytes:
    """Return the key of the cookies from a file."""
    key = read_file(path, read)
    if len(key) < MIN_KEY_BYTES:
        raise HostError(f"{path} has {len(key)} bytes; a key needs {MIN_KEY_BYTES} random ones")
    return key


def access_of(server: str, ca: Path | None, environ: Mapping[str, str]) -> Access:
    """Return the API server, of this pod's cluster if none is named, without a credential."""
    server = server or server_in_cluster(environ)
    if not server:
        raise HostError("no cluster is known: this is not a pod of a cluster; name its API server with --server")
    is_plain = server.startswith("http://")
    return Access(server=server, ca=b"" if is_plain and ca is None else read_file(ca or POD_CA, Path.read_bytes))


def run_in_cluster(choice: ClusterConsole, say: Say) -> None:
    """Serve the console until a signal; `say` gets its address."""
    gc.set_threshold(GC_THRESHOLD, 50, 50)
    failed: list[BaseException] = []
    try:
        uvloop.run(run_until_signalled(serve_in_cluster(choice, real_world(), say)))
    except* PacelineError as errors:
        failed = list(leaves(errors))
    if failed:
        raise failed[0]


async def serve_in_cluster(choice: ClusterConsole, world: Effects, say: Say) -> None:
    """Serve the console until cancelled."""
    sock, limiter = tcp_socket(*choice.listen), ConnectionLimiter(trim=trim_memory)
    async with asyncio.TaskGroup() as group:
        seal = AesSeal(choice.key or world.ids.secret().encode())
        config = config_of(choice, world, seal=seal, tasks=group)
        started = asyncio.Event()
        group.create_task(serve(build_app(config), sock, tls=choice.tls, started=started, limiter=limiter))
        if choice.health is not None:
            group.create_task(serve(PROBES, tcp_socket(*choice.health), tls=None, started=asyncio.Event()))
        await started.wait()
        say(f"the console of {choice.access.server} is at {config.scheme}://{min(config.hosts)}")


def config_of(choice: ClusterConsole, world: Effects, *, seal: Seal, tasks: asyncio.TaskGroup) -> ConsoleConfig:
    """Return the configuration of a console for many people; raise HostError if its addresses do not fit together."""
    config = ConsoleConfig(
        access=choice.access,
        clock=world.clock,
        ids=world.ids,
        chance=world.chance,
        seal=seal,
        tasks=tasks,
        bundle=BUNDLE,
        hosts=frozenset(f"{name}:{choice.listen[1]}" for name in (LOCAL_DOMAIN, "localhost", LOOPBACK)),
        apps_host=f"{LOCAL_DOMAIN}:{choice.listen[1]}",
        scheme=HTTPS if choice.tls else "http",
        cluster_name=choice.name,
        session_seconds=choice.session_seconds,
        trusted_proxies=choice.trusted_proxies,
    )
    if choice.urls:
        schemes = {url.partition("://")[0] for url in choice.urls}
        if len(schemes) > 1:
            raise HostError("all addresses of a console must be http, or all https")
        hosts = frozenset(url.partition("://")[2] for url in choice.urls)
        config = replace(config, hosts=hosts, apps_host=choice.apps_host, scheme=schemes.pop())
    elif choice.apps_host:
        raise HostError(f"*.{choice.apps_host} needs the address of the console too, such as --url https://...")
    if choice.apps_host and config.scheme != HTTPS and not choice.apps_host.partition(":")[0].endswith("localhost"):
        raise HostError(f"browsers open *.{choice.apps_host} only with https; give the console an https address")
    return config
