"""The networks of pods, as the kernel keeps them: a namespace held by a file, and a cable from it to the bridge.

Nothing else is kept of them. The cable's end on the bridge is named after the pod's address, and has the pod's uid
written on it as the last step, so that an agent that starts tells a whole network from a part of one.
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
LINGER_SECONDS = 0.25
LOOK_SECONDS, MOST_LOOKS = 0.001, 50
# As container runtimes set them: a port below 1024 is nothing special in a network of one's own.
SETTINGS = (("net/ipv4/ip_unprivileged_port_start", "0"), ("net/ipv4/ping_group_range", "0 2147483647"))

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True, kw_only=True)
class NetworkNamespaces:
    """Makes, finds and removes them, all on one thread: that thread goes into each for a moment."""

    bridge: str
    subnet: IPv4Network
    mtu: int
    _thread: OneThread = field(default_factory=lambda: OneThread("networks"))
    # The uids that have a network, whole or in part.
    _known: set[str] = field(default_factory=set)
    # Those seen to be whole, with their address.
    _whole: dict[str, str] = field(default_factory=dict)
    # Those that are not used any more and still there.
    _leaving: set[str] = field(default_factory=set)
    _has_left: asyncio.Event = field(default_factory=asyncio.Event)

    async def find(self) -> None:
        """Learn what an earlier agent left."""
        self._known |= await self._thread.run(self._find)

    def pod_uids(self) -> frozenset[str]:
        """Name the pods that have one."""
        return frozenset(self._known)

    async def make(self, uid: str, address: str) -> str:
        """Give the file of a pod's network, made if need be; CannotStart when another pod still has the address."""
        if self._whole.get(uid) != address:
            self._known.add(uid)
            self._leaving.discard(uid)
            try:
                await self._thread.run(lambda: self._make(uid, IPv4Address(address)))
                await running(cable_name(IPv4Address(address)))
            except OSError as error:
                raise CannotStart(
                    "FailedCreatePodSandBox", f"the pod's network cannot be made: {error.strerror}"
                ) from error
            self._whole[uid] = address
        return str(self.file(uid))

    async def remove(self, uid: str) -> None:
        """Take a pod's network away, now that nothing runs in it; none is fine."""
        if uid in self._known:
            self._whole.pop(uid, None)
            self._known.discard(uid)
            self._leaving.add(uid)
            self._has_left.set()

    async def run(self) -> None:
        """Let go of what is no longer used, many at once: that takes the kernel hardly longer than a single one."""
        while True:
            await self._has_left.wait()
            await asyncio.sleep(LINGER_SECONDS)
            self._has_left.clear()
            await self._thread.run(self._let_go)

    def _let_go(self) -> None:
        while self._leaving:
            unmount_netns(self.file(self._leaving.pop()))

    def file(self, uid: str) -> Path:
        """Say which file holds a pod's network."""
        return RUN / self.bridge / uid

    def _find(self) -> set[str]:
        with NetlinkSocket() as line:
            named = {each.alias for each in cables(line, self.bridge) if each.alias}
        return named | set(names(RUN / self.bridge))

    def _make(self, uid: str, address: IPv4Address) -> None:
        name = cable_name(address)
        with NetlinkSocket() as line:
            bridge, cable = netlink.find_link(line, self.bridge), netlink.find_link(line, name)
            if bridge is None:
                raise CannotStart(
                    "NetworkNotReady", f"the bridge {self.bridge} of this cluster is gone; start it again"
                )
            if cable and cable.alias in self._leaving:
                unmount_netns(self.file(cable.alias))
            elif cable and cable.alias not in ("", uid) and is_held(self.file(cable.alias)):
                said = f"{address} still belongs to the pod {cable.alias}, which has the same name"
                raise CannotStart("AddressInUse", f"{said}; this one starts when that one has ended")
            is_ours = cable is not None and cable.alias == uid and cable.is_up and cable.master == bridge.index
            if is_ours and is_held(self.file(uid)):
                return
            # What a killed agent left unfinished, or what the kernel has not yet taken away.
            unmount_netns(self.file(uid))
            if cable:
                delete(line, name)
            self.build(line, uid, address=address, master=bridge.index)

    def build(self, line: NetlinkSocket, uid: str, *, address: IPv4Address, master: int) -> None:
        """Make a network, with a cable to this bridge, or to none."""
        file = self.file(uid)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
        with _new_network(file) as there:
            handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pair = VethPair(
                    name=cable_name(address),
                    master=master,
                    mtu=self.mtu,
                    inside=INSIDE,
                    hardware=hardware(address),
                    namespace=handle,
                )
                netlink.make_pair(line, pair)
                # This end first: the other is then at work as soon as it is up.
                netlink.set_up(line, name=pair.name)
            finally:
                os.close(handle)
            netlink.set_up(there, index=netlink.LOOPBACK_INDEX)
            index = next(each.index for each in netlink.links(there) if each.name == INSIDE)
            netlink.give_address(there, index, IPv4Interface((int(address), self.subnet.prefixlen)))
            netlink.set_up(there, index=index)
            netlink.set_gateway(there, index, self.subnet.network_address + 1)
        netlink.set_up(line, name=cable_name(address), alias=uid)


async def running(name: str) -> None:
    """Wait until packets get through a cable: one that is lost now would be sent again only after a second.

    Not long, as nothing is wrong without, and beside the thread, on which the next network is made meanwhile.
    """
    with NetlinkSocket() as line:
        for _ in range(MOST_LOOKS):
            link = netlink.find_link(line, name)
            if link is None or link.is_running:
                return
            await asyncio.sleep(LOOK_SECONDS)


def delete(line: NetlinkSocket, name: str) -> None:
    """Take an interface away; gone already is fine."""
    with contextlib.suppress(OSError):
        netlink.delete_link(line, name)


def cables(line: NetlinkSocket, bridge: str) -> tuple[Link, ...]:
    """List the ends of cables on a bridge."""
    there = netlink.links(line)
    master = next((each.index for each in there if each.name == bridge), -1)
    return tuple(each for each in there if each.master == master)


def cable_name(address: IPv4Address) -> str:
    """Name the end of a pod's cable: no two pods of the machine have one address."""
    return f"plv{address.packed.hex()}"


def hardware(address: IPv4Address) -> bytes:
    """Give the hardware address that goes with an address, so that peers need not learn a new one after a restart."""
    return b"\x0a\x58" + address.packed


def unmount_netns(file: Path) -> None:
    """Let the kernel end a namespace once nobody is in it."""
    if file.exists():
        # More than once when somebody mounted over it; EINVAL says that nothing is mounted any more.
        while _libc.umount2(os.fsencode(file), DETACH) == 0:
            pass
        file.unlink(missing_ok=True)


def names(folder: Path) -> tuple[str, ...]:
    """List a folder that may not be there."""
    return tuple(each.name for each in folder.iterdir()) if folder.is_dir() else ()


def is_held(file: Path) -> bool:
    """Tell whether a namespace is mounted here: its file lies on a file system of its own."""
    try:
        return file.stat().st_dev != file.parent.stat().st_dev
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _back_home() -> Iterator[None]:
    """Return to the network in which this thread is now."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _check(_libc.setns(home, NEW_NETWORK), "the way back")
        os.close(home)


@contextlib.contextmanager
def inside(file: Path) -> Iterator[None]:
    """Be in a network for a moment: sockets that are made there stay there."""
    with _back_home():
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(_libc.setns(handle, NEW_NETWORK), f"the network of {file}")
        finally:
            os.close(handle)
        yield


@contextlib.contextmanager
def _new_network(file: Path) -> Iterator[NetlinkSocket]:
    """Make a network, held by this file, and give a line into it; the thread is back in its own by then."""
    with _back_home():
        _check(_libc.unshare(NEW_NETWORK), "a network of its own")
        for name, value in SETTINGS:
            with contextlib.suppress(OSError):
                Path("/proc/sys", name).write_text(value)
        here = b"/proc/thread-self/ns/net"
        _check(_libc.mount(here, os.fsencode(file), None, BIND, None), f"mount at {file}")
        line = NetlinkSocket()
    with line:
        yield line


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno() or errno.EPERM
        raise OSError(number, f"{what}: {os.strerror(number)}")


NEAR, FAR = "try-near", "try-far"
MTU = 1280
# Dropped packets tell nothing: after this long, none has come.
PATIENCE_SECONDS = 2.5


def can_reach_other_subnets(line: NetlinkSocket, bridge: str, subnet: IPv4Network, *, beside: IPv4Network) -> bool:
    """Call, from a network on the bridge, one that is not on it; both are gone afterwards."""
    near = NetworkNamespaces(bridge=bridge, subnet=subnet, mtu=MTU)
    far = NetworkNamespaces(bridge=bridge, subnet=beside, mtu=MTU)
    here, there = subnet.broadcast_address - 1, beside.network_address + 2
    try:
        far.build(line, FAR, address=there, master=0)
        near.build(line, NEAR, address=here, master=_index(line, bridge))
        netlink.give_address(line, _index(line, cable_name(there)), IPv4Interface((int(there) - 1, beside.prefixlen)))
        for name in (cable_name(there), cable_name(here), bridge):
            _await_running(line, name)
        with inside(far.file(FAR)):
            server = socket.create_server((str(there), 0))
        with server, inside(near.file(NEAR)):
            return _reaches(server.getsockname())
    finally:
        for address, file in ((there, far.file(FAR)), (here, near.file(NEAR))):
            unmount_netns(file)
            delete(line, cable_name(address))


def _await_running(line: NetlinkSocket, name: str) -> None:
    for _ in range(MOST_LOOKS):
        link = netlink.find_link(line, name)
        if link is None or link.is_running:
            return
        time.sleep(LOOK_SECONDS)


def _reaches(place: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(place, PATIENCE_SECONDS):
            return True
    except OSError:
        return False


def _index(line: NetlinkSocket, name: str) -> int:
    link = netlink.find_link(line, name)
    return link.index if link else 0
