"""The intermediate form of a TensorBoard or Notebook: one pod, and the URL path of its pages."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Self

from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.apimachinery.untrusted import untrusted
from paceline.model.condition import Fact

# Prefix of the Service name, by the plural of the kind.
SHORT = {"tensorboards": "tb", "notebooks": "nb"}
# Name of the HTTP port.
PORT_NAME = "http"
# The URL path is the same everywhere, as in T9k, so that proxies need not rewrite it.
_PAGE = re.compile(r"/t9k/(?P<plural>[a-z]+)/projects/(?P<namespace>[^/]+)/name/(?P<name>[^/]+)(?P<page>/.*)?")

_FRONTS = frozenset({"/", "/lab"})
# Kinds whose programs use only relative links, and therefore serve at `/`, below any path of a proxy.
_AT_ROOT = frozenset({"tensorboards"})
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
        """URL path of its first page."""
        return f"{prefix_of(self.plural, self.namespace, self.name)}/{self.page}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCondition(Fact):
    """A condition of a TensorBoard or Notebook."""

    condition_types: ClassVar[type[StrEnum]] = Trait

    type: Trait


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatus:
    """The state between two reconciliations."""

    phase: ServicePhase = ServicePhase.INITIALIZING
    observed_generation: int = 0
    # The path of its URL.
    url: str = ""
    # Address outside the cluster, which needs no token; empty if it is only reachable by the path.
    address: str = ""
    # The Secret with its access token.
    secret: str = ""
    # Name, uid and phase of the pod.
    pod: tuple[str, str, str] | None = None
    conditions: tuple[ServiceCondition, ...] = ()
    # Why it is not running yet.
    waiting: str = ""
    # When it was last used, to the minute.
    last_activity: datetime | None = None
    # No pod is created before this time: the back-off after a failure.
    start_after: datetime | None = None
    # When it was suspended, exactly: the condition's time is rounded to the second.
    suspended_at: datetime | None = None

    def condition(self, kind: Trait) -> ServiceCondition | None:
        """Return the condition of a type, or None."""
        return next((condition for condition in self.conditions if condition.type is kind), None)

    def but(self, **changes: Any) -> Self:
        """Return a copy of the status with some fields changed."""
        return replace(self, **changes)

    def put(self, new: ServiceCondition) -> Self:
        """Return the status with a condition set; its transition time is kept if its status is the same."""
        old = self.condition(new.type)
        condition = replace(new, since=old.since) if old is not None and old.status is new.status else new
        by_type = {existing.type: existing for existing in (*self.conditions, condition)}
        return replace(self, conditions=tuple(by_type[kind] for kind in Trait if kind in by_type))

    def to_wire(self) -> dict[str, Any]:
        """Return the wire form; empty fields are omitted, so that a reader can test for their presence."""
        optional: dict[str, Any] = {
            "url": self.url,
            "address": self.address,
            "tokenSecret": self.secret,
            "pod": _pod(self.pod) if self.pod else None,
            "waiting": self.waiting,
            "lastActivity": self.last_activity and to_wire(self.last_activity),
            "startAfter": self.start_after and to_wire_micro(self.start_after),
            "suspendedAt": self.suspended_at and to_wire_micro(self.suspended_at),
        }
        return {
            "phase": self.phase.value,
            "observedGeneration": self.observed_generation,
            "conditions": [condition.to_wire() for condition in self.conditions],
            **{key: value for key, value in optional.items() if value},
        }

    @classmethod
    @untrusted
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the decoded status; an object without one gets the initial status."""
        phase = wire.get("phase")
        return cls(
            phase=ServicePhase(phase) if phase in _PHASES else ServicePhase.INITIALIZING,
            observed_generation=int(wire.get("observedGeneration") or 0),
            url=str(wire.get("url") or ""),
            address=str(wire.get("address") or ""),
            secret=str(wire.get("tokenSecret") or ""),
            pod=_read_pod(wire.get("pod") or {}),
            conditions=_conditions(wire.get("conditions") or ()),
            waiting=str(wire.get("waiting") or ""),
            last_activity=from_wire(wire["lastActivity"]) if wire.get("lastActivity") else None,
            start_after=from_wire(wire["startAfter"]) if wire.get("startAfter") else None,
            suspended_at=from_wire(wire["suspendedAt"]) if wire.get("suspendedAt") else None,
        )


_PHASES = frozenset(phase.value for phase in ServicePhase)
_TRAITS = frozenset(trait.value for trait in Trait)


def _pod(pod: tuple[str, str, str]) -> dict[str, Any]:
    name, uid, phase = pod
    return {"reference": {"name": name, "uid": uid}, "phase": phase}


def _read_pod(wire: Mapping[str, Any]) -> tuple[str, str, str] | None:
    reference = wire.get("reference") or {}
    if not reference.get("name"):
        return None
    return str(reference["name"]), str(reference.get("uid") or ""), str(wire.get("phase") or "")


def _conditions(wire: Iterable[Mapping[str, Any]]) -> tuple[ServiceCondition, ...]:
    # Ignore the conditions of other controllers.
    return tuple(ServiceCondition.from_wire(condition) for condition in wire if condition.get("type") in _TRAITS)
