"""MPIJob: a launcher that runs mpirun over workers.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: workers that run an agent, and a launcher whose exit code decides the job's result.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from paceline.apimachinery.field_errors import required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.compat import Migration
from paceline.kinds.jobs import launcher_jobs, remote_launch
from paceline.kinds.jobs.launcher_jobs import LAUNCHER, WORKER, LauncherJob, OldCleanUpWorkers, script_rule
from paceline.kinds.jobs.replica_specs import container_named
from paceline.kinds.kind_types import JobKind, Ports
from paceline.kinds.name_rules import job_name_rules
from paceline.kinds.spec.fields import Count, Free, Part, Template, about, whole_number
from paceline.kinds.spec.pod_template import SketchedTemplate, Words, with_env, with_labels
from paceline.kinds.spec.run_policy import debugged, is_debug
from paceline.model.gang import Gang, JobNaming, ReplicaId

PER_NODE = ("-N", "-npernode", "--npernode")
IN_ALL = ("-np", "--np", "-n", "--n", "-c")


NO_SCRIPT = "set the program that mpirun starts, such as [python3, train.py]"


class MPIConfig(Part, frozen=True, kw_only=True):
    """How mpirun is called."""

    mca: Annotated[dict[str, str] | None, about("MCA parameters, such as {btl: ^openib}.")] = None
    home: Annotated[str | None, about("Directory of Open MPI in the image, if it is not in the PATH.")] = None
    extra_args: Annotated[Words, about("Additional arguments for mpirun, such as [-N, '2'].")] = ()
    script: Annotated[Words, about("Program that mpirun starts, such as [python3, train.py].")] = ()


class MPISsh(Part, frozen=True, kw_only=True):
    """T9k's SSH settings. Paceline uses no SSH: its replacement needs neither keys nor a server in the image."""

    ssh_auth_mount_path: Annotated[str | None, about("Path at which T9k mounts keys. Not used.")] = None
    sshd_path: Annotated[
        str | None, about("Path of the SSH server that workers run in debug mode; otherwise not used.")
    ] = None


class MPIJob(LauncherJob, frozen=True, kw_only=True):
    """An MPI program that runs on several workers; the launcher's exit code decides the job's result."""

    cel: ClassVar[tuple[CelRule, ...]] = (script_rule("mpiConfig", message=NO_SCRIPT),)

    mpi_config: Annotated[MPIConfig | None, about("How mpirun is called.")] = None
    ssh: Annotated[MPISsh | None, about("T9k's SSH settings.")] = None


class OldRecovery(Part, frozen=True, kw_only=True):
    """Old form of --enable-recovery and --max-restarts."""

    enable: Annotated[bool, about("Old form of --enable-recovery in mpiConfig.extraArgs.")] = False
    limit: Annotated[Count | None, about("Old form of --max-restarts in mpiConfig.extraArgs.")] = None


class OldMPIWorker(Part, frozen=True, kw_only=True):
    """The workers, in the shape used until 2025."""

    replicas: Annotated[Count | None, about("Old form of replicas.")] = None
    template: Template | None = None
    extra_m_p_i_args: Annotated[Words, about("Old form of mpiConfig.extraArgs.")] = ()
    cmd: Annotated[Words, about("Old form of mpiConfig.script.")] = ()
    processes_per_worker: Annotated[Count | None, about("Old form of -N in mpiConfig.extraArgs.")] = None
    process_recovery: Annotated[OldRecovery | None, about("Old form of --enable-recovery.")] = None


class OldMPISsh(Part, frozen=True, kw_only=True):
    """SSH settings in the spelling of ColossalAIJob."""

    auth_mount_path: Annotated[str | None, about("Path at which T9k mounts keys, as in ColossalAIJob. Not used.")] = (
        None
    )


class OldMPIJob(Part, frozen=True, kw_only=True):
    """Fields of the shape used until 2025."""

    worker: Annotated[OldMPIWorker | None, about("Old form of replicaSpecs and mpiConfig.")] = None
    mca: Annotated[dict[str, str] | None, about("Old form of mpiConfig.mca.")] = None
    mpi_home: Annotated[str | None, about("Old form of mpiConfig.home.")] = None
    ssh: Annotated[OldMPISsh | None, about("T9k's SSH settings.")] = None
    run_policy: Annotated[OldCleanUpWorkers | None, about("What is deleted when the job ends.")] = None


def check(job: MPIJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    faults = list(launcher_jobs.check(job, path))
    if not (job.mpi_config or MPIConfig()).script and not is_debug(job.run_mode):
        faults.append(required(f"{path}.mpiConfig.script", NO_SCRIPT))
    return tuple(faults)


def expand(job: MPIJob, site: JobNaming) -> Gang:
    """Return the gang: workers run an agent, and the launcher starts the program in all of them."""
    hosts = dict.fromkeys(launcher_jobs.workers(job), _slots(job))

    def template(place: ReplicaId, written: Free) -> Free:
        command = _mpirun(job) if place.role == LAUNCHER else remote_launch.serve(site, place)
        written = launcher_jobs.started(job, written, site=site, place=place, command=command)
        main = container_named(written, place.role)
        default = _debug_command(job, site, place) if place.role == WORKER else None
        written = debugged(written, job.run_mode, role=place.role, main=main, default=default)
        if place.role == LAUNCHER:
            written = with_env(written, _env())
        return with_labels(remote_launch.with_folder(written, site), {"app": site.job, "mpi-job": site.job})

    return launcher_jobs.gang(job, template, remote_launch.launch(site, hosts))


def ports(job: MPIJob) -> Ports:
    """Return a port for each worker's agent."""
    return remote_launch.agent_ports(launcher_jobs.workers(job))


def migrate(draft: Migration) -> None:
    """Migrate the shapes of 2023 and 2024 to the current one, and warn."""
    config = ("spec", "mpiConfig")
    draft.move(("spec", "mca"), (*config, "mca"))
    draft.move(("spec", "mpiHome"), (*config, "home"))
    draft.move(("spec", "worker", "cmd"), (*config, "script"))
    draft.move(("spec", "worker", "extraMPIArgs"), (*config, "extraArgs"))
    _processes_to_args(draft)
    draft.move(("spec", "ssh", "authMountPath"), ("spec", "ssh", "sshAuthMountPath"))
    launcher_jobs.migrate(draft, old_container=launcher_jobs.OLD_CONTAINER)


KIND = JobKind(
    kind="MPIJob",
    plural="mpijobs",
    short_names=("mj",),
    spec=MPIJob,
    check=check,
    expand=expand,
    places=launcher_jobs.places,
    templates=launcher_jobs.templates,
    template=SketchedTemplate,
    name_rules=job_name_rules(f"{len('launcher-0')}"),
    ports=ports,
    old=OldMPIJob,
    migrate=migrate,
)


def _mpirun(job: MPIJob) -> list[str]:
    config = job.mpi_config or MPIConfig()
    program = f"{config.home.rstrip('/')}/bin/mpirun" if config.home else "mpirun"
    arguments = ["--hostfile", remote_launch.HOSTFILE, "--mca", "plm_rsh_agent", remote_launch.SSH]
    if config.home:
        arguments += ["--prefix", config.home]
    for name, value in (config.mca or {}).items():
        arguments += ["--mca", name, value]
    return remote_launch.with_stand_ins(program, *arguments, *config.extra_args, *config.script)


def _env() -> dict[str, str]:
    """Return settings for mpirun as variables, so that they also apply when a user calls it in debug mode.

    Our host names are fully qualified, and root in a container has no special rights.
    """
    return {
        "OMPI_MCA_plm_rsh_agent": remote_launch.SSH,
        "OMPI_MCA_orte_default_hostfile": remote_launch.HOSTFILE,
        "PRTE_MCA_prte_default_hostfile": remote_launch.HOSTFILE,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "1",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "1",
        "PRTE_MCA_plm_ssh_agent": remote_launch.SSH,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def _debug_command(job: MPIJob, site: JobNaming, place: ReplicaId) -> tuple[str, ...]:
    """Return the command of a worker in debug mode: the image's sshd if the spec names one, else the agent."""
    path = job.ssh.sshd_path if job.ssh else None
    return (path, "-D") if path else tuple(remote_launch.serve(site, place))


def _slots(job: MPIJob) -> int:
    """Return the number of processes per worker: from mpirun's arguments, else one per GPU, else one."""
    arguments = (job.mpi_config or MPIConfig()).extra_args
    workers = launcher_jobs.workers(job)
    for flag, value in pairwise(arguments):
        number = whole_number(value)
        if number and flag in PER_NODE:
            return number
        if number and flag in IN_ALL:
            return -(-number // len(workers))
    return max(launcher_jobs.gpus(job), 1)


def _processes_to_args(draft: Migration) -> None:
    """Migrate two fields of the oldest shape to arguments of mpirun, and warn."""
    path, args = ("spec", "worker"), ("spec", "mpiConfig", "extraArgs")
    added: list[str] = []
    count = draft.get(*path, "processesPerWorker")
    if isinstance(count, int):
        added += ["-N", str(count)]
        draft.tell((*path, "processesPerWorker"), f"is the old form of -N {count} in spec.mpiConfig.extraArgs")
        draft.drop(*path, "processesPerWorker")
    recovery = draft.get(*path, "processRecovery")
    if isinstance(recovery, Mapping):
        message = "is the old form of --enable-recovery and --max-restarts in spec.mpiConfig.extraArgs"
        added += _recovery(recovery)
        draft.tell((*path, "processRecovery"), message)
        draft.drop(*path, "processRecovery")
    if added:
        written = draft.get(*args)
        draft.put(args, [*added, *(written if isinstance(written, list) else ())])


def _recovery(written: Mapping[str, Any]) -> Iterator[str]:
    if written.get("enable", written.get("enabled")):
        yield "--enable-recovery"
        if "limit" in written:
            yield from ("--max-restarts", str(written["limit"]))
