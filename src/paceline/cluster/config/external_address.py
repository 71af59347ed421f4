"""The external address: where the machine is reached from outside, as a person chose it."""

import socket
from ipaddress import ip_address

from paceline.errors import Fault, Invalid

OPTION = "--external-address"


def own_address(text: str) -> str:
    """Read an address of this machine; Invalid says what is wrong with it."""
    try:
        found = ip_address(text)
    except ValueError:
        raise Invalid((Fault(OPTION, text, "write an address of this machine, such as 192.168.1.5"),)) from None
    if found.is_unspecified:
        raise Invalid((Fault(OPTION, text, "name one address: this one stands for all, and nobody can open it"),))
    with socket.socket(socket.AF_INET if found.version == 4 else socket.AF_INET6) as sock:
        try:
            sock.bind((str(found), 0))
        except OSError as error:
            hint = f"this machine has no such address ({error.strerror}); `ip addr` lists those it has"
            raise Invalid((Fault(OPTION, text, hint),)) from error
    return str(found)


def is_from_here_only(address: str) -> bool:
    """Tell whether only programs of this machine reach an address."""
    return ip_address(address).is_loopback
