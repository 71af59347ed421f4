"""MPIJob: a launcher that runs mpirun over workers.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: workers that wait to be reached, and a launcher whose exit status is the job's.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds import launch, launched
from paceline.kinds.draft import Draft
from paceline.kinds.fed import Fed
from paceline.kinds.fields import Count, Free, Part, Replicas, Template, about, whole_number
from paceline.kinds.kind import JobKind, Located, Ports
from paceline.kinds.launched import LAUNCHER, WORKER, CleanUpWorkers, OldCleanUpWorkers
from paceline.kinds.restart import RestartObject
from paceline.kinds.runmode import RunMode, Suspend, debugged, is_debug
from paceline.kinds.runpolicy import Limits, Scope
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import Words, with_env, with_labels
from paceline.objects.faults import required
from paceline.objects.gang import Gang, Place, Site

OLD_CONTAINER = "mpi-worker"
PER_NODE = ("-N", "-npernode", "--npernode")
IN_ALL = ("-np", "--np", "-n", "--n", "-c")


class ReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas that are alike."""

    type: Annotated[Literal["launcher", "worker"], about("What these replicas do: launcher or worker.")]
    replicas: Replicas = 1
    template: (
        Annotated[Template, about("The pod of one replica; a launcher's may be left out or hold what differs.")] | None
    ) = None
    restart_policy: RestartObject | None = None


class MPIConfig(Part, frozen=True, kw_only=True):
    """How mpirun is called."""

    mca: Annotated[dict[str, str], about("MCA parameters, such as {btl: ^openib}.")] | None = None
    home: Annotated[str, about("Where Open MPI lies in the image, when it is not in the PATH.")] | None = None
    extra_args: Annotated[Words, about("Further arguments of mpirun, such as [-N, '2'].")] = ()
    script: Annotated[Words, about("What mpirun starts, such as [python3, train.py].")] = ()


class Ssh(Part, frozen=True, kw_only=True):
    """T9k's SSH settings. No SSH runs here: what stands in for it needs neither keys nor a server in the image."""

    ssh_auth_mount_path: Annotated[str, about("Where T9k mounts keys. Not used.")] | None = None
    sshd_path: Annotated[str, about("The SSH server that workers run in debug mode; nothing else uses it.")] | None = (
        None
    )


class RunPolicy(Limits, frozen=True, kw_only=True):
    """The limits of the job's life, and what goes when it ends."""

    clean_up_workers: CleanUpWorkers | None = None


class MPIJob(Fed, frozen=True, kw_only=True):
    """A program under mpirun on several workers; the launcher's exit status is the job's."""

    replica_specs: Annotated[tuple[ReplicaSpec, ...], Meta(min_length=1), about("The workers, and the launcher.")]
    mpi_config: Annotated[MPIConfig, about("How mpirun is called.")] | None = None
    ssh: Annotated[Ssh, about("T9k's SSH settings.")] | None = None
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None


class OldRecovery(Part, frozen=True, kw_only=True):
    """Old form of --enable-recovery and --max-restarts."""

    enable: Annotated[bool, about("Old form of --enable-recovery in mpiConfig.extraArgs.")] = False
    limit: Annotated[Count, about("Old form of --max-restarts in mpiConfig.extraArgs.")] | None = None


class OldWorker(Part, frozen=True, kw_only=True):
    """The workers, as they were written until 2025."""

    replicas: Annotated[Count, about("Old place of replicas.")] | None = None
    template: Template | None = None
    extra_m_p_i_args: Annotated[Words, about("Old form of mpiConfig.extraArgs.")] = ()
    cmd: Annotated[Words, about("Old form of mpiConfig.script.")] = ()
    processes_per_worker: Annotated[Count, about("Old form of -N in mpiConfig.extraArgs.")] | None = None
    process_recovery: Annotated[OldRecovery, about("Old form of --enable-recovery.")] | None = None


class OldSsh(Part, frozen=True, kw_only=True):
    """ColossalAIJob's spelling."""

    auth_mount_path: Annotated[str, about("Where T9k mounts keys; ColossalAIJob spells it so.")] | None = None


class OldMPIJob(Part, frozen=True, kw_only=True):
    """What was written until 2025."""

    worker: Annotated[OldWorker, about("Old form of replicaSpecs and mpiConfig.")] | None = None
    mca: Annotated[dict[str, str], about("Old form of mpiConfig.mca.")] | None = None
    mpi_home: Annotated[str, about("Old form of mpiConfig.home.")] | None = None
    ssh: Annotated[OldSsh, about("T9k's SSH settings.")] | None = None
    run_policy: Annotated[OldCleanUpWorkers, about("What goes when the job ends.")] | None = None


def check(job: MPIJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    found = list(launched.check(job, path))
    if not (job.mpi_config or MPIConfig()).script and not is_debug(job.run_mode):
        found.append(required(f"{path}.mpiConfig.script", "say what mpirun starts, such as [python3, train.py]"))
    return tuple(found)


def expand(job: MPIJob, site: Site) -> Gang:
    """Spell out the members; workers wait, the launcher starts the program in all of them."""
    hosts = dict.fromkeys(launched.workers(job), _slots(job))

    def template(place: Place, written: Free) -> Free:
        command = _mpirun(job) if place.role == LAUNCHER else launch.serve(site, place)
        written = launched.started(job, written, site=site, place=place, command=command)
        main = launched.main_container(written, place.role)
        default = _waiting(job, site, place) if place.role == WORKER else None
        written = debugged(written, job.run_mode, role=place.role, main=main, default=default)
        if place.role == LAUNCHER:
            written = with_env(written, _env())
        return with_labels(launch.with_folder(written, site), {"app": site.job, "mpi-job": site.job})

    return launched.gang(job, template, launch.launch(site, hosts))


def places(job: MPIJob) -> tuple[Place, ...]:
    """Give every place of the job: the launcher, then the workers."""
    return launched.places(job)


def templates(job: MPIJob, path: str) -> tuple[Located, ...]:
    """Give every pod template with its path; the launcher's is filled in from the workers'."""
    return launched.templates(job, path)


def ports(job: MPIJob) -> Ports:
    """Ask for the port of every worker's agent."""
    return launch.agent_ports(launched.workers(job))


def modernise(draft: Draft) -> None:
    """Turn the shapes of 2023 and 2024 into today's."""
    config = ("spec", "mpiConfig")
    draft.move(("spec", "mca"), (*config, "mca"))
    draft.move(("spec", "mpiHome"), (*config, "home"))
    draft.move(("spec", "worker", "cmd"), (*config, "script"))
    draft.move(("spec", "worker", "extraMPIArgs"), (*config, "extraArgs"))
    _processes_to_args(draft)
    draft.move(("spec", "ssh", "authMountPath"), ("spec", "ssh", "sshAuthMountPath"))
    launched.modernise(draft, old_container=OLD_CONTAINER)


KIND = JobKind(
    kind="MPIJob",
    plural="mpijobs",
    short_names=("mj",),
    spec=MPIJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    ports=ports,
    old=OldMPIJob,
    modernise=modernise,
)


def _mpirun(job: MPIJob) -> list[str]:
    config = job.mpi_config or MPIConfig()
    program = f"{config.home.rstrip('/')}/bin/mpirun" if config.home else "mpirun"
    words = ["--hostfile", launch.HOSTFILE, "--mca", "plm_rsh_agent", launch.SSH]
    if config.home:
        words += ["--prefix", config.home]
    for name, value in (config.mca or {}).items():
        words += ["--mca", name, value]
    return launch.with_stand_ins(program, *words, *config.extra_args, *config.script)


def _env() -> dict[str, str]:
    """Give what mpirun must know beside its arguments, or without them, when somebody calls it in debug mode.

    Full host names are ours, and root in a container is nobody.
    """
    return {
        "OMPI_MCA_plm_rsh_agent": launch.SSH,
        "OMPI_MCA_orte_default_hostfile": launch.HOSTFILE,
        "PRTE_MCA_prte_default_hostfile": launch.HOSTFILE,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "1",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "1",
        "PRTE_MCA_plm_ssh_agent": launch.SSH,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def _waiting(job: MPIJob, site: Site, place: Place) -> tuple[str, ...]:
    """Give what a worker does in debug mode: it can be reached, by the image's sshd if the author names it."""
    path = job.ssh.sshd_path if job.ssh else None
    return (path, "-D") if path else tuple(launch.serve(site, place))


def _slots(job: MPIJob) -> int:
    """Count the processes of one worker: as mpirun's arguments say, else one per GPU, else one."""
    words = (job.mpi_config or MPIConfig()).extra_args
    workers = launched.workers(job)
    for flag, value in pairwise(words):
        number = whole_number(value)
        if number and flag in PER_NODE:
            return number
        if number and flag in IN_ALL:
            return -(-number // len(workers))
    return max(launched.gpus(job), 1)


def _processes_to_args(draft: Draft) -> None:
    """Turn the oldest shape's two fields into mpirun's arguments."""
    path, args = ("spec", "worker"), ("spec", "mpiConfig", "extraArgs")
    found: list[str] = []
    count = draft.get(*path, "processesPerWorker")
    if isinstance(count, int):
        found += ["-N", str(count)]
        draft.tell((*path, "processesPerWorker"), f"is the old form of -N {count} in spec.mpiConfig.extraArgs")
        draft.drop(*path, "processesPerWorker")
    recovery = draft.get(*path, "processRecovery")
    if isinstance(recovery, Mapping):
        said = "is the old form of --enable-recovery and --max-restarts in spec.mpiConfig.extraArgs"
        found += _recovery(recovery)
        draft.tell((*path, "processRecovery"), said)
        draft.drop(*path, "processRecovery")
    if found:
        written = draft.get(*args)
        draft.put(args, [*found, *(written if isinstance(written, list) else ())])


def _recovery(written: Mapping[str, Any]) -> Iterator[str]:
    if written.get("enable", written.get("enabled")):
        yield "--enable-recovery"
        if "limit" in written:
            yield from ("--max-restarts", str(written["limit"]))
