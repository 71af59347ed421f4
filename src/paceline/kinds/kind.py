"""The moulds: a job kind, which becomes a gang, a service kind, which somebody opens in a browser, and a plain kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from paceline.errors import Fault, Invalid
from paceline.kinds.draft import Draft
from paceline.objects.gang import Gang, Place, Site
from paceline.objects.scheme import Column
from paceline.objects.window import Window

GROUP = "batch.tensorstack.dev"
SERVICE_GROUP = "tensorstack.dev"
OWN_GROUP = "paceline.dev"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
SERVICE_API_VERSION = f"{SERVICE_GROUP}/{VERSION}"
OWN_API_VERSION = f"{OWN_GROUP}/{VERSION}"

# What `kubectl get` shows of every job, after its name.
COLUMNS = (
    Column(name="Phase", path=".status.phase", description="Where the job is."),
    Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    Column(name="Running", path=".status.aggregate.running", type="integer", priority=1),
    Column(name="Restarts", path=".status.backoffCount", type="integer", priority=1),
    Column(name="Queue", path=".spec.scheduler.t9kScheduler.queue", priority=1),
    Column(name="Waiting", path=".status.waiting", description="Why the job waits.", priority=1),
)
SERVICE_COLUMNS = (
    Column(name="Phase", path=".status.phase", description="Where it is."),
    Column(name="URL", path=".status.url", description="Where it is opened."),
    Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    Column(name="Pod", path=".status.pod.reference.name", priority=1),
    Column(name="Waiting", path=".status.waiting", description="Why it does not run yet.", priority=1),
)
# And of those that may be reached without a token, at an address of their own.
OUTSIDE_COLUMNS = (
    *SERVICE_COLUMNS[:2],
    Column(name="Address", path=".status.address", description="Where it is opened from outside, by anybody."),
    *SERVICE_COLUMNS[2:],
)

# Where a pod template lies in the object, and the template.
Located = tuple[str, Mapping[str, Any]]
# Where a claim is named in the object, and its name.
Claim = tuple[str, str]
# Ports that must be chosen before any member is made, because every member is told of them: name → usual number.
Ports = Mapping[str, int]


# Paths below `spec` of every job that may change after its creation.
MUTABLE = ("runMode.pause.enabled", "runMode.pause.enable", "suspend", "runPolicy.ttlSecondsAfterFinished")


def no_ports(_spec: Any) -> Ports:
    """Need no port that all members know."""
    return {}


def no_claims(_spec: Any, _path: str) -> tuple[Claim, ...]:
    """Name no claim outside of pod templates."""
    return ()


def no_old_shapes(_draft: Draft) -> None:
    """Have been written in one way only."""


class CannotRun(Invalid):
    """Nothing is wrong with an object, but nobody here can run it; its author must choose another way."""

    def __init__(self, why: str) -> None:
        super().__init__(())
        self.args = (why,)


class Kind(Protocol):
    """What all moulds have: names, a spec with its rules, and what `kubectl get` shows."""

    @property
    def kind(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def singular(self) -> str: ...
    @property
    def short_names(self) -> tuple[str, ...]: ...
    @property
    def group(self) -> str: ...
    @property
    def spec(self) -> type[msgspec.Struct]: ...
    @property
    def old(self) -> type[msgspec.Struct] | None: ...
    @property
    def mutable(self) -> tuple[str, ...] | None: ...
    @property
    def columns(self) -> tuple[Column, ...]: ...
    @property
    def alias_of(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One kind of job. Its functions take the spec already decoded into `spec`, and where it lies in the object."""

    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...]
    group: str = GROUP
    spec: type[msgspec.Struct]
    # Rules between fields; bounds of single fields live on the fields.
    check: Callable[[Any, str], tuple[Fault, ...]]
    # The only place that knows the framework.
    expand: Callable[[Any, Site], Gang]
    places: Callable[[Any], tuple[Place, ...]]
    templates: Callable[[Any, str], tuple[Located, ...]]
    # Claims that are named outside of pod templates.
    claims: Callable[[Any, str], tuple[Claim, ...]] = no_claims
    ports: Callable[[Any], Ports] = no_ports
    # Fields that only older generations have, and what turns them into today's.
    old: type[msgspec.Struct] | None = None
    modernise: Callable[[Draft], None] = no_old_shapes
    # Paths below `spec` that may change after creation.
    mutable: tuple[str, ...] | None = MUTABLE
    columns: tuple[Column, ...] = COLUMNS
    # The kind this one is an old name of.
    alias_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """One kind of thing that people open in a browser: one pod, with a page."""

    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    group: str = SERVICE_GROUP
    spec: type[msgspec.Struct]
    check: Callable[[Any, str], tuple[Fault, ...]]
    # The only place that knows the program.
    expand: Callable[[Any, Site], Window]
    claims: Callable[[Any, str], tuple[Claim, ...]] = no_claims
    old: type[msgspec.Struct] | None = None
    modernise: Callable[[Draft], None] = no_old_shapes
    mutable: tuple[str, ...] | None = None
    columns: tuple[Column, ...] = SERVICE_COLUMNS
    alias_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainKind:
    """One kind of our own that has no pods: its controller makes jobs of it, or writes down what became of them."""

    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    group: str = OWN_GROUP
    spec: type[msgspec.Struct]
    check: Callable[[Any, str], tuple[Fault, ...]]
    old: type[msgspec.Struct] | None = None
    modernise: Callable[[Draft], None] = no_old_shapes
    mutable: tuple[str, ...] | None = None
    columns: tuple[Column, ...]
    alias_of: str = ""
