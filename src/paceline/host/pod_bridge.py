"""The network of one embedded cluster: decided and made by the control process, read by the agent, gone with both.

It is a bridge, the rules around it, and the machine's leave to pass packets on. Which it is stands in a file, so that
both processes, and the next start, go by the same answer.
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
    cables,
    can_reach_other_subnets,
    delete,
    hardware,
    names,
    unmount_netns,
)
from paceline.host.shim_processes import RealProcesses
from paceline.node.network.network import SHARED, SHARED_NETWORK, PodNetwork
from paceline.settings import HOST_NETWORK, OWN_NETWORK, Settings

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
RESOLVER, UPSTREAM = Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf")
USUAL_MTU = 1500
# Capabilities, as bits of /proc/self/status.
NET_ADMIN, SYS_ADMIN = 12, 21
CLOSED = (
    "the machine's firewall drops what pods send to other machines; allow it, for example with "
    "`iptables -I FORWARD -i {bridge} -j ACCEPT && iptables -I FORWARD -o {bridge} -j ACCEPT`, and start again"
)
RIGHTS = "root, or the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkChoice:
    """What was decided for a cluster."""

    # None: pods share the machine's network.
    subnet: IPv4Network | None
    why: str

    @property
    def gateway(self) -> str:
        """Give the machine's own address among the pods'; none where they share its network."""
        return "" if self.subnet is None else str(self.subnet.network_address + 1)

    @property
    def mode(self) -> str:
        """Say it in the word that people use for it."""
        return HOST_NETWORK if self.subnet is None else OWN_NETWORK


class NoPodNetwork(Exception):
    """Pods cannot have networks of their own here: why, and what would help."""


def bridge_name(home: Path) -> str:
    """Name a cluster's bridge."""
    return f"pl{crc32(str(home).encode()):08x}"


def prepare(settings: Settings) -> NetworkChoice:
    """Decide, make what is needed, and write the decision down; HostError when what was asked for cannot be."""
    before = stored_choice(settings)
    running = _running(settings)
    asked = settings.network or (before.mode if before and running else "")
    if running and before and settings.network not in ("", before.mode):
        said = f"{len(running)} pods run on {_place(before.mode)}"
        raise HostError(f"{said}: end them first, or start with --network {before.mode}")
    if running and before is None:
        # They were started before there was a choice.
        asked = HOST_NETWORK
    choice = _decide(settings, asked, before)
    if choice.subnet is None:
        close(settings)
    beside = settings.pod_network.with_suffix(".new")
    beside.write_text(json.dumps({"subnet": str(choice.subnet) if choice.subnet else None, "why": choice.why}) + "\n")
    beside.replace(settings.pod_network)
    return choice


def _decide(settings: Settings, asked: str, before: NetworkChoice | None) -> NetworkChoice:
    if asked == HOST_NETWORK:
        return NetworkChoice(subnet=None, why=f"{SHARED}, as `--network {HOST_NETWORK}` asks for")
    try:
        subnet = make(settings, before.subnet if before else None, is_asked=asked == OWN_NETWORK)
    except (NoPodNetwork, OSError) as error:
        said = str(error) if isinstance(error, NoPodNetwork) else f"{error.strerror or error}"
        if asked == OWN_NETWORK:
            raise HostError(f"pods cannot have networks of their own: {said}") from error
        return NetworkChoice(subnet=None, why=f"{SHARED}; not one of its own: {said}")
    said = f"every pod has a network of its own, with an address of {subnet} on the bridge {bridge_name(settings.home)}"
    return NetworkChoice(subnet=subnet, why=said)


def stored_choice(settings: Settings) -> NetworkChoice | None:
    """Read what was decided last; None when nothing was."""
    try:
        found = json.loads(settings.pod_network.read_text())
        subnet = IPv4Network(found["subnet"]) if found["subnet"] else None
        return NetworkChoice(subnet=subnet, why=str(found["why"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def pod_network(settings: Settings) -> tuple[PodNetwork, NetworkNamespaces | None]:
    """Give the agent what was decided, and its hands for it."""
    choice = stored_choice(settings)
    if choice is None or choice.subnet is None:
        return (PodNetwork(why=choice.why) if choice else SHARED_NETWORK), None
    network = PodNetwork(subnet=choice.subnet, why=choice.why, resolver=str(resolver()))
    return network, NetworkNamespaces(bridge=bridge_name(settings.home), subnet=choice.subnet, mtu=_mtu())


def make(settings: Settings, last: IPv4Network | None, *, is_asked: bool) -> IPv4Network:
    """Make the bridge and the rules around it, or see that they are there."""
    if missing := missing_rights():
        raise NoPodNetwork(missing)
    name = bridge_name(settings.home)
    with _alone(), NetlinkSocket() as line, nftables.open_line() as rules:
        _forget_lost(line, rules)
        bridge = netlink.find_link(line, name)
        is_there = bridge is not None and bridge.is_up and last is not None
        subnet = last if is_there and last else _make_bridge(line, settings.home, last)
        nftables.guard(rules, name, subnet)
        _pass_on()
        # Whoever asks for it may have pods that cannot reach other machines.
        if (
            not is_asked
            and not cables(line, name)
            and not can_reach_other_subnets(line, name, subnet, beside=_beside(line, subnet))
        ):
            _remove(line, rules, name)
            raise NoPodNetwork(CLOSED.format(bridge=name))
    return subnet


def _beside(line: NetlinkSocket, subnet: IPv4Network) -> IPv4Network:
    """Choose a few addresses for a try, which nobody uses."""
    found = choose_subnet((subnet, *netlink.routed(line)), seed=0)
    if found is None:
        raise NoPodNetwork("all private addresses are in use on this machine")
    return IPv4Network((found.network_address, 30))


def close(settings: Settings) -> None:
    """Leave nothing behind, unless pods still run."""
    if missing_rights() or not (RUN / bridge_name(settings.home)).exists():
        return
    name = bridge_name(settings.home)
    running = _running(settings)
    with _alone(), NetlinkSocket() as line, nftables.open_line() as rules:
        for each in cables(line, name):
            if each.alias not in running:
                delete(line, each.name)
        for uid in names(RUN / name):
            if uid not in running:
                unmount_netns(RUN / name / uid)
        _remove(line, rules, name)


def missing_rights(status: Path = Path("/proc/self/status")) -> str:
    """Say what this process lacks to make networks; nothing when it may."""
    lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
    rights = int(lines.get("CapEff", "0"), 16)
    has_all = all(rights >> each & 1 for each in (NET_ADMIN, SYS_ADMIN))
    return "" if has_all else f"it takes {RIGHTS}; start it with: sudo paceline up"


def resolver() -> Path:
    """Find a list of name servers that can be reached from another network than the machine's own."""
    try:
        servers = _servers(RESOLVER)
    except OSError:
        return RESOLVER
    is_here = servers and all(each.is_loopback for each in servers)
    return UPSTREAM if is_here and UPSTREAM.exists() else RESOLVER


def _servers(path: Path) -> list[IPv4Address]:
    found = []
    for line in path.read_text(errors="replace").splitlines():
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1:
            with contextlib.suppress(ValueError):
                found.append(IPv4Address(words[1]))
    return found


def _make_bridge(line: NetlinkSocket, home: Path, last: IPv4Network | None) -> IPv4Network:
    name = bridge_name(home)
    # What a start that was killed left of it.
    delete(line, name)
    taken = (*netlink.routed(line), *_named(os.environ))
    if last and not any(last.overlaps(other) for other in taken):
        subnet = last
    else:
        chosen = choose_subnet(taken, seed=crc32(str(home).encode()))
        if chosen is None:
            raise NoPodNetwork("all private addresses are in use on this machine")
        subnet = chosen
    gateway = subnet.network_address + 1
    (RUN / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    netlink.make_bridge(line, name, hardware=hardware(gateway), mtu=_mtu())
    bridge = netlink.find_link(line, name)
    index = bridge.index if bridge else 0
    netlink.give_address(line, index, IPv4Interface((int(gateway), subnet.prefixlen)))
    netlink.set_up(line, index=index, alias=str(home))
    return subnet


def _named(environ: Mapping[str, str]) -> Iterator[IPv4Network]:
    """Addresses that are spoken to by way of the default route, and must not be hidden by a bridge."""
    for path in (RESOLVER, UPSTREAM):
        with contextlib.suppress(OSError):
            yield from (IPv4Network(each) for each in _servers(path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        host = environ.get(name, "").rpartition("@")[2].rpartition("//")[2].partition(":")[0].strip("/")
        with contextlib.suppress(ValueError):
            yield IPv4Network(host)


def _remove(line: NetlinkSocket, rules: NetlinkSocket, name: str) -> None:
    """Take a bridge and its rules away when no pod is on it, and the machine's leave with the last bridge."""
    if cables(line, name) or names(RUN / name):
        return
    delete(line, name)
    nftables.unguard(rules, name)
    shutil.rmtree(RUN / name, ignore_errors=True)
    if not [each for each in RUN.iterdir() if each.is_dir()]:
        _pass_on_no_more()


def _forget_lost(line: NetlinkSocket, rules: NetlinkSocket) -> None:
    """Take away the bridges of clusters whose folder is gone."""
    for each in netlink.links(line):
        if (RUN / each.name).is_dir() and each.alias and not Path(each.alias).exists():
            _remove(line, rules, each.name)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let no other cluster of this machine change the same things meanwhile."""
    RUN.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = os.open(RUN / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _pass_on() -> None:
    """Let the machine pass packets on, and remember that it did not."""
    before = FORWARDING.read_text().strip()
    if before != "1":
        (RUN / "forwarding").write_text(before)
        FORWARDING.write_text("1")


def _pass_on_no_more() -> None:
    file = RUN / "forwarding"
    with contextlib.suppress(FileNotFoundError):
        FORWARDING.write_text(file.read_text())
        file.unlink()


def _mtu() -> int:
    """Give the size of packets of the interface that leads outside."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            name, to, *_ = line.split()
            if to == "00000000":
                return int(Path("/sys/class/net", name, "mtu").read_text())
    return USUAL_MTU


def _place(mode: str) -> str:
    return "the machine's network" if mode == HOST_NETWORK else "networks of their own"


def _running(settings: Settings) -> frozenset[str]:
    """Name the pods that have a live container."""
    processes = RealProcesses()
    pods = settings.agent / "pods"
    folders = {each for each in pods.glob("*/containers/*/*") if processes.holds(each)}
    return frozenset(each.relative_to(pods).parts[0] for each in folders)


# As many as pods may have names, also those that have ended and are still listed.
BITS = 18
# In this order. The first two are private; the last is carriers' own, which some private networks use too.
POOLS = tuple(IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))
# What others on such machines begin with: services and pods of Kubernetes, of k3s, Podman and Docker.
USUAL = tuple(
    IPv4Network(each)
    for each in ("10.96.0.0/12", "10.244.0.0/16", "10.42.0.0/15", "10.88.0.0/16", "172.17.0.0/16", "10.0.0.0/16")
)


def choose_subnet(taken: Iterable[IPv4Network], *, seed: int) -> IPv4Network | None:
    """Find a subnet that overlaps with none that is taken; which one is looked at first is up to the seed."""
    avoided = (*USUAL, *taken)
    return next((each for each in _candidates(seed) if not any(each.overlaps(other) for other in avoided)), None)


def _candidates(seed: int) -> Iterator[IPv4Network]:
    for pool in POOLS:
        count = 2 ** (BITS - pool.prefixlen)
        step = 2 ** (32 - BITS)
        for number in range(count):
            at = int(pool.network_address) + (seed + number) % count * step
            yield IPv4Network((at, BITS))
