"""The shape every job kind has: its names, its spec, and two functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from paceline.errors import Fault
from paceline.objects.gang import Gang, Site

GROUP = "batch.tensorstack.dev"
VERSION = "v1beta1"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One kind of job. `check` and `expand` take the spec already decoded into `spec`."""

    kind: str
    plural: str
    short_names: tuple[str, ...]
    spec: type[msgspec.Struct]
    # Rules between fields; bounds of single fields live on the fields.
    check: Callable[[Any, str], tuple[Fault, ...]]
    # The only place that knows the framework.
    expand: Callable[[Any, Site], Gang]
    # Ports that must be chosen before any member is made, because every member is told of them: name → usual number.
    ports: tuple[tuple[str, int], ...] = ()
    # Paths below `spec` that may change after creation.
    mutable: tuple[str, ...] = ("runMode.pause.enabled",)
