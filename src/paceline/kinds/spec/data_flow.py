"""Fields that every job can have besides its replicas: source code, input, output and hyperparameters."""

from collections.abc import Iterator
from typing import Annotated

from paceline.apimachinery.field_errors import invalid
from paceline.errors import Fault
from paceline.kinds.kind_types import Claim, Located
from paceline.kinds.spec.data import INPUT, OUTPUT, Input, Output, check_place, place_claims
from paceline.kinds.spec.fields import Part, about
from paceline.kinds.spec.hyperparameters import Hyperparameters, check_hyperparameters
from paceline.kinds.spec.pod_template import read
from paceline.kinds.spec.source import FOLDER, Source, check_source, source_claims


class DataFlowSpec(Part, frozen=True, kw_only=True):
    """A spec with source code, input, output and hyperparameters."""

    source: Annotated[Source, about("Source code of the job; the command runs in its directory.")] | None = None
    input: Annotated[Input, about("Data that every replica reads at /input.")] | None = None
    output: (
        Annotated[Output, about("Destination for files written to /output. If omitted, they are deleted with the pod.")]
        | None
    ) = None
    hyperparameters: (
        Annotated[
            Hyperparameters, about("Hyperparameters of the training; they are shown and can be compared between jobs.")
        ]
        | None
    ) = None


def check_fed(spec: DataFlowSpec, templates: tuple[Located, ...], path: str) -> Iterator[Fault]:
    """Yield the faults of source, input, output and hyperparameters, and of volume mounts that collide with them."""
    if spec.source is not None:
        yield from check_source(spec.source, f"{path}.source")
    for name, place in (("input", spec.input), ("output", spec.output)):
        if place is not None:
            yield from check_place(place, f"{path}.{name}")
    if spec.hyperparameters is not None:
        yield from check_hyperparameters(spec.hyperparameters, f"{path}.hyperparameters")
    reserved = {FOLDER: spec.source, INPUT: spec.input, OUTPUT: spec.output}
    for template_path, template in templates:
        for index, container in enumerate(read(template).spec.containers):
            for position, mount in enumerate(container.volume_mounts or ()):
                if reserved.get(mount.mount_path.rstrip("/")) is not None:
                    hint = f"spec.{mount.mount_path.strip('/')} is mounted there; choose another mountPath"
                    mount_path = f"{template_path}.spec.containers[{index}].volumeMounts[{position}].mountPath"
                    yield invalid(mount_path, mount.mount_path, hint)


def fed_claims(spec: DataFlowSpec, path: str) -> tuple[Claim, ...]:
    """Return the claims of source, input and output, each with the path that names it."""
    source = source_claims(spec.source, f"{path}.source") if spec.source is not None else ()
    return (*source, *place_claims(spec.input, f"{path}.input"), *place_claims(spec.output, f"{path}.output"))
