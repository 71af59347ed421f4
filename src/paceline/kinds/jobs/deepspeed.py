"""DeepSpeedJob: workers that run an agent; the first also runs `deepspeed`, which starts the training in all.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: workers, the first of which starts the training in all and decides the job's result.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from paceline.apimachinery.field_errors import forbidden, invalid, required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.compat import Migration
from paceline.kinds.jobs import remote_launch, replica_specs
from paceline.kinds.jobs.replica_specs import ELASTIC_SCALE, Elastic, check_elastic, is_elastic, sizes, with_size
from paceline.kinds.kind_types import MUTABLE, JobKind, Located, Ports
from paceline.kinds.name_rules import job_name_rules
from paceline.kinds.spec.data import DataFlowSpec
from paceline.kinds.spec.fields import Free, Part, Positive, Replicas, Template, about
from paceline.kinds.spec.pod_template import Words, check_template, with_container, with_env
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
from paceline.model.gang import Gang, JobNaming, RemoteLaunch, ReplicaId, RestartPolicy, RestartScope

WORKER = "worker"
PORT, USUAL_PORT = "master", 29500
ENV_FILE = "deepspeed_env"
# Path of the hostfile in T9k, for commands that name it.
T9K_HOSTFILE = "/t9k/hostfile"
RUNS = ("python", "module", "exec")
# Flags that a field of config sets already.
CONFLICTS = {
    "--no_local_rank": "config.localRank",
    "--autotuning": "config.autotune",
    "--module": "config.run.module",
    "--no_python": "config.run.exec",
}
# Flags that the launcher does not support on several machines.
UNSUPPORTED_FLAGS = ("--save_pid", "--enable_each_rank_log", "--bind_cores_to_rank", "--bind_core_list")
# Values that cannot be passed literally: the file has one line per variable, and Kubernetes expands $(NAME).
UNSUPPORTED_VALUES = ("\n", "$(", "$$")
RUN_HINT = "set one of python, module and exec, such as {python: [train.py]}"


_HAS_CUSTOM = "has(self.config.customCommand) && self.config.customCommand != ''"
_DEBUG = "has(self.runMode) && has(self.runMode.debug)"
_IS_DEBUGGED = " || ".join(
    f"{_DEBUG} && has({name}) && {name}" for name in ("self.runMode.debug.enabled", "self.runMode.debug.enable")
)


class Run(Part, frozen=True, kw_only=True):
    """The program to run: one of three forms."""

    python: Annotated[Words | None, about("Script and its arguments.")] = None
    module: Annotated[Words | None, about("Module and its arguments.")] = None
    exec: Annotated[Words | None, about("Program and its arguments.")] = None


class Config(Part, frozen=True, kw_only=True):
    """How deepspeed is called."""

    run: Annotated[Run | None, about("Program to run: one of python, module and exec.")] = None
    slots_per_worker: Annotated[
        Positive | None, about("Number of processes per worker. If omitted, one per GPU, or 1.")
    ] = None
    local_rank: Annotated[bool, about("Pass --local_rank to the script.")] = True
    autotune: Annotated[
        Literal["none", "tune", "run"],
        about("Autotuning: none, tune (search for good settings only), run (search, then train)."),
    ] = "none"
    other_args: Annotated[Words, about("Additional arguments for deepspeed.")] = ()
    custom_command: Annotated[
        str | None, about("Shell command that replaces all other settings except slotsPerWorker.")
    ] = None


class Worker(Part, frozen=True, kw_only=True):
    """The workers."""

    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE

    @property
    def type(self) -> str:
        """The only replica type."""
        return WORKER


class DeepSpeedJob(DataFlowSpec, frozen=True, kw_only=True):
    """Distributed training with DeepSpeed; the first worker starts it and decides the job's result."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule=f"has(self.config) && (has(self.config.run) || {_HAS_CUSTOM}) || {_IS_DEBUGGED}",
            message=RUN_HINT,
            field=".config.run",
            reason="FieldValueRequired",
        ),
    )

    config: Annotated[Config | None, about("How deepspeed is called.")] = None
    disable_custom_env: Annotated[
        bool, about("Do not let deepspeed pass the container's environment variables to the processes.")
    ] = False
    worker: Annotated[Worker, about("The workers.")]
    elastic: Annotated[Elastic | None, about("Elastic training: bounds for the number of replicas.")] = None
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode | None, about("Debug and pause mode.")] = None
    run_policy: Annotated[RunPolicy | None, about("Deadlines and limits of the job.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None


class OldRun(Part, frozen=True, kw_only=True):
    """A string instead of a list, as in T9k's pages."""

    python: Annotated[str | Words | None, about("Script and its arguments.")] = None
    module: Annotated[str | Words | None, about("Module and its arguments.")] = None
    exec: Annotated[str | Words | None, about("Program and its arguments.")] = None


class OldConfig(Part, frozen=True, kw_only=True):
    """How deepspeed is called, in the old shape."""

    run: Annotated[OldRun | None, about("Program to run: one of python, module and exec.")] = None


class OldDeepSpeedJob(Part, frozen=True, kw_only=True):
    """Fields of the old shape."""

    config: Annotated[OldConfig | None, about("How deepspeed is called.")] = None


def check(job: DeepSpeedJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    faults = list(check_template(job.worker.template, f"{path}.worker.template"))
    faults += check_run_mode(job.run_mode, (WORKER,), f"{path}.runMode")
    faults += check_elastic(job.elastic, f"{path}.elastic")
    faults += _check_config(job, f"{path}.config")
    return tuple(faults)


def expand(job: DeepSpeedJob, site: JobNaming) -> Gang:
    """Return the gang: all workers run an agent, and the first also runs deepspeed."""
    members = tuple(
        replica_specs.member(job.worker, place, _template(job, site, place), WORKER) for place in places(job)
    )
    gang = replica_specs.gang(
        members,
        (job.worker,),
        leader=ReplicaId(WORKER, 0),
        scope=job.restart_scope or RestartScope.GANG,
        policy=job.run_policy,
    )
    return with_size(replace(gang, launch=_files(job, site)), job.elastic)


def places(job: DeepSpeedJob) -> tuple[ReplicaId, ...]:
    """Return every replica of the job."""
    count = sizes({WORKER: job.worker.replicas}, {}, job.elastic)[WORKER]
    return tuple(ReplicaId(WORKER, index) for index in range(count))


def templates(job: DeepSpeedJob, path: str) -> tuple[Located, ...]:
    """Return the pod template with its path."""
    return ((f"{path}.worker.template", job.worker.template),)


def ports(job: DeepSpeedJob) -> Ports:
    """Return a port for each worker's agent, and one for the store of the first worker."""
    return {PORT: USUAL_PORT, **remote_launch.agent_ports(places(job))}


def migrate(draft: Migration) -> None:
    """Migrate strings to lists, and restart policies that are objects to strings; warn."""
    for name in RUNS:
        path = ("spec", "config", "run", name)
        written = draft.get(*path)
        if isinstance(written, str):
            draft.tell(path, f"is a string; write the list [{written}]")
            draft.put(path, [written])
    replica_specs.migrate(draft)


KIND = JobKind(
    kind="DeepSpeedJob",
    plural="deepspeedjobs",
    short_names=("dj",),
    spec=DeepSpeedJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    name_rules=job_name_rules(f"{len('worker-0')}"),
    ports=ports,
    old=OldDeepSpeedJob,
    migrate=migrate,
    mutable=(*MUTABLE, "elastic.expectedReplicas"),
    scale=ELASTIC_SCALE,
)


def _template(job: DeepSpeedJob, site: JobNaming, place: ReplicaId) -> Free:
    template = job.worker.template
    main = replica_specs.container_named(template, WORKER)
    serve = remote_launch.serve(site, place)
    command = _deepspeed(job, site) if place.index == 0 else serve
    template = with_container(template, main, command=command, args=None)
    if site.is_resumed:
        template = _resumed(job, site, place, template)
    template = debugged(template, job.run_mode, role=WORKER, main=main, default=tuple(serve))
    return with_env(remote_launch.with_folder(template, site, hostfile=T9K_HOSTFILE), _env(job, site))


def _resumed(job: DeepSpeedJob, site: JobNaming, place: ReplicaId, template: Free) -> Free:
    """Return a copy of a template for the time after a pause; only the first worker may have another command."""
    main = replica_specs.container_named(template, WORKER)
    command = template["spec"]["containers"][main]["command"]
    changed = resumed(template, job.run_mode, role=WORKER, main=main)
    if place.index:
        return with_container(changed, main, command=command, args=None)
    resumed_command = changed["spec"]["containers"][main]["command"]
    return (
        changed
        if resumed_command == command
        else with_container(changed, main, command=remote_launch.beside_agent(site, place, *resumed_command))
    )


def _env(job: DeepSpeedJob, site: JobNaming) -> dict[str, str]:
    env_file = {} if job.disable_custom_env else {"DS_ENV_FILE": f"{remote_launch.FOLDER}/{ENV_FILE}"}
    return {
        **env_file,
        "PDSH_RCMD_TYPE": "ssh",
        "DLTS_HOSTFILE": remote_launch.HOSTFILE,
        "MASTER_ADDR": site.host(ReplicaId(WORKER, 0)),
    }


def _files(job: DeepSpeedJob, site: JobNaming) -> RemoteLaunch:
    hosts = dict.fromkeys(places(job), _slots(job))
    if job.disable_custom_env:
        return remote_launch.launch(site, hosts)
    template = job.worker.template
    env = template["spec"]["containers"][replica_specs.container_named(template, WORKER)].get("env") or ()
    # One line per variable. Other values (several lines, valueFrom, expanded by Kubernetes) are skipped: every worker's
    # container has them anyway.
    plain = [
        variable
        for variable in env
        if variable.get("value") and not any(part in variable["value"] for part in UNSUPPORTED_VALUES)
    ]
    lines = [f"{variable['name']}={variable['value']}\n" for variable in plain]
    return remote_launch.launch(site, hosts, **{ENV_FILE: "".join(lines)})


def _slots(job: DeepSpeedJob) -> int:
    configured = job.config.slots_per_worker if job.config else None
    template = job.worker.template
    return configured or max(remote_launch.gpus_of(template, replica_specs.container_named(template, WORKER)), 1)


def _deepspeed(job: DeepSpeedJob, site: JobNaming) -> list[str]:
    """Return the command of the first worker: its agent, and deepspeed for all workers."""
    config, first = job.config or Config(), ReplicaId(WORKER, 0)
    if custom := _custom(config):
        return remote_launch.beside_agent(site, first, "sh", "-c", custom)
    arguments = [f"--hostfile={remote_launch.HOSTFILE}", "--launcher=pdsh", f"--master_addr={site.host(first)}"]
    if not any(argument.startswith("--master_port") for argument in config.other_args):
        arguments.append(f"--master_port={site.ports[PORT]}")
    if is_elastic(job.elastic) and job.elastic is not None:
        count = len(places(job))
        arguments += ["--elastic_training", f"--min_elastic_nodes={job.elastic.min_replicas or 1}"]
        arguments.append(f"--max_elastic_nodes={job.elastic.max_replicas or count}")
    if not config.local_rank:
        arguments.append("--no_local_rank")
    if config.autotune != "none":
        arguments.append(f"--autotuning={config.autotune}")
    run = config.run or Run()
    if run.module:
        arguments.append("--module")
    if run.exec:
        arguments.append("--no_python")
    script = run.python or run.module or run.exec or ()
    return remote_launch.beside_agent(site, first, "deepspeed", *arguments, *config.other_args, *script)


def _custom(config: Config) -> str:
    """Return the custom command; empty if it is blank."""
    return (config.custom_command or "").strip()


def _check_config(job: DeepSpeedJob, path: str) -> Iterator[Fault]:
    config = job.config or Config()
    if _custom(config):
        return
    for index, argument in enumerate(config.other_args):
        flag = argument.partition("=")[0]
        if flag in CONFLICTS:
            yield invalid(
                f"{path}.otherArgs[{index}]", argument, f"it conflicts with spec.{CONFLICTS[flag]}; use that field"
            )
        elif flag in UNSUPPORTED_FLAGS:
            yield invalid(f"{path}.otherArgs[{index}]", argument, "it is not supported on several workers; remove it")
    run = config.run or Run()
    forms = [name for name in RUNS if getattr(run, name) is not None]
    if len(forms) > 1:
        yield forbidden(f"{path}.run.{forms[1]}", f"only one of {', '.join(RUNS)} may be set, and {forms[0]} is")
    elif not is_debug(job.run_mode) and not any(getattr(run, name) for name in forms):
        yield required(f"{path}.run", RUN_HINT)
