"""When a replica is tried again, and how often: T9k writes it as text in some kinds and as an object in others."""

from typing import Annotated, Literal

from msgspec import Meta

from paceline.kinds.draft import Draft, Path
from paceline.kinds.fields import Count, Part, about
from paceline.objects.gang import RestartPolicy

Policy = Literal["Always", "OnFailure", "Never"]
POLICIES = ("Always", "OnFailure", "Never")
TEXTS = "^(Always|OnFailure|Never|ExitCode)$"


class Restart(Part, frozen=True, kw_only=True):
    """When replicas of a type are tried again, and how often."""

    policy: Annotated[Policy, about("When an ended replica is tried again.")] = "OnFailure"
    limit: Annotated[Count, about("Restarts that all replicas of this type share.")] = 0


class Limited(Part, frozen=True, kw_only=True):
    """A policy with a limit of its own, below the one that the whole job has."""

    policy: Annotated[RestartPolicy, about("When an ended replica is tried again.")] = RestartPolicy.ON_FAILURE
    limit: Annotated[Count, about("Restarts that all replicas of this type share.")] | None = None


# GenericJob, MPIJob, ColossalAIJob: an object. Nothing is tried again unless a limit says so.
RestartObject = Annotated[
    Restart | Policy,
    Meta(
        description=(
            "When and how often replicas are tried again, such as {policy: OnFailure, limit: 3}; policy is Always, "
            "OnFailure or Never. Default: OnFailure with limit 0."
        ),
        extra_json_schema={"pattern": "^(Always|OnFailure|Never)$"},
    ),
]
# The training kinds: text. The job's backoffLimit is shared by all replicas.
RestartText = Annotated[
    RestartPolicy | Limited,
    Meta(
        description=(
            "When a replica is tried again: Always, OnFailure, Never, or ExitCode, which means after exit codes 130, "
            "137, 138 and 143."
        ),
        extra_json_schema={"pattern": TEXTS},
    ),
]


def restart_object(written: Restart | str | None) -> Restart:
    """Read the object form; text alone is a policy whose limit is 0."""
    match written:
        case "Always" | "OnFailure" | "Never":
            return Restart(policy=written)
        case Restart():
            return written
        case _:
            return Restart()


def policy_of(written: RestartPolicy | Limited) -> RestartPolicy:
    """Read when a replica of a training kind is tried again."""
    return written.policy if isinstance(written, Limited) else written


def limits_of(written: dict[str, RestartPolicy | Limited]) -> dict[str, int]:
    """Read the limits that single replica types have besides the job's."""
    limited = {role: each.limit for role, each in written.items() if isinstance(each, Limited)}
    return {role: limit for role, limit in limited.items() if limit is not None}


def text_to_object(draft: Draft, path: Path) -> None:
    """Turn a policy written as text into the object that this kind has."""
    written = draft.get(*path)
    if isinstance(written, str):
        draft.tell(path, f'"{written}" is how training jobs write it; {draft.kind} has {{policy: {written}, limit: 0}}')
        draft.put(path, {"policy": written})


def object_to_text(draft: Draft, path: Path) -> None:
    """Turn a policy written as an object into the text that this kind has; a limit is kept."""
    written = draft.get(*path)
    if not isinstance(written, dict):
        return
    policy = written.get("policy", RestartPolicy.ON_FAILURE.value)
    draft.tell(path, f"is an object, as GenericJob has it; {draft.kind} has text, such as {policy}")
    if isinstance(policy, str) and written.keys() <= {"policy"}:
        draft.put(path, policy)


def each_restart(draft: Draft) -> tuple[Path, ...]:
    """Give where a job of today's shape writes restart policies."""
    count = draft.count("spec", "replicaSpecs")
    listed: list[Path] = [("spec", "replicaSpecs", index, "restartPolicy") for index in range(count)]
    return (*listed, ("spec", "worker", "restartPolicy"))
