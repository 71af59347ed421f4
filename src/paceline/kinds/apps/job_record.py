"""JobRecord: what remains of a deleted job: its spec, the commit of its code, and its result.

In     the record that the application controller writes for each revision.
Out    nothing: users read it.
Never  changes, except for its status.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from paceline.apimachinery.scheme import Column
from paceline.kinds.kind_types import PlainKind
from paceline.kinds.spec.fields import Free, Part, about, any_shape

PLURAL = "jobrecords"


class JobRecord(Part, frozen=True, kw_only=True):
    """The request behind one revision of an application; the status holds its result."""

    app: Annotated[str, about("Name of the application.")]
    revision: Annotated[int, Meta(ge=1), about("Number of the revision.")]
    digest: Annotated[str, about("Digest of the revision's spec.")]
    job: Annotated[Free, any_shape("Kind, name and spec of the job.")]
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
    mutable=(),
    columns=(
        Column(name="App", path=".spec.app"),
        Column(name="Revision", path=".spec.revision", type="integer"),
        Column(name="Phase", path=".status.phase", description="Phase of the job."),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        Column(name="Commit", path=".status.commit", priority=1),
    ),
)
