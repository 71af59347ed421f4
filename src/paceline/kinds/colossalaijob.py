"""ColossalAIJob: a launcher that starts torchrun on every worker, as `colossalai run` does.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: workers that wait to be reached, and a launcher whose exit status is the job's.
Never  reads a pod, a clock, or another kind.
"""

import shlex
from typing import Annotated, Literal

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds import launch, launched
from paceline.kinds.draft import Draft, Move
from paceline.kinds.fed import Fed
from paceline.kinds.fields import CORE, Count, Free, Part, Positive, Replicas, Resources, Template, about
from paceline.kinds.kind import JobKind, Located, Ports
from paceline.kinds.launched import LAUNCHER, WORKER, CleanUpWorkers, OldCleanUpWorkers
from paceline.kinds.restart import RestartObject
from paceline.kinds.runmode import RunMode, Suspend, debugged, is_debug
from paceline.kinds.runpolicy import Limits, Scope
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import Words
from paceline.objects.faults import required
from paceline.objects.gang import Gang, Place, Site

PORT, USUAL_PORT = "master", 29500


class ReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas that are alike."""

    type: Annotated[Literal["launcher", "worker"], about("What these replicas do: launcher or worker.")]
    replicas: Replicas = 1
    template: (
        Annotated[Template, about("The pod of one replica; a launcher's may be left out or hold what differs.")] | None
    ) = None
    restart_policy: RestartObject | None = None


class TorchConfig(Part, frozen=True, kw_only=True):
    """How the training is started on every worker."""

    proc_per_worker: Annotated[Positive, about("Processes per worker.")] = 1
    script: Annotated[Words, about("The script and its arguments, without the interpreter.")] = ()
    extra_args: Annotated[Words, about("Further arguments of torchrun.")] = ()


class Ssh(Part, frozen=True, kw_only=True):
    """T9k's SSH settings. No SSH runs here: what stands in for it needs neither keys nor a server in the image."""

    auth_mount_path: Annotated[str, about("Where T9k mounts keys. Not used.")] | None = None
    sshd_path: Annotated[str, about("T9k's SSH server in the workers. Not used.")] | None = None


class RunPolicy(Limits, frozen=True, kw_only=True):
    """The limits of the job's life, and what goes when it ends."""

    clean_up_workers: CleanUpWorkers | None = None


class ColossalAIJob(Fed, frozen=True, kw_only=True):
    """Training by Colossal-AI on several workers; the launcher's exit status is the job's."""

    replica_specs: Annotated[tuple[ReplicaSpec, ...], Meta(min_length=1), about("The workers, and the launcher.")]
    torch_config: Annotated[TorchConfig, about("How the training is started on every worker.")] | None = None
    ssh: Annotated[Ssh, about("T9k's SSH settings.")] | None = None
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None


class OldLauncher(Part, frozen=True, kw_only=True):
    """The launcher, as it was written until 2025."""

    image: Annotated[str, about("Old place of the launcher's image.")] | None = None
    working_dir: Annotated[str, about("Old place of the launcher's working directory.")] | None = None
    env: Annotated[
        tuple[
            Annotated[Free, Meta(description="A variable.", extra_json_schema={"$ref": f"{CORE}EnvVar"})],
            ...,
        ],
        about("Old place of the launcher's variables."),
    ] = ()
    resources: Resources | None = None


class OldWorker(Part, frozen=True, kw_only=True):
    """The workers, as they were written until 2025."""

    replicas: Annotated[Count, about("Old place of replicas.")] | None = None
    template: Template | None = None
    proc_per_worker: Annotated[Count, about("Old form of torchConfig.procPerWorker.")] | None = None
    command: Annotated[Words, about("Old form of torchConfig.script.")] = ()
    torch_args: Annotated[Words, about("Old form of torchConfig.extraArgs.")] = ()


class OldSsh(Part, frozen=True, kw_only=True):
    """MPIJob's spelling."""

    ssh_auth_mount_path: Annotated[str, about("Where T9k mounts keys; MPIJob spells it so.")] | None = None


class OldColossalAIJob(Part, frozen=True, kw_only=True):
    """What was written until 2025."""

    launcher: Annotated[OldLauncher, about("Old form of replicaSpecs with type launcher.")] | None = None
    worker: Annotated[OldWorker, about("Old form of replicaSpecs and torchConfig.")] | None = None
    ssh: Annotated[OldSsh, about("T9k's SSH settings.")] | None = None
    run_policy: Annotated[OldCleanUpWorkers, about("What goes when the job ends.")] | None = None


def check(job: ColossalAIJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    found = list(launched.check(job, path))
    if not (job.torch_config or TorchConfig()).script and not is_debug(job.run_mode):
        found.append(required(f"{path}.torchConfig.script", "say which script is trained, such as [train.py]"))
    return tuple(found)


def expand(job: ColossalAIJob, site: Site) -> Gang:
    """Spell out the members; workers wait, the launcher starts torchrun in all of them."""
    config = job.torch_config or TorchConfig()
    hosts = dict.fromkeys(launched.workers(job), config.proc_per_worker)

    def template(place: Place, written: Free) -> Free:
        main = launched.main_container(written, place.role)
        command = _launcher(job, site, written) if place.role == LAUNCHER else launch.serve(site, place)
        written = launched.started(job, written, site=site, place=place, command=command)
        written = debugged(written, job.run_mode, role=place.role, main=main)
        return launch.with_folder(written, site)

    return launched.gang(job, template, launch.launch(site, hosts))


def places(job: ColossalAIJob) -> tuple[Place, ...]:
    """Give every place of the job: the launcher, then the workers."""
    return launched.places(job)


def templates(job: ColossalAIJob, path: str) -> tuple[Located, ...]:
    """Give every pod template with its path; the launcher's is filled in from the workers'."""
    return launched.templates(job, path)


def ports(job: ColossalAIJob) -> Ports:
    """Ask for the port of every worker's agent, and of the first one's store."""
    return {PORT: USUAL_PORT, **launch.agent_ports(launched.workers(job))}


def modernise(draft: Draft) -> None:
    """Turn the shapes of 2023 and 2024 into today's."""
    config = ("spec", "torchConfig")
    draft.move(("spec", "worker", "procPerWorker"), (*config, "procPerWorker"))
    draft.move(("spec", "worker", "command"), (*config, "script"))
    draft.move(("spec", "worker", "torchArgs"), (*config, "extraArgs"))
    draft.move(("spec", "ssh", "sshAuthMountPath"), ("spec", "ssh", "authMountPath"))
    launched.modernise(draft)
    _launcher_to_replica(draft)


KIND = JobKind(
    kind="ColossalAIJob",
    plural="colossalaijobs",
    short_names=("caij",),
    spec=ColossalAIJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    ports=ports,
    old=OldColossalAIJob,
    modernise=modernise,
)


def _launcher(job: ColossalAIJob, site: Site, launcher: Free) -> list[str]:
    """Give what the launcher runs: on every worker, in its own folder and with its variables, torchrun with their rank.

    Secrets stay where they are: they would be shown in every list of processes.
    """
    config, hosts = job.torch_config or TorchConfig(), launched.workers(job)
    folder = launcher["spec"]["containers"][launched.main_container(launcher, LAUNCHER)].get("workingDir")
    told = [f"{name}={value}" for name, value in launched.own_env(job, launcher).items()]
    words = [
        f"--nproc_per_node={config.proc_per_worker}",
        f"--nnodes={len(hosts)}",
        # pdsh puts the number of the host here.
        "--node_rank=%n",
        f"--master_addr={site.host(Place(WORKER, 0))}",
        f"--master_port={site.ports[PORT]}",
        *map(_spared, (*config.extra_args, *config.script)),
    ]
    there = f"cd {shlex.quote(_spared(folder))} && " if folder else ""
    env = f"env {shlex.join(map(_spared, told))} " if told else ""
    listed = ",".join(site.host(place) for place in hosts)
    return launch.with_stand_ins("pdsh", "-S", "-w", listed, f"{there}{env}torchrun {shlex.join(words)}")


def _spared(word: str) -> str:
    """Write a word so that pdsh, which puts numbers and names of hosts into it, leaves it as it is."""
    return word.replace("%", "%%")


def _launcher_to_replica(draft: Draft) -> None:
    """Turn `spec.launcher` into an entry of `replicaSpecs`."""
    old = ("spec", "launcher")
    written = draft.get(*old)
    if not isinstance(written, dict):
        return
    index = draft.count("spec", "replicaSpecs")
    container = ("spec", "replicaSpecs", index, "template", "spec", "containers", 0)
    draft.put(container[:3], {"type": LAUNCHER, "template": {"spec": {"containers": [{"name": LAUNCHER, **written}]}}})
    draft.tell(old, "is the old form of spec.replicaSpecs with type launcher")
    draft.moves.append(Move(old=old, new=container))
    draft.drop(*old)
