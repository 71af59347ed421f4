"""ColossalAIJob: a launcher that starts torchrun on every worker, as `colossalai run` does.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: workers that run an agent, and a launcher whose exit code decides the job's result.
Never  reads a pod, a clock, or another kind.
"""

import shlex
from typing import Annotated, ClassVar

from msgspec import Meta

from paceline.apimachinery.field_errors import required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.compat import Migration, Move
from paceline.kinds.jobs import launcher_jobs, remote_launch
from paceline.kinds.jobs.launcher_jobs import LAUNCHER, WORKER, LauncherJob, OldCleanUpWorkers, script_rule
from paceline.kinds.jobs.replica_specs import container_named
from paceline.kinds.kind_types import JobKind, Ports
from paceline.kinds.name_rules import job_name_rules
from paceline.kinds.spec.fields import CORE, Count, Free, Part, Positive, Resources, Template, about
from paceline.kinds.spec.pod_template import SketchedTemplate, Words
from paceline.kinds.spec.run_policy import debugged, is_debug
from paceline.model.gang import Gang, JobNaming, ReplicaId

PORT, USUAL_PORT = "master", 29500


NO_SCRIPT = "set the training script, such as [train.py]"


class TorchConfig(Part, frozen=True, kw_only=True):
    """How torchrun is called on every worker."""

    proc_per_worker: Annotated[Positive, about("Number of processes per worker.")] = 1
    script: Annotated[Words, about("The script and its arguments, without the interpreter.")] = ()
    extra_args: Annotated[Words, about("Additional arguments for torchrun.")] = ()


class ColossalAISsh(Part, frozen=True, kw_only=True):
    """T9k's SSH settings. Paceline uses no SSH: its replacement needs neither keys nor a server in the image."""

    auth_mount_path: Annotated[str | None, about("Path at which T9k mounts keys. Not used.")] = None
    sshd_path: Annotated[str | None, about("Path of T9k's SSH server in the workers. Not used.")] = None


class ColossalAIJob(LauncherJob, frozen=True, kw_only=True):
    """Distributed training with Colossal-AI; the launcher's exit code decides the job's result."""

    cel: ClassVar[tuple[CelRule, ...]] = (script_rule("torchConfig", message=NO_SCRIPT),)

    torch_config: Annotated[TorchConfig | None, about("How torchrun is called on every worker.")] = None
    ssh: Annotated[ColossalAISsh | None, about("T9k's SSH settings.")] = None


class OldLauncher(Part, frozen=True, kw_only=True):
    """The launcher, in the shape used until 2025."""

    image: Annotated[str | None, about("Old form of the launcher's image.")] = None
    working_dir: Annotated[str | None, about("Old form of the launcher's working directory.")] = None
    env: Annotated[
        tuple[
            Annotated[Free, Meta(description="An environment variable.", extra_json_schema={"$ref": f"{CORE}EnvVar"})],
            ...,
        ],
        about("Old form of the launcher's environment variables."),
    ] = ()
    resources: Resources | None = None


class OldColossalAIWorker(Part, frozen=True, kw_only=True):
    """The workers, in the shape used until 2025."""

    replicas: Annotated[Count | None, about("Old form of replicas.")] = None
    template: Template | None = None
    proc_per_worker: Annotated[Count | None, about("Old form of torchConfig.procPerWorker.")] = None
    command: Annotated[Words, about("Old form of torchConfig.script.")] = ()
    torch_args: Annotated[Words, about("Old form of torchConfig.extraArgs.")] = ()


class OldColossalAISsh(Part, frozen=True, kw_only=True):
    """SSH settings in the spelling of MPIJob."""

    ssh_auth_mount_path: Annotated[str | None, about("Path at which T9k mounts keys, as in MPIJob. Not used.")] = None


class OldColossalAIJob(Part, frozen=True, kw_only=True):
    """Fields of the shape used until 2025."""

    launcher: Annotated[OldLauncher | None, about("Old form of replicaSpecs with type launcher.")] = None
    worker: Annotated[OldColossalAIWorker | None, about("Old form of replicaSpecs and torchConfig.")] = None
    ssh: Annotated[OldColossalAISsh | None, about("T9k's SSH settings.")] = None
    run_policy: Annotated[OldCleanUpWorkers | None, about("What is deleted when the job ends.")] = None


def check(job: ColossalAIJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    faults = list(launcher_jobs.check(job, path))
    if not (job.torch_config or TorchConfig()).script and not is_debug(job.run_mode):
        faults.append(required(f"{path}.torchConfig.script", NO_SCRIPT))
    return tuple(faults)


def expand(job: ColossalAIJob, site: JobNaming) -> Gang:
    """Return the gang: workers run an agent, and the launcher starts torchrun in all of them."""
    config = job.torch_config or TorchConfig()
    hosts = dict.fromkeys(launcher_jobs.workers(job), config.proc_per_worker)

    def template(place: ReplicaId, written: Free) -> Free:
        main = container_named(written, place.role)
        command = _launcher(job, site, written) if place.role == LAUNCHER else remote_launch.serve(site, place)
        written = launcher_jobs.started(job, written, site=site, place=place, command=command)
        written = debugged(written, job.run_mode, role=place.role, main=main)
        return remote_launch.with_folder(written, site)

    return launcher_jobs.gang(job, template, remote_launch.launch(site, hosts))


def ports(job: ColossalAIJob) -> Ports:
    """Return a port for each worker's agent, and one for the store of the first worker."""
    return {PORT: USUAL_PORT, **remote_launch.agent_ports(launcher_jobs.workers(job))}


def migrate(draft: Migration) -> None:
    """Migrate the shapes of 2023 and 2024 to the current one, and warn."""
    config = ("spec", "torchConfig")
    draft.move(("spec", "worker", "procPerWorker"), (*config, "procPerWorker"))
    draft.move(("spec", "worker", "command"), (*config, "script"))
    draft.move(("spec", "worker", "torchArgs"), (*config, "extraArgs"))
    draft.move(("spec", "ssh", "sshAuthMountPath"), ("spec", "ssh", "authMountPath"))
    launcher_jobs.migrate(draft)
    _launcher_to_replica(draft)


KIND = JobKind(
    kind="ColossalAIJob",
    plural="colossalaijobs",
    short_names=("caij",),
    spec=ColossalAIJob,
    check=check,
    expand=expand,
    places=launcher_jobs.places,
    templates=launcher_jobs.templates,
    template=SketchedTemplate,
    name_rules=job_name_rules(f"{len('launcher-0')}"),
    ports=ports,
    old=OldColossalAIJob,
    migrate=migrate,
)


def _launcher(job: ColossalAIJob, site: JobNaming, launcher: Free) -> list[str]:
    """Return the launcher's command: it runs torchrun on every worker, in its own directory and with its variables.

    Variables from Secrets are not passed on: every list of processes would show them.
    """
    config, hosts = job.torch_config or TorchConfig(), launcher_jobs.workers(job)
    folder = launcher["spec"]["containers"][container_named(launcher, LAUNCHER)].get("workingDir")
    variables = [f"{name}={value}" for name, value in launcher_jobs.own_env(job, launcher).items()]
    arguments = [
        f"--nproc_per_node={config.proc_per_worker}",
        f"--nnodes={len(hosts)}",
        # pdsh replaces %n by the number of the host.
        "--node_rank=%n",
        f"--master_addr={site.host(ReplicaId(WORKER, 0))}",
        f"--master_port={site.ports[PORT]}",
        *map(_escaped, (*config.extra_args, *config.script)),
    ]
    change_directory = f"cd {shlex.quote(_escaped(folder))} && " if folder else ""
    env = f"env {shlex.join(map(_escaped, variables))} " if variables else ""
    host_list = ",".join(site.host(place) for place in hosts)
    return remote_launch.with_stand_ins(
        "pdsh", "-S", "-w", host_list, f"{change_directory}{env}torchrun {shlex.join(arguments)}"
    )


def _escaped(argument: str) -> str:
    """Return an argument escaped for pdsh, which would replace % sequences in it."""
    return argument.replace("%", "%%")


def _launcher_to_replica(draft: Migration) -> None:
    """Migrate `spec.launcher` to an entry of `replicaSpecs`, and warn."""
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
