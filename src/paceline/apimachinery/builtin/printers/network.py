"""The rows of services and of where they lead."""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.table import NONE, created

_SHOWN = 3


def service_cells(service: Object, now: str) -> tuple[Any, ...]:
    """Show a service."""
    chosen = (service.get("spec") or {}).get("selector") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(chosen.items()))
    return name_of(service), *reached_cells(service), created(service, now), selector or NONE


def reached_cells(service: Object) -> tuple[str, str, str, str]:
    """Show how a service is reached: its type, its address inside and outside, its ports."""
    spec = service.get("spec") or {}
    ports = (
        f"{port.get('port')}"
        + (f":{port['nodePort']}" if port.get("nodePort") else "")
        + f"/{port.get('protocol') or 'TCP'}"
        for port in spec.get("ports") or ()
    )
    return (
        str(spec.get("type") or ""),
        str(next(iter(spec.get("clusterIPs") or ()), NONE)),
        _from_outside(spec, service.get("status") or {}),
        ",".join(ports) or NONE,
    )


def _from_outside(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    given = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case "LoadBalancer":
            ways = (status.get("loadBalancer") or {}).get("ingress") or ()
            found = sorted({each.get("ip") or each.get("hostname") or "" for each in ways} - {""})
            return ",".join((*found, *given)) or "<pending>"
        case _:
            return ",".join(given) or NONE


def endpoints_cells(endpoints: Object, now: str) -> tuple[Any, ...]:
    """Show the addresses behind a service."""
    found: list[str] = []
    for subset in endpoints.get("subsets") or ():
        hosts = [str(each.get("ip")) for each in subset.get("addresses") or ()]
        ports = [port.get("port") for port in subset.get("ports") or ()]
        found.extend(_joined(host, port) for port in ports for host in hosts)
        if not ports:
            found.extend(hosts)
    shown = _first(found) if endpoints.get("subsets") else NONE
    return name_of(endpoints), shown, created(endpoints, now)


def _joined(host: str, port: Any) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def slice_cells(piece: Object, now: str) -> tuple[Any, ...]:
    """Show a slice of the addresses behind a service."""
    ports = [str(each.get("port") or each.get("name") or "*") for each in piece.get("ports") or ()]
    addresses = [address for each in piece.get("endpoints") or () for address in each.get("addresses") or ()]
    return (
        name_of(piece),
        piece.get("addressType") or "",
        _first(ports) or "<unset>",
        _first(addresses) or "<unset>",
        created(piece, now),
    )


def _first(found: Iterable[str]) -> str:
    """Join a few and count the rest."""
    listed = list(found)
    more = f" + {len(listed) - _SHOWN} more..." if len(listed) > _SHOWN else ""
    return ",".join(listed[:_SHOWN]) + more
