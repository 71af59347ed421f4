"""The middle form of what people open in a browser: one pod, and the path at which its pages lie."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What stands before the name of the service in front of a window, by the plural of its kind.
SHORT = {"tensorboards": "tb", "notebooks": "nb"}
# What the port is called that pages come from.
PORT_NAME = "http"
# Pages lie at the same path for everybody, as with T9k: whoever passes requests on need not change them.
_PAGE = re.compile(r"/t9k/(?P<plural>[a-z]+)/projects/(?P<namespace>[^/]+)/name/(?P<name>[^/]+)(?P<rest>/.*)?")

_FRONTS = frozenset({"/", "/lab"})
# Whose programs do not know their path: all their links are relative, so they work below any path, and at `/` too.
_AT_ROOT = frozenset({"tensorboards"})
# The type of a service that is reached from inside the cluster only.
INSIDE = "ClusterIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One pod that people look into, with its kind removed."""

    plural: str
    name: str
    namespace: str
    # `<name>-<5 hex>`: what the names of its pod and its secret start with.
    stem: str
    # The pod, with everything in it that its program needs.
    template: Mapping[str, Any]
    # Where its pages come from.
    port: int
    # What is opened first, below the path of its pages.
    page: str = ""
    # From where the service in front of it is reached, in the word that Kubernetes has for it.
    service_type: str = INSIDE
    is_suspended: bool = False
    # Unused for so long, it is suspended; 0: never.
    idle_seconds: int = 0
    # Whether its program ends by itself when it is not used; else the requests to it are counted.
    ends_by_itself: bool = False
    # Whether a token stands between people and its program.
    has_token: bool = False
    queue: str = ""
    priority: int = 0
    # Changes when its author wants another pod.
    digest: str = ""

    @property
    def pod(self) -> str:
        """Name its pod: there is never more than one."""
        return f"{self.stem}-0"

    @property
    def secret(self) -> str:
        """Name the secret that holds its token."""
        return secret_name(self.stem)

    @property
    def service(self) -> str:
        """Name the service in front of its pod."""
        return service_name(self.plural, self.name)

    @property
    def url(self) -> str:
        """Give the path at which it is opened."""
        return f"{prefix_of(self.plural, self.namespace, self.name)}/{self.page}"


def prefix_of(plural: str, namespace: str, name: str) -> str:
    """Give what the paths of all its pages begin with."""
    return f"/t9k/{plural}/projects/{namespace}/name/{name}"


def service_name(plural: str, name: str) -> str:
    """Name the service in front of a window; the short name of its kind keeps both kinds and all jobs apart."""
    return f"{SHORT[plural]}-{name}"


def secret_name(stem: str) -> str:
    """Name the secret that holds a window's token."""
    return f"{stem}-token"


def is_front(path: str) -> bool:
    """Tell whether a path is one at which people open a window, not one that an open page asks for by itself."""
    found = _PAGE.fullmatch(path)
    return ((found["rest"] or "/") if found else path) in _FRONTS


def proxy_path(path: str) -> tuple[str, str] | None:
    """Give the way to a page by its service's proxy, and what of the path its program does not get to see.

    None when a path leads to no page.
    """
    found = _PAGE.fullmatch(path)
    if found is None or found["plural"] not in SHORT:
        return None
    plural, namespace, name = found["plural"], found["namespace"], found["name"]
    unseen = prefix_of(plural, namespace, name) if plural in _AT_ROOT else ""
    way = f"/api/v1/namespaces/{namespace}/services/{service_name(plural, name)}:{PORT_NAME}/proxy"
    return f"{way}{path.removeprefix(unseen)}", unseen
