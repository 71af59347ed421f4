"""TensorFlowTrainingJob: chief, workers, parameter servers and an evaluator that know each other by TF_CONFIG.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members that know the cluster and their task in it, in every dialect that scripts read.
Never  reads a pod, a clock, or another kind.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds import training
from paceline.kinds.fed import Fed
from paceline.kinds.fields import Free, Part, Replicas, Template, about
from paceline.kinds.kind import Claim, JobKind, Located, Ports
from paceline.kinds.replicas import check_replicas, places_of, templates_of, types_of
from paceline.kinds.restart import RestartText
from paceline.kinds.runmode import RunMode, Suspend, check_run_mode, debugged, resumed
from paceline.kinds.runpolicy import RunPolicy, Scope
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import with_env
from paceline.kinds.tensorboardspec import TensorBoardSpec, check_logs, log_claims
from paceline.objects.faults import invalid, required
from paceline.objects.gang import Gang, Place, RestartPolicy, RestartScope, Site

CONTAINER = "tensorflow"
# T9k's and Kubeflow's number, the same for every replica where each has an address of its own.
USUAL_PORT = 2222
# By this name Kubeflow's jobs say another number.
PORT_NAME = "tfjob-port"
CHIEF, WORKER, PS, EVALUATOR = "chief", "worker", "ps", "evaluator"


class ReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas that are alike."""

    type: Annotated[
        Literal["chief", "worker", "ps", "evaluator"],
        about("What these replicas do: chief, worker, ps (parameter server) or evaluator."),
    ]
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE


class TensorFlowTrainingJob(Fed, frozen=True, kw_only=True):
    """Distributed TensorFlow training; the chief decides over the job, or the first worker where there is no chief."""

    replica_specs: Annotated[tuple[ReplicaSpec, ...], Meta(min_length=1), about("The replicas.")]
    restart_scope: Scope | None = None
    success_policy: (
        Annotated[
            Literal["AllWorkers"],
            about("AllWorkers: the job is done when every worker and the chief are. Left out: the chief decides."),
        ]
        | None
    ) = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None
    tensorboard_spec: (
        Annotated[TensorBoardSpec, about("The TensorBoard of this job; it outlives the job's pods.")] | None
    ) = None


def check(job: TensorFlowTrainingJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    replicas = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    found = [*replicas, *check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")]
    found += _check_roles(job, f"{path}.replicaSpecs")
    if not replicas:
        found += training.check_container(templates(job, path), CONTAINER)
    if job.tensorboard_spec is not None:
        found += check_logs(job.tensorboard_spec, f"{path}.tensorboardSpec")
    return tuple(found)


def expand(job: TensorFlowTrainingJob, site: Site) -> Gang:
    """Spell out the members; each is told the whole cluster and its own task."""
    crew = _Crew(site=site, places=places(job))
    specs: dict[str, ReplicaSpec] = {spec.type: spec for spec in job.replica_specs}
    members = tuple(
        training.member(
            specs[place.role],
            place,
            _template(job, specs[place.role].template, crew=crew, place=place),
            CONTAINER,
        )
        for place in crew.places
    )
    gang = training.gang(
        members,
        job.replica_specs,
        leader=Place(CHIEF if CHIEF in specs else WORKER, 0),
        scope=job.restart_scope or _usual_scope(specs.keys()),
        policy=job.run_policy,
    )
    gang = replace(gang, servers=(PS,) if PS in specs else (), watchers=(EVALUATOR,) if EVALUATOR in specs else ())
    if job.success_policy is None:
        return gang
    # Kubeflow's policy of this name: nobody's work is cut off because the first worker was faster.
    workers = tuple(place for place in crew.places if place.role in (CHIEF, WORKER))
    return replace(gang, success=(workers,), failure=tuple(dict.fromkeys((*gang.failure, *((p,) for p in workers)))))


def places(job: TensorFlowTrainingJob) -> tuple[Place, ...]:
    """Give every place of the job, types in the order they are written."""
    return places_of(job.replica_specs)


def templates(job: TensorFlowTrainingJob, path: str) -> tuple[Located, ...]:
    """Give every pod template with its path."""
    return templates_of(job.replica_specs, f"{path}.replicaSpecs")


def ports(job: TensorFlowTrainingJob) -> Ports:
    """Ask for one port per replica: TensorFlow listens on all addresses, so on one machine no two may share one."""
    usual: dict[str, int] = {spec.type: _usual_port(spec.template) for spec in job.replica_specs}
    return {str(place): usual[place.role] for place in places(job)}


def claims(job: TensorFlowTrainingJob, path: str) -> tuple[Claim, ...]:
    """Give the claims whose logs the job's TensorBoard shows."""
    return () if job.tensorboard_spec is None else log_claims(job.tensorboard_spec, f"{path}.tensorboardSpec")


KIND = JobKind(
    kind="TensorFlowTrainingJob",
    plural="tensorflowtrainingjobs",
    short_names=("tj",),
    spec=TensorFlowTrainingJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    claims=claims,
    ports=ports,
    modernise=training.modernise,
)


def _usual_port(template: Free) -> int:
    container = template["spec"]["containers"][training.container_named(template, CONTAINER)]
    told = {each.get("name"): int(each["containerPort"]) for each in container.get("ports") or ()}
    return told.get(PORT_NAME, USUAL_PORT)


def _usual_scope(types: Collection[str]) -> RestartScope:
    # Workers that reduce among themselves cannot go on without one, nor let it in again. With parameter servers they
    # do not know each other.
    return RestartScope.REPLICA if PS in types else RestartScope.GANG


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crew:
    """What every member is told about the others."""

    site: Site
    places: tuple[Place, ...]

    def address(self, place: Place) -> str:
        return f"{self.site.host(place)}:{self.site.ports[str(place)]}"

    def cluster(self) -> dict[str, list[str]]:
        """List the addresses by role; the evaluator is no part of the cluster that it watches."""
        cluster: dict[str, list[str]] = {}
        for place in self.places:
            if place.role != EVALUATOR:
                cluster.setdefault(place.role, []).append(self.address(place))
        return cluster


def _template(job: TensorFlowTrainingJob, template: Free, *, crew: _Crew, place: Place) -> Free:
    main = training.container_named(template, CONTAINER)
    if crew.site.is_resumed:
        template = resumed(template, job.run_mode, role=place.role, main=main)
    template = debugged(template, job.run_mode, role=place.role, main=main)
    return with_env(template, _env(crew, place))


def _env(crew: _Crew, place: Place) -> dict[str, str]:
    """Give what scripts read: those of T9k and Kubeflow, those of the Helm chart, those of the training service."""
    cluster = crew.cluster()
    return {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": place.role, "index": place.index}}),
        # The chart's trainer splits POD_NAME into role and index: it is the place, not the pod.
        "CLUSTER_CONFIG": json.dumps(cluster),
        "POD_NAME": str(place),
        "JOB_NAME": place.role,
        "JOB_INDEX": str(place.index),
        "PS_HOSTS": ",".join(cluster.get(PS, ())),
        "WORKER_HOSTS": ",".join(cluster.get(WORKER, ())),
        "PYTHONUNBUFFERED": "1",
    }


def _check_roles(job: TensorFlowTrainingJob, path: str) -> Iterator[Fault]:
    types = types_of(job.replica_specs)
    if CHIEF not in types and WORKER not in types:
        yield required(path, "add replicas of type worker or chief; they do the training and decide over the job")
    for index, spec in enumerate(job.replica_specs):
        if spec.type in (CHIEF, EVALUATOR) and spec.replicas > 1:
            yield invalid(f"{path}[{index}].replicas", spec.replicas, f"there is one {spec.type}; ask for 1")
