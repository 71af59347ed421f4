"""GenericJob: replicas of any sort, with the author's own rules for success and failure.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members whose `$(…)` variables are filled in, and the rules as places.
Never  reads a pod, a clock, or another kind.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.draft import Draft
from paceline.kinds.fed import Fed
from paceline.kinds.fields import Part, Replicas, ReplicaType, Template, about, whole_number
from paceline.kinds.kind import JobKind, Located
from paceline.kinds.replicas import check_replicas, places_of, templates_of, types_of
from paceline.kinds.restart import RestartObject, each_restart, restart_object, text_to_object
from paceline.kinds.runmode import RunMode, Suspend, check_run_mode, debugged, resumed
from paceline.kinds.runpolicy import CleanUpPolicy, Limits, Scope, clean_up
from paceline.kinds.schedule import Scheduler
from paceline.kinds.template import with_labels
from paceline.kinds.variables import Variables
from paceline.objects.faults import duplicate, invalid, unsupported
from paceline.objects.gang import Gang, Member, Place, RestartPolicy, RestartScope, Rule, Site

PortNumber = Annotated[int, Meta(ge=1, le=65535)]
# Type → ranks; ranks as numbers or in quotes. An empty rule would hold at once.
RankRule = Annotated[
    dict[str, Annotated[tuple[int | str, ...], Meta(min_length=1)]],
    Meta(min_length=1),
]


class ReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas that are alike."""

    type: ReplicaType
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartObject | None = None


class ServicePort(Part, frozen=True, kw_only=True):
    """A port that every replica has."""

    name: Annotated[str, about("What $(service.port[NAME]) calls it.")] = ""
    port: Annotated[PortNumber, about("Its number.")]
    target_port: Annotated[int | str, about("The same number, or left out: replicas are reached directly.")] | None = (
        None
    )
    protocol: Annotated[Literal["TCP", "UDP", "SCTP"], about("Its protocol.")] = "TCP"


class Service(Part, frozen=True, kw_only=True):
    """Names and ports under which replicas reach each other."""

    ports: Annotated[tuple[ServicePort, ...], about("The ports of every replica.")] = ()


class GenericJob(Fed, frozen=True, kw_only=True):
    """Replicas of any sort; rules say when the job has succeeded or failed."""

    success_rules: Annotated[
        tuple[RankRule, ...],
        Meta(min_length=1),
        about("The job succeeds when one rule holds: all replicas it names completed. Such as {worker: [0]}."),
    ]
    failure_rules: Annotated[
        tuple[RankRule, ...], about("The job fails when one rule holds: all replicas it names failed.")
    ]
    replica_specs: Annotated[tuple[ReplicaSpec, ...], Meta(min_length=1), about("The replicas.")]
    service: Annotated[Service, about("Lets replicas name each other.")] | None = None
    clean_up_policy: CleanUpPolicy = "None"
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode, about("Debug or pause the job.")] | None = None
    run_policy: Annotated[Limits, about("Limits of the job's life.")] | None = None
    scheduler: Annotated[Scheduler, about("Who places the pods.")] | None = None


def check(job: GenericJob, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    replicas = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    found = [*replicas, *check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")]
    counts = {each.type: each.replicas for each in job.replica_specs}
    found += _check_rules(job.success_rules, counts, f"{path}.successRules")
    found += _check_rules(job.failure_rules, counts, f"{path}.failureRules")
    if job.service is not None:
        found += _check_ports(job.service.ports, f"{path}.service.ports")
    if not replicas:
        variables = _variables(job)
        for where, template in templates(job, path):
            found += variables.check(template, where)
    return tuple(found)


def expand(job: GenericJob, site: Site) -> Gang:
    """Spell out the members; the deciding one is the first that the first success rule names."""
    success = tuple(_places(rule) for rule in job.success_rules)
    specs, variables = {spec.type: spec for spec in job.replica_specs}, _variables(job)
    restarts = {role: restart_object(spec.restart_policy) for role, spec in specs.items()}
    members = tuple(
        Member(
            place=place,
            template=_template(job, specs[place.role].template, variables, site=site, place=place),
            restart=RestartPolicy(restarts[place.role].policy),
        )
        for place in places(job)
    )
    return Gang(
        members=members,
        leader=success[0][0],
        success=success,
        failure=tuple(_places(rule) for rule in job.failure_rules),
        scope=job.restart_scope or RestartScope.REPLICA,
        backoff_limit=None,
        role_limits={role: restart.limit for role, restart in restarts.items()},
        clean_up=clean_up(job.clean_up_policy),
    )


def places(job: GenericJob) -> tuple[Place, ...]:
    """Give every place of the job, types in the order they are written."""
    return places_of(job.replica_specs)


def templates(job: GenericJob, path: str) -> tuple[Located, ...]:
    """Give every pod template with its path."""
    return templates_of(job.replica_specs, f"{path}.replicaSpecs")


def modernise(draft: Draft) -> None:
    """Turn restart policies written as text into objects."""
    for path in each_restart(draft):
        text_to_object(draft, path)


KIND = JobKind(
    kind="GenericJob",
    plural="genericjobs",
    short_names=("gj",),
    spec=GenericJob,
    check=check,
    expand=expand,
    places=places,
    templates=templates,
    modernise=modernise,
)


def _template(
    job: GenericJob, template: Mapping[str, Any], variables: Variables, *, site: Site, place: Place
) -> Mapping[str, Any]:
    if site.is_resumed:
        template = resumed(template, job.run_mode, role=place.role, main=0)
    template = debugged(template, job.run_mode, role=place.role, main=0)
    filled = variables.fill(template, site=site, place=place)
    # T9k's own labels of this kind.
    return with_labels(filled, {"genericjob": site.job, "genericjob-replica": f"{site.job}-{place}"})


def _variables(job: GenericJob) -> Variables:
    ports = None if job.service is None else {each.name: each.port for each in job.service.ports}
    return Variables(replicas={each.type: each.replicas for each in job.replica_specs}, ports=ports)


def _places(rule: Mapping[str, tuple[int | str, ...]]) -> Rule:
    return tuple(Place(role, int(rank)) for role, ranks in rule.items() for rank in ranks)


def _check_rules(rules: tuple[RankRule, ...], counts: Mapping[str, int], path: str) -> Iterator[Fault]:
    for index, rule in enumerate(rules):
        for role, ranks in rule.items():
            if role not in counts:
                yield unsupported(f"{path}[{index}]", role, counts)
                continue
            for position, rank in enumerate(ranks):
                number = whole_number(rank)
                if number is None or number >= counts[role]:
                    hint = f"ranks of {role} go from 0 to {counts[role] - 1}"
                    yield invalid(f"{path}[{index}].{role}[{position}]", rank, hint)


def _check_ports(ports: tuple[ServicePort, ...], path: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, each in enumerate(ports):
        if each.name in seen:
            yield duplicate(f"{path}[{index}].name", each.name)
        seen.add(each.name)
        if each.target_port is not None and str(each.target_port) != str(each.port):
            hint = f"replicas are reached directly; leave it out, or say {each.port}"
            yield invalid(f"{path}[{index}].targetPort", each.target_port, hint)
