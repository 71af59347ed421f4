"""What kinds with a launcher and workers share: MPIJob and ColossalAIJob."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Protocol

from paceline.errors import Fault
from paceline.kinds.draft import Draft, Move
from paceline.kinds.fields import Free, Part, about
from paceline.kinds.kind import Located
from paceline.kinds.launch import gpus_of, with_stand_ins
from paceline.kinds.restart import Restart, each_restart, restart_object, text_to_object
from paceline.kinds.runmode import RunMode, check_run_mode, resumed
from paceline.kinds.template import check_sketch, check_template, with_container
from paceline.objects.faults import duplicate, invalid, required
from paceline.objects.gang import CleanUp, Gang, Launch, Member, Place, RestartPolicy, RestartScope, Site

LAUNCHER, WORKER = "launcher", "worker"
# T9k's own, for a program that only starts others.
LAUNCHER_RESOURCES = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "200m", "memory": "200Mi"}}
# What a launcher has of the workers' container unless its author says otherwise.
INHERITED = ("image", "imagePullPolicy", "workingDir", "env", "envFrom", "volumeMounts", "securityContext")
# And of their pod: what its files are, and what lets their image be pulled and run.
SHARED = ("volumes", "securityContext", "imagePullSecrets", "serviceAccountName", "nodeSelector", "tolerations")
CONTAINER_HINT = "one container must be named worker; it does the training"

CleanUpWorkers = Annotated[
    bool,
    about(
        "Whether workers go when the job ends; the launcher stays, since its log is the result. Left out: those that "
        "still run go. False: they run on until the job is deleted."
    ),
]


class OldCleanUpWorkers(Part, frozen=True, kw_only=True):
    """Text in place of true and false, as in T9k's pages of 2023."""

    clean_up_workers: (
        Annotated[
            bool | str, about("Whether workers go when the job ends; the launcher stays, since its log is the result.")
        ]
        | None
    ) = None


class Policy(Protocol):
    """What goes when the job ends."""

    @property
    def clean_up_workers(self) -> bool | None: ...


class Replica(Protocol):
    """One entry of `replicaSpecs`."""

    @property
    def type(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def template(self) -> Free | None: ...
    @property
    def restart_policy(self) -> Restart | str | None: ...


class Job(Protocol):
    """A spec with a launcher and workers."""

    @property
    def replica_specs(self) -> Sequence[Replica]: ...
    @property
    def run_mode(self) -> RunMode | None: ...
    @property
    def run_policy(self) -> Policy | None: ...
    @property
    def restart_scope(self) -> RestartScope | None: ...


def check(job: Job, path: str) -> Iterator[Fault]:
    """Name what breaks a rule between fields that both kinds have."""
    where, types = f"{path}.replicaSpecs", [each.type for each in job.replica_specs]
    seen: set[str] = set()
    for index, each in enumerate(job.replica_specs):
        if each.type in seen:
            yield duplicate(f"{where}[{index}].type", each.type)
        seen.add(each.type)
        if each.type == LAUNCHER and each.replicas > 1:
            yield invalid(f"{where}[{index}].replicas", each.replicas, "there is one launcher; ask for 1")
    yield from check_run_mode(job.run_mode, (LAUNCHER, WORKER), f"{path}.runMode")
    if WORKER in types:
        yield from _check_templates(job, where)
    else:
        yield required(where, "add replicas of type worker; the program runs there")


def _check_templates(job: Job, path: str) -> Iterator[Fault]:
    """Check what is written first: only then can a launcher's template be filled in."""
    wrong: list[Fault] = []
    for index, each in enumerate(job.replica_specs):
        where = f"{path}[{index}].template"
        if each.type == LAUNCHER:
            wrong += check_sketch(each.template or {}, where)
        elif each.template is None:
            wrong.append(required(where, "say what a worker's pod is"))
        else:
            wrong += _check_worker(each.template, where)
    yield from wrong
    filled = [f"{path}[{index}].template" for index, each in enumerate(job.replica_specs) if each.type == LAUNCHER]
    for where in () if wrong else filled:
        yield from check_template(_launcher_template(job), where)


def _check_worker(template: Free, path: str) -> Iterator[Fault]:
    wrong = check_template(template, path)
    yield from wrong
    if not wrong and WORKER not in [each["name"] for each in template["spec"]["containers"]]:
        yield required(f"{path}.spec.containers", CONTAINER_HINT)


def workers(job: Job) -> tuple[Place, ...]:
    """Give the places of the workers."""
    return tuple(Place(WORKER, index) for index in range(_spec(job, WORKER).replicas))


def places(job: Job) -> tuple[Place, ...]:
    """Give every place of the job: the launcher, then the workers."""
    return (Place(LAUNCHER, 0), *workers(job))


def templates(job: Job, path: str) -> tuple[Located, ...]:
    """Give the pod templates with their paths; a launcher's is filled in, and lies where its volumes are written."""
    types = [each.type for each in job.replica_specs]
    worker = f"{path}.replicaSpecs[{types.index(WORKER)}].template"
    return (worker, _spec(job, WORKER).template or {}), (_launcher_path(job, path, worker), _launcher_template(job))


def _launcher_path(job: Job, path: str, otherwise: str) -> str:
    for index, each in enumerate(job.replica_specs):
        if each.type == LAUNCHER and "volumes" in ((each.template or {}).get("spec") or {}):
            return f"{path}.replicaSpecs[{index}].template"
    return otherwise


def main_container(template: Free, role: str) -> int:
    """Find the container that a role works in."""
    names = [each["name"] for each in template["spec"]["containers"]]
    return names.index(role) if role in names else 0


def started(job: Job, template: Free, *, site: Site, place: Place, command: list[str]) -> Free:
    """Copy a template with the command of its role; only a launcher may have another one after a pause."""
    main = main_container(template, place.role)
    begun = with_container(template, main, command=command, args=None)
    if not site.is_resumed:
        return begun
    changed = resumed(begun, job.run_mode, role=place.role, main=main)
    own = changed["spec"]["containers"][main]["command"]
    if place.role != LAUNCHER:
        return with_container(changed, main, command=command, args=None)
    return changed if own == command else with_container(changed, main, command=with_stand_ins(*own))


def gpus(job: Job) -> int:
    """Count the GPUs of one worker."""
    template = _spec(job, WORKER).template or {}
    return gpus_of(template, main_container(template, WORKER))


def own_env(job: Job, launcher: Free) -> dict[str, str]:
    """Give the variables that a launcher's container has in plain text and the workers' has not."""
    worker = _spec(job, WORKER).template or {}
    theirs = worker["spec"]["containers"][main_container(worker, WORKER)].get("env") or ()
    mine = launcher["spec"]["containers"][main_container(launcher, LAUNCHER)].get("env") or ()
    known = {each["name"]: each for each in theirs}
    return {
        each["name"]: each.get("value") or ""
        for each in mine
        if known.get(each["name"]) != each and "valueFrom" not in each
    }


def gang(job: Job, template: Callable[[Place, Free], Free], files: Launch) -> Gang:
    """Put the members together: the launcher decides, and one try is lost with any member of it."""
    written = {WORKER: _spec(job, WORKER).template or {}, LAUNCHER: _launcher_template(job)}
    restarts = {
        role: restart_object(next((each.restart_policy for each in job.replica_specs if each.type == role), None))
        for role in written
    }
    members = tuple(
        Member(
            place=place,
            template=template(place, written[place.role]),
            restart=RestartPolicy(restarts[place.role].policy),
            main=written[place.role]["spec"]["containers"][main_container(written[place.role], place.role)]["name"],
        )
        for place in places(job)
    )
    leader = Place(LAUNCHER, 0)
    stays = job.run_policy is not None and job.run_policy.clean_up_workers is False
    return Gang(
        members=members,
        leader=leader,
        success=((leader,),),
        failure=tuple((member.place,) for member in members),
        scope=job.restart_scope or RestartScope.GANG,
        backoff_limit=None,
        role_limits={role: restart.limit for role, restart in restarts.items()},
        # Workers never end by themselves, and the launcher has ended when the job has.
        clean_up=CleanUp.NONE if stays else CleanUp.UNFINISHED,
        launch=files,
        servers=(WORKER,),
    )


def modernise(draft: Draft, *, old_container: str = "") -> None:
    """Turn `spec.worker` into the first entry of `replicaSpecs`, and texts into what they say."""
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


def _rename(draft: Draft, index: int, old_container: str) -> None:
    template = ("spec", "replicaSpecs", index, "template", "spec", "containers")
    for position in range(draft.count(*template)):
        path = (*template, position, "name")
        if draft.get(*path) == old_container:
            draft.tell(path, f'"{old_container}" is the old name of the container "{WORKER}"')
            draft.put(path, WORKER)


def _texts(draft: Draft) -> None:
    """T9k's pages of 2023 write text where true or false is meant."""
    path = ("spec", "runPolicy", "cleanUpWorkers")
    written = draft.get(*path)
    if isinstance(written, str):
        meant = written.lower() in ("true", "all", "unfinished")
        draft.tell(path, f'"{written}" is the old form of {str(meant).lower()}')
        draft.put(path, meant)


def _spec(job: Job, role: str) -> Replica:
    return next(each for each in job.replica_specs if each.type == role)


def _launcher_template(job: Job) -> Free:
    """Fill a launcher's template in: what it does not say, it has of the workers'."""
    said = next((each.template for each in job.replica_specs if each.type == LAUNCHER), None) or {}
    worker = _spec(job, WORKER).template or {}
    theirs = worker["spec"]["containers"][main_container(worker, WORKER)]
    spec = said.get("spec") or {}
    own = [dict(each) for each in spec.get("containers") or ()] or [{"name": LAUNCHER}]
    main = main_container({"spec": {"containers": own}}, LAUNCHER)
    has_volumes = "volumes" in spec
    inherited = {key: theirs[key] for key in INHERITED if key in theirs and (key != "volumeMounts" or not has_volumes)}
    own[main] = {**inherited, "resources": LAUNCHER_RESOURCES, **own[main]}
    shared = {key: worker["spec"][key] for key in SHARED if key in worker["spec"]}
    return {**said, "spec": {**shared, **spec, "containers": own}}
