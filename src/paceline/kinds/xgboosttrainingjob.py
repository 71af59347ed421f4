"""XGBoostTrainingJob: a master that keeps the tracker, and workers that meet there.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members that know their master, rank and world size, in every dialect that scripts read.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds import training
from paceline.kinds.fed import Fed
from paceline.kinds.fields import Free, Part, Replicas, Template, about
from paceline.kinds.kind import JobKind, Located, Ports
from paceline.kinds.replicas import check_replicas, places_of, templates_of, types_of
from paceline.kinds.restart import RestartText
from paceline.kinds.runmode import RunMode, Suspend, check_run_mode, debugged, resumed
from paceline.kinds.runpolicy import RunPolicy, Scope
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import read, with_env
from paceline.objects.faults import invalid, required
from paceline.objects.gang import Gang, Place, RestartPolicy, RestartScope, Site

CONTAINER = "xgboost"
MASTER = "master"
PORT, USUAL_PORT = "master", 9991
# The name under which T9k's examples declare another number.
DECLARED = "xgboost-port"


class ReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas that are alike."""

    type: Annotated[Literal["master", "worker"], about("What these replicas do: master or worker.")]
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE


class XGBoostTrainingJob(Fed, frozen=True, kw_only=True):
    """Distributed XGBoost training; the master keeps the tracker and decides over the job."""

    replica_specs: Annotated[tuple[ReplicaSpec, ...], Meta(min_length=1), about("The replicas; the master has rank 0.")]
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None


def check(job: XGBoostTrainingJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    replicas = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    found = [*replicas, *check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")]
    found += _check_master(job, f"{path}.replicaSpecs")
    if not replicas:
        found += training.check_container(templates(job, path), CONTAINER)
    return tuple(found)


def expand(job: XGBoostTrainingJob, site: Site) -> Gang:
    """Spell out the members; the master has rank 0, wherever it is written."""
    crew = _Crew(site=site, places=places(job))
    specs: dict[str, ReplicaSpec] = {spec.type: spec for spec in job.replica_specs}
    members = tuple(
        training.member(
            specs[place.role],
            place,
            _template(job, specs[place.role].template, crew=crew, rank=rank),
            CONTAINER,
        )
        for rank, place in enumerate(crew.places)
    )
    return training.gang(
        members,
        job.replica_specs,
        leader=Place(MASTER, 0),
        # The tracker counts its workers once; one that comes back alone finds no place there.
        scope=job.restart_scope or RestartScope.GANG,
        policy=job.run_policy,
    )


def places(job: XGBoostTrainingJob) -> tuple[Place, ...]:
    """Give every place of the job, the master first."""
    return tuple(sorted(places_of(job.replica_specs), key=lambda place: place.role != MASTER))


def templates(job: XGBoostTrainingJob, path: str) -> tuple[Located, ...]:
    """Give every pod template with its path."""
    return templates_of(job.replica_specs, f"{path}.replicaSpecs")


def ports(job: XGBoostTrainingJob) -> Ports:
    """Ask for the tracker's port; the master's template may declare the usual one."""
    master = next(spec.template for spec in job.replica_specs if spec.type == MASTER)
    ports = [port for each in read(master).spec.containers for port in each.ports or () if port.name == DECLARED]
    return {PORT: ports[0].container_port if ports else USUAL_PORT}


KIND = JobKind(
    kind="XGBoostTrainingJob",
    plural="xgboosttrainingjobs",
    short_names=("xj",),
    spec=XGBoostTrainingJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    ports=ports,
    modernise=training.modernise,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crew:
    """What every member is told about the others."""

    site: Site
    places: tuple[Place, ...]


def _template(job: XGBoostTrainingJob, template: Free, *, crew: _Crew, rank: int) -> Free:
    role, main = crew.places[rank].role, training.container_named(template, CONTAINER)
    if crew.site.is_resumed:
        template = resumed(template, job.run_mode, role=role, main=main)
    template = debugged(template, job.run_mode, role=role, main=main)
    return with_env(template, _env(crew, rank))


def _env(crew: _Crew, rank: int) -> dict[str, str]:
    """Give what scripts of T9k and Kubeflow read, and what Rabit reads by itself (DMLC_*)."""
    host, port, size = crew.site.host(crew.places[0]), str(crew.site.ports[PORT]), str(len(crew.places))
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "RANK": str(rank),
        "WORLD_SIZE": size,
        "WORKER_ADDRS": ",".join(crew.site.host(place) for place in crew.places if place.role != MASTER),
        # One number for all, as Kubeflow's LightGBM scripts read it: every member has an address of its own.
        "WORKER_PORT": port,
        "DMLC_TRACKER_URI": host,
        "DMLC_TRACKER_PORT": port,
        "DMLC_TASK_ID": str(rank),
        "DMLC_NUM_WORKER": size,
        "PYTHONUNBUFFERED": "1",
    }


def _check_master(job: XGBoostTrainingJob, path: str) -> Iterator[Fault]:
    if MASTER not in types_of(job.replica_specs):
        yield required(path, "add a replica of type master; it keeps the tracker and decides over the job")
    for index, spec in enumerate(job.replica_specs):
        if spec.type == MASTER and spec.replicas > 1:
            yield invalid(f"{path}[{index}].replicas", spec.replicas, "there is one master; ask for 1")
