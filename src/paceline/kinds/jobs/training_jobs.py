"""Functions for T9k's training kinds: restart policies as strings, a run policy, and a leader that decides."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from paceline.apimachinery.field_errors import did_you_mean, required
from paceline.errors import Fault
from paceline.kinds.compat.migration import Migration
from paceline.kinds.kind_types import Located
from paceline.kinds.spec.fields import Free
from paceline.kinds.spec.restart_policy import Limited, each_restart, limits_of, object_to_text, policy_of
from paceline.kinds.spec.run_policy import RunPolicy, clean_up
from paceline.model.gang import Gang, Member, ReplicaId, RestartPolicy, RestartScope


class TrainingReplica(Protocol):
    """One entry of `replicaSpecs` of a training kind."""

    @property
    def type(self) -> str: ...
    @property
    def replicas(self) -> int: ...
    @property
    def template(self) -> Free: ...
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
        clean_up=clean_up(policy.clean_up_policy),
    )


def check_container(templates: Sequence[Located], name: str) -> Iterator[Fault]:
    """Yield a fault for each template without the training container of the kind."""
    for template_path, template in templates:
        names = [container.get("name", "") for container in template["spec"]["containers"]]
        if name not in names:
            near = " (there is one with a similar name)" if any(did_you_mean(other, [name]) for other in names) else ""
            yield required(
                f"{template_path}.spec.containers", f"one container must be named {name}{near}: the one that trains"
            )


def container_named(template: Free, *names: str) -> int:
    """Return the index of the first container that has one of these names, in their order; else 0."""
    existing = [container["name"] for container in template["spec"]["containers"]]
    return next((existing.index(name) for name in names if name in existing), 0)


def modernise(draft: Migration) -> None:
    """Migrate restart policies that are written as objects to strings, and warn."""
    for path in each_restart(draft):
        object_to_text(draft, path)
