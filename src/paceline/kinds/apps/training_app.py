"""TrainingApp: an application that users update; each change creates the next revision, an immutable job.

In     a spec whose fields already satisfy their bounds.
Out    its faults; kinds/apps/expand.py, which knows templates and job kinds, expands it.
Never  creates a job: its controller does.
"""

from typing import Annotated, ClassVar

from paceline.apimachinery.field_errors import forbidden, required
from paceline.apimachinery.scheme import Column
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.kind_types import PlainKind
from paceline.kinds.name_rules import app_name_rules
from paceline.kinds.spec.fields import Count, Free, Part, about, any_shape
from paceline.model.app_status import AppStatus

PLURAL = "trainingapps"
MAX_NAME = 64
DEFAULT_HISTORY = 10
NEITHER = "set a template and its values, or a job in spec.job"
BOTH = "spec.template is also set; remove one of them"
NO_VALUES = "values are only used with a template; remove them, or set spec.template instead of spec.job"


class TemplateRef(Part, frozen=True, kw_only=True):
    """The template that creates a job from values."""

    name: Annotated[str, about("Name of the template; `paceline app template list` lists them.")]
    version: Annotated[str, about("Version of the template that the values were written for.")] = ""


class JobOf(Part, frozen=True, kw_only=True):
    """Kind and spec of a job, without a template."""

    kind: Annotated[str, about("Kind of the job, such as PyTorchTrainingJob.")]
    spec: Annotated[Free, any_shape("Spec of the job.")]


class TrainingApp(Part, frozen=True, kw_only=True):
    """A training that is repeated with changes: each change runs as a new job, the next revision."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule="has(self.template) || has(self.job)",
            message=NEITHER,
            field=".template",
            reason="FieldValueRequired",
        ),
        CelRule(rule="!has(self.template) || !has(self.job)", message=BOTH, field=".job", reason="FieldValueForbidden"),
        CelRule(
            rule="!has(self.job) || has(self.template) || !has(self.values)",
            message=NO_VALUES,
            field=".values",
            reason="FieldValueForbidden",
        ),
    )

    template: Annotated[TemplateRef | None, about("Template that creates the job from the values.")] = None
    values: Annotated[
        Free | None, any_shape("Values for the template; `paceline app template show NAME` explains them.")
    ] = None
    job: Annotated[JobOf | None, about("The job, if no template is used.")] = None
    suspend: Annotated[bool, about("Stop the training and keep its data; false resumes it.")] = False
    rerun: Annotated[Count, about("Increment it to run the same spec again as the next revision.")] = 0
    revision_history_limit: Annotated[
        Count, about("Number of jobs of earlier revisions to keep; their records are always kept.")
    ] = DEFAULT_HISTORY


def check(spec: TrainingApp, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    if spec.template is None and spec.job is None:
        return (required(f"{path}.template", NEITHER),)
    if spec.template is not None and spec.job is not None:
        return (forbidden(f"{path}.job", BOTH),)
    if spec.job is not None and spec.values is not None:
        return (forbidden(f"{path}.values", NO_VALUES),)
    return ()


KIND = PlainKind(
    kind="TrainingApp",
    plural=PLURAL,
    short_names=("app", "apps"),
    spec=TrainingApp,
    status=AppStatus,
    name_rules=app_name_rules(MAX_NAME),
    columns=(
        Column(name="Revision", path=".status.revision", type="integer"),
        Column(name="Phase", path=".status.phase", description="Phase of the current revision."),
        Column(name="Template", path=".spec.template.name"),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        Column(name="Job", path=".status.job.name", description="Job of the current revision.", priority=1),
        Column(name="Updated", path=".status.updated", type="date", priority=1),
        Column(name="Waiting", path=".status.waiting", description="Why it is waiting.", priority=1),
    ),
)
