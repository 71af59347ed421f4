"""T9k's runPolicy, runMode and scheduler: deadlines, cleanup, debug and pause mode, queue and priority."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from msgspec import Meta

from paceline.apimachinery.field_errors import unsupported
from paceline.errors import Fault
from paceline.kinds.spec.fields import Count, Free, Part, Positive, about
from paceline.kinds.spec.pod_template import Words, with_container, without_init
from paceline.model.gang import Gang, RestartScope

CleanUpPolicy = Annotated[
    Literal["None", "All", "Unfinished"],
    about("Pods that are deleted when the job ends: None, All, or only the Unfinished ones."),
]
Scope = Annotated[
    RestartScope,
    about(
        "What is restarted when one replica fails: the whole Gang, or that Replica alone. If omitted, Replica for "
        "GenericJob, TensorFlow with parameter servers and elastic PyTorch; otherwise Gang, because the other replicas "
        "cannot continue without the failed one."
    ),
]


class Limits(Part, frozen=True, kw_only=True):
    """Deadlines of a job."""

    active_deadline_seconds: Annotated[
        Positive | None, about("Seconds from its start after which an unfinished job fails; pauses do not count.")
    ] = None
    starting_deadline_seconds: Annotated[
        Positive | None,
        about(
            "Seconds from its creation, or from the end of a pause, after which the job fails unless all its pods "
            "have been running."
        ),
    ] = None
    stall_seconds: Annotated[
        Positive | None,
        about(
            "Seconds without a new log line of any replica after which a running job is stalled: all replicas are "
            "restarted, which counts towards the restart limit, or the job fails. If omitted, there is no limit."
        ),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Count | None,
        about("Seconds from its end after which the job and its dependents are deleted; may change at any time."),
    ] = None


class RunPolicy(Limits, frozen=True, kw_only=True):
    """Deadlines, restart limit and cleanup of a job."""

    backoff_limit: Annotated[Count, about("Maximum number of restarts, summed over all replicas of the job.")] = 3
    clean_up_policy: CleanUpPolicy = "Unfinished"


def with_limits(gang: Gang, policy: Limits | None) -> Gang:
    """Return the gang with the deadlines of its policy."""
    if policy is None:
        return gang
    return replace(
        gang,
        active_deadline_seconds=policy.active_deadline_seconds,
        starting_deadline_seconds=policy.starting_deadline_seconds,
        stall_seconds=policy.stall_seconds,
        ttl_seconds=policy.ttl_seconds_after_finished,
    )


class T9kScheduler(Part, frozen=True, kw_only=True):
    """The queue of a job, and its priority there."""

    queue: Annotated[str, about("Name of the queue.")]
    priority: Annotated[
        int, Meta(ge=0, le=100), about("Priority within the queue; jobs with a higher one are scheduled first.")
    ] = 0


class Scheduler(Part, frozen=True, kw_only=True):
    """Scheduler of the pods; if omitted, the default scheduler of the cluster, without a queue."""

    t9k_scheduler: Annotated[T9kScheduler | None, about("Schedule the job's pods together, from a queue.")] = None


def queue_of(scheduler: Scheduler | None) -> tuple[str, int]:
    """Return the queue and the priority in it; the queue is empty for the default scheduler of the cluster."""
    settings = scheduler.t9k_scheduler if scheduler else None
    return (settings.queue, settings.priority) if settings else ("", 0)


IDLE = ("sleep", "inf")

Type = Annotated[str, about("Replica type that this entry applies to.")]
Suspend = Annotated[
    bool,
    about(
        "While true, the job has no pods; existing ones are deleted. Used by queueing systems such as Kueue; may "
        "change at any time. A resumed job has a new start time."
    ),
]
SkipInit = Annotated[bool, about("Skip the init containers.")]


class DebugReplica(Part, frozen=True, kw_only=True):
    """Settings of one replica type for debug mode."""

    type: Type
    skip_init_container: SkipInit = False
    command: Annotated[Words | None, about("Command that runs instead of the workload. Default: sleep inf.")] = None


class Debug(Part, frozen=True, kw_only=True):
    """The pods are created, but the workload is not started."""

    enabled: Annotated[bool, about("Create the replicas without starting the workload.")] = False
    replica_specs: Annotated[tuple[DebugReplica, ...], about("Settings of single replica types.")] = ()


class ResumeReplica(Part, frozen=True, kw_only=True):
    """Settings of one replica type for the time after a pause."""

    type: Type
    skip_init_container: SkipInit = False
    command: Annotated[Words | None, about("Command after a pause. If omitted, that of the template.")] = None
    args: Annotated[Words | None, about("Arguments after a pause. If omitted, those of the template.")] = None


class Pause(Part, frozen=True, kw_only=True):
    """The pods are deleted, the job is kept."""

    enabled: Annotated[bool, about("Delete the pods and keep the job; may change at any time.")] = False
    resume_specs: Annotated[
        tuple[ResumeReplica, ...], about("Settings of replica types for the time after a pause.")
    ] = ()


class RunMode(Part, frozen=True, kw_only=True):
    """Debug and pause mode. If both are enabled, the job is paused."""

    debug: Annotated[Debug | None, about("Debug mode.")] = None
    pause: Annotated[Pause | None, about("Pause mode.")] = None


def check_run_mode(mode: RunMode | None, types: tuple[str, ...], path: str) -> Iterator[Fault]:
    """Yield a fault for each replica type that the job does not have."""
    if mode is None:
        return
    debugs = mode.debug.replica_specs if mode.debug else ()
    resumes = mode.pause.resume_specs if mode.pause else ()
    roles = {
        **{f"{path}.debug.replicaSpecs[{index}].type": entry.type for index, entry in enumerate(debugs)},
        **{f"{path}.pause.resumeSpecs[{index}].type": entry.type for index, entry in enumerate(resumes)},
    }
    type_set = frozenset(types)
    for type_path, role in roles.items():
        if role not in type_set:
            yield unsupported(type_path, role, types)


def is_debug(mode: RunMode | None) -> bool:
    """Return whether the job is in debug mode."""
    return mode is not None and mode.debug is not None and mode.debug.enabled


def resumed(template: Mapping[str, Any], mode: RunMode | None, *, role: str, main: int) -> Free:
    """Return a copy of a template with the settings that its replica type has after a pause."""
    entries = mode.pause.resume_specs if mode is not None and mode.pause is not None else ()
    entry = next((entry for entry in entries if entry.type == role), None)
    if entry is None:
        return dict(template)
    changes = {
        key: list(arguments)
        for key, arguments in (("command", entry.command or None), ("args", entry.args))
        if arguments is not None
    }
    changed = with_container(template, main, **changes)
    return without_init(changed) if entry.skip_init_container else changed


def with_run_mode(template: Mapping[str, Any], mode: RunMode | None, *, is_resumed: bool, role: str, main: int) -> Free:
    """Return a copy of a template with the settings of its replica type for debug mode and after a pause."""
    template = resumed(template, mode, role=role, main=main) if is_resumed else template
    return debugged(template, mode, role=role, main=main)


def debugged(
    template: Mapping[str, Any], mode: RunMode | None, *, role: str, main: int, default: Words | None = None
) -> Free:
    """Return a copy of a template; in debug mode with the debug command, or `default` if the spec names none."""
    if mode is None or mode.debug is None or not mode.debug.enabled:
        return dict(template)
    entry = next((spec for spec in mode.debug.replica_specs if spec.type == role), DebugReplica(type=role))
    # Without a command, the entrypoint of the image would start.
    command = list(entry.command or default or IDLE)
    changed = with_container(template, main, command=command, args=None)
    return without_init(changed) if entry.skip_init_container else changed
