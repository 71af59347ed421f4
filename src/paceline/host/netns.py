"""The network namespaces of pods: each held by a file, with a veth pair to the bridge.

No other state is stored. The veth's end on the bridge is named after the pod's address, and gets the pod's uid as its
alias in the last step, so that a new agent can tell a complete network from an incomplete one.
"""

import asyncio
import contextlib
import ctypes
import errno
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

from paceline.host import netlink
from paceline.host.effects import OneThread
from paceline.host.netlink import Link, NetlinkSocket, VethPair
from paceline.node.host_info import CannotStart

RUN = Path("/run/paceline")
INSIDE = "eth0"
NEW_NETWORK = 0x40000000
BIND, DETACH = 4096, 2
REMOVE_SECONDS = 0.25
POLL_SECONDS, MAX_POLLS = 0.001, 50
# As container runtimes set them: ports below 1024 need no privilege in a pod's own network.
SETTINGS = (("net/ipv4/ip_unprivileged_port_start", "0"), ("net/ipv4/ping_group_range", "0 2147483647"))
# The namespaces of the connectivity check.
NEAR, FAR = "try-near", "try-far"
CHECK_MTU = 1280
# A firewall drops packets silently: if there is no answer by then, there will be none.
CHECK_SECONDS = 2.5

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True, kw_only=True)
class NetworkNamespaces:
    """Creates, finds and removes namespaces, all on one thread, which enters each of them for a moment."""

    bridge: str
    subnet: IPv4Network
    mtu: int
    _thread: OneThread = field(default_factory=lambda: OneThread("networks"))
    # The uids of pods with a network, complete or not.
    _uids: set[str] = field(default_factory=set)
    # The addresses of pods whose network is complete, by uid.
    _complete: dict[str, str] = field(default_factory=dict)
    # The uids of pods whose network is to be removed.
    _unused: set[str] = field(default_factory=set)
    _has_unused: asyncio.Event = field(default_factory=asyncio.Event)

    async def find(self) -> None:
        """Find the namespaces of an earlier agent."""
        self._uids |= await self._thread.run(self._find)

    def pod_uids(self) -> frozenset[str]:
        return frozenset(self._uids)

    async def make(self, uid: str, address: str) -> str:
        if self._complete.get(uid) != address:
            self._uids.add(uid)
            self._unused.discard(uid)
            try:
                await self._thread.run(lambda: self._make(uid, IPv4Address(address)))
                await wait_until_running(veth_name(IPv4Address(address)))
            except OSError as error:
                raise CannotStart(
                    "FailedCreatePodSandBox", f"the pod's network cannot be created: {error.strerror}"
                ) from error
            self._complete[uid] = address
        return str(self.file(uid))

    async def remove(self, uid: str) -> None:
        if uid in self._uids:
            self._complete.pop(uid, None)
            self._uids.discard(uid)
            self._unused.add(uid)
            self._has_unused.set()

    async def run(self) -> None:
        """Remove unused namespaces, many at once: that takes the kernel hardly longer than a single one."""
        while True:
            await self._has_unused.wait()
            await asyncio.sleep(REMOVE_SECONDS)
            self._has_unused.clear()
            await self._thread.run(self._remove_unused)

    def _remove_unused(self) -> None:
        while self._unused:
            unmount_netns(self.file(self._unused.pop()))

    def file(self, uid: str) -> Path:
        return RUN / self.bridge / uid

    def _find(self) -> set[str]:
        with NetlinkSocket() as sock:
            uids = {veth.alias for veth in veths(sock, self.bridge) if veth.alias}
        return uids | set(names(RUN / self.bridge))

    def _make(self, uid: str, address: IPv4Address) -> None:
        name = veth_name(address)
        with NetlinkSocket() as sock:
            bridge, veth = netlink.find_link(sock, self.bridge), netlink.find_link(sock, name)
            if bridge is None:
                raise CannotStart(
                    "NetworkNotReady", f"the bridge {self.bridge} of this cluster does not exist; restart the cluster"
                )
            if veth and veth.alias in self._unused:
                unmount_netns(self.file(veth.alias))
            elif veth and veth.alias not in ("", uid) and is_mounted(self.file(veth.alias)):
                message = f"{address} still belongs to the pod with uid {veth.alias}, which has the same name"
                raise CannotStart("AddressInUse", f"{message}; this pod starts when that one has ended")
            is_ours = veth is not None and veth.alias == uid and veth.is_up and veth.master == bridge.index
            if is_ours and is_mounted(self.file(uid)):
                return
            # A killed agent may have left it incomplete, or the kernel has not removed it yet.
            unmount_netns(self.file(uid))
            if veth:
                delete(sock, name)
            self.build(sock, uid, address=address, master=bridge.index)

    def build(self, sock: NetlinkSocket, uid: str, *, address: IPv4Address, master: int) -> None:
        """Create a namespace with a veth pair to the bridge with this index, or to none if it is 0."""
        file = self.file(uid)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
        with _new_namespace(file) as inner:
            handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pair = VethPair(
                    name=veth_name(address),
                    master=master,
                    mtu=self.mtu,
                    inside=INSIDE,
                    hardware=hardware(address),
                    namespace=handle,
                )
                netlink.make_pair(sock, pair)
                # Browsers cancel their requests whenever an interface of their machine gets an address.
                disable_ipv6(pair.name)
                # The outer end first: then the inner end runs as soon as it is up.
                netlink.set_up(sock, name=pair.name)
            finally:
                os.close(handle)
            netlink.set_up(inner, index=netlink.LOOPBACK_INDEX)
            index = next(link.index for link in netlink.links(inner) if link.name == INSIDE)
            netlink.add_address(inner, index, IPv4Interface((int(address), self.subnet.prefixlen)))
            netlink.set_up(inner, index=index)
            netlink.set_gateway(inner, index, self.subnet.network_address + 1)
        netlink.set_up(sock, name=veth_name(address), alias=uid)


async def wait_until_running(name: str) -> None:
    """Wait until a veth transmits packets: one that is lost now would be sent again only after a second.

    The wait is short, because a network works without it, and off the thread, which creates the next one meanwhile.
    """
    with NetlinkSocket() as sock:
        for _ in range(MAX_POLLS):
            if _is_running_or_missing(sock, name):
                return
            await asyncio.sleep(POLL_SECONDS)


def _is_running_or_missing(sock: NetlinkSocket, name: str) -> bool:
    link = netlink.find_link(sock, name)
    return link is None or link.is_running


def disable_ipv6(name: str) -> None:
    """Give an interface no IPv6 address; a kernel without IPv6 has no file for it."""
    with contextlib.suppress(OSError):
        Path("/proc/sys/net/ipv6/conf", name, "disable_ipv6").write_text("1")


def delete(sock: NetlinkSocket, name: str) -> None:
    """Delete an interface, if it exists."""
    with contextlib.suppress(OSError):
        netlink.delete_link(sock, name)


def veths(sock: NetlinkSocket, bridge: str) -> tuple[Link, ...]:
    """Return the ends of veth pairs on a bridge."""
    links = netlink.links(sock)
    master = next((link.index for link in links if link.name == bridge), -1)
    return tuple(link for link in links if link.master == master)


def veth_name(address: IPv4Address) -> str:
    """Return the name of the outer end of a pod's veth pair, unique because no two pods share an address."""
    return f"plv{address.packed.hex()}"


def hardware(address: IPv4Address) -> bytes:
    """Return the MAC address for an IP address, so that peers need not learn a new one after a restart."""
    return b"\x0a\x58" + address.packed


def unmount_netns(file: Path) -> None:
    """Release a namespace, which the kernel removes once no process is in it."""
    if file.exists():
        # Repeated, because something may be mounted over it; EINVAL ends the loop when nothing is mounted any more.
        while _libc.umount2(os.fsencode(file), DETACH) == 0:
            pass
        file.unlink(missing_ok=True)


def names(folder: Path) -> tuple[str, ...]:
    return tuple(path.name for path in folder.iterdir()) if folder.is_dir() else ()


def is_mounted(file: Path) -> bool:
    """Return whether a namespace is mounted at a file: then it is on another file system than its folder."""
    try:
        return file.stat().st_dev != file.parent.stat().st_dev
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _restored_namespace() -> Iterator[None]:
    """Return this thread to its current network namespace at the end."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _check(_libc.setns(home, NEW_NETWORK), "return to the network namespace")
        os.close(home)


@contextlib.contextmanager
def inside(file: Path) -> Iterator[None]:
    """Enter a network namespace; sockets that are created there stay in it."""
    with _restored_namespace():
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(_libc.setns(handle, NEW_NETWORK), f"enter the network namespace {file}")
        finally:
            os.close(handle)
        yield


@contextlib.contextmanager
def _new_namespace(file: Path) -> Iterator[NetlinkSocket]:
    """Create a namespace that a file holds, and yield a netlink socket in it; the thread is back in its own by then."""
    with _restored_namespace():
        _check(_libc.unshare(NEW_NETWORK), "create a network namespace")
        for name, value in SETTINGS:
            with contextlib.suppress(OSError):
                Path("/proc/sys", name).write_text(value)
        current = b"/proc/thread-self/ns/net"
        _check(_libc.mount(current, os.fsencode(file), None, BIND, None), f"mount at {file}")
        sock = NetlinkSocket()
    with sock:
        yield sock


def _check(result: int, action: str) -> None:
    if result != 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, f"{action}: {os.strerror(number)}")


def can_reach_other_subnets(sock: NetlinkSocket, bridge: str, subnet: IPv4Network, *, other: IPv4Network) -> bool:
    """Return whether a namespace on the bridge can connect to one in another subnet: a firewall may prevent it."""
    near = NetworkNamespaces(bridge=bridge, subnet=subnet, mtu=CHECK_MTU)
    far = NetworkNamespaces(bridge=bridge, subnet=other, mtu=CHECK_MTU)
    near_address, far_address = subnet.broadcast_address - 1, other.network_address + 2
    try:
        far.build(sock, FAR, address=far_address, master=0)
        near.build(sock, NEAR, address=near_address, master=_index(sock, bridge))
        gateway = IPv4Interface((int(far_address) - 1, other.prefixlen))
        netlink.add_address(sock, _index(sock, veth_name(far_address)), gateway)
        for name in (veth_name(far_address), veth_name(near_address), bridge):
            _await_running(sock, name)
        with inside(far.file(FAR)):
            server = socket.create_server((str(far_address), 0))
        with server, inside(near.file(NEAR)):
            return _can_connect(server.getsockname())
    finally:
        for address, file in ((far_address, far.file(FAR)), (near_address, near.file(NEAR))):
            unmount_netns(file)
            delete(sock, veth_name(address))


def _await_running(sock: NetlinkSocket, name: str) -> None:
    for _ in range(MAX_POLLS):
        if _is_running_or_missing(sock, name):
            return
        time.sleep(POLL_SECONDS)


def _can_connect(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, CHECK_SECONDS):
            return True
    except OSError:
        return False


def _index(sock: NetlinkSocket, name: str) -> int:
    link = netlink.find_link(sock, name)
    return link.index if link else 0
