"""JobRecord: what remains of a deleted job: its spec, the commit of its code, its result and its last events.

In     the record that a controller writes for each job, and another one for each revision of an application.
Out    nothing: users read it.
Never  changes, except for its status.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from paceline.apimachinery.scheme import Column
from paceline.kinds.kind_types import PlainKind
from paceline.kinds.spec.fields import Free, Part, about, any_shape
from paceline.model.app_status import RecordStatus

PLURAL = "jobrecords"


class JobRecord(Part, frozen=True, kw_only=True):
    """The request behind a job, or behind one revision of an application; the status holds its result."""

    job: Annotated[Free, any_shape("Kind, name and spec of the job.")]
    uid: Annotated[str, about("UID of the job; empty in the record of a revision.")] = ""
    created: Annotated[str, about("When the job was created.")] = ""
    app: Annotated[str, about("Name of the application.")] = ""
    revision: Annotated[Annotated[int, Meta(ge=1)] | None, about("Number of the revision.")] = None
    digest: Annotated[str, about("Digest of the revision's spec.")] = ""
    template: Annotated[str, about("Name and version of the template.")] = ""
    values: Annotated[Free | None, any_shape("Values that were passed to the template.")] = None
    hyperparameters: Annotated[dict[str, str], about("Hyperparameters, as passed to the command.")] = msgspec.field(
        default_factory=dict
    )
    results: Annotated[str, about("Location of the results.")] = ""


KIND = PlainKind(
    kind="JobRecord",
    plural=PLURAL,
    short_names=("jr",),
    spec=JobRecord,
    status=RecordStatus,
    mutable=(),
    columns=(
        Column(name="Job", path=".spec.job.name"),
        Column(name="App", path=".spec.app"),
        Column(name="Revision", path=".spec.revision", type="integer"),
        Column(name="Phase", path=".status.phase", description="Phase of the job."),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        Column(name="Commit", path=".status.commit", priority=1),
    ),
)
