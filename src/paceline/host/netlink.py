"""Netlink: create, list and delete network interfaces, addresses and routes.

It uses a socket of the standard library, so that no program and no package has to be installed (decision 8).
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
    """Encode an attribute, padded to the alignment of the next one."""
    return struct.pack("=HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def nested(kind: int, *parts: bytes) -> bytes:
    """Encode an attribute that consists of attributes."""
    return attribute(kind | NESTED, b"".join(parts))


def text(value: str) -> bytes:
    """Encode a string, terminated by a zero byte."""
    return value.encode() + b"\0"


def number(value: int) -> bytes:
    """Encode a number in the machine's byte order."""
    return struct.pack("=I", value)


def message(kind: int, flags: int, sequence: int, body: bytes) -> bytes:
    return _HEAD.pack(len(body) + _HEAD.size, kind, flags, sequence, 0) + body + bytes(-len(body) % 4)


def messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Decode messages: type, sequence number, body."""
    while len(data) >= _HEAD.size:
        size, kind, _, sequence, _ = _HEAD.unpack_from(data)
        yield kind, sequence, data[_HEAD.size : size]
        data = data[(size + 3) & ~3 :]


def attributes(data: bytes) -> dict[int, bytes]:
    """Decode attributes, by type."""
    values = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            break
        values[kind & KIND_MASK] = data[4:size]
        data = data[(size + 3) & ~3 :]
    return values


def error_number(body: bytes) -> int:
    """Return the errno of an error message; 0 if there is no error."""
    (code,) = struct.unpack_from("=i", body)
    return -int(code)


class NetlinkSocket:
    """A netlink socket, which stays in the network namespace in which it was opened."""

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
        self._sequence += 1
        return self._sequence

    def execute(self, action: str, kind: int, body: bytes, flags: int = 0) -> None:
        """Send one request and wait for its acknowledgement; OSError names the action that the kernel refused."""
        sequence = self.next_sequence()
        self.send(action, message(kind, REQUEST | ACK | flags, sequence, body), {sequence})

    def send(self, action: str, data: bytes, sequences: set[int]) -> None:
        """Send messages and wait until each of these sequence numbers is acknowledged."""
        self._socket.send(data)
        waiting = set(sequences)
        while waiting:
            for kind, sequence, body in messages(self._socket.recv(READ_BYTES)):
                code = error_number(body) if kind == ERROR else 0
                if code:
                    raise OSError(code, f"{action}: {os.strerror(code)}")
                waiting.discard(sequence)

    def query(self, kind: int, body: bytes, flags: int = DUMP) -> Iterator[bytes]:
        """Return all objects of a kind, or, with ACK as flags, just one."""
        sequence = self.next_sequence()
        self._socket.send(message(kind, REQUEST | flags, sequence, body))
        answers: list[bytes] = []
        while True:
            for sort, answered, answer in messages(self._socket.recv(READ_BYTES)):
                if answered != sequence:
                    continue
                if sort in (DONE, ERROR):
                    if sort == ERROR and (code := error_number(answer)):
                        raise OSError(code, os.strerror(code))
                    return iter(answers)
                answers.append(answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    index: int
    name: str
    master: int
    alias: str
    is_up: bool
    # Whether it transmits packets, which begins a moment after it is up.
    is_running: bool


def links(sock: NetlinkSocket) -> tuple[Link, ...]:
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute(EXTRA, number(WITHOUT_COUNTERS))
    return tuple(_link(answer) for answer in sock.query(GET_LINK, body))


def find_link(sock: NetlinkSocket, name: str) -> Link | None:
    """Return the interface with this name; None if it does not exist."""
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute(NAME, text(name))
    try:
        return next((_link(answer) for answer in sock.query(GET_LINK, body, flags=ACK)), None)
    except OSError as error:
        if error.errno == errno.ENODEV:
            return None
        raise


def _link(body: bytes) -> Link:
    _, _, index, flags, _ = _LINK.unpack_from(body)
    values = attributes(body[_LINK.size :])
    return Link(
        index=index,
        name=_text(values.get(NAME, b"")),
        master=int.from_bytes(values.get(MASTER, b""), "little"),
        alias=_text(values.get(ALIAS, b"")),
        is_up=bool(flags & UP),
        is_running=bool(flags & RUNNING),
    )


def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")


def routed(sock: NetlinkSocket) -> tuple[IPv4Network, ...]:
    """Return the destinations of all routes in all tables, without default routes."""
    networks = []
    for body in sock.query(GET_ROUTE, _ROUTE.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)):
        family, bits, *_ = _ROUTE.unpack_from(body)
        destination = attributes(body[_ROUTE.size :]).get(RTA_TO)
        if family == socket.AF_INET and bits and destination:
            networks.append(IPv4Network((destination, bits), strict=False))
    return tuple(networks)


def make_bridge(sock: NetlinkSocket, name: str, *, hardware: bytes, mtu: int) -> None:
    """Create a bridge with a fixed MAC address, which does not change with the interfaces on it."""
    info = nested(INFO, attribute(INFO_KIND, b"bridge"))
    parts = (attribute(NAME, text(name)), attribute(HARDWARE, hardware), attribute(MTU, number(mtu)))
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + b"".join(parts) + info
    sock.execute(f"bridge {name}", NEW_LINK, body, CREATE | EXCLUSIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class VethPair:
    """A veth pair: one end on a bridge, the other, called `inside`, in another namespace."""

    name: str
    master: int
    mtu: int
    inside: str
    hardware: bytes
    # A file descriptor of the other namespace.
    namespace: int


def make_pair(sock: NetlinkSocket, pair: VethPair) -> None:
    """Create a veth pair; both ends are down."""
    inner = (
        attribute(NAME, text(pair.inside)),
        attribute(HARDWARE, pair.hardware),
        attribute(MTU, number(pair.mtu)),
        attribute(NAMESPACE, number(pair.namespace)),
    )
    peer = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + b"".join(inner)
    info = nested(INFO, attribute(INFO_KIND, b"veth"), nested(INFO_DATA, attribute(PEER, peer)))
    outer = (
        attribute(NAME, text(pair.name)),
        attribute(MTU, number(pair.mtu)),
        attribute(MASTER, number(pair.master)),
    )
    body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + b"".join(outer) + info
    sock.execute(f"link {pair.name}", NEW_LINK, body, CREATE | EXCLUSIVE)


def set_up(sock: NetlinkSocket, *, index: int = 0, name: str = "", alias: str = "") -> None:
    """Set an interface up, and set its alias."""
    parts = (attribute(NAME, text(name)) if name else b"", attribute(ALIAS, alias.encode()) if alias else b"")
    body = _LINK.pack(socket.AF_UNSPEC, 0, index, UP, UP) + b"".join(parts)
    sock.execute(f"link {name or index} up", NEW_LINK, body)


def delete_link(sock: NetlinkSocket, name: str) -> None:
    """Delete an interface; OSError if it does not exist."""
    sock.execute(
        f"delete link {name}", DELETE_LINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + attribute(NAME, text(name))
    )


def add_address(sock: NetlinkSocket, index: int, address: IPv4Interface) -> None:
    parts = attribute(IFA_LOCAL, address.packed) + attribute(IFA_ADDRESS, address.packed)
    body = _ADDRESS.pack(socket.AF_INET, address.network.prefixlen, 0, UNIVERSE, index) + parts
    sock.execute(f"address {address}", NEW_ADDRESS, body, CREATE | EXCLUSIVE)


def set_gateway(sock: NetlinkSocket, index: int, gateway: IPv4Address) -> None:
    head = _ROUTE.pack(socket.AF_INET, 0, 0, 0, MAIN_TABLE, BY_BOOT, UNIVERSE, UNICAST, 0)
    body = head + attribute(RTA_GATEWAY, gateway.packed) + attribute(RTA_OUT, number(index))
    sock.execute(f"default route by {gateway}", NEW_ROUTE, body, CREATE | EXCLUSIVE)
