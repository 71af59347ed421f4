"""Kubernetes paths, and the keys of stored objects.

Paths: /api/v1 or /apis/GROUP/VERSION, then [/namespaces/NAMESPACE]/PLURAL[/NAME[/SUBRESOURCE]]; any path may follow
the subresource `proxy`.
Keys: /GROUP/PLURAL/NAMESPACE/NAME, with `core` for the group without a name and `-` for cluster-scoped objects; neither
can be the name of a group or namespace. The version is not part of a key.
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
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFields:
    """The field names of the version in which an object is served, if it is stored in another one."""

    api_version: str
    # By field, as a step of a managed-fields path.
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a path refers to: a resource, and optionally a namespace, an object and its subresource."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    written: ServedFields | None = None

    @property
    def key(self) -> str:
        return key_for(self.resource, self.namespace, self.name)

    @property
    def prefix(self) -> str:
        return prefix_for(self.resource, self.namespace)


def key_for(resource: Resource, namespace: str, name: str) -> str:
    return f"/{resource.group or CORE}/{resource.plural}/{namespace or CLUSTER}/{name}"


def prefix_for(resource: Resource, namespace: str = "") -> str:
    """Return the common prefix of all keys of a resource, in one namespace or in all."""
    start = f"/{resource.group or CORE}/{resource.plural}/"
    return f"{start}{namespace}/" if namespace else start


def split_key(key: str) -> tuple[str, str]:
    _, namespace, name = key.rsplit("/", 2)
    return ("" if namespace == CLUSTER else namespace), name


def split_path(raw: bytes) -> tuple[str, ...]:
    if len(raw) > MAX_PATH:
        raise bad_request(f"the path is longer than {MAX_PATH} bytes")
    text = raw.decode("latin-1").partition("?")[0]
    if text.isascii() and "%" not in text:
        return tuple(text.strip("/").split("/")) if text.strip("/") else ()
    if _BAD_ESCAPE.search(text):
        raise malformed_url()
    try:
        return tuple(unquote(part, errors="strict") for part in text.strip("/").split("/"))
    except UnicodeDecodeError as error:
        raise bad_request("the path is not UTF-8") from error


def find_target(scheme: Scheme, parts: tuple[str, ...]) -> Target:
    """Return the target of a path below /api or /apis, or raise NotFound."""
    group, version, rest_parts = _root(parts)
    namespace = ""
    if len(rest_parts) > 2 and rest_parts[:2] == ("namespaces", ""):
        # An empty namespace means all namespaces.
        rest_parts = rest_parts[2:]
    if "" in rest_parts:
        raise no_such_path()
    # /namespaces/NAME and its subresources are about the namespace itself.
    if (
        len(rest_parts) > 2
        and rest_parts[0] == "namespaces"
        and not _is_namespace_subresource(scheme, version, rest_parts, group=group)
    ):
        namespace, rest_parts = rest_parts[1], rest_parts[2:]
    resource = scheme.find(group, version, rest_parts[0]) if rest_parts else None
    if resource is None and group and not _is_builtin_group(scheme, group, version):
        raise page_not_found()
    # The path after a proxy belongs to the pod.
    is_too_long = len(rest_parts) > 3 and rest_parts[2] != PROXY
    if resource is None or is_too_long or (namespace and not resource.namespaced):
        raise no_such_path()
    name, subresource = (*rest_parts[1:], "", "")[:2]
    if name and resource.namespaced and not namespace:
        raise no_such_path()
    _check_names(namespace, name)
    if subresource and subresource not in resource.subresources:
        raise no_such_path() if resource.is_builtin else not_found(resource, name)
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)


def _check_names(namespace: str, name: str) -> None:
    if "/" in namespace or "/" in name:
        raise no_such_path()
    if name in {".", ".."} or "%" in name:
        raise bad_request(f'the name "{name}" is invalid: it must not be . or .. and must not contain %')


def _is_builtin_group(scheme: Scheme, group: str, version: str) -> bool:
    return any(kind.is_builtin and (kind.group, kind.version) == (group, version) for kind in scheme.resources)


def _root(parts: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    if len(parts) > 2 and parts[0] == "api":
        return "", parts[1], parts[2:]
    if len(parts) > 3 and parts[0] == "apis":
        return parts[1], parts[2], parts[3:]
    raise no_such_path()


def _is_namespace_subresource(scheme: Scheme, version: str, rest_parts: tuple[str, ...], *, group: str) -> bool:
    namespaces = scheme.find("", version, "namespaces")
    return not group and len(rest_parts) == 3 and namespaces is not None and rest_parts[2] in namespaces.subresources
