"""PyTorchTrainingJob: replicas that rendezvous at the first one, with or without torchrun.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members that know their master, rank and world size.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from paceline.apimachinery.field_errors import invalid, required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule, obeys
from paceline.kinds.compat import Migration
from paceline.kinds.interactive.spec import TensorBoardSpec, check_logs, own_tensorboard_claims
from paceline.kinds.jobs import replica_specs
from paceline.kinds.jobs.replica_specs import (
    ELASTIC_SCALE,
    Elastic,
    check_elastic,
    check_replicas,
    is_elastic,
    sizes,
    templates,
    types_of,
    with_size,
)
from paceline.kinds.kind_types import MUTABLE, JobKind, Ports
from paceline.kinds.name_rules import BY_TYPES, job_name_rules
from paceline.kinds.spec.data import DataFlowSpec
from paceline.kinds.spec.fields import (
    BY_TYPE,
    MAX_REPLICAS,
    Count,
    Free,
    Part,
    Replicas,
    ReplicaType,
    Template,
    about,
    whole_number,
)
from paceline.kinds.spec.pod_template import Words, read, with_container, with_env
from paceline.kinds.spec.restart_policy import RestartText
from paceline.kinds.spec.run_policy import (
    RunMode,
    RunPolicy,
    Scheduler,
    Scope,
    Suspend,
    check_run_mode,
    debugged,
    is_debug,
    resumed,
)
from paceline.model.gang import Gang, JobNaming, ReplicaId, RestartPolicy, RestartScope

PORT = "master"
USUAL_PORT = 29500
# T9k's reference uses `python`, its examples use `pytorch`.
TRAINING_CONTAINERS = ("pytorch", "python")
PROCESS_WORDS = ("gpu", "cpu", "auto")
# A replica that leaves costs each of the others one of torchrun's own restarts, of which it has none by default.
ELASTIC_RESTARTS = 10
RENDEZVOUS_OPTIONS = ("--rdzv_conf", "--rdzv-conf")


NO_PROCESSES = f"must be at least 1, or one of {', '.join(PROCESS_WORDS)}"
PROCESSES = obeys(
    CelRule(
        rule="type(self) == int ? self > 0 && self < 1000000000"
        f" : string(self).matches('^({'|'.join(PROCESS_WORDS)}|0*[1-9][0-9]{{0,8}})$')",
        message=NO_PROCESSES,
    )
)


class PyTorchReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas of one type."""

    type: ReplicaType
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE
    scaling_weight: Annotated[
        Count | None, about("Weight of this type when an elastic job distributes its replicas.")
    ] = None


class Torchrun(Part, frozen=True, kw_only=True):
    """How torchrun starts the processes of a replica."""

    enabled: Annotated[
        bool, about("Start every replica with torchrun; the container's args are the script and its arguments.")
    ] = False
    max_restarts: Annotated[
        Count | None, about("Restarts by torchrun itself. If omitted, 0, or 10 in an elastic job.")
    ] = None
    proc_per_node: Annotated[
        int | str | None, PROCESSES, about("Number of processes per replica, or gpu for one per GPU.")
    ] = None
    rdzv_backend: Annotated[
        Literal["c10d", "etcd", "etcd-v2"], about("Rendezvous backend; you have to run an etcd server yourself.")
    ] = "c10d"
    extra_options: Annotated[Words, about("Additional options for torchrun.")] = ()


class OldTorchrun(Part, frozen=True, kw_only=True):
    """Fields that were removed in 2023."""

    min_nodes: Annotated[Count | None, about("Old form of elastic.minReplicas.")] = None


class OldPyTorchTrainingJob(Part, frozen=True, kw_only=True):
    """Fields of the shape used until 2023."""

    torchrun_config: Annotated[OldTorchrun | None, about("Settings of torchrun.")] = None


class PyTorchTrainingJob(DataFlowSpec, frozen=True, kw_only=True):
    """Distributed PyTorch training; the first replica is the master and decides the job's result."""

    replica_specs: Annotated[
        tuple[PyTorchReplicaSpec, ...], BY_TYPE, about("The replicas, by type; ranks follow this order.")
    ]
    torchrun_config: Annotated[Torchrun | None, about("Settings of torchrun.")] = None
    elastic: Annotated[
        Elastic | None, about("Elastic training: bounds for the number of replicas; requires torchrun.")
    ] = None
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode | None, about("Debug and pause mode.")] = None
    run_policy: Annotated[RunPolicy | None, about("Deadlines and limits of the job.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None
    tensorboard_spec: Annotated[
        TensorBoardSpec | None, about("TensorBoard of this job; it keeps running after the job's pods are deleted.")
    ] = None


def check(job: PyTorchTrainingJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    faults = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    faults += check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")
    if job.torchrun_config is not None:
        faults += _check_processes(job.torchrun_config, f"{path}.torchrunConfig")
    faults += check_elastic(job.elastic, f"{path}.elastic")
    if job.tensorboard_spec is not None:
        faults += check_logs(job.tensorboard_spec, f"{path}.tensorboardSpec")
    if not faults and _uses_torchrun(job) and not is_debug(job.run_mode):
        faults += _check_scripts(job, path)
    return tuple(faults)


def expand(job: PyTorchTrainingJob, site: JobNaming) -> Gang:
    """Return the gang; ranks are numbered by type, in the order of the spec."""
    restarts = ELASTIC_RESTARTS if is_elastic(job.elastic) else None
    peers = _TorchPeers(site=site, places=places(job), nodes=_nodes(job), restarts=restarts)
    specs = {spec.type: spec for spec in job.replica_specs}
    members = tuple(
        replica_specs.member(
            specs[place.role],
            place,
            _template(job, specs[place.role].template, peers=peers, rank=rank),
            *TRAINING_CONTAINERS,
        )
        for rank, place in enumerate(peers.places)
    )
    gang = replica_specs.gang(
        members,
        job.replica_specs,
        leader=peers.places[0],
        scope=job.restart_scope or _usual_scope(job),
        policy=job.run_policy,
    )
    return with_size(gang, job.elastic) if _uses_torchrun(job) else gang


def places(job: PyTorchTrainingJob) -> tuple[ReplicaId, ...]:
    """Return every replica of the job, by type in the order of the spec."""
    replicas = {spec.type: spec.replicas for spec in job.replica_specs}
    weights = {spec.type: spec.scaling_weight or 0 for spec in job.replica_specs}
    counts = sizes(replicas, weights, job.elastic if _uses_torchrun(job) else None)
    return tuple(ReplicaId(role, index) for role, count in counts.items() for index in range(count))


def ports(_job: PyTorchTrainingJob) -> Ports:
    """Return the port of the master's store."""
    return {PORT: USUAL_PORT}


def migrate(draft: Migration) -> None:
    """Migrate the shapes of 2023 to the current one, and warn about fields without effect."""
    nodes = ("spec", "torchrunConfig", "minNodes")
    if draft.has(*nodes):
        draft.tell(nodes, "is an old field and has no effect; use spec.elastic.minReplicas")
        draft.drop(*nodes)
    replica_specs.migrate(draft)
    if _is_on(draft, "elastic") and not _is_on(draft, "torchrunConfig"):
        draft.tell(("spec", "elastic"), "has no effect without torchrun: set spec.torchrunConfig.enabled")


KIND = JobKind(
    kind="PyTorchTrainingJob",
    plural="pytorchtrainingjobs",
    short_names=("pj",),
    spec=PyTorchTrainingJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    name_rules=job_name_rules(BY_TYPES),
    claims=own_tensorboard_claims,
    ports=ports,
    old=OldPyTorchTrainingJob,
    migrate=migrate,
    mutable=(*MUTABLE, "elastic.expectedReplicas"),
    scale=ELASTIC_SCALE,
)


def _is_on(draft: Migration, field: str) -> bool:
    return any(draft.get("spec", field, name) is True for name in ("enabled", "enable"))


def _uses_torchrun(job: PyTorchTrainingJob) -> bool:
    return job.torchrun_config is not None and job.torchrun_config.enabled


def _nodes(job: PyTorchTrainingJob) -> str:
    if job.elastic is None or not job.elastic.enabled or not _uses_torchrun(job):
        return str(len(places(job)))
    # A running replica cannot be given a new limit, and must accept replicas that join later.
    return f"{job.elastic.min_replicas or 1}:{job.elastic.max_replicas or MAX_REPLICAS}"


def _usual_scope(job: PyTorchTrainingJob) -> RestartScope:
    # The peers of a dead rank hang or fail, and a replica that restarts alone finds no rendezvous to join: the process
    # group is created once, with and without torchrun (the store is in replica 0). Only elastic agents re-join.
    return RestartScope.REPLICA if is_elastic(job.elastic) and _uses_torchrun(job) else RestartScope.GANG


@dataclass(frozen=True, slots=True, kw_only=True)
class _TorchPeers:
    """What every member has to know about the others."""

    site: JobNaming
    places: tuple[ReplicaId, ...]
    # Number of nodes for torchrun, or MIN:MAX of an elastic job.
    nodes: str
    # Default for the restarts by torchrun itself.
    restarts: int | None = None

    @property
    def host(self) -> str:
        return self.site.host(self.places[0])

    @property
    def port(self) -> int:
        return self.site.ports[PORT]


def _template(job: PyTorchTrainingJob, template: Free, *, peers: _TorchPeers, rank: int) -> Free:
    role, main = peers.places[rank].role, replica_specs.container_named(template, *TRAINING_CONTAINERS)
    config = job.torchrun_config or Torchrun()
    if peers.site.is_resumed:
        template = resumed(template, job.run_mode, role=role, main=main)
    if config.enabled:
        script = template["spec"]["containers"][main].get("args") or []
        template = with_container(template, main, command=["torchrun"], args=[*_torchrun(config, peers, rank), *script])
    template = debugged(template, job.run_mode, role=role, main=main)
    return with_env(template, _env(config, peers, rank))


def _env(config: Torchrun, peers: _TorchPeers, rank: int) -> dict[str, str]:
    """Return the variables that scripts of T9k and Kubeflow read, and torchrun if the user calls it (PET_*).

    LOCAL_RANK is not set: scripts detect torchrun by it.
    """
    env = {
        "MASTER_ADDR": peers.host,
        "MASTER_PORT": str(peers.port),
        "RANK": str(rank),
        "WORLD_SIZE": str(len(peers.places)),
        "PET_MASTER_ADDR": peers.host,
        "PET_MASTER_PORT": str(peers.port),
        "PET_NNODES": peers.nodes,
        "PET_NPROC_PER_NODE": str(config.proc_per_node or 1),
        "PYTHONUNBUFFERED": "1",
    }
    if not config.enabled:
        # With c10d, torchrun assigns ranks itself and would log a warning about this variable.
        env["PET_NODE_RANK"] = str(rank)
    elif peers.nodes != "1":
        # Agents that share their store with the training keep its address and keys from the first round on (seen in
        # PyTorch 2.13): a replica that joins later waits forever, and one that restarts connects to ports of dead ones.
        env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    return env


def _torchrun(config: Torchrun, peers: _TorchPeers, rank: int) -> list[str]:
    # Underscores, because torchrun of PyTorch 1.x does not accept dashes.
    arguments = [
        f"--nnodes={peers.nodes}",
        f"--nproc_per_node={config.proc_per_node or 1}",
        f"--rdzv_backend={config.rdzv_backend}",
        f"--rdzv_id={peers.site.stem}",
        f"--role={peers.places[rank].role}",
    ]
    settings, options = [], _Options(config.extra_options)
    if config.rdzv_backend == "c10d":
        arguments.append(f"--rdzv_endpoint={peers.host}:{peers.port}")
        # Set explicitly: otherwise torchrun compares addresses to find out which replica has the store.
        settings.append(f"is_host={int(rank == 0)}")
    if conf := [*settings, *options.rendezvous]:
        arguments.append(f"--rdzv_conf={','.join(conf)}")
    restarts = config.max_restarts if config.max_restarts is not None else peers.restarts
    if restarts is not None:
        arguments.append(f"--max_restarts={restarts}")
    return [*arguments, *options.others]


class _Options:
    """The user's options, with those for the rendezvous apart: torchrun uses only the last one given."""

    def __init__(self, options: tuple[str, ...]) -> None:
        self.rendezvous: list[str] = []
        self.others: list[str] = []
        remaining = iter(options)
        for option in remaining:
            name, has_value, value = option.partition("=")
            if name in RENDEZVOUS_OPTIONS:
                self.rendezvous += [setting for setting in (value if has_value else next(remaining, ""),) if setting]
            else:
                self.others.append(option)


def _check_processes(config: Torchrun, path: str) -> Iterator[Fault]:
    count = config.proc_per_node
    if count is None or count in PROCESS_WORDS:
        return
    if not whole_number(count):
        yield invalid(f"{path}.procPerNode", count, NO_PROCESSES)


def _check_scripts(job: PyTorchTrainingJob, path: str) -> Iterator[Fault]:
    for template_path, template in templates(job, path):
        main = replica_specs.container_named(dict(template), *TRAINING_CONTAINERS)
        if not read(template).spec.containers[main].args:
            hint = "set the script for torchrun in args, such as [train.py, --epochs, '3']; the command is ignored"
            yield required(f"{template_path}.spec.containers[{main}].args", hint)
