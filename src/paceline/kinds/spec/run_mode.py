"""Debug mode (pods run an idle command) and pause mode (pods are deleted until the job is resumed)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from paceline.apimachinery.field_errors import unsupported
from paceline.errors import Fault
from paceline.kinds.spec.fields import Free, Part, about
from paceline.kinds.spec.pod_template import Words, with_container, without_init

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
    command: Annotated[Words, about("Command that runs instead of the workload. Default: sleep inf.")] | None = None


class Debug(Part, frozen=True, kw_only=True):
    """The pods are created, but the workload is not started."""

    enabled: Annotated[bool, about("Create the replicas without starting the workload.")] = False
    replica_specs: Annotated[tuple[DebugReplica, ...], about("Settings of single replica types.")] = ()


class ResumeReplica(Part, frozen=True, kw_only=True):
    """Settings of one replica type for the time after a pause."""

    type: Type
    skip_init_container: SkipInit = False
    command: Annotated[Words, about("Command after a pause. If omitted, that of the template.")] | None = None
    args: Annotated[Words, about("Arguments after a pause. If omitted, those of the template.")] | None = None


class Pause(Part, frozen=True, kw_only=True):
    """The pods are deleted, the job is kept."""

    enabled: Annotated[bool, about("Delete the pods and keep the job; may change at any time.")] = False
    resume_specs: Annotated[
        tuple[ResumeReplica, ...], about("Settings of replica types for the time after a pause.")
    ] = ()


class RunMode(Part, frozen=True, kw_only=True):
    """Debug and pause mode. If both are enabled, the job is paused."""

    debug: Annotated[Debug, about("Debug mode.")] | None = None
    pause: Annotated[Pause, about("Pause mode.")] | None = None


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
        key: list(words)
        for key, words in (("command", entry.command or None), ("args", entry.args))
        if words is not None
    }
    changed = with_container(template, main, **changes)
    return without_init(changed) if entry.skip_init_container else changed


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
