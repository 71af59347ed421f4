"""The intermediate form of a TensorBoard, Notebook or Explorer: one pod, and the URL path of its pages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from paceline.model.condition import Condition, ConditionedStatus, conditions_of
from paceline.model.wire_object import ALWAYS, MICRO, WireForm, phase_or

# Prefix of the Service name, by the plural of the kind.
SHORT = {"tensorboards": "tb", "notebooks": "nb", "explorers": "ex"}
# Name of the HTTP port.
PORT_NAME = "http"
# The URL path is the same everywhere, as in T9k, so that proxies need not rewrite it.
_PAGE = re.compile(r"/t9k/(?P<plural>[a-z]+)/projects/(?P<namespace>[^/]+)/name/(?P<name>[^/]+)(?P<page>/.*)?")

_PROXIED = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[^/]+)/services/(?P<short>tb|nb)-(?P<name>[^/:]+):http/proxy(?P<page>/.*)?"
)
_FRONTS = frozenset({"/", "/lab"})
# Kinds whose programs use only relative links, and therefore serve at `/`, below any path of a proxy.
_AT_ROOT = frozenset({"tensorboards", "explorers"})
# Type of a Service that is reachable only inside the cluster.
INSIDE = "ClusterIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveWorkload:
    """A pod with a web application, independent of its kind."""

    plural: str
    name: str
    namespace: str
    # `<name>-<5 hex>`: the prefix of the names of its pod and its Secret.
    stem: str
    # The pod template, with everything that its program needs.
    template: Mapping[str, Any]
    # Port of its HTTP server.
    port: int
    # Its command where its pages are reached through the service proxy only, if that is another one.
    proxied_command: tuple[str, ...] = ()
    # First page, relative to its URL path.
    page: str = ""
    # Type of its Service.
    service_type: str = INSIDE
    is_suspended: bool = False
    # Time without use after which it is suspended; 0: never.
    idle_seconds: int = 0
    # Whether its program exits by itself when it is idle; otherwise its requests are counted.
    ends_by_itself: bool = False
    # Whether its program requires a token.
    has_token: bool = False
    # Whether its containers are all ours, so that they can be confined where a namespace admits nothing else.
    is_confinable: bool = False
    queue: str = ""
    priority: int = 0
    # Changes when the spec requires a new pod.
    digest: str = ""

    @property
    def pod(self) -> str:
        """Name of its pod; there is never more than one."""
        return f"{self.stem}-0"

    @property
    def secret(self) -> str:
        """Name of the Secret with its token."""
        return secret_name(self.stem)

    @property
    def service(self) -> str:
        """Name of its Service."""
        return service_name(self.plural, self.name)

    @property
    def url(self) -> str:
        """URL path of its first page, as T9k and the embedded cluster have it."""
        return f"{prefix_of(self.plural, self.namespace, self.name)}/{self.page}"

    @property
    def service_url(self) -> str:
        """URL path of its first page on every cluster: through the service proxy of the API server."""
        route = proxy_path(self.url)
        return route[0] if route else self.url


def prefix_of(plural: str, namespace: str, name: str) -> str:
    """Return the prefix of the URL paths of all its pages."""
    return f"/t9k/{plural}/projects/{namespace}/name/{name}"


def service_name(plural: str, name: str) -> str:
    """Return the name of its Service; the prefix distinguishes both kinds and all jobs."""
    return f"{SHORT[plural]}-{name}"


def secret_name(stem: str) -> str:
    """Return the name of the Secret with its token."""
    return f"{stem}-token"


def is_front(path: str) -> bool:
    """Return whether a user opens this path in a browser, as opposed to a page requesting it."""
    match = _PAGE.fullmatch(path)
    return ((match["page"] or "/") if match else path) in _FRONTS


def proxy_path(path: str) -> tuple[str, str] | None:
    """Return the path of a page through the Service proxy, and the prefix that its program does not see.

    None if the path is not that of a page.
    """
    match = _PAGE.fullmatch(path)
    if match is None or match["plural"] not in SHORT:
        return None
    plural, namespace, name = match["plural"], match["namespace"], match["name"]
    hidden_prefix = prefix_of(plural, namespace, name) if plural in _AT_ROOT else ""
    proxy = f"/api/v1/namespaces/{namespace}/services/{service_name(plural, name)}:{PORT_NAME}/proxy"
    return f"{proxy}{path.removeprefix(hidden_prefix)}", hidden_prefix


def page_path(url: str) -> str:
    """Return T9k's URL path of a page, given the one in the status, which may lead through the service proxy."""
    match = _PROXIED.fullmatch(url)
    if match is None:
        return url
    page, plurals = match["page"] or "/", {short: plural for plural, short in SHORT.items()}
    plural = plurals[match["short"]]
    return f"{prefix_of(plural, match['namespace'], match['name'])}{page}" if plural in _AT_ROOT else page


class ServicePhase(StrEnum):
    """The phase of a TensorBoard or Notebook."""

    INITIALIZING = "Initializing"
    RUNNING = "Running"
    PAUSED = "Paused"


class Trait(StrEnum):
    """The condition types, as in T9k."""

    READY = "Ready"
    IDLE = "Idle"
    SUSPENDED = "Suspended"


def _read_pod(wire: Mapping[str, Any]) -> tuple[str, str, str] | None:
    reference = wire.get("reference") or {}
    if not reference.get("name"):
        return None
    return str(reference["name"]), str(reference.get("uid") or ""), str(wire.get("phase") or "")


def _write_pod(pod: tuple[str, str, str]) -> dict[str, Any]:
    name, uid, phase = pod
    return {"reference": {"name": name, "uid": uid}, "phase": phase}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus(ConditionedStatus):
    """The state between two reconciliations."""

    condition_types: ClassVar[type[StrEnum]] = Trait

    phase: Annotated[ServicePhase, phase_or(ServicePhase.INITIALIZING)] = ServicePhase.INITIALIZING
    observed_generation: Annotated[int, ALWAYS] = 0
    # The path of its URL.
    url: str = ""
    # Address outside the cluster, which needs no token; empty if it is only reachable by the path.
    address: str = ""
    # The Secret with its access token.
    secret: Annotated[str, WireForm(key="tokenSecret")] = ""
    # Name, uid and phase of the pod.
    pod: Annotated[tuple[str, str, str] | None, WireForm(read=_read_pod, write=_write_pod)] = None
    conditions: Annotated[tuple[Condition, ...], conditions_of(Trait)] = ()
    # Why it is not running yet.
    waiting: str = ""
    # When it was last used, to the minute.
    last_activity: datetime | None = None
    # No pod is created before this time: the back-off after a failure.
    start_after: Annotated[datetime | None, MICRO] = None
    # When it was suspended, exactly: the condition's time is rounded to the second.
    suspended_at: Annotated[datetime | None, MICRO] = None
