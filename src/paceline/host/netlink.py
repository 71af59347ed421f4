"""The kernel's own language for networks, as far as pods need it: links, addresses, routes, in messages of bytes.

Spoken over a socket of the standard library, so that no program and no package has to be there (decision 8).
"""

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Self

ROUTE, NETFILTER = 0, 12
REQUEST, ACK, DUMP = 0x001, 0x004, 0x300
CREATE, EXCLUSIVE = 0x400, 0x200
ERROR, DONE = 2, 3
NESTED, KIND_MASK = 0x8000, 0x3FFF
NEW_LINK, DELETE_LINK, GET_LINK = 16, 17, 18
NEW_ADDRESS, NEW_ROUTE, GET_ROUTE = 20, 24, 26
# Attributes of a link.
HARDWARE, NAME, MTU, MASTER, INFO, ALIAS, NAMESPACE, EXTRA = 1, 3, 4, 10, 18, 20, 28, 29
WITHOUT_COUNTERS = 8
INFO_KIND, INFO_DATA, PEER = 1, 2, 1
# Attributes of an address and of a route.
IFA_ADDRESS, IFA_LOCAL, RTA_TO, RTA_OUT, RTA_GATEWAY = 1, 2, 1, 4, 5
MAIN_TABLE, BY_BOOT, UNIVERSE, UNICAST = 254, 3, 0, 1
UP, RUNNING = 0x01, 0x40
LOOPBACK_INDEX = 1
READ_BYTES = 1 << 18
_HEAD = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBi")
_ROUTE = struct.Struct("=BBBBBBBBI")


def attribute(kind: int, value: bytes) -> bytes:
    """Write one attribute, padded to where the next one may begin."""
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def nested(kind: int, *parts: bytes) -> bytes:
    """Write an attribute that is made of attributes."""
    return attribute(kind | NESTED, b"".join(parts))


def text(value: str) -> bytes:
    """Write a word as the kernel reads it."""
    return value.encode() + b"\0"


def number(value: int) -> bytes:
    """Write a number in the machine's order."""
    return struct.pack("=I", value)


def message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    """Write one message, padded."""
    return _HEAD.pack(len(body) + _HEAD.size, kind, flags, sequence, 0) + body + bytes(-len(body) % 4)


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Read messages: sort, sequence number, body."""
    while len(data) >= _HEAD.size:
        size, kind, _, sequence, _ = _HEAD.unpack_from(data)
        yield kind, sequence, data[_HEAD.size : size]
        data = data[(size + 3) & ~3 :]


def attributes(data: bytes) -> dict[int, bytes]:
    """Read attributes, by sort."""
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        found[kind & KIND_MASK] = data[4:size]
        data = data[(size + 3) & ~3 :]
    return found


def problem(body: bytes) -> int:
    """Read an answer's error number; 0 says that all is well."""
    (code,) = struct.unpack_from("=i", body)
    return -int(code)


class NetlinkSocket:
    """A line to the kernel. It stays in the network in which it was opened."""

    def __init__(self, family: int = ROUTE) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, family)
        try:
            self._socket.bind((0, 0))
        except OSError:
            self._socket.close()
            raise
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def next_sequence(self) -> int:
        """Number the next message."""
        self._sequence += 1
        return self._sequence

    def tell(self, what: str, kind: int, body: bytes, flags: int = 0) -> None:
        """Have one thing done; OSError names it when the kernel refuses."""
        sequence = self.next_sequence()
        self.send(what, message(kind, REQUEST | ACK | flags, sequence, body), {sequence})

    def send(self, what: str, data: bytes, sequences: set[int]) -> None:
        """Send messages and wait until each of these numbers is answered."""
        self._socket.send(data)
        waiting = set(sequences)
        while waiting:
            for kind, sequence, body in messages(self._socket.recv(READ_BYTES)):
                code = problem(body) if kind == ERROR else 0
                if code:
                    raise OSError(code, f"{what}: {os.strerror(code)}")
                waiting.discard(sequence)

    def ask(self, kind: int, body: bytes, flags: int = DUMP) -> Iterator[bytes]:
        """Read all there is of a sort, or, with ACK for the flags, just one."""
        sequence = self.next_sequence()
        self._socket.send(message(kind, REQUEST | flags, sequence, body))
        found: list[bytes] = []
        while True:
            for sort, number_, answer in messages(self._socket.recv(READ_BYTES)):
                if number_ != sequence:
                    continue
                if sort in (DONE, ERROR):
                    if sort == ERROR and problem(answer):
                        raise OSError(problem(answer), os.strerror(problem(answer)))
                    return iter(found)
                found.append(answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network interface."""

    index: int
    name: str
    master: int
    alias: str
    is_up: bool
    # Whether packets get through: a moment after it is up.
    is_running: bool


def links(line: NetlinkSocket) -> tuple[Link, ...]:
    """List the interfaces."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute(EXTRA, number(WITHOUT_COUNTERS))
    return tuple(_link(each) for each in line.ask(GET_LINK, body))


def find_link(line: NetlinkSocket, name: str) -> Link | None:
    """Look for one interface."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute(NAME, text(name))
    try:
        return next((_link(each) for each in line.ask(GET_LINK, body, flags=ACK)), None)
    except OSError as error:
        if error.errno == errno.ENODEV:
            return None
        raise


def _link(body: bytes) -> Link:
    _, _, index, flags, _ = _LINK.unpack_from(body)
    found = attributes(body[_LINK.size :])
    return Link(
        index=index,
        name=_text(found.get(NAME, b"")),
        master=int.from_bytes(found.get(MASTER, b""), "little"),
        alias=_text(found.get(ALIAS, b"")),
        is_up=bool(flags & UP),
        is_running=bool(flags & RUNNING),
    )


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")


def routed(line: NetlinkSocket) -> tuple[IPv4Network, ...]:
    """List what this machine has a way to, in any table, but for the way to everywhere."""
    found = []
    for body in line.ask(GET_ROUTE, _ROUTE.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)):
        family, bits, *_ = _ROUTE.unpack_from(body)
        to = attributes(body[_ROUTE.size :]).get(RTA_TO)
        if family == socket.AF_INET and bits and to:
            found.append(IPv4Network((to, bits), strict=False))
    return tuple(found)


def make_bridge(line: NetlinkSocket, name: str, *, hardware: bytes, mtu: int) -> None:
    """Make a bridge whose hardware address does not change with what joins it."""
    info = nested(INFO, attribute(INFO_KIND, b"bridge"))
    parts = (attribute(NAME, text(name)), attribute(HARDWARE, hardware), attribute(MTU, number(mtu)))
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + b"".join(parts) + info
    line.tell(f"bridge {name}", NEW_LINK, body, CREATE | EXCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class VethPair:
    """A cable: one end here on a bridge, the other as `inside` in another network."""

    name: str
    master: int
    mtu: int
    inside: str
    hardware: bytes
    # An open file of the other network.
    namespace: int


def make_pair(line: NetlinkSocket, pair: VethPair) -> None:
    """Make both ends of a cable; neither is up."""
    there = (
        attribute(NAME, text(pair.inside)),
        attribute(HARDWARE, pair.hardware),
        attribute(MTU, number(pair.mtu)),
        attribute(NAMESPACE, number(pair.namespace)),
    )
    peer = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + b"".join(there)
    info = nested(INFO, attribute(INFO_KIND, b"veth"), nested(INFO_DATA, attribute(PEER, peer)))
    here = (
        attribute(NAME, text(pair.name)),
        attribute(MTU, number(pair.mtu)),
        attribute(MASTER, number(pair.master)),
    )
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + b"".join(here) + info
    line.tell(f"link {pair.name}", NEW_LINK, body, CREATE | EXCLUSIVE)


def set_up(line: NetlinkSocket, *, index: int = 0, name: str = "", alias: str = "") -> None:
    """Switch an interface on, and write on it whose it is."""
    parts = (attribute(NAME, text(name)) if name else b"", attribute(ALIAS, alias.encode()) if alias else b"")
    body = _LINK.pack(socket.AF_UNSPEC, 0, index, UP, UP) + b"".join(parts)
    line.tell(f"link {name or index} up", NEW_LINK, body)


def delete_link(line: NetlinkSocket, name: str) -> None:
    """Take an interface away; OSError when there is none."""
    line.tell(f"link {name} away", DELETE_LINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute(NAME, text(name)))


def give_address(line: NetlinkSocket, index: int, address: IPv4Interface) -> None:
    """Give an interface an address."""
    parts = attribute(IFA_LOCAL, address.packed) + attribute(IFA_ADDRESS, address.packed)
    body = _ADDRESS.pack(socket.AF_INET, address.network.prefixlen, 0, UNIVERSE, index) + parts
    line.tell(f"address {address}", NEW_ADDRESS, body, CREATE | EXCLUSIVE)


def set_gateway(line: NetlinkSocket, index: int, gateway: IPv4Address) -> None:
    """Send whatever goes elsewhere by this way."""
    head = _ROUTE.pack(socket.AF_INET, 0, 0, 0, MAIN_TABLE, BY_BOOT, UNIVERSE, UNICAST, 0)
    body = head + attribute(RTA_GATEWAY, gateway.packed) + attribute(RTA_OUT, number(index))
    line.tell(f"route by {gateway}", NEW_ROUTE, body, CREATE | EXCLUSIVE)
