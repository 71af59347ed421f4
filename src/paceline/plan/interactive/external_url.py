"""Where a service is reached from outside its cluster, as what people type into a browser."""

from ipaddress import IPv6Address
from typing import Any

from paceline.apimachinery.meta import Object

BALANCED, HIGH = "LoadBalancer", "NodePort"
# What need not be typed.
USUAL_PORT = 80


def type_of(service: Object) -> str:
    """Return the type of a service."""
    return str((service.get("spec") or {}).get("type") or "ClusterIP")


def address_of(service: Object, node: str) -> str:
    """Return where the first port of a service is reached; `node` is an address at which its high port listens, if any.

    Nothing while nobody has given it an address, and for a service that is reached from inside only.
    """
    port: dict[str, Any] = next(iter((service.get("spec") or {}).get("ports") or ()), {})
    ingresses = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    kind, high = type_of(service), int(port.get("nodePort") or 0)
    for ingress in ingresses if kind == BALANCED else ():
        return _written(str(ingress.get("ip") or ingress.get("hostname")), int(port.get("port") or USUAL_PORT))
    return _written(node, high) if kind in (BALANCED, HIGH) and node and high else ""


def _written(host: str, port: int) -> str:
    shown = f"[{host}]" if _is_long(host) else host
    return f"http://{shown}/" if port == USUAL_PORT else f"http://{shown}:{port}/"


def _is_long(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True
