"""PyTorchTrainingJob: replicas that meet at the first of them, with torchrun or without.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members that know their master, rank and world size, and nothing torch about it.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds import training
from paceline.kinds.draft import Draft
from paceline.kinds.elastic import Elastic, check_elastic, is_elastic, sizes, with_size
from paceline.kinds.fed import Fed
from paceline.kinds.fields import MAX_REPLICAS, Count, Free, Part, Replicas, ReplicaType, Template, about, whole_number
from paceline.kinds.kind import MUTABLE, Claim, JobKind, Located, Ports
from paceline.kinds.replicas import check_replicas, templates_of, types_of
from paceline.kinds.restart import RestartText
from paceline.kinds.runmode import RunMode, Suspend, check_run_mode, debugged, is_debug, resumed
from paceline.kinds.runpolicy import RunPolicy, Scope
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import Words, read, with_container, with_env
from paceline.kinds.tensorboardspec import TensorBoardSpec, check_logs, log_claims
from paceline.objects.faults import invalid, required
from paceline.objects.gang import Gang, Place, RestartPolicy, RestartScope, Site

PORT = "master"
USUAL_PORT = 29500
# T9k's page says `python`, its examples say `pytorch`.
TRAINING_CONTAINERS = ("pytorch", "python")
PROCESS_WORDS = ("gpu", "cpu", "auto")
# A replica that leaves, or is lost, costs each of the others one of torchrun's own restarts; torchrun itself has none.
ELASTIC_RESTARTS = 10
RENDEZVOUS_OPTIONS = ("--rdzv_conf", "--rdzv-conf")


class ReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas that are alike."""

    type: ReplicaType
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE
    scaling_weight: Annotated[Count, about("Share of this type when the job is elastic.")] | None = None


class Torchrun(Part, frozen=True, kw_only=True):
    """How torchrun starts the processes of a replica."""

    enabled: Annotated[bool, about("Start each replica by torchrun; the container's args name the script.")] = False
    max_restarts: (
        Annotated[Count, about("Restarts that torchrun itself makes: 0 unless said, 10 in an elastic job.")] | None
    ) = None
    proc_per_node: Annotated[int | str, about("Processes per replica: a number, or gpu for one per GPU.")] | None = None
    rdzv_backend: Annotated[
        Literal["c10d", "etcd", "etcd-v2"], about("Where replicas meet; an etcd server is yours to run.")
    ] = "c10d"
    extra_options: Annotated[Words, about("Further options of torchrun.")] = ()


class OldTorchrun(Part, frozen=True, kw_only=True):
    """What was dropped in 2023."""

    min_nodes: Annotated[Count, about("Old form of elastic.minReplicas.")] | None = None


class OldPyTorchTrainingJob(Part, frozen=True, kw_only=True):
    """What was written until 2023."""

    torchrun_config: Annotated[OldTorchrun, about("Start by torchrun.")] | None = None


class PyTorchTrainingJob(Fed, frozen=True, kw_only=True):
    """Distributed PyTorch training; the first replica is the master and decides over the job."""

    replica_specs: Annotated[
        tuple[ReplicaSpec, ...], Meta(min_length=1), about("The replicas; ranks follow their order here.")
    ]
    torchrun_config: Annotated[Torchrun, about("Start by torchrun.")] | None = None
    elastic: Annotated[Elastic, about("Bounds of a job that grows and shrinks; only with torchrun.")] | None = None
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None
    tensorboard_spec: (
        Annotated[TensorBoardSpec, about("The TensorBoard of this job; it outlives the job's pods.")] | None
    ) = None


def check(job: PyTorchTrainingJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    found = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    found += check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")
    if job.torchrun_config is not None:
        found += _check_processes(job.torchrun_config, f"{path}.torchrunConfig")
    found += check_elastic(job.elastic, f"{path}.elastic")
    if job.tensorboard_spec is not None:
        found += check_logs(job.tensorboard_spec, f"{path}.tensorboardSpec")
    if not found and _uses_torchrun(job) and not is_debug(job.run_mode):
        found += _check_scripts(job, path)
    return tuple(found)


def expand(job: PyTorchTrainingJob, site: Site) -> Gang:
    """Spell out the members; ranks count through the types in the order they are written."""
    restarts = ELASTIC_RESTARTS if is_elastic(job.elastic) else None
    crew = _Crew(site=site, places=places(job), nodes=_nodes(job), restarts=restarts)
    specs = {spec.type: spec for spec in job.replica_specs}
    members = tuple(
        training.member(
            specs[place.role],
            place,
            _template(job, specs[place.role].template, crew=crew, rank=rank),
            *TRAINING_CONTAINERS,
        )
        for rank, place in enumerate(crew.places)
    )
    made = training.gang(
        members,
        job.replica_specs,
        leader=crew.places[0],
        scope=job.restart_scope or _usual_scope(job),
        policy=job.run_policy,
    )
    return with_size(made, job.elastic) if _uses_torchrun(job) else made


def places(job: PyTorchTrainingJob) -> tuple[Place, ...]:
    """Give every place of the job, types in the order they are written."""
    wanted = {each.type: each.replicas for each in job.replica_specs}
    weights = {each.type: each.scaling_weight or 0 for each in job.replica_specs}
    counts = sizes(wanted, weights, job.elastic if _uses_torchrun(job) else None)
    return tuple(Place(role, index) for role, count in counts.items() for index in range(count))


def templates(job: PyTorchTrainingJob, path: str) -> tuple[Located, ...]:
    """Give every pod template with its path."""
    return templates_of(job.replica_specs, f"{path}.replicaSpecs")


def ports(_job: PyTorchTrainingJob) -> Ports:
    """Ask for the port of the master's store."""
    return {PORT: USUAL_PORT}


def claims(job: PyTorchTrainingJob, path: str) -> tuple[Claim, ...]:
    """Give the claims whose logs the job's TensorBoard shows."""
    return () if job.tensorboard_spec is None else log_claims(job.tensorboard_spec, f"{path}.tensorboardSpec")


def modernise(draft: Draft) -> None:
    """Turn the shapes of 2023 into today's, and say what has no effect."""
    nodes = ("spec", "torchrunConfig", "minNodes")
    if draft.has(*nodes):
        draft.tell(nodes, "is an old field without effect; spec.elastic.minReplicas says how few replicas are enough")
        draft.drop(*nodes)
    training.modernise(draft)
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
    claims=claims,
    ports=ports,
    old=OldPyTorchTrainingJob,
    modernise=modernise,
    mutable=(*MUTABLE, "elastic.expectedReplicas"),
)


def _is_on(draft: Draft, field: str) -> bool:
    return any(draft.get("spec", field, name) is True for name in ("enabled", "enable"))


def _uses_torchrun(job: PyTorchTrainingJob) -> bool:
    return job.torchrun_config is not None and job.torchrun_config.enabled


def _nodes(job: PyTorchTrainingJob) -> str:
    if job.elastic is None or not job.elastic.enabled or not _uses_torchrun(job):
        return str(len(places(job)))
    # Who runs is told once, and must let in whoever comes later.
    return f"{job.elastic.min_replicas or 1}:{job.elastic.max_replicas or MAX_REPLICAS}"


def _usual_scope(job: PyTorchTrainingJob) -> RestartScope:
    # The peers of a dead rank hang or fail, and one that comes back alone finds no rendezvous to join: the process
    # group was made once, with and without torchrun (the store lives in replica 0). Only elastic agents re-join.
    return RestartScope.REPLICA if is_elastic(job.elastic) and _uses_torchrun(job) else RestartScope.GANG


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crew:
    """What every member is told about the others."""

    site: Site
    places: tuple[Place, ...]
    # How many may come together: a number, or FEWEST:MOST of an elastic job.
    nodes: str
    # What torchrun restarts by itself where nobody says.
    restarts: int | None = None

    @property
    def host(self) -> str:
        return self.site.host(self.places[0])

    @property
    def port(self) -> int:
        return self.site.ports[PORT]


def _template(job: PyTorchTrainingJob, template: Free, *, crew: _Crew, rank: int) -> Free:
    role, main = crew.places[rank].role, training.container_named(template, *TRAINING_CONTAINERS)
    config = job.torchrun_config or Torchrun()
    if crew.site.is_resumed:
        template = resumed(template, job.run_mode, role=role, main=main)
    if config.enabled:
        script = template["spec"]["containers"][main].get("args") or []
        template = with_container(template, main, command=["torchrun"], args=[*_torchrun(config, crew, rank), *script])
    template = debugged(template, job.run_mode, role=role, main=main)
    return with_env(template, _env(config, crew, rank))


def _env(config: Torchrun, crew: _Crew, rank: int) -> dict[str, str]:
    """Give what scripts of T9k and Kubeflow read, and torchrun when the user calls it (PET_*).

    No LOCAL_RANK: scripts take its presence for a sign of torchrun.
    """
    told = {
        "MASTER_ADDR": crew.host,
        "MASTER_PORT": str(crew.port),
        "RANK": str(rank),
        "WORLD_SIZE": str(len(crew.places)),
        "PET_MASTER_ADDR": crew.host,
        "PET_MASTER_PORT": str(crew.port),
        "PET_NNODES": crew.nodes,
        "PET_NPROC_PER_NODE": str(config.proc_per_node or 1),
        "PYTHONUNBUFFERED": "1",
    }
    if not config.enabled:
        # Torchrun under c10d gives ranks by itself, and would warn of this one in every log.
        told["PET_NODE_RANK"] = str(rank)
    elif crew.nodes != "1":
        # Agents that share their store with the training remember its address and its keys from the first round on
        # (seen in 2.13): who joins in a later one waits in vain, and who restarts meets ports of the dead.
        told["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    return told


def _torchrun(config: Torchrun, crew: _Crew, rank: int) -> list[str]:
    # Underscores, because torchrun of PyTorch 1.x knows no dashes.
    words = [
        f"--nnodes={crew.nodes}",
        f"--nproc_per_node={config.proc_per_node or 1}",
        f"--rdzv_backend={config.rdzv_backend}",
        f"--rdzv_id={crew.site.stem}",
        f"--role={crew.places[rank].role}",
    ]
    ours, theirs = [], _Options(config.extra_options)
    if config.rdzv_backend == "c10d":
        words.append(f"--rdzv_endpoint={crew.host}:{crew.port}")
        # Said, not guessed: torchrun would compare addresses to find out which replica holds the store.
        ours.append(f"is_host={int(rank == 0)}")
    if conf := [*ours, *theirs.meeting]:
        words.append(f"--rdzv_conf={','.join(conf)}")
    restarts = config.max_restarts if config.max_restarts is not None else crew.restarts
    if restarts is not None:
        words.append(f"--max_restarts={restarts}")
    return [*words, *theirs.others]


class _Options:
    """Options of the user's, those about the meeting apart: torchrun heeds only the last that is given."""

    def __init__(self, written: tuple[str, ...]) -> None:
        self.meeting: list[str] = []
        self.others: list[str] = []
        words = iter(written)
        for word in words:
            name, has_value, value = word.partition("=")
            if name in RENDEZVOUS_OPTIONS:
                self.meeting += [each for each in (value if has_value else next(words, ""),) if each]
            else:
                self.others.append(word)


def _check_processes(config: Torchrun, path: str) -> Iterator[Fault]:
    count = config.proc_per_node
    if count is None or count in PROCESS_WORDS:
        return
    if not whole_number(count):
        yield invalid(f"{path}.procPerNode", count, f"ask for a number from 1, or one of {', '.join(PROCESS_WORDS)}")


def _check_scripts(job: PyTorchTrainingJob, path: str) -> Iterator[Fault]:
    for where, template in templates(job, path):
        main = training.container_named(dict(template), *TRAINING_CONTAINERS)
        if not read(template).spec.containers[main].args:
            hint = "torchrun runs what args name, such as [train.py, --epochs, '3']; it ignores the command"
            yield required(f"{where}.spec.containers[{main}].args", hint)
