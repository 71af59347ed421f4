"""Every route there is: which verb a method means on which sort of path, and who may call it.

A route that is not listed in `CALLERS` is served to nobody. What each holder of a token may do in which namespace is
asked of the gate (`Gate.allows`): accounts of pods may do a little (`rights.py`), every other holder everything.
"""

from collections.abc import Mapping
from enum import Enum
from urllib.parse import unquote

from paceline.apiserver.http_types import Scope
from paceline.apiserver.paths import Target
from paceline.model.interactive import proxy_path


class Callers(Enum):
    """Who may call a route."""

    ANYONE = "anyone who reaches the server"
    HOLDERS = "holders of a token, as far as the gate allows"


HEALTH, DISCOVERY, COLLECTION, OBJECT = "health", "discovery", "collection", "object"
# What goes straight through to a node's agent, or to a pod behind it.
PROXIED = ("attach", "exec", "portforward", "proxy")

_ANY = {"GET": "get", "HEAD": "get", "OPTIONS": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
_READ_AND_WRITE = {"GET": "get", "PUT": "update", "PATCH": "patch"}
_LINE = {"GET": "get", "POST": "create"}

# What a method means, by the sort of a path: subresources are sorts of their own.
VERBS: Mapping[str, Mapping[str, str]] = {
    HEALTH: {"GET": "get", "HEAD": "get"},
    DISCOVERY: {"GET": "get"},
    COLLECTION: {"GET": "list", "POST": "create", "DELETE": "deletecollection"},
    OBJECT: {**_READ_AND_WRITE, "DELETE": "delete"},
    "attach": _LINE,
    "binding": {"POST": "create"},
    "eviction": {"POST": "create"},
    "exec": _LINE,
    "finalize": {"PUT": "update"},
    "log": {"GET": "get"},
    "portforward": _LINE,
    "proxy": {**_ANY, "DELETE": "delete"},
    "scale": _READ_AND_WRITE,
    "status": _READ_AND_WRITE,
    "token": {"POST": "create"},
}

CALLERS: Mapping[tuple[str, str], Callers] = {
    (HEALTH, "get"): Callers.ANYONE,
    (DISCOVERY, "get"): Callers.HOLDERS,
    (COLLECTION, "list"): Callers.HOLDERS,
    (COLLECTION, "watch"): Callers.HOLDERS,
    (COLLECTION, "create"): Callers.HOLDERS,
    (COLLECTION, "deletecollection"): Callers.HOLDERS,
    (OBJECT, "get"): Callers.HOLDERS,
    (OBJECT, "update"): Callers.HOLDERS,
    (OBJECT, "patch"): Callers.HOLDERS,
    (OBJECT, "delete"): Callers.HOLDERS,
    ("attach", "get"): Callers.HOLDERS,
    ("attach", "create"): Callers.HOLDERS,
    ("binding", "create"): Callers.HOLDERS,
    ("eviction", "create"): Callers.HOLDERS,
    ("exec", "get"): Callers.HOLDERS,
    ("exec", "create"): Callers.HOLDERS,
    ("finalize", "update"): Callers.HOLDERS,
    ("log", "get"): Callers.HOLDERS,
    ("portforward", "get"): Callers.HOLDERS,
    ("portforward", "create"): Callers.HOLDERS,
    ("proxy", "get"): Callers.HOLDERS,
    ("proxy", "create"): Callers.HOLDERS,
    ("proxy", "update"): Callers.HOLDERS,
    ("proxy", "patch"): Callers.HOLDERS,
    ("proxy", "delete"): Callers.HOLDERS,
    ("scale", "get"): Callers.HOLDERS,
    ("scale", "update"): Callers.HOLDERS,
    ("scale", "patch"): Callers.HOLDERS,
    ("status", "get"): Callers.HOLDERS,
    ("status", "update"): Callers.HOLDERS,
    ("status", "patch"): Callers.HOLDERS,
    ("token", "create"): Callers.HOLDERS,
}


def route_of(target: Target) -> str:
    """Tell which sort of path names a target."""
    return target.subresource or (OBJECT if target.name else COLLECTION)


def proxied_object(path: str) -> tuple[str, ...]:
    """Return namespace, plural and name of the pod or service that a raw path leads through to; () for other paths.

    The path is the one that was sent, not unquoted: a quoted slash must not look like one between names.
    """
    parts = path.split("/", 8)
    is_through = parts[1:4] == ["api", "v1", "namespaces"] and parts[5:6] in (["pods"], ["services"])
    return tuple(unquote(part) for part in parts[4:7]) if is_through and parts[7:8] == ["proxy"] else ()


# Where a scope says that its request came by a page's own path, and what of that path the page does not know.
PAGE_PREFIX = "paceline.page"


def rewrite_page_url(scope: Scope) -> Scope:
    """Lead a request for a page to the service that has it."""
    raw = scope.get("raw_path") or scope["path"].encode()
    found = proxy_path(raw.decode("latin-1").partition("?")[0])
    if found is None:
        return scope
    path, unseen = found
    return {**scope, "path": unquote(path), "raw_path": path.encode("latin-1"), PAGE_PREFIX: unseen}
