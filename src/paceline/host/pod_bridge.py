"""The network of one embedded cluster: created by the control process, used by the agent, removed with both.

It consists of a bridge, its firewall rules, and IP forwarding. The choice between it and the machine's network is
stored in a file, so that both processes and the next start agree on it.
"""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from zlib import crc32

from paceline.errors import HostError
from paceline.host import netlink, nftables
from paceline.host.netlink import NetlinkSocket
from paceline.host.netns import (
    RUN,
    NetworkNamespaces,
    can_reach_other_subnets,
    delete,
    disable_ipv6,
    hardware,
    names,
    unmount_netns,
    veths,
)
from paceline.host.shim_processes import RealProcesses
from paceline.node.network.network import SHARED, SHARED_NETWORK, PodNetwork
from paceline.settings import HOST_NETWORK, OWN_NETWORK, Settings

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
RESOLVER, UPSTREAM = Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")
DEFAULT_MTU = 1500
STATUS = Path("/proc/self/status")
# Capabilities, as bits of this file.
NET_ADMIN, SYS_ADMIN = 12, 21
CLOSED = (
    "the machine's firewall drops what pods send to other machines; allow it, for example with "
    "`iptables -I FORWARD -i {bridge} -j ACCEPT && iptables -I FORWARD -o {bridge} -j ACCEPT`, and start again"
)
RIGHTS = "root, or the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN"
# Room for as many pods as may have names, including those that have ended and still exist.
PREFIX_LENGTH = 18
# Where pods' subnets are chosen from, in this order: private ranges, then the carriers' range, which some private
# networks use too.
POOLS = tuple(IPv4Network(pool) for pool in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
# Default ranges of other software: Services and pods of Kubernetes, k3s, Podman and Docker.
USUAL = tuple(
    IPv4Network(network)
    for network in ("10.96.0.0/12", "10.244.0.0/16", "10.42.0.0/15", "10.88.0.0/16", "172.17.0.0/16", "10.0.0.0/16")
)
PROXY_VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkChoice:
    """How the pods of a cluster are connected, and the explanation for people."""

    # None: pods share the machine's network.
    subnet: IPv4Network | None
    message: str

    @property
    def gateway(self) -> str:
        """Return the machine's address in the pods' subnet; empty where pods share its network."""
        return "" if self.subnet is None else str(self.subnet.network_address + 1)

    @property
    def mode(self) -> str:
        """Return the value of `--network` for this choice."""
        return HOST_NETWORK if self.subnet is None else OWN_NETWORK


class NoPodNetwork(Exception):
    """Pods cannot have their own networks here; the message says why, and what would help."""


def bridge_name(home: Path) -> str:
    return f"pl{crc32(str(home).encode()):08x}"


def prepare(settings: Settings) -> NetworkChoice:
    """Choose the network, create it and store the choice; HostError if the requested network is not possible."""
    last = stored_choice(settings)
    running = _running(settings)
    mode = settings.network or (last.mode if last and running else "")
    if running and last and settings.network not in ("", last.mode):
        used = "the machine's network" if last.mode == HOST_NETWORK else "their own networks"
        message = f"{len(running)} running pods use {used}"
        raise HostError(f"{message}: end them first, or start with --network {last.mode}")
    if running and last is None:
        # They were started before there was a choice.
        mode = HOST_NETWORK
    choice = _choose(settings, mode, last)
    if choice.subnet is None:
        close(settings)
    new = settings.pod_network.with_suffix(".new")
    new.write_text(json.dumps({"subnet": str(choice.subnet) if choice.subnet else None, "why": choice.message}) + "\n")
    new.replace(settings.pod_network)
    return choice


def _choose(settings: Settings, mode: str, last: NetworkChoice | None) -> NetworkChoice:
    if mode == HOST_NETWORK:
        return NetworkChoice(subnet=None, message=f"{SHARED}, as requested by `--network {HOST_NETWORK}`")
    try:
        subnet = make(settings, last.subnet if last else None, is_requested=mode == OWN_NETWORK)
    except (NoPodNetwork, OSError) as error:
        cause = str(error) if isinstance(error, NoPodNetwork) else f"{error.strerror or error}"
        if mode == OWN_NETWORK:
            raise HostError(f"pods cannot have their own networks: {cause}") from error
        return NetworkChoice(subnet=None, message=f"{SHARED}; their own networks are not possible: {cause}")
    message = f"every pod has its own network, with an address of {subnet} on the bridge {bridge_name(settings.home)}"
    return NetworkChoice(subnet=subnet, message=message)


def stored_choice(settings: Settings) -> NetworkChoice | None:
    """Return the last choice; None if there is none."""
    try:
        stored = json.loads(settings.pod_network.read_text())
        subnet = IPv4Network(stored["subnet"]) if stored["subnet"] else None
        return NetworkChoice(subnet=subnet, message=str(stored["why"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def pod_network(settings: Settings) -> tuple[PodNetwork, NetworkNamespaces | None]:
    """Return the chosen network, and what creates the pods' namespaces if they have their own."""
    choice = stored_choice(settings)
    if choice is None or choice.subnet is None:
        return (PodNetwork(message=choice.message) if choice else SHARED_NETWORK), None
    network = PodNetwork(subnet=choice.subnet, message=choice.message, resolver=str(resolver()))
    return network, NetworkNamespaces(bridge=bridge_name(settings.home), subnet=choice.subnet, mtu=_mtu())


def make(settings: Settings, last: IPv4Network | None, *, is_requested: bool) -> IPv4Network:
    """Create the bridge and its rules unless they exist, and return the subnet."""
    if missing := missing_rights():
        raise NoPodNetwork(missing)
    name = bridge_name(settings.home)
    with _lock(), NetlinkSocket() as routing, nftables.open_socket() as rules:
        _remove_orphans(routing, rules)
        bridge = netlink.find_link(routing, name)
        exists = bridge is not None and bridge.is_up and last is not None
        subnet = last if exists and last else _make_bridge(routing, settings.home, last)
        nftables.guard(rules, name, subnet)
        _enable_forwarding()
        # With an explicit `--network`, pods that cannot reach other machines are acceptable.
        if (
            not is_requested
            and not veths(routing, name)
            and not can_reach_other_subnets(routing, name, subnet, other=_unused_subnet(routing, subnet))
        ):
            _remove(routing, rules, name)
            raise NoPodNetwork(CLOSED.format(bridge=name))
    return subnet


def _unused_subnet(routing: NetlinkSocket, subnet: IPv4Network) -> IPv4Network:
    """Return a few unused addresses for the connectivity check."""
    chosen = choose_subnet((subnet, *netlink.routed(routing)), seed=0)
    if chosen is None:
        raise NoPodNetwork("all private addresses are in use on this machine")
    return IPv4Network((chosen.network_address, 30))


def close(settings: Settings) -> None:
    """Remove the bridge and its rules, unless pods still run."""
    if missing_rights() or not (RUN / bridge_name(settings.home)).exists():
        return
    name = bridge_name(settings.home)
    running = _running(settings)
    with _lock(), NetlinkSocket() as routing, nftables.open_socket() as rules:
        for veth in veths(routing, name):
            if veth.alias not in running:
                delete(routing, veth.name)
        for uid in names(RUN / name):
            if uid not in running:
                unmount_netns(RUN / name / uid)
        _remove(routing, rules, name)


def has_capabilities(*bits: int, status: Path = STATUS) -> bool:
    """Return whether this process has all of these capabilities."""
    lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
    rights = int(lines.get("CapEff", "0"), 16)
    return all(rights >> bit & 1 for bit in bits)


def missing_rights(status: Path = STATUS) -> str:
    """Return a message if this process may not create networks; empty if it may."""
    has_all = has_capabilities(NET_ADMIN, SYS_ADMIN, status=status)
    return "" if has_all else f"it takes {RIGHTS}; start it with: sudo paceline up"


def resolver() -> Path:
    """Return a resolv.conf whose name servers can be reached from another network namespace."""
    try:
        servers = _name_servers(RESOLVER)
    except OSError:
        return RESOLVER
    is_local = servers and all(server.is_loopback for server in servers)
    return UPSTREAM if is_local and UPSTREAM.exists() else RESOLVER


def _name_servers(path: Path) -> list[IPv4Address]:
    servers = []
    for line in path.read_text(errors="replace").splitlines():
        fields = line.split()
        if fields[:1] == ["nameserver"] and len(fields) > 1:
            with contextlib.suppress(ValueError):
                servers.append(IPv4Address(fields[1]))
    return servers


def _make_bridge(routing: NetlinkSocket, home: Path, last: IPv4Network | None) -> IPv4Network:
    name = bridge_name(home)
    # A start that was killed may have left it incomplete.
    delete(routing, name)
    taken = (*netlink.routed(routing), *_servers_and_proxies(os.environ))
    if last and not any(last.overlaps(other) for other in taken):
        subnet = last
    else:
        chosen = choose_subnet(taken, seed=crc32(str(home).encode()))
        if chosen is None:
            raise NoPodNetwork("all private addresses are in use on this machine")
        subnet = chosen
    gateway = subnet.network_address + 1
    (RUN / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    netlink.make_bridge(routing, name, hardware=hardware(gateway), mtu=_mtu())
    bridge = netlink.find_link(routing, name)
    index = bridge.index if bridge else 0
    disable_ipv6(name)
    netlink.add_address(routing, index, IPv4Interface((int(gateway), subnet.prefixlen)))
    netlink.set_up(routing, index=index, alias=str(home))
    return subnet


def choose_subnet(taken: Iterable[IPv4Network], *, seed: int) -> IPv4Network | None:
    """Return a subnet that overlaps with none that is taken; the seed determines where the search starts."""
    avoided = (*USUAL, *taken)
    return next((subnet for subnet in _candidates(seed) if not any(subnet.overlaps(other) for other in avoided)), None)


def _candidates(seed: int) -> Iterator[IPv4Network]:
    for pool in POOLS:
        count = 2 ** (PREFIX_LENGTH - pool.prefixlen)
        step = 2 ** (32 - PREFIX_LENGTH)
        for number in range(count):
            start = int(pool.network_address) + (seed + number) % count * step
            yield IPv4Network((start, PREFIX_LENGTH))


def _servers_and_proxies(environ: Mapping[str, str]) -> Iterator[IPv4Network]:
    """Yield addresses that are reached by the default route, which a bridge must not hide."""
    for path in (RESOLVER, UPSTREAM):
        with contextlib.suppress(OSError):
            yield from (IPv4Network(server) for server in _name_servers(path))
    for name in PROXY_VARIABLES:
        host = environ.get(name, "").rpartition("@")[2].rpartition("//")[2].partition(":")[0].strip("/")
        with contextlib.suppress(ValueError):
            yield IPv4Network(host)


def _remove(routing: NetlinkSocket, rules: NetlinkSocket, name: str) -> None:
    """Remove a bridge without pods and its rules; with the last bridge, restore IP forwarding."""
    if veths(routing, name) or names(RUN / name):
        return
    delete(routing, name)
    nftables.unguard(rules, name)
    shutil.rmtree(RUN / name, ignore_errors=True)
    if not any(path.is_dir() for path in RUN.iterdir()):
        _restore_forwarding()


def _remove_orphans(routing: NetlinkSocket, rules: NetlinkSocket) -> None:
    """Remove the bridges of clusters whose folder no longer exists."""
    for link in netlink.links(routing):
        if (RUN / link.name).is_dir() and link.alias and not Path(link.alias).exists():
            _remove(routing, rules, link.name)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Exclude other clusters of this machine from changing bridges and rules."""
    RUN.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(RUN / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _enable_forwarding() -> None:
    """Enable IP forwarding, and store its previous value."""
    previous = FORWARDING.read_text().strip()
    if previous != "1":
        (RUN / "forwarding").write_text(previous)
        FORWARDING.write_text("1")


def _restore_forwarding() -> None:
    file = RUN / "forwarding"
    with contextlib.suppress(FileNotFoundError):
        FORWARDING.write_text(file.read_text())
        file.unlink()


def _mtu() -> int:
    """Return the MTU of the interface with the default route."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            name, destination, *_ = line.split()
            if destination == "00000000":
                return int(Path("/sys/class/net", name, "mtu").read_text())
    return DEFAULT_MTU


def _running(settings: Settings) -> frozenset[str]:
    """Return the uids of the pods with a running container."""
    processes = RealProcesses()
    pods = settings.agent / "pods"
    folders = (folder for folder in pods.glob("*/containers/*/*") if processes.holds(folder))
    return frozenset(folder.relative_to(pods).parts[0] for folder in folders)
