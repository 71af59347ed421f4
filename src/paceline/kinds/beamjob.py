"""BeamJob: a Beam pipeline on a Flink cluster of its own, which nobody makes here.

In     a spec whose fields already satisfy their bounds.
Out    its faults; never a Gang, but the reason why there is none.
Never  reads a pod, a clock, or another kind.
"""

from typing import Annotated

from paceline.errors import Fault
from paceline.kinds.fields import Free, Part, about
from paceline.kinds.kind import MUTABLE, CannotRun, JobKind, Located
from paceline.kinds.runmode import RunMode, check_run_mode
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import check_template
from paceline.objects.gang import Gang, Place, Site

SUBMITTER = "batchjob"
NO_FLINK = (
    "no Flink is to be had: nothing here makes Flink clusters, so the job is kept and not run; "
    "run the pipeline by a GenericJob with Beam's DirectRunner, or against a Flink cluster of your own"
)


class ClusterTemplate(Part, frozen=True, kw_only=True):
    """The Flink cluster, as the Flink operator reads it."""

    metadata: Annotated[Free, about("Labels and annotations of the Flink cluster.")] | None = None
    spec: Annotated[Free, about("The Flink cluster: flinkVersion, image, jobManager, taskManager, flinkProperties.")]


class SubmitTemplate(Part, frozen=True, kw_only=True):
    """The job that submits the pipeline."""

    metadata: Annotated[Free, about("Labels and annotations of the job.")] | None = None
    spec: Annotated[Free, about("The job that submits the pipeline, as batch/v1 has it; its template is a pod.")]


class RunPolicy(Part, frozen=True, kw_only=True):
    """What goes when the job ends."""

    clean_up_cluster: Annotated[bool, about("Delete the Flink cluster, and all it knows, when the job ends.")] = False


class BeamJob(Part, frozen=True, kw_only=True):
    """A Beam pipeline on a Flink cluster. It is checked and kept, but not run: no Flink is to be had here."""

    flink_cluster_template: Annotated[ClusterTemplate, about("The Flink cluster.")]
    job_template: Annotated[SubmitTemplate, about("The job that submits the pipeline.")]
    run_mode: Annotated[RunMode, about("Debug the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("What goes when the job ends.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None


def check(job: BeamJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    found = list(check_run_mode(job.run_mode, (SUBMITTER,), f"{path}.runMode"))
    for where, template in templates(job, path):
        found += check_template(template, where)
    return tuple(found)


def expand(_job: BeamJob, _site: Site) -> Gang:
    """Say why there is nothing to expand to."""
    raise CannotRun(NO_FLINK)


def places(_job: BeamJob) -> tuple[Place, ...]:
    """Give the place of the job that submits the pipeline."""
    return (Place(SUBMITTER, 0),)


def templates(job: BeamJob, path: str) -> tuple[Located, ...]:
    """Give the pod template of the job that submits the pipeline."""
    template = job.job_template.spec.get("template")
    return ((f"{path}.jobTemplate.spec.template", template if isinstance(template, dict) else {}),)


KIND = JobKind(
    kind="BeamJob",
    plural="beamjobs",
    short_names=("bj",),
    spec=BeamJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    # Nothing runs, so nothing is suspended or deleted by itself.
    mutable=MUTABLE[:2],
)
