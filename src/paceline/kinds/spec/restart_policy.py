"""Restart policy and limit of replicas: T9k writes them as a string in some kinds and as an object in others."""

from typing import Annotated, Literal

from msgspec import Meta

from paceline.kinds.compat import Migration, Path
from paceline.kinds.spec.fields import Count, Part, about
from paceline.model.gang import RestartPolicy

Policy = Literal["Always", "OnFailure", "Never"]
POLICIES = ("Always", "OnFailure", "Never")
TEXTS = "^(Always|OnFailure|Never|ExitCode)$"


class Restart(Part, frozen=True, kw_only=True):
    """When replicas of a type are restarted, and how often."""

    policy: Annotated[Policy, about("When a terminated replica is restarted.")] = "OnFailure"
    limit: Annotated[Count, about("Maximum number of restarts, summed over all replicas of this type.")] = 0


class Limited(Part, frozen=True, kw_only=True):
    """A policy with a limit for this replica type, in addition to the limit of the whole job."""

    policy: Annotated[RestartPolicy, about("When a terminated replica is restarted.")] = RestartPolicy.ON_FAILURE
    limit: Annotated[Count | None, about("Maximum number of restarts, summed over all replicas of this type.")] = None


# GenericJob, MPIJob, ColossalAIJob: an object. The limit is 0 by default, so nothing is restarted.
RestartObject = Annotated[
    Restart | Policy,
    Meta(
        description=(
            "When and how often replicas are restarted, such as {policy: OnFailure, limit: 3}; policy is Always, "
            "OnFailure or Never. Default: OnFailure with limit 0."
        ),
        extra_json_schema={"pattern": "^(Always|OnFailure|Never)$"},
    ),
]
# The training kinds: a string. All replicas share the job's backoffLimit.
RestartText = Annotated[
    RestartPolicy | Limited,
    Meta(
        description=(
            "When a replica is restarted: Always, OnFailure, Never, or ExitCode (after exit codes 130, 137, 138 and "
            "143 only)."
        ),
        extra_json_schema={"pattern": TEXTS},
    ),
]


def restart_object(written: Restart | str | None) -> Restart:
    """Return the object form; a string is a policy with limit 0."""
    match written:
        case "Always" | "OnFailure" | "Never":
            return Restart(policy=written)
        case Restart():
            return written
        case _:
            return Restart()


def policy_of(written: RestartPolicy | Limited) -> RestartPolicy:
    """Return the restart policy of a replica type of a training kind."""
    return written.policy if isinstance(written, Limited) else written


def limits_of(written: dict[str, RestartPolicy | Limited]) -> dict[str, int]:
    """Return the limits of replica types that have their own."""
    limited = {role: policy.limit for role, policy in written.items() if isinstance(policy, Limited)}
    return {role: limit for role, limit in limited.items() if limit is not None}


def text_to_object(draft: Migration, path: Path) -> None:
    """Migrate a policy that is written as a string to the object form of this kind, and warn."""
    written = draft.get(*path)
    if isinstance(written, str):
        draft.tell(
            path, f'"{written}" is the form of training jobs; in a {draft.kind} write {{policy: {written}, limit: 0}}'
        )
        draft.put(path, {"policy": written})


def object_to_text(draft: Migration, path: Path) -> None:
    """Migrate a policy that is written as an object to the string form of this kind, and warn; keep a limit."""
    written = draft.get(*path)
    if not isinstance(written, dict):
        return
    policy = written.get("policy", RestartPolicy.ON_FAILURE.value)
    draft.tell(
        path, f"is an object, which is the form of GenericJob; in a {draft.kind} write a string, such as {policy}"
    )
    if isinstance(policy, str) and written.keys() <= {"policy"}:
        draft.put(path, policy)


def each_restart(draft: Migration) -> tuple[Path, ...]:
    """Return the paths of all restart policies of a job in the current shape."""
    count = draft.count("spec", "replicaSpecs")
    replicas: list[Path] = [("spec", "replicaSpecs", index, "restartPolicy") for index in range(count)]
    return (*replicas, ("spec", "worker", "restartPolicy"))
