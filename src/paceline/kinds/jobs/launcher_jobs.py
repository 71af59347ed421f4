"""Functions for kinds with a launcher and workers: MPIJob and ColossalAIJob."""

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, Literal

from paceline.apimachinery.field_errors import invalid, required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.compat import Migration, Move
from paceline.kinds.decode import misfits
from paceline.kinds.jobs.remote_launch import gpus_of, with_stand_ins
from paceline.kinds.jobs.replica_specs import (
    check_types,
    container_hint,
    container_named,
    has_type,
    named_container_rule,
    single_rule,
)
from paceline.kinds.kind_types import Located
from paceline.kinds.spec.data import DataFlowSpec
from paceline.kinds.spec.fields import BY_TYPE, Free, Part, Replicas, Template, about
from paceline.kinds.spec.pod_template import SketchedTemplate, check_template, with_container
from paceline.kinds.spec.restart_policy import RestartObject, each_restart, restart_object, text_to_object
from paceline.kinds.spec.run_policy import Limits, RunMode, Scheduler, Scope, Suspend, check_run_mode, resumed
from paceline.model.gang import CleanUp, Gang, JobNaming, Member, RemoteLaunch, ReplicaId, RestartPolicy, RestartScope

LAUNCHER, WORKER = "launcher", "worker"
# T9k's defaults for a program that only starts others.
LAUNCHER_RESOURCES = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "200m", "memory": "200Mi"}}
# Fields that a launcher's container inherits from the workers' unless its own template sets them.
INHERITED = ("image", "imagePullPolicy", "workingDir", "env", "envFrom", "volumeMounts", "securityContext")
# The same for the pod: its volumes, and what is needed to pull and run the image.
SHARED = ("volumes", "securityContext", "imagePullSecrets", "serviceAccountName", "nodeSelector", "tolerations")
DEBUG_SWITCHES = ("self.runMode.debug.enabled", "self.runMode.debug.enable")
ONE_LAUNCHER = "a job has exactly one launcher; must be 1"
NO_WORKER, NO_TEMPLATE = "add an entry of type worker; it runs the program", "set the pod template of the workers"
# The name of the workers' container in older shapes of MPIJob.
OLD_CONTAINER = "mpi-worker"

CleanUpWorkers = Annotated[
    bool,
    about(
        "Whether workers that are still running are deleted when the job ends; the launcher stays, for its log. "
        "If false, they keep running until the job is deleted. Default: true."
    ),
]


class OldCleanUpWorkers(Part, frozen=True, kw_only=True):
    """A string instead of true and false, as in T9k's pages of 2023."""

    clean_up_workers: Annotated[
        bool | str | None, about("Whether workers are deleted when the job ends; the launcher stays, for its log.")
    ] = None


class LauncherReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas of one type."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        single_rule("launcher", message=ONE_LAUNCHER),
        CelRule(
            rule="self.type != 'worker' || has(self.template)",
            message=NO_TEMPLATE,
            field=".template",
            reason="FieldValueRequired",
        ),
        named_container_rule("worker", OLD_CONTAINER, role="worker"),
    )

    type: Annotated[Literal["launcher", "worker"], about("Role of these replicas: launcher or worker.")]
    replicas: Replicas = 1
    template: Annotated[
        Template | None,
        about("Pod template of a replica. A launcher's is optional; it takes what it does not set from the workers'."),
    ] = None
    restart_policy: RestartObject | None = None


class LauncherRunPolicy(Limits, frozen=True, kw_only=True):
    """Deadlines of the job, and what is deleted when it ends."""

    clean_up_workers: CleanUpWorkers | None = None


class LauncherJob(DataFlowSpec, frozen=True, kw_only=True):
    """The fields of a job with a launcher and workers."""

    replica_specs: Annotated[
        tuple[LauncherReplicaSpec, ...],
        BY_TYPE,
        has_type("worker", message=NO_WORKER),
        about("The workers and the launcher."),
    ]
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode | None, about("Debug and pause mode.")] = None
    run_policy: Annotated[LauncherRunPolicy | None, about("Deadlines and limits of the job.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None


def script_rule(config: str, *, message: str) -> CelRule:
    """Return the rule that a program is set, unless the job is only debugged or has the shape used until 2025."""
    debug = "has(self.runMode) && has(self.runMode.debug)"
    is_debugged = " || ".join(f"{debug} && has({name}) && {name}" for name in DEBUG_SWITCHES)
    is_set = f"has(self.{config}) && has(self.{config}.script) && size(self.{config}.script) > 0"
    return CelRule(
        rule=f"has(self.worker) || {is_set} || {is_debugged}",
        message=message,
        field=f".{config}.script",
        reason="FieldValueRequired",
    )


def check(job: LauncherJob, path: str) -> Iterator[Fault]:
    """Yield a fault for each broken rule that both kinds have."""
    specs_path, types = f"{path}.replicaSpecs", [spec.type for spec in job.replica_specs]
    yield from check_types(types, specs_path)
    for index, spec in enumerate(job.replica_specs):
        if spec.type == LAUNCHER and spec.replicas > 1:
            yield invalid(f"{specs_path}[{index}].replicas", spec.replicas, ONE_LAUNCHER)
    yield from check_run_mode(job.run_mode, (LAUNCHER, WORKER), f"{path}.runMode")
    if WORKER in types:
        yield from _check_templates(job, specs_path)
    else:
        yield required(specs_path, NO_WORKER)


def _check_templates(job: LauncherJob, path: str) -> Iterator[Fault]:
    """Yield the faults of the templates; the completed launcher template is checked only if those written are valid."""
    faults: list[Fault] = []
    for index, spec in enumerate(job.replica_specs):
        template_path = f"{path}[{index}].template"
        if spec.type == LAUNCHER:
            faults += misfits(spec.template or {}, SketchedTemplate, template_path)
        elif spec.template is None:
            faults.append(required(template_path, NO_TEMPLATE))
        else:
            faults += _check_worker(spec.template, template_path)
    yield from faults
    launcher_paths = [
        f"{path}[{index}].template" for index, spec in enumerate(job.replica_specs) if spec.type == LAUNCHER
    ]
    for template_path in () if faults else launcher_paths:
        yield from check_template(_launcher_template(job), template_path)


def _check_worker(template: Free, path: str) -> Iterator[Fault]:
    faults = check_template(template, path)
    yield from faults
    if not faults and WORKER not in [container["name"] for container in template["spec"]["containers"]]:
        yield required(f"{path}.spec.containers", container_hint(WORKER))


def workers(job: LauncherJob) -> tuple[ReplicaId, ...]:
    """Return the workers."""
    return tuple(ReplicaId(WORKER, index) for index in range(_spec(job, WORKER).replicas))


def places(job: LauncherJob) -> tuple[ReplicaId, ...]:
    """Return every replica of the job: the launcher, then the workers."""
    return (ReplicaId(LAUNCHER, 0), *workers(job))


def templates(job: LauncherJob, path: str) -> tuple[Located, ...]:
    """Return the pod templates with their paths; the launcher's is completed, and has the path of its volumes."""
    types: list[str] = [spec.type for spec in job.replica_specs]
    worker = f"{path}.replicaSpecs[{types.index(WORKER)}].template"
    return (worker, _spec(job, WORKER).template or {}), (_launcher_path(job, path, worker), _launcher_template(job))


def _launcher_path(job: LauncherJob, path: str, default: str) -> str:
    for index, spec in enumerate(job.replica_specs):
        if spec.type == LAUNCHER and "volumes" in ((spec.template or {}).get("spec") or {}):
            return f"{path}.replicaSpecs[{index}].template"
    return default


def started(job: LauncherJob, template: Free, *, site: JobNaming, place: ReplicaId, command: list[str]) -> Free:
    """Return a copy of a template with the command of its role; only a launcher may have another one after a pause."""
    main = container_named(template, place.role)
    started_template = with_container(template, main, command=command, args=None)
    if not site.is_resumed:
        return started_template
    changed = resumed(started_template, job.run_mode, role=place.role, main=main)
    resumed_command = changed["spec"]["containers"][main]["command"]
    if place.role != LAUNCHER:
        return with_container(changed, main, command=command, args=None)
    return (
        changed
        if resumed_command == command
        else with_container(changed, main, command=with_stand_ins(*resumed_command))
    )


def gpus(job: LauncherJob) -> int:
    """Return the number of GPUs of one worker."""
    template = _spec(job, WORKER).template or {}
    return gpus_of(template, container_named(template, WORKER))


def own_env(job: LauncherJob, launcher: Free) -> dict[str, str]:
    """Return the plain variables that the launcher's container has and the workers' has not."""
    worker = _spec(job, WORKER).template or {}
    worker_env = worker["spec"]["containers"][container_named(worker, WORKER)].get("env") or ()
    launcher_env = launcher["spec"]["containers"][container_named(launcher, LAUNCHER)].get("env") or ()
    worker_variables = {variable["name"]: variable for variable in worker_env}
    return {
        variable["name"]: variable.get("value") or ""
        for variable in launcher_env
        if worker_variables.get(variable["name"]) != variable and "valueFrom" not in variable
    }


def gang(job: LauncherJob, template: Callable[[ReplicaId, Free], Free], files: RemoteLaunch) -> Gang:
    """Return the gang: the launcher decides the result, and an attempt fails with any of its members."""
    written = {WORKER: _spec(job, WORKER).template or {}, LAUNCHER: _launcher_template(job)}
    restarts = {
        role: restart_object(next((spec.restart_policy for spec in job.replica_specs if spec.type == role), None))
        for role in written
    }
    members = tuple(
        Member(
            place=place,
            template=template(place, written[place.role]),
            restart=RestartPolicy(restarts[place.role].policy),
            main=written[place.role]["spec"]["containers"][container_named(written[place.role], place.role)]["name"],
        )
        for place in places(job)
    )
    leader = ReplicaId(LAUNCHER, 0)
    stays = job.run_policy is not None and job.run_policy.clean_up_workers is False
    return Gang(
        members=members,
        leader=leader,
        success=((leader,),),
        failure=tuple((member.place,) for member in members),
        scope=job.restart_scope or RestartScope.GANG,
        backoff_limit=None,
        role_limits={role: restart.limit for role, restart in restarts.items()},
        # Workers never end by themselves, and the launcher has ended when the job ends.
        clean_up=CleanUp.NONE if stays else CleanUp.UNFINISHED,
        launch=files,
        servers=(WORKER,),
    )


def migrate(draft: Migration, *, old_container: str = "") -> None:
    """Migrate `spec.worker` to the first entry of `replicaSpecs`, and strings to the type of their field; warn."""
    old, new = ("spec", "worker"), ("spec", "replicaSpecs", 0)
    if isinstance(draft.get(*old), dict) and not draft.has("spec", "replicaSpecs"):
        draft.tell(old, "is the old form of spec.replicaSpecs with type worker")
        draft.put(new, {"type": WORKER, **draft.get(*old)})
        draft.moves.append(Move(old=old, new=new))
        draft.drop(*old)
    for index in range(draft.count("spec", "replicaSpecs") if old_container else 0):
        _rename(draft, index, old_container)
    for path in each_restart(draft):
        text_to_object(draft, path)
    _texts(draft)


def _rename(draft: Migration, index: int, old_container: str) -> None:
    template = ("spec", "replicaSpecs", index, "template", "spec", "containers")
    for position in range(draft.count(*template)):
        path = (*template, position, "name")
        if draft.get(*path) == old_container:
            draft.tell(path, f'"{old_container}" is the old name for the container "{WORKER}"')
            draft.put(path, WORKER)


def _texts(draft: Migration) -> None:
    """Migrate the strings that T9k's pages of 2023 have instead of true and false."""
    path = ("spec", "runPolicy", "cleanUpWorkers")
    written = draft.get(*path)
    if isinstance(written, str):
        value = written.lower() in ("true", "all", "unfinished")
        draft.tell(path, f'"{written}" is the old form of {str(value).lower()}')
        draft.put(path, value)


def _spec(job: LauncherJob, role: str) -> LauncherReplicaSpec:
    return next(spec for spec in job.replica_specs if spec.type == role)


def _launcher_template(job: LauncherJob) -> Free:
    """Return the launcher's template; fields that it does not set are taken from the workers' template."""
    written = next((spec.template for spec in job.replica_specs if spec.type == LAUNCHER), None) or {}
    worker = _spec(job, WORKER).template or {}
    worker_container = worker["spec"]["containers"][container_named(worker, WORKER)]
    spec = written.get("spec") or {}
    containers = [dict(container) for container in spec.get("containers") or ()] or [{"name": LAUNCHER}]
    main = container_named({"spec": {"containers": containers}}, LAUNCHER)
    has_volumes = "volumes" in spec
    inherited = {
        key: worker_container[key]
        for key in INHERITED
        if key in worker_container and (key != "volumeMounts" or not has_volumes)
    }
    containers[main] = {**inherited, "resources": LAUNCHER_RESOURCES, **containers[main]}
    shared = {key: worker["spec"][key] for key in SHARED if key in worker["spec"]}
    return {**written, "spec": {**shared, **spec, "containers": containers}}
