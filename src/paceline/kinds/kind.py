"""The shape every job kind has: its names, its spec, and the functions on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from paceline.errors import Fault
from paceline.objects.gang import Gang, Place, Site
from paceline.objects.scheme import Column

GROUP = "batch.tensorstack.dev"
VERSION = "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"

# What `kubectl get` shows of every job, after its name.
COLUMNS = (
    Column(name="Phase", path=".status.phase", description="Where the job is."),
    Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    Column(name="Running", path=".status.aggregate.running", type="integer", priority=1),
    Column(name="Restarts", path=".status.backoffCount", type="integer", priority=1),
    Column(name="Queue", path=".spec.scheduler.t9kScheduler.queue", priority=1),
    Column(name="Waiting", path=".status.waiting", description="Why the job waits.", priority=1),
)

# Where a pod template lies in the object, and the template.
Located = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One kind of job. Its functions take the spec already decoded into `spec`, and where it lies in the object."""

    kind: str
    plural: str
    short_names: tuple[str, ...]
    spec: type[msgspec.Struct]
    # Rules between fields; bounds of single fields live on the fields.
    check: Callable[[Any, str], tuple[Fault, ...]]
    # The only place that knows the framework.
    expand: Callable[[Any, Site], Gang]
    places: Callable[[Any], tuple[Place, ...]]
    templates: Callable[[Any, str], tuple[Located, ...]]
    # Ports that must be chosen before any member is made, because every member is told of them: name → usual number.
    ports: tuple[tuple[str, int], ...] = ()
    # Paths below `spec` that may change after creation.
    mutable: tuple[str, ...] = ("runMode.pause.enabled",)
