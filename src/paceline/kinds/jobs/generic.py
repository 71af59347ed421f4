"""GenericJob: any replicas, with rules for success and failure that the author defines.

In     a spec whose fields already satisfy their bounds.
Out    a Gang: members whose `$(…)` variables are expanded, and the rules as lists of replicas.
Never  reads a pod, a clock, or another kind.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from paceline.apimachinery.field_errors import did_you_mean, invalid, unsupported
from paceline.errors import Fault
from paceline.kinds.cel import CelRule
from paceline.kinds.compat import Migration
from paceline.kinds.jobs.replica_specs import check_replicas, places, templates, types_of
from paceline.kinds.kind_types import JobKind
from paceline.kinds.name_rules import BY_REPLICAS, job_name_rules
from paceline.kinds.spec.data import DataFlowSpec
from paceline.kinds.spec.fields import BY_TYPE, Free, Part, Replicas, ReplicaType, Template, about, whole_number
from paceline.kinds.spec.pod_template import check_unique, each_container, with_labels
from paceline.kinds.spec.restart_policy import RestartObject, each_restart, restart_object, text_to_object
from paceline.kinds.spec.run_policy import (
    CleanUpPolicy,
    Limits,
    RunMode,
    Scheduler,
    Scope,
    Suspend,
    check_run_mode,
    with_run_mode,
)
from paceline.model.gang import CleanUp, Gang, JobNaming, Member, ReplicaId, RestartPolicy, RestartScope, Rule

VARIABLE = re.compile(r"(?<!\$)\$\((type|rank|replicas\[[^()]*|service\.[^()]*)\)")
REPLICAS = re.compile(r"replicas\[([^][]*)\]")
HOST = re.compile(r"service\.([^][]+)\[([^][]*)\]\.host")
PORT = re.compile(r"service\.port\[([^][]*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """The values of the variables: the number of replicas of each type, and the ports of the Service, if any."""

    replicas: Mapping[str, int]
    ports: Mapping[str, int] | None

    def check(self, template: Mapping[str, Any], path: str) -> Iterator[Fault]:
        """Yield a fault for each variable that has no value."""
        for text_path, text in _texts(template, path):
            for match in VARIABLE.finditer(text):
                if problem := self._problem(match[1]):
                    yield invalid(text_path, match[0], problem)

    def fill(self, template: Mapping[str, Any], *, site: JobNaming, place: ReplicaId) -> Free:
        """Return a copy of a valid template with every variable expanded for one replica."""

        def filled(text: str) -> str:
            return VARIABLE.sub(lambda match: self._value(match[1], site, place), text)

        def change(container: Mapping[str, Any]) -> Free:
            changed = dict(container)
            for key in ("command", "args"):
                if changed.get(key):
                    changed[key] = [filled(argument) for argument in changed[key]]
            if changed.get("env"):
                changed["env"] = [
                    {**variable, "value": filled(variable["value"])} if "value" in variable else variable
                    for variable in changed["env"]
                ]
            return changed

        return each_container(template, change)

    def _problem(self, name: str) -> str:
        if name in ("type", "rank"):
            return ""
        if match := REPLICAS.fullmatch(name):
            return self._type_problem(match[1])
        if self.ports is None:
            return "the job has no Service; set spec.service.ports"
        if match := PORT.fullmatch(name):
            near = did_you_mean(match[1], self.ports)
            return "" if match[1] in self.ports else f"the Service has no port of this name{near}"
        if match := HOST.fullmatch(name):
            return self._type_problem(match[1]) or self._rank_problem(match[1], match[2])
        return "must be $(replicas[TYPE]), $(service.TYPE[RANK].host) or $(service.port[NAME])"

    def _type_problem(self, role: str) -> str:
        if role in self.replicas:
            return ""
        near = did_you_mean(role, self.replicas)
        return f"the job has no replica type of this name{near or '; its types are ' + ', '.join(self.replicas)}"

    def _rank_problem(self, role: str, rank: str) -> str:
        number = whole_number(rank)
        if number is not None and number < self.replicas[role]:
            return ""
        return f"the ranks of {role} are 0 to {self.replicas[role] - 1}"

    def _value(self, name: str, site: JobNaming, place: ReplicaId) -> str:
        if name == "type":
            return place.role
        if name == "rank":
            return str(place.index)
        if match := REPLICAS.fullmatch(name):
            return str(self.replicas[match[1]])
        if match := HOST.fullmatch(name):
            return site.host(ReplicaId(match[1], int(match[2])))
        return str((self.ports or {})[name.removeprefix("service.port[").removesuffix("]")])


def _texts(template: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    spec = template["spec"]
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            container_path = f"{path}.spec.{group}[{index}]"
            for key in ("command", "args"):
                for position, argument in enumerate(container.get(key) or ()):
                    yield f"{container_path}.{key}[{position}]", argument
            for position, variable in enumerate(container.get("env") or ()):
                if variable.get("value"):
                    yield f"{container_path}.env[{position}].value", variable["value"]


MAX_PORTS = 64
PortNumber = Annotated[int, Meta(ge=1, le=65535)]
# Replica type → ranks, as numbers or strings. An empty rule would be met at once.
RankRule = Annotated[
    dict[str, Annotated[tuple[int | str, ...], Meta(min_length=1)]],
    Meta(min_length=1),
]


class GenericReplicaSpec(Part, frozen=True, kw_only=True):
    """Replicas of one type."""

    type: ReplicaType
    replicas: Replicas = 1
    template: Template
    restart_policy: RestartObject | None = None


class ServicePort(Part, frozen=True, kw_only=True):
    """A port of every replica."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            # A number that is written as a string is left to the webhook: CEL takes its length for unbounded.
            rule="!has(self.targetPort) || type(self.targetPort) == string || self.targetPort == self.port",
            message="must equal port, or be omitted: replicas are reached directly",
            field=".targetPort",
        ),
    )

    name: Annotated[str, about("Name of the port, for $(service.port[NAME]).")] = ""
    port: Annotated[PortNumber, about("Number of the port.")]
    target_port: Annotated[int | str | None, about("Must equal port, because replicas are reached directly.")] = None
    protocol: Annotated[Literal["TCP", "UDP", "SCTP"], about("Protocol of the port.")] = "TCP"


class Service(Part, frozen=True, kw_only=True):
    """Host names and ports at which replicas reach each other."""

    ports: Annotated[tuple[ServicePort, ...], Meta(max_length=MAX_PORTS), about("Ports of every replica.")] = ()


class GenericJob(DataFlowSpec, frozen=True, kw_only=True):
    """A job with any replicas; rules define when it has succeeded or failed."""

    success_rules: Annotated[
        tuple[RankRule, ...],
        Meta(min_length=1),
        about(
            "The job succeeds when all replicas of one rule have succeeded. A rule maps replica types to ranks, "
            "such as {worker: [0]}."
        ),
    ]
    failure_rules: Annotated[tuple[RankRule, ...], about("The job fails when all replicas of one rule have failed.")]
    replica_specs: Annotated[tuple[GenericReplicaSpec, ...], BY_TYPE, about("The replicas, by type.")]
    service: Annotated[Service | None, about("Host names and ports at which replicas reach each other.")] = None
    clean_up_policy: CleanUpPolicy = "None"
    restart_scope: Scope | None = None
    suspend: Suspend = False
    run_mode: Annotated[RunMode | None, about("Debug and pause mode.")] = None
    run_policy: Annotated[Limits | None, about("Deadlines and limits of the job.")] = None
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pods.")] = None


def check(job: GenericJob, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    replicas = list(check_replicas(job.replica_specs, f"{path}.replicaSpecs"))
    faults = [*replicas, *check_run_mode(job.run_mode, types_of(job.replica_specs), f"{path}.runMode")]
    counts = {spec.type: spec.replicas for spec in job.replica_specs}
    faults += _check_rules(job.success_rules, counts, f"{path}.successRules")
    faults += _check_rules(job.failure_rules, counts, f"{path}.failureRules")
    if job.service is not None:
        faults += _check_ports(job.service.ports, f"{path}.service.ports")
    if not replicas:
        variables = _variables(job)
        for template_path, template in templates(job, path):
            faults += variables.check(template, template_path)
    return tuple(faults)


def expand(job: GenericJob, site: JobNaming) -> Gang:
    """Return the gang; its leader is the first replica of the first success rule."""
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
        clean_up=CleanUp(job.clean_up_policy),
    )


def migrate(draft: Migration) -> None:
    """Migrate restart policies that are written as strings to objects, and warn."""
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
    name_rules=job_name_rules(BY_REPLICAS),
    migrate=migrate,
)


def _template(
    job: GenericJob, template: Mapping[str, Any], variables: Variables, *, site: JobNaming, place: ReplicaId
) -> Mapping[str, Any]:
    template = with_run_mode(template, job.run_mode, is_resumed=site.is_resumed, role=place.role, main=0)
    filled = variables.fill(template, site=site, place=place)
    # T9k's labels for this kind.
    return with_labels(filled, {"genericjob": site.job, "genericjob-replica": f"{site.job}-{place}"})


def _variables(job: GenericJob) -> Variables:
    ports = None if job.service is None else {port.name: port.port for port in job.service.ports}
    return Variables(replicas={spec.type: spec.replicas for spec in job.replica_specs}, ports=ports)


def _places(rule: Mapping[str, tuple[int | str, ...]]) -> Rule:
    return tuple(ReplicaId(role, int(rank)) for role, ranks in rule.items() for rank in ranks)


def _check_rules(rules: tuple[RankRule, ...], counts: Mapping[str, int], path: str) -> Iterator[Fault]:
    for index, rule in enumerate(rules):
        for role, ranks in rule.items():
            if role not in counts:
                yield unsupported(f"{path}[{index}]", role, counts)
                continue
            for position, rank in enumerate(ranks):
                number = whole_number(rank)
                if number is None or number >= counts[role]:
                    hint = f"the ranks of {role} are 0 to {counts[role] - 1}"
                    yield invalid(f"{path}[{index}].{role}[{position}]", rank, hint)


def _check_ports(ports: tuple[ServicePort, ...], path: str) -> Iterator[Fault]:
    yield from check_unique([port.name for port in ports], path)
    for index, port in enumerate(ports):
        if port.target_port is not None and str(port.target_port) != str(port.port):
            hint = f"must equal port, {port.port}, or be omitted: replicas are reached directly"
            yield invalid(f"{path}[{index}].targetPort", port.target_port, hint)
