"""TrainingApp: what people update; each change of it becomes the next revision, a job that does not change.

In     a spec whose fields already satisfy their bounds.
Out    its faults; what it becomes is told by kinds/apps.py, which knows templates and job kinds.
Never  makes a job: its controller does.
"""

from typing import Annotated

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.fields import Count, Free, Part, about
from paceline.kinds.kind import PlainKind
from paceline.objects.faults import forbidden, required
from paceline.objects.scheme import Column

PLURAL = "trainingapps"
DEFAULT_HISTORY = 10


class TemplateRef(Part, frozen=True, kw_only=True):
    """The template that turns values into a job."""

    name: Annotated[str, about("Name of the template; `paceline template list` shows them.")]
    version: Annotated[str, about("Version of the template that the values were written for.")] = ""


class JobOf(Part, frozen=True, kw_only=True):
    """A job, written out."""

    kind: Annotated[str, about("Kind of the job, such as PyTorchTrainingJob.")]
    spec: Annotated[
        Free, Meta(description="Spec of the job.", extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})
    ]


class TrainingApp(Part, frozen=True, kw_only=True):
    """A training that is tried again and again: change it, and the next revision of it runs as a new job."""

    template: Annotated[TemplateRef, about("The template that turns the values into a job.")] | None = None
    values: (
        Annotated[
            Free,
            Meta(
                description="Values for the template; `paceline template show NAME` explains them.",
                extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
            ),
        ]
        | None
    ) = None
    job: Annotated[JobOf, about("The job itself, where no template is used.")] | None = None
    suspend: Annotated[bool, about("Stop the training and keep everything; false lets it go on.")] = False
    rerun: Annotated[Count, about("Raise it to run the same once more, as the next revision.")] = 0
    revision_history_limit: Annotated[
        Count, about("How many jobs of earlier revisions are kept; their records stay all the same.")
    ] = DEFAULT_HISTORY


def check(spec: TrainingApp, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    if spec.template is None and spec.job is None:
        return (required(f"{path}.template", "name a template with its values, or write a job out in spec.job"),)
    if spec.template is not None and spec.job is not None:
        return (forbidden(f"{path}.job", "there is a template already; drop one of them"),)
    if spec.job is not None and spec.values is not None:
        return (forbidden(f"{path}.values", "values are for a template; a job that is written out has none"),)
    return ()


KIND = PlainKind(
    kind="TrainingApp",
    plural=PLURAL,
    short_names=("app", "apps"),
    spec=TrainingApp,
    check=check,
    columns=(
        Column(name="Revision", path=".status.revision", type="integer"),
        Column(name="Phase", path=".status.phase", description="Where the current revision is."),
        Column(name="Template", path=".spec.template.name"),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        Column(name="Job", path=".status.job.name", description="The current revision.", priority=1),
        Column(name="Updated", path=".status.updated", type="date", priority=1),
        Column(name="Waiting", path=".status.waiting", description="Why it does not go on.", priority=1),
    ),
)
