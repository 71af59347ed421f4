"""What all kinds with `replicaSpecs` share: their places, their templates, and the rules about both."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from paceline.errors import Fault
from paceline.kinds.fields import Free
from paceline.kinds.kind import Located
from paceline.kinds.template import check_template
from paceline.objects.faults import duplicate
from paceline.objects.gang import Place


class Replica(Protocol):
    """One entry of `replicaSpecs`, whatever else its kind has there."""

    @property
    def type(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def template(self) -> Free: ...


def places_of(specs: Sequence[Replica]) -> tuple[Place, ...]:
    """Give every place of the job, types in the order they are written."""
    return tuple(Place(each.type, index) for each in specs for index in range(each.replicas))


def types_of(specs: Sequence[Replica]) -> tuple[str, ...]:
    """Give the replica types in the order they are written."""
    return tuple(each.type for each in specs)


def templates_of(specs: Sequence[Replica], path: str) -> tuple[Located, ...]:
    """Give every pod template with its path."""
    return tuple((f"{path}[{index}].template", each.template) for index, each in enumerate(specs))


def check_replicas(specs: Sequence[Replica], path: str) -> Iterator[Fault]:
    """Name replica types that are there twice, and what is wrong with the templates."""
    seen: set[str] = set()
    for index, name in enumerate(types_of(specs)):
        if name in seen:
            yield duplicate(f"{path}[{index}].type", name)
        seen.add(name)
    for where, template in templates_of(specs, path):
        yield from check_template(template, where)
