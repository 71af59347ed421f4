"""The three types of kinds: jobs (expanded into a gang), services (web applications), and plain kinds without pods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Column, ScalePaths
from paceline.errors import Fault, Invalid
from paceline.kinds.cel import CelRule
from paceline.kinds.compat import Migration, Normalized, normalise
from paceline.kinds.spec.pod_template import PodTemplate
from paceline.model.gang import Gang, JobNaming, ReplicaId
from paceline.model.interactive import InteractiveWorkload, ServiceStatus
from paceline.model.job_status import JobStatus
from paceline.model.wire_object import WireObject

GROUP = "batch.tensorstack.dev"
SERVICE_GROUP = "tensorstack.dev"
OWN_GROUP = "paceline.dev"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
SERVICE_API_VERSION = f"{SERVICE_GROUP}/{VERSION}"
OWN_API_VERSION = f"{OWN_GROUP}/{VERSION}"

# Columns of `kubectl get` for every job, after its name.
COLUMNS = (
    Column(name="Phase", path=".status.phase", description="Phase of the job."),
    Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    Column(name="Running", path=".status.aggregate.running", type="integer", priority=1),
    Column(name="Restarts", path=".status.backoffCount", type="integer", priority=1),
    Column(name="Queue", path=".spec.scheduler.t9kScheduler.queue", priority=1),
    Column(name="Waiting", path=".status.waiting", description="Why the job is waiting.", priority=1),
)
SERVICE_COLUMNS = (
    Column(name="Phase", path=".status.phase", description="Phase of the workload."),
    Column(name="URL", path=".status.url", description="URL that opens it in a browser."),
    Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    Column(name="Pod", path=".status.pod.reference.name", priority=1),
    Column(name="Waiting", path=".status.waiting", description="Why it is not running yet.", priority=1),
)
# Columns of the kinds that can be exposed outside the cluster, where no token is needed.
OUTSIDE_COLUMNS = (
    *SERVICE_COLUMNS[:2],
    Column(name="Address", path=".status.address", description="Address outside the cluster; no token is needed."),
    *SERVICE_COLUMNS[2:],
)

# Path of a pod template in the object, and the template.
Located = tuple[str, Mapping[str, Any]]
# Path of the field that names a claim, and the claim's name.
Claim = tuple[str, str]
# Ports that are allocated before any pod is created, because every member needs them: name → preferred number.
Ports = Mapping[str, int]


# Paths below `spec` that may change after creation, for every job kind.
MUTABLE = ("runMode.pause.enabled", "runMode.pause.enable", "suspend", "runPolicy.ttlSecondsAfterFinished")


def no_ports(_spec: Any) -> Ports:
    """Return no ports: the members do not need to know any."""
    return {}


def no_claims(_spec: Any, _path: str) -> tuple[Claim, ...]:
    """Return no claims: only pod templates name some."""
    return ()


def no_old_shapes(_draft: Migration) -> None:
    """Migrate nothing: the kind has had only one shape."""


class CannotRun(Invalid):
    """The object is valid, but this installation cannot run it; its author must choose another way."""

    def __init__(self, reason: str) -> None:
        super().__init__(())
        self.args = (reason,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What all kinds have: names, a spec type, older shapes, mutable paths and the columns of `kubectl get`."""

    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    group: str
    spec: type[msgspec.Struct]
    status: type[WireObject]
    # Fields that only older versions of the kind have, and the function that migrates them.
    old: type[msgspec.Struct] | None = None
    migrate: Callable[[Migration], None] = no_old_shapes
    # Paths below `spec` that may change after creation; None: all.
    mutable: tuple[str, ...] | None = None
    columns: tuple[Column, ...]
    # The fields of its pod templates that are read, with their bounds.
    template: type[msgspec.Struct] = PodTemplate
    # The paths of its desired and actual replicas, if their number may change.
    scale: ScalePaths | None = None
    # Rules for the name in a CRD.
    name_rules: tuple[CelRule, ...] = ()
    # The kind that this one is an old name for.
    alias_of: str = ""

    def normalise(self, obj: Object) -> Normalized:
        """Return an object in the current shape, with the path of each moved part and warnings for its author."""
        return normalise(obj, kind=self.kind, alias_of=self.alias_of, migrate=self.migrate)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind(Kind):
    """One kind of job. Its functions take the decoded spec, and the path of the spec in the object."""

    group: str = GROUP
    status: type[WireObject] = JobStatus
    mutable: tuple[str, ...] | None = MUTABLE
    columns: tuple[Column, ...] = COLUMNS
    # Rules between fields; the bounds of a single field are declared on the field.
    check: Callable[[Any, str], tuple[Fault, ...]]
    # The only function that knows the framework.
    expand: Callable[[Any, JobNaming], Gang]
    places: Callable[[Any], tuple[ReplicaId, ...]]
    templates: Callable[[Any, str], tuple[Located, ...]]
    # Claims that are named outside the pod templates.
    claims: Callable[[Any, str], tuple[Claim, ...]] = no_claims
    ports: Callable[[Any], Ports] = no_ports


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind(Kind):
    """One kind of web application that users open in a browser: a single pod with an HTTP server."""

    group: str = SERVICE_GROUP
    status: type[WireObject] = ServiceStatus
    columns: tuple[Column, ...] = SERVICE_COLUMNS
    check: Callable[[Any, str], tuple[Fault, ...]]
    # The only function that knows the program.
    expand: Callable[[Any, JobNaming], InteractiveWorkload]
    claims: Callable[[Any, str], tuple[Claim, ...]] = no_claims


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainKind(Kind):
    """One kind of our own without pods: its controller creates jobs from it, or records what happened to them."""

    group: str = OWN_GROUP
