"""JobRecord: what must outlive a deleted job: what was asked for, of which code, and what came of it.

In     what its controller writes down when a revision of an application is made.
Out    nothing: people read it.
Never  changes, but for its status.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.fields import Free, Part, about
from paceline.kinds.kind import PlainKind
from paceline.objects.scheme import Column

PLURAL = "jobrecords"
AnyShape = {"x-kubernetes-preserve-unknown-fields": True}


class JobRecord(Part, frozen=True, kw_only=True):
    """What was asked for in one revision of an application; its status says what came of it."""

    app: Annotated[str, about("The application.")]
    revision: Annotated[int, Meta(ge=1), about("Which revision of it this is.")]
    digest: Annotated[str, about("Tells this revision's spec from others.")]
    job: Annotated[Free, Meta(description="The job: its kind, name and spec.", extra_json_schema=AnyShape)]
    template: Annotated[str, about("Name and version of the template.")] = ""
    values: (
        Annotated[Free, Meta(description="The values given to the template.", extra_json_schema=AnyShape)] | None
    ) = None
    hyperparameters: Annotated[dict[str, str], about("Hyperparameters, each as it was passed on.")] = msgspec.field(
        default_factory=dict
    )
    results: Annotated[str, about("Where the results are.")] = ""


def check(_spec: JobRecord, _path: str) -> tuple[Fault, ...]:
    """Find nothing wrong: no rule of a record spans fields."""
    return ()


KIND = PlainKind(
    kind="JobRecord",
    plural=PLURAL,
    short_names=("jr",),
    spec=JobRecord,
    check=check,
    mutable=(),
    columns=(
        Column(name="App", path=".spec.app"),
        Column(name="Revision", path=".spec.revision", type="integer"),
        Column(name="Phase", path=".status.phase", description="What became of the job."),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        Column(name="Commit", path=".status.commit", priority=1),
    ),
)
