"""The grammar of Kubernetes paths, and the keys under which objects are stored.

Paths: /api/v1 or /apis/GROUP/VERSION, then [/namespaces/NAMESPACE]/PLURAL[/NAME[/SUBRESOURCE]]; any path may follow
the subresource `proxy`.
Keys: /GROUP/PLURAL/NAMESPACE/NAME, with `core` for the group that has no name and `-` where an object is not in a
namespace; neither can be the name of a real group or namespace. The version is not part of a key.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apiserver.status_errors import bad_request, malformed_url, no_such_path, not_found, page_not_found

CLUSTER = "-"
CORE = "core"
MAX_PATH = 4096
PROXY = "proxy"
_BROKEN = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFields:
    """In whose words an object is written that is kept in those of another version."""

    api_version: str
    # What each field, as a step of a path, is called there.
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a path names: a kind, and perhaps a namespace, an object, a subresource of it."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    written: ServedFields | None = None

    @property
    def key(self) -> str:
        """Give the key of the object."""
        return key_for(self.resource, self.namespace, self.name)

    @property
    def prefix(self) -> str:
        """Give what the keys of all objects of the collection begin with."""
        return prefix_for(self.resource, self.namespace)


def key_for(resource: Resource, namespace: str, name: str) -> str:
    """Give the key of one object."""
    return f"/{resource.group or CORE}/{resource.plural}/{namespace or CLUSTER}/{name}"


def prefix_for(resource: Resource, namespace: str = "") -> str:
    """Give what the keys of a kind's objects begin with, in one namespace or in all."""
    start = f"/{resource.group or CORE}/{resource.plural}/"
    return f"{start}{namespace}/" if namespace else start


def split_key(key: str) -> tuple[str, str]:
    """Give the namespace and the name that a key holds."""
    _, namespace, name = key.rsplit("/", 2)
    return ("" if namespace == CLUSTER else namespace), name


def split_path(raw: bytes) -> tuple[str, ...]:
    """Cut a path as it was sent into its decoded parts."""
    if len(raw) > MAX_PATH:
        raise bad_request(f"the path is longer than {MAX_PATH} bytes")
    text = raw.decode("latin-1").partition("?")[0]
    if text.isascii() and "%" not in text:
        return tuple(text.strip("/").split("/")) if text.strip("/") else ()
    if _BROKEN.search(text):
        raise malformed_url()
    try:
        return tuple(unquote(part, errors="strict") for part in text.strip("/").split("/"))
    except UnicodeDecodeError as error:
        raise bad_request("the path is not UTF-8") from error


def find_target(scheme: Scheme, parts: tuple[str, ...]) -> Target:
    """Find what a path below /api or /apis names."""
    group, version, rest = _root(parts)
    namespace = ""
    if len(rest) > 2 and rest[:2] == ("namespaces", ""):
        # No name of a namespace means all of them.
        rest = rest[2:]
    if "" in rest:
        raise no_such_path()
    # /namespaces/NAME and its own subresources are about the namespace itself.
    if len(rest) > 2 and rest[0] == "namespaces" and not _is_own(scheme, version, rest, group=group):
        namespace, rest = rest[1], rest[2:]
    resource = scheme.find(group, version, rest[0]) if rest else None
    if resource is None and group and not _is_kubernetes_own(scheme, group, version):
        raise page_not_found()
    # What comes after a proxy is not ours to read.
    is_too_long = len(rest) > 3 and rest[2] != PROXY
    if resource is None or is_too_long or (namespace and not resource.namespaced):
        raise no_such_path()
    name, subresource = (*rest[1:], "", "")[:2]
    if name and resource.namespaced and not namespace:
        raise no_such_path()
    _check_names(namespace, name)
    if subresource and subresource not in resource.subresources:
        raise no_such_path() if resource.is_builtin else not_found(resource, name)
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)


def _check_names(namespace: str, name: str) -> None:
    """Refuse names that no object has and no key may hold."""
    if "/" in namespace or "/" in name:
        raise no_such_path()
    if name in {".", ".."}:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")


def _is_kubernetes_own(scheme: Scheme, group: str, version: str) -> bool:
    return any(kind.is_builtin and (kind.group, kind.version) == (group, version) for kind in scheme.resources)


def _root(parts: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    if len(parts) > 2 and parts[0] == "api":
        return "", parts[1], parts[2:]
    if len(parts) > 3 and parts[0] == "apis":
        return parts[1], parts[2], parts[3:]
    raise no_such_path()


def _is_own(scheme: Scheme, version: str, rest: tuple[str, ...], *, group: str) -> bool:
    namespaces = scheme.find("", version, "namespaces")
    return not group and len(rest) == 3 and namespaces is not None and rest[2] in namespaces.subresources
