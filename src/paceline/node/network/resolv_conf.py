"""The list of name servers of a pod that wants another than the machine's."""

from collections.abc import Iterable
from typing import Any

from paceline.apimachinery.meta import Object


def has_own_list(pod: Object) -> bool:
    """Tell whether a pod says something about its name servers."""
    spec = pod.get("spec") or {}
    return spec.get("dnsPolicy") == "None" or bool(spec.get("dnsConfig"))


def resolver_text(pod: Object, machine: str) -> str:
    """Write a pod's list: only its own words when it wants none else, or the machine's with its own added."""
    spec = pod.get("spec") or {}
    own = spec.get("dnsConfig") or {}
    lines = [] if spec.get("dnsPolicy") == "None" else [line.split() for line in machine.splitlines()]
    servers = _all("nameserver", lines, own.get("nameservers") or ())
    searches = _all("search", lines, own.get("searches") or ())
    options = {word.partition(":")[0]: word for word in _all("options", lines, ())}
    options |= {str(each["name"]): _option(each) for each in own.get("options") or ()}
    text = f"search {' '.join(searches)}\n" if searches else ""
    text += "".join(f"nameserver {each}\n" for each in servers)
    return text + (f"options {' '.join(options.values())}\n" if options else "")


def _all(word: str, lines: Iterable[list[str]], more: Iterable[Any]) -> tuple[str, ...]:
    found = [each for line in lines if line[:1] == [word] for each in line[1:]]
    return tuple(dict.fromkeys((*found, *map(str, more))))


def _option(wire: dict[str, Any]) -> str:
    return f"{wire['name']}:{wire['value']}" if wire.get("value") is not None else str(wire["name"])
