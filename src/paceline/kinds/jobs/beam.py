"""BeamJob: a Beam pipeline on its own Flink cluster. It is validated and stored, but never run.

In     a spec whose fields already satisfy their bounds.
Out    its faults; instead of a Gang, the reason why it cannot run.
Never  reads a pod, a clock, or another kind.
"""

from typing import Annotated

from paceline.errors import Fault
from paceline.kinds.kind_types import MUTABLE, CannotRun, JobKind, Located
from paceline.kinds.name_rules import job_name_rules
from paceline.kinds.spec.fields import Free, Part, about
from paceline.kinds.spec.pod_template import check_template
from paceline.kinds.spec.run_policy import RunMode, Scheduler, check_run_mode
from paceline.model.gang import Gang, JobNaming, ReplicaId

SUBMITTER = "batchjob"
NO_FLINK = (
    "Flink is not supported: Paceline does not create Flink clusters, so the job is stored but not run; "
    "run the pipeline in a GenericJob with Beam's DirectRunner, or on a Flink cluster of your own"
)


class ClusterTemplate(Part, frozen=True, kw_only=True):
    """Template of the Flink cluster, in the format of the Flink operator."""

    metadata: Annotated[Free | None, about("Labels and annotations of the Flink cluster.")] = None
    spec: Annotated[
        Free, about("Spec of the Flink cluster: flinkVersion, image, jobManager, taskManager, flinkProperties.")
    ]


class SubmitTemplate(Part, frozen=True, kw_only=True):
    """Template of the job that submits the pipeline."""

    metadata: Annotated[Free | None, about("Labels and annotations of the job.")] = None
    spec: Annotated[
        Free, about("Spec of the job that submits the pipeline, as in batch/v1; its template is a pod template.")
    ]


class BeamRunPolicy(Part, frozen=True, kw_only=True):
    """What is deleted when the job ends."""

    clean_up_cluster: Annotated[bool, about("Delete the Flink cluster and its state when the job ends.")] = False


class BeamJob(Part, frozen=True, kw_only=True):
    """A Beam pipeline on a Flink cluster. It is validated and stored, but not run: Flink is not supported."""

    flink_cluster_template: Annotated[ClusterTemplate, about("Template of the Flink cluster.")]
    job_template: Annotated[SubmitTemplate, about("Template of the job that submits the pipeline.")]
    run_mode: Annotated[RunMode | None, about("Debug mode.")] = None
    run_policy: Annotated[BeamRunPolicy | None, about("What is deleted when the job ends.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None


def check(job: BeamJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    faults = list(check_run_mode(job.run_mode, (SUBMITTER,), f"{path}.runMode"))
    for template_path, template in templates(job, path):
        faults += check_template(template, template_path)
    return tuple(faults)


def expand(_job: BeamJob, _site: JobNaming) -> Gang:
    """Raise CannotRun: there is no Flink."""
    raise CannotRun(NO_FLINK)


def places(_job: BeamJob) -> tuple[ReplicaId, ...]:
    """Return the only replica: the job that submits the pipeline."""
    return (ReplicaId(SUBMITTER, 0),)


def templates(job: BeamJob, path: str) -> tuple[Located, ...]:
    """Return the pod template of the job that submits the pipeline."""
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
    name_rules=job_name_rules(f"{len(SUBMITTER) + len('-0')}"),
    # Nothing runs, so suspend and the TTL have no effect.
    mutable=MUTABLE[:2],
)
