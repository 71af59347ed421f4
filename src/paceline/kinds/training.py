"""What T9k's training kinds share: replicas with a text policy, a run policy, and one replica that decides."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from paceline.errors import Fault
from paceline.kinds.draft import Draft
from paceline.kinds.fields import Free
from paceline.kinds.kind import Located
from paceline.kinds.restart import Limited, each_restart, limits_of, object_to_text, policy_of
from paceline.kinds.runpolicy import RunPolicy, clean_up
from paceline.objects.faults import did_you_mean, required
from paceline.objects.gang import Gang, Member, Place, RestartPolicy, RestartScope


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


def member(spec: TrainingReplica, place: Place, template: Free, *names: str) -> Member:
    """Put a finished template at its place; `names` are those that the container may have which trains."""
    main = template["spec"]["containers"][container_named(template, *names)]["name"]
    return Member(place=place, template=template, restart=policy_of(spec.restart_policy), main=main)


def gang(
    members: tuple[Member, ...],
    specs: Sequence[TrainingReplica],
    *,
    leader: Place,
    scope: RestartScope,
    policy: RunPolicy | None,
) -> Gang:
    """Put members together under the rules of a training: the leader decides.

    One try of a gang is one training, and is lost with any member of it. Where replicas are tried alone, only the
    leader's failure ends the job, as T9k has it. An evaluator only watches.
    """
    policy = policy or RunPolicy()
    trained = tuple(each.place for each in members if each.place.role != "evaluator")
    deciding = trained if scope is RestartScope.GANG else (leader,)
    return Gang(
        members=members,
        leader=leader,
        success=((leader,),),
        failure=tuple((place,) for place in deciding),
        scope=scope,
        backoff_limit=policy.backoff_limit,
        role_limits=limits_of({each.type: each.restart_policy for each in specs}),
        clean_up=clean_up(policy.clean_up_policy),
    )


def check_container(templates: Sequence[Located], name: str) -> Iterator[Fault]:
    """Name the templates without the container that the kind trains in."""
    for where, template in templates:
        names = [each.get("name", "") for each in template["spec"]["containers"]]
        if name not in names:
            near = " (there is one of a similar name)" if any(did_you_mean(each, [name]) for each in names) else ""
            yield required(
                f"{where}.spec.containers", f"one container must be named {name}{near}; it does the training"
            )


def container_named(template: Free, *names: str) -> int:
    """Find the first container of one of these names, in the order of the names; else the first of all."""
    there = [each["name"] for each in template["spec"]["containers"]]
    return next((there.index(name) for name in names if name in there), 0)


def modernise(draft: Draft) -> None:
    """Turn restart policies written as objects into text."""
    for path in each_restart(draft):
        object_to_text(draft, path)
