"""Try whether packets of a pod get through this machine: any firewall may stop them, and only a try tells."""

import socket
import time
from ipaddress import IPv4Interface, IPv4Network

from paceline.host.network import netlink
from paceline.host.network.netlink import Line
from paceline.host.network.netns import LOOK_SECONDS, MOST_LOOKS, Namespaces, cable_name, delete, inside, unmount_netns

NEAR, FAR = "try-near", "try-far"
MTU = 1280
# Dropped packets tell nothing: after this long, none has come.
PATIENCE_SECONDS = 2.5


def can_reach_other_subnets(line: Line, bridge: str, subnet: IPv4Network, *, beside: IPv4Network) -> bool:
    """Call, from a network on the bridge, one that is not on it; both are gone afterwards."""
    near = Namespaces(bridge=bridge, subnet=subnet, mtu=MTU)
    far = Namespaces(bridge=bridge, subnet=beside, mtu=MTU)
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


def _await_running(line: Line, name: str) -> None:
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


def _index(line: Line, name: str) -> int:
    link = netlink.find_link(line, name)
    return link.index if link else 0
