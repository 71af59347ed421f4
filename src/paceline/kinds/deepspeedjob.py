"""DeepSpeedJob: workers that wait to be reached, and the first of them also runs `deepspeed` over all.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: workers, the first of which starts the training in all and decides over the job.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

from paceline.errors import Fault
from paceline.kinds import launch, training
from paceline.kinds.draft import Draft
from paceline.kinds.elastic import Elastic, check_elastic, is_elastic, sizes, with_size
from paceline.kinds.fed import Fed
from paceline.kinds.fields import Free, Part, Positive, Replicas, Template, about
from paceline.kinds.kind import MUTABLE, JobKind, Located, Ports
from paceline.kinds.restart import RestartText
from paceline.kinds.runmode import RunMode, Suspend, check_run_mode, debugged, is_debug, resumed
from paceline.kinds.runpolicy import RunPolicy, Scope
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import Words, check_template, with_container, with_env
from paceline.objects.faults import forbidden, invalid, required
from paceline.objects.gang import Gang, Launch, Place, RestartPolicy, RestartScope, Site

WORKER = "worker"
PORT, USUAL_PORT = "master", 29500
ENV_FILE = "deepspeed_env"
# Where T9k puts it, for commands that name it.
T9K_HOSTFILE = "/t9k/hostfile"
RUNS = ("python", "module", "exec")
# Each says what a field of config says already.
CLASHES = {
    "--no_local_rank": "config.localRank",
    "--autotuning": "config.autotune",
    "--module": "config.run.module",
    "--no_python": "config.run.exec",
}
# What the launcher cannot do over several machines.
UNFIT = ("--save_pid", "--enable_each_rank_log", "--bind_cores_to_rank", "--bind_core_list")
# What a variable's value is not taken literally for: by a file of lines, or by Kubernetes.
UNFIT_VALUES = ("\n", "$(", "$$")
RUN_HINT = "say what is run: one of python, module and exec, such as {python: [train.py]}"


class Run(Part, frozen=True, kw_only=True):
    """What is run: one of three."""

    python: Annotated[Words, about("A script and its arguments.")] | None = None
    module: Annotated[Words, about("A module and its arguments.")] | None = None
    exec: Annotated[Words, about("A program and its arguments.")] | None = None


class Config(Part, frozen=True, kw_only=True):
    """How deepspeed is called."""

    run: Annotated[Run, about("What is run: one of python, module and exec.")] | None = None
    slots_per_worker: Annotated[Positive, about("Processes per worker. Default: one per GPU, or 1.")] | None = None
    local_rank: Annotated[bool, about("Pass --local_rank to the script.")] = True
    autotune: Annotated[
        Literal["none", "tune", "run"],
        about("Search good settings: none, tune (search only), run (search, then train)."),
    ] = "none"
    other_args: Annotated[Words, about("Further arguments of deepspeed.")] = ()
    custom_command: Annotated[str, about("A shell command in place of all but slotsPerWorker.")] | None = None


class Worker(Part, frozen=True, kw_only=True):
    """The workers."""

    replicas: Replicas = 1
    template: Template
    restart_policy: RestartText = RestartPolicy.ON_FAILURE

    @property
    def type(self) -> str:
        """Give the one type there is."""
        return WORKER


class DeepSpeedJob(Fed, frozen=True, kw_only=True):
    """Training by DeepSpeed on several workers; the first worker starts it and decides over the job."""

    config: Annotated[Config, about("How deepspeed is called.")] | None = None
    disable_custom_env: Annotated[
        bool, about("Keep the container's variables from being handed to the processes by deepspeed.")
    ] = False
    worker: Annotated[Worker, about("The workers.")]
    elastic: Annotated[Elastic, about("Bounds of a job that grows and shrinks.")] | None = None
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[RunPolicy, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None


class OldRun(Part, frozen=True, kw_only=True):
    """Text in place of a list, as in T9k's pages."""

    python: Annotated[str | Words, about("A script and its arguments.")] | None = None
    module: Annotated[str | Words, about("A module and its arguments.")] | None = None
    exec: Annotated[str | Words, about("A program and its arguments.")] | None = None


class OldConfig(Part, frozen=True, kw_only=True):
    """How deepspeed was called."""

    run: Annotated[OldRun, about("What is run: one of python, module and exec.")] | None = None


class OldDeepSpeedJob(Part, frozen=True, kw_only=True):
    """What was written before."""

    config: Annotated[OldConfig, about("How deepspeed is called.")] | None = None


def check(job: DeepSpeedJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    found = list(check_template(job.worker.template, f"{path}.worker.template"))
    found += check_run_mode(job.run_mode, (WORKER,), f"{path}.runMode")
    found += check_elastic(job.elastic, f"{path}.elastic")
    found += _check_config(job, f"{path}.config")
    return tuple(found)


def expand(job: DeepSpeedJob, site: Site) -> Gang:
    """Spell out the workers; all can be reached, and the first runs deepspeed over all."""
    members = tuple(training.member(job.worker, place, _template(job, site, place), WORKER) for place in places(job))
    made = training.gang(
        members,
        (job.worker,),
        leader=Place(WORKER, 0),
        scope=job.restart_scope or RestartScope.GANG,
        policy=job.run_policy,
    )
    return with_size(replace(made, launch=_files(job, site)), job.elastic)


def places(job: DeepSpeedJob) -> tuple[Place, ...]:
    """Give every place of the job."""
    count = sizes({WORKER: job.worker.replicas}, {}, job.elastic)[WORKER]
    return tuple(Place(WORKER, index) for index in range(count))


def templates(job: DeepSpeedJob, path: str) -> tuple[Located, ...]:
    """Give the pod template with its path."""
    return ((f"{path}.worker.template", job.worker.template),)


def ports(job: DeepSpeedJob) -> Ports:
    """Ask for the port of every worker's agent, and of the first one's store."""
    return {PORT: USUAL_PORT, **launch.agent_ports(places(job))}


def modernise(draft: Draft) -> None:
    """Turn text where lists are meant, and restart policies written as objects."""
    for name in RUNS:
        path = ("spec", "config", "run", name)
        written = draft.get(*path)
        if isinstance(written, str):
            draft.tell(path, f"is text; write the list [{written}]")
            draft.put(path, [written])
    training.modernise(draft)


KIND = JobKind(
    kind="DeepSpeedJob",
    plural="deepspeedjobs",
    short_names=("dj",),
    spec=DeepSpeedJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    ports=ports,
    old=OldDeepSpeedJob,
    modernise=modernise,
    mutable=(*MUTABLE, "elastic.expectedReplicas"),
)


def _template(job: DeepSpeedJob, site: Site, place: Place) -> Free:
    template = job.worker.template
    main = training.container_named(template, WORKER)
    serve = launch.serve(site, place)
    command = _deepspeed(job, site) if place.index == 0 else serve
    template = with_container(template, main, command=command, args=None)
    if site.is_resumed:
        template = _resumed(job, site, place, template)
    template = debugged(template, job.run_mode, role=WORKER, main=main, default=tuple(serve))
    return with_env(launch.with_folder(template, site, hostfile=T9K_HOSTFILE), _env(job, site))


def _resumed(job: DeepSpeedJob, site: Site, place: Place, begun: Free) -> Free:
    """Copy a template the way a worker goes on after a pause: the first may run something else, and all are reached."""
    main = training.container_named(begun, WORKER)
    before = begun["spec"]["containers"][main]["command"]
    changed = resumed(begun, job.run_mode, role=WORKER, main=main)
    if place.index:
        return with_container(changed, main, command=before, args=None)
    own = changed["spec"]["containers"][main]["command"]
    return changed if own == before else with_container(changed, main, command=launch.beside_agent(site, place, *own))


def _env(job: DeepSpeedJob, site: Site) -> dict[str, str]:
    told = {} if job.disable_custom_env else {"DS_ENV_FILE": f"{launch.FOLDER}/{ENV_FILE}"}
    return {
        **told,
        "PDSH_RCMD_TYPE": "ssh",
        "DLTS_HOSTFILE": launch.HOSTFILE,
        "MASTER_ADDR": site.host(Place(WORKER, 0)),
    }


def _files(job: DeepSpeedJob, site: Site) -> Launch:
    hosts = dict.fromkeys(places(job), _slots(job))
    if job.disable_custom_env:
        return launch.launch(site, hosts)
    template = job.worker.template
    env = template["spec"]["containers"][training.container_named(template, WORKER)].get("env") or ()
    # A line per variable: what spans several, comes from elsewhere, or is what Kubernetes makes of it, each worker's
    # container has anyway.
    plain = [each for each in env if each.get("value") and not any(part in each["value"] for part in UNFIT_VALUES)]
    lines = [f"{each['name']}={each['value']}\n" for each in plain]
    return launch.launch(site, hosts, **{ENV_FILE: "".join(lines)})


def _slots(job: DeepSpeedJob) -> int:
    said = job.config.slots_per_worker if job.config else None
    template = job.worker.template
    return said or max(launch.gpus_of(template, training.container_named(template, WORKER)), 1)


def _deepspeed(job: DeepSpeedJob, site: Site) -> list[str]:
    """Give what the first worker runs: its own agent, and deepspeed over all."""
    config, first = job.config or Config(), Place(WORKER, 0)
    if custom := _custom(config):
        return launch.beside_agent(site, first, "sh", "-c", custom)
    words = [f"--hostfile={launch.HOSTFILE}", "--launcher=pdsh", f"--master_addr={site.host(first)}"]
    if not any(word.startswith("--master_port") for word in config.other_args):
        words.append(f"--master_port={site.ports[PORT]}")
    if is_elastic(job.elastic) and job.elastic is not None:
        count = len(places(job))
        words += ["--elastic_training", f"--min_elastic_nodes={job.elastic.min_replicas or 1}"]
        words.append(f"--max_elastic_nodes={job.elastic.max_replicas or count}")
    if not config.local_rank:
        words.append("--no_local_rank")
    if config.autotune != "none":
        words.append(f"--autotuning={config.autotune}")
    run = config.run or Run()
    if run.module:
        words.append("--module")
    if run.exec:
        words.append("--no_python")
    script = run.python or run.module or run.exec or ()
    return launch.beside_agent(site, first, "deepspeed", *words, *config.other_args, *script)


def _custom(config: Config) -> str:
    """Give the author's own command; one without words is none."""
    return (config.custom_command or "").strip()


def _check_config(job: DeepSpeedJob, path: str) -> Iterator[Fault]:
    config = job.config or Config()
    if _custom(config):
        return
    for index, word in enumerate(config.other_args):
        flag = word.partition("=")[0]
        if flag in CLASHES:
            yield invalid(f"{path}.otherArgs[{index}]", word, f"it clashes with spec.{CLASHES[flag]}; use that")
        elif flag in UNFIT:
            yield invalid(f"{path}.otherArgs[{index}]", word, "it does not work over several workers; leave it out")
    run = config.run or Run()
    said = [name for name in RUNS if getattr(run, name) is not None]
    if len(said) > 1:
        yield forbidden(f"{path}.run.{said[1]}", f"only one of {', '.join(RUNS)} may be there, and there is {said[0]}")
    elif not is_debug(job.run_mode) and not any(getattr(run, name) for name in said):
        yield required(f"{path}.run", RUN_HINT)
