"""TensorFlowTrainingJob: chief, workers, parameter servers and evaluator, which find each other through TF_CONFIG.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members that know the cluster and their task in it, in every format that scripts read.
Never  reads a pod, a clock, or another kind.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from paceline.apimachinery.field_errors import invalid, required
from paceline.apimachinery.pods import port_number
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.interactive.spec import TensorBoardSpec, check_logs, own_tensorboard_claims
from paceline.kinds.jobs import replica_specs
from paceline.kinds.jobs.replica_specs import check_replicas, places, templates, types_of
from paceline.kinds.kind_types import JobKind, Ports
from paceline.kinds.name_rules import BY_REPLICAS, job_name_rules
from paceline.kinds.spec.data import DataFlowSpec
from paceline.kinds.spec.fields import BY_TYPE, Free, Part, Replicas, Template, about
from paceline.kinds.spec.pod_template import with_env
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

CONTAINER = "tensorflow"
# The port of T9k and Kubeflow; all replicas can use it if each has its own address.
USUAL_PORT = 2222
# Kubeflow's jobs declare another port under this name.
PORT_NAME = "tfjob-port"
CHIEF, WORKER, PS, EVALUATOR = "chief", "worker", "ps", "evaluator"


NO_TRAINER = "add replicas of type worker or chief; they train and decide the job's result"


def _one(role: str) -> str:
    return f"a job has at most one {role}; must be 1"


class TensorFlowReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas of one type."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        replica_specs.single_rule(CHIEF, message=_one(CHIEF)),
        replica_specs.single_rule(EVALUATOR, message=_one(EVALUATOR)),
        replica_specs.named_container_rule(CONTAINER),
    )

    type: Annotated[
        Literal["chief", "worker", "ps", "evaluator"],
        about("Role of these replicas: chief, worker, ps (parameter server) or evaluator."),
    ]
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE


class TensorFlowTrainingJob(DataFlowSpec, frozen=True, kw_only=True):
    """Distributed TensorFlow training; the chief, or else the first worker, decides the job's result."""

    replica_specs: Annotated[
        tuple[TensorFlowReplicaSpec, ...],
        BY_TYPE,
        replica_specs.has_type(CHIEF, WORKER, message=NO_TRAINER),
        about("The replicas, by type."),
    ]
    restart_scope: Scope | None = None
    success_policy: Annotated[
        Literal["AllWorkers"] | None,
        about("AllWorkers: the job succeeds when the chief and all workers have. If omitted, the chief decides."),
    ] = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode | None, about("Debug and pause mode.")] = None
    run_policy: Annotated[RunPolicy | None, about("Deadlines and limits of the job.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None
    tensorboard_spec: Annotated[
        TensorBoardSpec | None, about("TensorBoard of this job; it keeps running after the job's pods are deleted.")
    ] = None


def check(job: TensorFlowTrainingJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    replicas = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    faults = [*replicas, *check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")]
    faults += _check_roles(job, f"{path}.replicaSpecs")
    if not replicas:
        faults += replica_specs.check_container(templates(job, path), CONTAINER)
    if job.tensorboard_spec is not None:
        faults += check_logs(job.tensorboard_spec, f"{path}.tensorboardSpec")
    return tuple(faults)


def expand(job: TensorFlowTrainingJob, site: JobNaming) -> Gang:
    """Return the gang; every member gets the cluster and its own task."""
    cluster = _TensorFlowCluster(site=site, places=places(job))
    specs: dict[str, TensorFlowReplicaSpec] = {spec.type: spec for spec in job.replica_specs}
    members = tuple(
        replica_specs.member(
            specs[place.role],
            place,
            _template(job, specs[place.role].template, cluster=cluster, place=place),
            CONTAINER,
        )
        for place in cluster.places
    )
    gang = replica_specs.gang(
        members,
        job.replica_specs,
        leader=ReplicaId(CHIEF if CHIEF in specs else WORKER, 0),
        scope=job.restart_scope or _usual_scope(specs.keys()),
        policy=job.run_policy,
    )
    gang = replace(
        gang, servers=(PS,) if PS in specs else (), observer_roles=(EVALUATOR,) if EVALUATOR in specs else ()
    )
    if job.success_policy is None:
        return gang
    # Kubeflow's policy of this name: slower workers finish although the first one has succeeded.
    workers = tuple(place for place in cluster.places if place.role in (CHIEF, WORKER))
    return replace(gang, success=(workers,), failure=tuple(dict.fromkeys((*gang.failure, *((p,) for p in workers)))))


def ports(job: TensorFlowTrainingJob) -> Ports:
    """Return one port per replica: TensorFlow listens on all addresses, so replicas on one node cannot share a port."""
    usual: dict[str, int] = {spec.type: _usual_port(spec.template) for spec in job.replica_specs}
    return {str(place): usual[place.role] for place in places(job)}


KIND = JobKind(
    kind="TensorFlowTrainingJob",
    plural="tensorflowtrainingjobs",
    short_names=("tj",),
    spec=TensorFlowTrainingJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    name_rules=job_name_rules(BY_REPLICAS),
    claims=own_tensorboard_claims,
    ports=ports,
    migrate=replica_specs.migrate,
)


def _usual_port(template: Free) -> int:
    container = template["spec"]["containers"][replica_specs.container_named(template, CONTAINER)]
    return port_number(PORT_NAME, (container,)) or USUAL_PORT


def _usual_scope(types: Collection[str]) -> RestartScope:
    # Workers that all-reduce cannot continue without one of them, nor let it join again. With parameter servers they
    # do not communicate with each other.
    return RestartScope.REPLICA if PS in types else RestartScope.GANG


@dataclass(frozen=True, slots=True, kw_only=True)
class _TensorFlowCluster:
    """What every member has to know about the others."""

    site: JobNaming
    places: tuple[ReplicaId, ...]

    def address(self, place: ReplicaId) -> str:
        return f"{self.site.host(place)}:{self.site.ports[str(place)]}"

    def addresses(self) -> dict[str, list[str]]:
        """Return the addresses by role; the evaluator is not part of the cluster."""
        addresses: dict[str, list[str]] = {}
        for place in self.places:
            if place.role != EVALUATOR:
                addresses.setdefault(place.role, []).append(self.address(place))
        return addresses


def _template(job: TensorFlowTrainingJob, template: Free, *, cluster: _TensorFlowCluster, place: ReplicaId) -> Free:
    main = replica_specs.container_named(template, CONTAINER)
    template = with_run_mode(template, job.run_mode, is_resumed=cluster.site.is_resumed, role=place.role, main=main)
    return with_env(template, _env(cluster, place))


def _env(cluster: _TensorFlowCluster, place: ReplicaId) -> dict[str, str]:
    """Return the variables that scripts of T9k, Kubeflow, the Helm chart and the training service read."""
    addresses = cluster.addresses()
    return {
        "TF_CONFIG": json.dumps({"cluster": addresses, "task": {"type": place.role, "index": place.index}}),
        # The chart's trainer splits POD_NAME into role and index, so it is the replica and not the pod.
        "CLUSTER_CONFIG": json.dumps(addresses),
        "POD_NAME": str(place),
        "JOB_NAME": place.role,
        "JOB_INDEX": str(place.index),
        "PS_HOSTS": ",".join(addresses.get(PS, ())),
        "WORKER_HOSTS": ",".join(addresses.get(WORKER, ())),
        "PYTHONUNBUFFERED": "1",
    }


def _check_roles(job: TensorFlowTrainingJob, path: str) -> Iterator[Fault]:
    types = types_of(job.replica_specs)
    if CHIEF not in types and WORKER not in types:
        yield required(path, NO_TRAINER)
    for index, spec in enumerate(job.replica_specs):
        if spec.type in (CHIEF, EVALUATOR) and spec.replicas > 1:
            yield invalid(f"{path}[{index}].replicas", spec.replicas, _one(spec.type))
