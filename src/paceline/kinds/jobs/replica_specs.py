"""Functions that several job kinds share: replicas and their templates, T9k's training kinds, elastic jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Protocol

from msgspec import Meta

from paceline.apimachinery.field_errors import did_you_mean, duplicate, invalid, required
from paceline.apimachinery.scheme import ScalePaths
from paceline.errors import Fault
from paceline.kinds.cel import CelRule, obeys
from paceline.kinds.compat import Migration
from paceline.kinds.kind_types import Located
from paceline.kinds.spec.fields import MAX_REPLICAS, Free, Part, about
from paceline.kinds.spec.pod_template import check_template
from paceline.kinds.spec.restart_policy import Limited, each_restart, limits_of, object_to_text, policy_of
from paceline.kinds.spec.run_policy import RunPolicy
from paceline.model.gang import CleanUp, Gang, Member, ReplicaId, RestartPolicy, RestartScope


class Replica(Protocol):
    """One entry of `replicaSpecs`: the fields that all kinds have."""

    @property
    def type(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def template(self) -> Free: ...


class ReplicatedJob(Protocol):
    """A job with `replicaSpecs`."""

    @property
    def replica_specs(self) -> Sequence[Replica]: ...


def places(job: ReplicatedJob) -> tuple[ReplicaId, ...]:
    """Return every replica of the job, by type in the order of the spec."""
    return tuple(ReplicaId(spec.type, index) for spec in job.replica_specs for index in range(spec.replicas))


def templates(job: ReplicatedJob, path: str) -> tuple[Located, ...]:
    """Return every pod template with its path; `path` is the one of the job's spec."""
    return templates_of(job.replica_specs, f"{path}.replicaSpecs")


def types_of(specs: Sequence[Replica]) -> tuple[str, ...]:
    """Return the replica types in the order of the spec."""
    return tuple(spec.type for spec in specs)


def templates_of(specs: Sequence[Replica], path: str) -> tuple[Located, ...]:
    """Return every pod template with its path."""
    return tuple((f"{path}[{index}].template", spec.template) for index, spec in enumerate(specs))


def check_replicas(specs: Sequence[Replica], path: str) -> Iterator[Fault]:
    """Yield a fault for each repeated replica type, and the faults of the pod templates."""
    yield from check_types(types_of(specs), path)
    for template_path, template in templates_of(specs, path):
        yield from check_template(template, template_path)


def check_types(types: Sequence[str], path: str) -> Iterator[Fault]:
    """Yield a fault for each repeated replica type; the path is that of the entry, as in a list with keys."""
    for index, role in enumerate(types):
        if role in types[:index]:
            yield duplicate(f"{path}[{index}]", {"type": role})


def named_container_rule(*names: str, role: str = "") -> CelRule:
    """Return the rule that one container of a template has one of these names; with a role, only its templates."""
    others = "!has(self.template) || " + (f"self.type != '{role}' || " if role else "")
    listed = ", ".join(f"'{name}'" for name in names)
    return CelRule(
        rule=f"{others}!has(self.template.spec) || self.template.spec.containers.exists(c, c.name in [{listed}])",
        message=container_hint(names[0]),
        field=".template.spec.containers",
        reason="FieldValueRequired",
    )


def container_hint(name: str, near: str = "") -> str:
    """Return the message about a template without the training container of the kind."""
    return f"one container must be named {name}{near}: the one that trains"


def single_rule(*roles: str, message: str) -> CelRule:
    """Return the rule that there is at most one replica of some types."""
    listed = ", ".join(f"'{role}'" for role in roles)
    rule = f"!(self.type in [{listed}]) || !has(self.replicas) || self.replicas == 1"
    return CelRule(rule=rule, message=message, field=".replicas")


def has_type(*roles: str, message: str) -> Meta:
    """Return the rule of `replicaSpecs` that one of these types is among them."""
    listed = ", ".join(f"'{role}'" for role in roles)
    return obeys(CelRule(rule=f"self.exists(r, r.type in [{listed}])", message=message, reason="FieldValueRequired"))


class TrainingReplica(Replica, Protocol):
    """One entry of `replicaSpecs` of a training kind."""

    @property
    def restart_policy(self) -> RestartPolicy | Limited: ...


def member(spec: TrainingReplica, place: ReplicaId, template: Free, *names: str) -> Member:
    """Return the member for a finished template; `names` are the possible names of its training container."""
    main = template["spec"]["containers"][container_named(template, *names)]["name"]
    return Member(place=place, template=template, restart=policy_of(spec.restart_policy), main=main)


def gang(
    members: tuple[Member, ...],
    specs: Sequence[TrainingReplica],
    *,
    leader: ReplicaId,
    scope: RestartScope,
    policy: RunPolicy | None,
) -> Gang:
    """Return the gang of a training: the leader decides the result.

    If the whole gang restarts, an attempt fails with any of its members. If replicas restart alone, only the leader's
    failure ends the job, as in T9k. An evaluator only observes, and never decides.
    """
    policy = policy or RunPolicy()
    trained = tuple(member.place for member in members if member.place.role != "evaluator")
    deciding = trained if scope is RestartScope.GANG else (leader,)
    return Gang(
        members=members,
        leader=leader,
        success=((leader,),),
        failure=tuple((place,) for place in deciding),
        scope=scope,
        backoff_limit=policy.backoff_limit,
        role_limits=limits_of({spec.type: spec.restart_policy for spec in specs}),
        clean_up=CleanUp(policy.clean_up_policy),
    )


def check_container(templates: Sequence[Located], name: str) -> Iterator[Fault]:
    """Yield a fault for each template without the training container of the kind."""
    for template_path, template in templates:
        names = [container.get("name", "") for container in template["spec"]["containers"]]
        if name not in names:
            near = " (there is one with a similar name)" if any(did_you_mean(other, [name]) for other in names) else ""
            yield required(f"{template_path}.spec.containers", container_hint(name, near))


def container_named(template: Free, *names: str) -> int:
    """Return the index of the first container that has one of these names, in their order; else 0."""
    existing = [container["name"] for container in template["spec"]["containers"]]
    return next((existing.index(name) for name in names if name in existing), 0)


def migrate(draft: Migration) -> None:
    """Migrate restart policies that are written as objects to strings, and warn."""
    for path in each_restart(draft):
        object_to_text(draft, path)


# `kubectl scale` sets the desired number of replicas of an elastic job.
ELASTIC_SCALE = ScalePaths(spec=".spec.elastic.expectedReplicas", status=".status.elastic.currentReplicas")
Size = Annotated[int, Meta(ge=1, le=MAX_REPLICAS)]


_BOUNDS_AGREE = "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas"


class Elastic(Part, frozen=True, kw_only=True):
    """Bounds for the number of replicas of an elastic job."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            rule=_BOUNDS_AGREE,
            message="must be at most maxReplicas",
            field=".minReplicas",
        ),
        CelRule(
            rule=f"!has(self.expectedReplicas) || !({_BOUNDS_AGREE})"
            " || (!has(self.minReplicas) || self.expectedReplicas >= self.minReplicas)"
            " && (!has(self.maxReplicas) || self.expectedReplicas <= self.maxReplicas)",
            message="must be between minReplicas and maxReplicas",
            field=".expectedReplicas",
        ),
    )

    enabled: Annotated[bool, about("Allow the number of replicas to change while the job runs.")] = False
    min_replicas: Annotated[Size | None, about("Minimum number of replicas.")] = None
    max_replicas: Annotated[Size | None, about("Maximum number of replicas.")] = None
    expected_replicas: Annotated[
        Size | None,
        about(
            "Desired number of replicas, instead of the sum of replicas; may change at any time. If omitted, the "
            "sum of replicas, limited by the bounds."
        ),
    ] = None


def check_elastic(elastic: Elastic | None, path: str) -> Iterator[Fault]:
    """Yield a fault if the bounds contradict each other or the desired size is outside of them."""
    if elastic is None:
        return
    lowest, highest, desired = elastic.min_replicas, elastic.max_replicas, elastic.expected_replicas
    if lowest is not None and highest is not None and lowest > highest:
        yield invalid(f"{path}.minReplicas", lowest, f"must be at most maxReplicas, {highest}")
    elif desired is not None and not (lowest or 1) <= desired <= (highest or desired):
        bounds = f"between {lowest or 1} and {highest}" if highest is not None else f"at least {lowest}"
        yield invalid(f"{path}.expectedReplicas", desired, f"must be {bounds}")


def is_elastic(elastic: Elastic | None) -> bool:
    """Return whether the job is elastic."""
    return elastic is not None and elastic.enabled


def with_size(gang: Gang, elastic: Elastic | None) -> Gang:
    """Return the gang marked as elastic, with its minimum size if members can join one by one."""
    if elastic is None or not elastic.enabled:
        return gang
    fewest = min(elastic.min_replicas or 1, len(gang.members))
    # Members that restart together need all the others: each has been given the full list.
    return replace(gang, is_elastic=True, least=fewest if gang.scope is RestartScope.REPLICA else None)


def sizes(replicas: Mapping[str, int], weights: Mapping[str, int], elastic: Elastic | None) -> dict[str, int]:
    """Return the number of replicas of each type: as written, or the desired total distributed by weight.

    Whole shares are rounded down; the remaining replicas go to the largest remainders, ties to the earlier type. The
    first type always has at least one replica, because its first replica is the leader.
    """
    written = sum(replicas.values())
    desired = _desired(written, elastic) if elastic is not None and elastic.enabled else None
    if desired is None:
        return dict(replicas)
    total = sum(weights.values())
    if not total:
        weights, total = dict(replicas), written
    shares = {role: desired * weights.get(role, 0) // total for role in replicas}
    remaining = desired - sum(shares.values())
    for role in sorted(replicas, key=lambda role: -(desired * weights.get(role, 0) % total))[:remaining]:
        shares[role] += 1
    first = next(iter(shares))
    if not shares[first]:
        shares[max(shares, key=lambda role: shares[role])] -= 1
        shares[first] = 1
    return shares


def _desired(written: int, elastic: Elastic) -> int | None:
    """Return the desired number of replicas within the bounds; None if it equals the number written."""
    if elastic.expected_replicas is not None:
        return elastic.expected_replicas
    within = max(min(written, elastic.max_replicas or written), elastic.min_replicas or 1)
    return None if within == written else within
