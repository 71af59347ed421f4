"""The firewall rules of one cluster: outgoing connections are masqueraded, incoming ones are dropped.

They are sent as nf_tables messages, so that neither nft nor iptables has to be installed. All rules are in one table
with the bridge's name, which is replaced in one step.
"""

import socket
import struct
from ipaddress import IPv4Network

from paceline.host.netlink import (
    ACK,
    CREATE,
    NETFILTER,
    REQUEST,
    NetlinkSocket,
    attribute,
    message,
    nested,
    number,
    text,
)

SUBSYSTEM = 10
BEGIN, END = 0x10, 0x11
NEW_TABLE, DELETE_TABLE, NEW_CHAIN, NEW_RULE = 0, 2, 3, 6
TABLE_NAME, CHAIN_TABLE, CHAIN_NAME, CHAIN_HOOK, CHAIN_POLICY, CHAIN_TYPE = 1, 1, 3, 4, 5, 7
RULE_TABLE, RULE_CHAIN, RULE_EXPRESSIONS = 1, 2, 4
FORWARD, AFTER_ROUTING = 2, 4
BEFORE_OTHERS, AS_SOURCE = 0, 100
IN_NAME, OUT_NAME = 6, 7
EQUAL, OTHER = 0, 1
REGISTER = 1
DROP, ACCEPT = 0, 1
ESTABLISHED_OR_RELATED = 2 | 4
NAME_BYTES = 16
SOURCE_OFFSET, ADDRESS_BYTES, NETWORK_HEADER = 12, 4, 1
APPEND = 0x800


def guard(sock: NetlinkSocket, bridge: str, subnet: IPv4Network) -> None:
    """Replace the rules of a bridge; OSError if the kernel has no nf_tables."""
    steps = [
        (NEW_TABLE, CREATE, attribute(TABLE_NAME, text(bridge))),
        (DELETE_TABLE, 0, attribute(TABLE_NAME, text(bridge))),
        (NEW_TABLE, CREATE, attribute(TABLE_NAME, text(bridge))),
        (NEW_CHAIN, CREATE, _chain(bridge, "out", "nat", (AFTER_ROUTING, AS_SOURCE))),
        (NEW_CHAIN, CREATE, _chain(bridge, "through", "filter", (FORWARD, BEFORE_OTHERS))),
        _rule(bridge, "out", *_from(subnet), *_interface(OUT_NAME, OTHER, bridge), _expression("masq")),
        _rule(
            bridge,
            "through",
            *_interface(IN_NAME, EQUAL, bridge),
            *_interface(OUT_NAME, EQUAL, bridge),
            _verdict(ACCEPT),
        ),
        _rule(bridge, "through", *_interface(OUT_NAME, EQUAL, bridge), *_answers(), _verdict(ACCEPT)),
        _rule(bridge, "through", *_interface(OUT_NAME, EQUAL, bridge), _verdict(DROP)),
    ]
    _execute(sock, f"packet filter rules of {bridge}", steps)


def unguard(sock: NetlinkSocket, bridge: str) -> None:
    """Remove the rules of a bridge, if it has any."""
    name = attribute(TABLE_NAME, text(bridge))
    _execute(sock, f"packet filter rules of {bridge}", [(NEW_TABLE, CREATE, name), (DELETE_TABLE, 0, name)])


def _execute(sock: NetlinkSocket, action: str, steps: list[tuple[int, int, bytes]]) -> None:
    """Execute all steps as one transaction."""
    data = message(BEGIN, REQUEST, sock.next_sequence(), _head(socket.AF_UNSPEC, SUBSYSTEM))
    waiting = set()
    for kind, flags, body in steps:
        sequence = sock.next_sequence()
        waiting.add(sequence)
        data += message(SUBSYSTEM << 8 | kind, REQUEST | ACK | flags, sequence, _head(socket.AF_INET) + body)
    data += message(END, REQUEST, sock.next_sequence(), _head(socket.AF_UNSPEC, SUBSYSTEM))
    sock.send(action, data, waiting)


def open_socket() -> NetlinkSocket:
    return NetlinkSocket(NETFILTER)


def _head(family: int, resource: int = 0) -> bytes:
    return struct.pack("!BBH", family, 0, resource)


def _big(value: int) -> bytes:
    return struct.pack("!I", value)


def _chain(table: str, name: str, kind: str, hook: tuple[int, int]) -> bytes:
    hook_attribute = nested(CHAIN_HOOK, attribute(1, _big(hook[0])), attribute(2, _big(hook[1])))
    names = attribute(CHAIN_TABLE, text(table)) + attribute(CHAIN_NAME, text(name))
    return names + hook_attribute + attribute(CHAIN_POLICY, _big(ACCEPT)) + attribute(CHAIN_TYPE, text(kind))


def _rule(table: str, chain: str, *expressions: bytes) -> tuple[int, int, bytes]:
    names = attribute(RULE_TABLE, text(table)) + attribute(RULE_CHAIN, text(chain))
    return NEW_RULE, CREATE | APPEND, names + nested(RULE_EXPRESSIONS, *expressions)


def _expression(name: str, *parts: bytes) -> bytes:
    return nested(1, attribute(1, text(name)), nested(2, *parts))


def _compare(sign: int, value: bytes) -> bytes:
    parts = attribute(1, _big(REGISTER)), attribute(2, _big(sign)), nested(3, attribute(1, value))
    return _expression("cmp", *parts)


def _interface(key: int, sign: int, name: str) -> tuple[bytes, bytes]:
    load = _expression("meta", attribute(1, _big(REGISTER)), attribute(2, _big(key)))
    return load, _compare(sign, name.encode().ljust(NAME_BYTES, b"\0"))


def _mask(mask: bytes) -> bytes:
    registers = attribute(1, _big(REGISTER)), attribute(2, _big(REGISTER)), attribute(3, _big(len(mask)))
    return _expression("bitwise", *registers, nested(4, attribute(1, mask)), nested(5, attribute(1, bytes(len(mask)))))


def _from(subnet: IPv4Network) -> tuple[bytes, ...]:
    place = (NETWORK_HEADER, SOURCE_OFFSET, ADDRESS_BYTES)
    parts = (attribute(kind, _big(value)) for kind, value in enumerate(place, start=2))
    load = _expression("payload", attribute(1, _big(REGISTER)), *parts)
    return load, _mask(subnet.netmask.packed), _compare(EQUAL, subnet.network_address.packed)


def _answers() -> tuple[bytes, ...]:
    load = _expression("ct", attribute(1, _big(REGISTER)), attribute(2, _big(0)))
    return load, _mask(number(ESTABLISHED_OR_RELATED)), _compare(OTHER, number(0))


def _verdict(code: int) -> bytes:
    return _expression("immediate", attribute(1, _big(0)), nested(2, nested(2, attribute(1, _big(code)))))
