"""Functions for all kinds with `replicaSpecs`: their replicas, pod templates, and the rules about both."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from paceline.apimachinery.field_errors import duplicate
from paceline.errors import Fault
from paceline.kinds.kind_types import Located
from paceline.kinds.spec.fields import Free
from paceline.kinds.spec.pod_template import check_template
from paceline.model.gang import ReplicaId


class Replica(Protocol):
    """One entry of `replicaSpecs`: the fields that all kinds have."""

    @property
    def type(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def template(self) -> Free: ...


def places_of(specs: Sequence[Replica]) -> tuple[ReplicaId, ...]:
    """Return every replica of the job, by type in the order of the spec."""
    return tuple(ReplicaId(spec.type, index) for spec in specs for index in range(spec.replicas))


def types_of(specs: Sequence[Replica]) -> tuple[str, ...]:
    """Return the replica types in the order of the spec."""
    return tuple(spec.type for spec in specs)


def templates_of(specs: Sequence[Replica], path: str) -> tuple[Located, ...]:
    """Return every pod template with its path."""
    return tuple((f"{path}[{index}].template", spec.template) for index, spec in enumerate(specs))


def check_replicas(specs: Sequence[Replica], path: str) -> Iterator[Fault]:
    """Yield a fault for each repeated replica type, and the faults of the pod templates."""
    roles: set[str] = set()
    for index, role in enumerate(types_of(specs)):
        if role in roles:
            yield duplicate(f"{path}[{index}].type", role)
        roles.add(role)
    for template_path, template in templates_of(specs, path):
        yield from check_template(template, template_path)
