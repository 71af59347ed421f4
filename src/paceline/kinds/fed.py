"""What every job may have beside its replicas: code from elsewhere, data in, results out, and values to tune by."""

from collections.abc import Iterator
from typing import Annotated

from paceline.errors import Fault
from paceline.kinds.data import INPUT, OUTPUT, Input, Output, check_place, place_claims
from paceline.kinds.fields import Part, about
from paceline.kinds.hyperparameters import Hyperparameters, check_hyperparameters
from paceline.kinds.kind import Claim, Located
from paceline.kinds.source import FOLDER, Source, check_source, source_claims
from paceline.kinds.template import read
from paceline.objects.faults import invalid


class Fed(Part, frozen=True, kw_only=True):
    """A spec that says where code, data and values come from, and where results go."""

    source: Annotated[Source, about("Where the code comes from; the command runs in its folder.")] | None = None
    input: Annotated[Input, about("What every replica reads at /input. Left out: there is none.")] | None = None
    output: (
        Annotated[Output, about("Where goes what replicas write to /output. Left out: nothing of it is kept.")] | None
    ) = None
    hyperparameters: (
        Annotated[Hyperparameters, about("Values that the training is tuned by; shown and compared between jobs.")]
        | None
    ) = None


def is_fed(spec: Fed) -> bool:
    """Tell whether something is done in the pods of a job before its command, beside it or after it."""
    return spec.source is not None or spec.input is not None or spec.output is not None


def check_fed(spec: Fed, templates: tuple[Located, ...], path: str) -> Iterator[Fault]:
    """Name what is wrong with code, data and values, and what of a template is in their way."""
    if spec.source is not None:
        yield from check_source(spec.source, f"{path}.source")
    for name, place in (("input", spec.input), ("output", spec.output)):
        if place is not None:
            yield from check_place(place, f"{path}.{name}")
    if spec.hyperparameters is not None:
        yield from check_hyperparameters(spec.hyperparameters, f"{path}.hyperparameters")
    taken = {FOLDER: spec.source, INPUT: spec.input, OUTPUT: spec.output}
    for where, template in templates:
        for index, container in enumerate(read(template).spec.containers):
            for position, mount in enumerate(container.volume_mounts or ()):
                if taken.get(mount.mount_path.rstrip("/")) is not None:
                    hint = f"the job's own {mount.mount_path.strip('/')} goes there; mount it elsewhere"
                    at = f"{where}.spec.containers[{index}].volumeMounts[{position}].mountPath"
                    yield invalid(at, mount.mount_path, hint)


def fed_claims(spec: Fed, path: str) -> tuple[Claim, ...]:
    """Give the claims that code and data need, each with the path that names it."""
    source = source_claims(spec.source, f"{path}.source") if spec.source is not None else ()
    return (*source, *place_claims(spec.input, f"{path}.input"), *place_claims(spec.output, f"{path}.output"))
