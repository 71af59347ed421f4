"""XGBoostTrainingJob: a master that runs the tracker, and workers that connect to it.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members that know their master, rank and world size, in every format that scripts read.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from paceline.apimachinery.field_errors import invalid, required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.jobs import replica_specs
from paceline.kinds.jobs.replica_specs import check_replicas, templates, types_of
from paceline.kinds.kind_types import JobKind, Ports
from paceline.kinds.name_rules import BY_REPLICAS, job_name_rules
from paceline.kinds.spec.data import DataFlowSpec
from paceline.kinds.spec.fields import BY_TYPE, Free, Part, Replicas, Template, about
from paceline.kinds.spec.pod_template import read, with_env
from paceline.kinds.spec.restart_policy import RestartText
from paceline.kinds.spec.run_policy import (
    RunMode,
    RunPolicy,
    Scheduler,
    Scope,
    Suspend,
    check_run_mode,
    with_run_mode,
)
from paceline.model.gang import Gang, JobNaming, ReplicaId, RestartPolicy, RestartScope

CONTAINER = "xgboost"
MASTER = "master"
PORT, USUAL_PORT = "master", 9991
# T9k's examples declare another port under this name.
DECLARED = "xgboost-port"


NO_MASTER = "add a replica of type master; it runs the tracker and decides the job's result"
ONE_MASTER = "a job has exactly one master; must be 1"


class XGBoostReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas of one type."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        replica_specs.single_rule(MASTER, message=ONE_MASTER),
        replica_specs.named_container_rule(CONTAINER),
    )

    type: Annotated[Literal["master", "worker"], about("Role of these replicas: master or worker.")]
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE


class XGBoostTrainingJob(DataFlowSpec, frozen=True, kw_only=True):
    """Distributed XGBoost training; the master runs the tracker and decides the job's result."""

    replica_specs: Annotated[
        tuple[XGBoostReplicaSpec, ...],
        BY_TYPE,
        replica_specs.has_type(MASTER, message=NO_MASTER),
        about("The replicas, by type; the master has rank 0."),
    ]
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode | None, about("Debug and pause mode.")] = None
    run_policy: Annotated[RunPolicy | None, about("Deadlines and limits of the job.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None


def check(job: XGBoostTrainingJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    replicas = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    faults = [*replicas, *check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")]
    faults += _check_master(job, f"{path}.replicaSpecs")
    if not replicas:
        faults += replica_specs.check_container(templates(job, path), CONTAINER)
    return tuple(faults)


def expand(job: XGBoostTrainingJob, site: JobNaming) -> Gang:
    """Return the gang; the master has rank 0, wherever it is in the spec."""
    peers = _XGBoostPeers(site=site, places=places(job))
    specs: dict[str, XGBoostReplicaSpec] = {spec.type: spec for spec in job.replica_specs}
    members = tuple(
        replica_specs.member(
            specs[place.role],
            place,
            _template(job, specs[place.role].template, peers=peers, rank=rank),
            CONTAINER,
        )
        for rank, place in enumerate(peers.places)
    )
    return replica_specs.gang(
        members,
        job.replica_specs,
        leader=ReplicaId(MASTER, 0),
        # The tracker counts its workers once, and does not accept one that restarts alone.
        scope=job.restart_scope or RestartScope.GANG,
        policy=job.run_policy,
    )


def places(job: XGBoostTrainingJob) -> tuple[ReplicaId, ...]:
    """Return every replica of the job, the master first."""
    return tuple(sorted(replica_specs.places(job), key=lambda place: place.role != MASTER))


def ports(job: XGBoostTrainingJob) -> Ports:
    """Return the tracker's port; the master's template may declare which one is preferred."""
    master = next(spec.template for spec in job.replica_specs if spec.type == MASTER)
    containers = read(master).spec.containers
    ports = [port for container in containers for port in container.ports or () if port.name == DECLARED]
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
    name_rules=job_name_rules(BY_REPLICAS),
    ports=ports,
    migrate=replica_specs.migrate,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _XGBoostPeers:
    """What every member has to know about the others."""

    site: JobNaming
    places: tuple[ReplicaId, ...]


def _template(job: XGBoostTrainingJob, template: Free, *, peers: _XGBoostPeers, rank: int) -> Free:
    role, main = peers.places[rank].role, replica_specs.container_named(template, CONTAINER)
    template = with_run_mode(template, job.run_mode, is_resumed=peers.site.is_resumed, role=role, main=main)
    return with_env(template, _env(peers, rank))


def _env(peers: _XGBoostPeers, rank: int) -> dict[str, str]:
    """Return the variables that scripts of T9k and Kubeflow read, and those of Rabit (DMLC_*)."""
    host, port, size = peers.site.host(peers.places[0]), str(peers.site.ports[PORT]), str(len(peers.places))
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "RANK": str(rank),
        "WORLD_SIZE": size,
        "WORKER_ADDRS": ",".join(peers.site.host(place) for place in peers.places if place.role != MASTER),
        # One port for all, as Kubeflow's LightGBM scripts expect: every member has its own address.
        "WORKER_PORT": port,
        "DMLC_TRACKER_URI": host,
        "DMLC_TRACKER_PORT": port,
        "DMLC_TASK_ID": str(rank),
        "DMLC_NUM_WORKER": size,
        "PYTHONUNBUFFERED": "1",
    }


def _check_master(job: XGBoostTrainingJob, path: str) -> Iterator[Fault]:
    if MASTER not in types_of(job.replica_specs):
        yield required(path, NO_MASTER)
    for index, spec in enumerate(job.replica_specs):
        if spec.type == MASTER and spec.replicas > 1:
            yield invalid(f"{path}[{index}].replicas", spec.replicas, ONE_MASTER)
