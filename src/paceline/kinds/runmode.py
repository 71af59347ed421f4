"""Debug and pause: a job whose members wait to be looked into, or that gives its members back for a while."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from paceline.errors import Fault
from paceline.kinds.fields import Free, Part, about
from paceline.kinds.template import Words, with_container, without_init
from paceline.objects.faults import unsupported

IDLE = ("sleep", "inf")

Type = Annotated[str, about("The replica type this is for.")]
Suspend = Annotated[
    bool,
    about(
        "Make no pods while true, and give back those there are: for queueing systems such as Kueue; may change at any "
        "time. A job that comes back has a new start time."
    ),
]
SkipInit = Annotated[bool, about("Leave the init containers out.")]


class DebugReplica(Part, frozen=True, kw_only=True):
    """What one replica type does in debug mode."""

    type: Type
    skip_init_container: SkipInit = False
    command: Annotated[Words, about("What runs instead of the workload. Default: sleep inf.")] | None = None


class Debug(Part, frozen=True, kw_only=True):
    """The environment is made, the workload is not started."""

    enabled: Annotated[bool, about("Make the replicas without starting the workload.")] = False
    replica_specs: Annotated[tuple[DebugReplica, ...], about("What is different for single replica types.")] = ()


class ResumeReplica(Part, frozen=True, kw_only=True):
    """What one replica type does after a pause."""

    type: Type
    skip_init_container: SkipInit = False
    command: Annotated[Words, about("The command after a pause. Default: the template's.")] | None = None
    args: Annotated[Words, about("The arguments after a pause. Default: the template's.")] | None = None


class Pause(Part, frozen=True, kw_only=True):
    """The replicas are given back, the job stays."""

    enabled: Annotated[bool, about("Delete the replicas and keep the job; may change at any time.")] = False
    resume_specs: Annotated[tuple[ResumeReplica, ...], about("What replicas run after a pause.")] = ()


class RunMode(Part, frozen=True, kw_only=True):
    """How the job runs. When both are enabled, pause wins."""

    debug: Annotated[Debug, about("Debug mode.")] | None = None
    pause: Annotated[Pause, about("Pause mode.")] | None = None


def check_run_mode(mode: RunMode | None, types: tuple[str, ...], path: str) -> Iterator[Fault]:
    """Name the replica types that the job does not have."""
    if mode is None:
        return
    debugs = mode.debug.replica_specs if mode.debug else ()
    resumes = mode.pause.resume_specs if mode.pause else ()
    named = {
        **{f"{path}.debug.replicaSpecs[{index}].type": each.type for index, each in enumerate(debugs)},
        **{f"{path}.pause.resumeSpecs[{index}].type": each.type for index, each in enumerate(resumes)},
    }
    known = frozenset(types)
    for where, role in named.items():
        if role not in known:
            yield unsupported(where, role, types)


def is_debug(mode: RunMode | None) -> bool:
    """Tell whether the workload is not to be started."""
    return mode is not None and mode.debug is not None and mode.debug.enabled


def resumed(template: Mapping[str, Any], mode: RunMode | None, *, role: str, main: int) -> Free:
    """Copy a template the way its role goes on after a pause."""
    entries = mode.pause.resume_specs if mode is not None and mode.pause is not None else ()
    entry = next((each for each in entries if each.type == role), None)
    if entry is None:
        return dict(template)
    told = {
        key: list(words)
        for key, words in (("command", entry.command or None), ("args", entry.args))
        if words is not None
    }
    changed = with_container(template, main, **told)
    return without_init(changed) if entry.skip_init_container else changed


def debugged(
    template: Mapping[str, Any], mode: RunMode | None, *, role: str, main: int, default: Words | None = None
) -> Free:
    """Copy a template with its workload replaced when the job is in debug mode; `default` where nothing is said."""
    if mode is None or mode.debug is None or not mode.debug.enabled:
        return dict(template)
    entry = next((each for each in mode.debug.replica_specs if each.type == role), DebugReplica(type=role))
    # Without words the image's own program would start.
    command = list(entry.command or default or IDLE)
    changed = with_container(template, main, command=command, args=None)
    return without_init(changed) if entry.skip_init_container else changed
