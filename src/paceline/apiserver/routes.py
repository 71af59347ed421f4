"""The routes: the verb of each method by type of path, and the URLs of T9k's pages.

A route that is not in `ROUTES` is not served. All but PUBLIC_ROUTES need a token (`Authenticator.allows`).
"""

from collections.abc import Mapping
from urllib.parse import unquote

from paceline.apiserver.http_types import Scope
from paceline.apiserver.paths import Target
from paceline.model.interactive import proxy_path

HEALTH, DISCOVERY, COLLECTION, OBJECT = "health", "discovery", "collection", "object"
# Subresources that are proxied to a node agent, or to a pod behind it.
PROXIED = ("attach", "exec", "portforward", "proxy")
# Key of an ASGI scope whose request was for a page: the part of its path that the page does not know.
PAGE_PREFIX = "paceline.page"

_ANY = {"GET": "get", "HEAD": "get", "OPTIONS": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
_READ_AND_WRITE = {"GET": "get", "PUT": "update", "PATCH": "patch"}
_CONNECT = {"GET": "get", "POST": "create"}

# The verb of a method, by type of path; every subresource is a type of its own.
VERBS: Mapping[str, Mapping[str, str]] = {
    HEALTH: {"GET": "get", "HEAD": "get"},
    DISCOVERY: {"GET": "get"},
    COLLECTION: {"GET": "list", "POST": "create", "DELETE": "deletecollection"},
    OBJECT: {**_READ_AND_WRITE, "DELETE": "delete"},
    "attach": _CONNECT,
    "binding": {"POST": "create"},
    "eviction": {"POST": "create"},
    "exec": _CONNECT,
    "finalize": {"PUT": "update"},
    "log": {"GET": "get"},
    "portforward": _CONNECT,
    "proxy": {**_ANY, "DELETE": "delete"},
    "scale": _READ_AND_WRITE,
    "status": _READ_AND_WRITE,
    "token": {"POST": "create"},
}

PUBLIC_ROUTES = frozenset({(HEALTH, "get")})
ROUTES = frozenset(
    {(COLLECTION, "watch"), *((route, verb) for route, methods in VERBS.items() for verb in methods.values())}
)


def route_of(target: Target) -> str:
    return target.subresource or (OBJECT if target.name else COLLECTION)


def proxied_object(path: str) -> tuple[str, ...]:
    """Return namespace, plural and name of the pod or Service that a raw path is proxied to; () for other paths.

    The path is still quoted: a quoted slash must not separate names.
    """
    parts = path.split("/", 8)
    is_proxied = parts[1:4] == ["api", "v1", "namespaces"] and parts[5:6] in (["pods"], ["services"])
    return tuple(unquote(part) for part in parts[4:7]) if is_proxied and parts[7:8] == ["proxy"] else ()


def rewrite_page_url(scope: Scope) -> Scope:
    """Rewrite T9k's URL of a TensorBoard or Notebook to the proxy of its Service; other requests are unchanged."""
    raw = scope.get("raw_path") or scope["path"].encode()
    rewritten = proxy_path(raw.decode("latin-1").partition("?")[0])
    if rewritten is None:
        return scope
    path, prefix = rewritten
    return {**scope, "path": unquote(path), "raw_path": path.encode("latin-1"), PAGE_PREFIX: prefix}
