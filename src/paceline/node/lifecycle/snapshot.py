"""Turn a pod's folders into what a decision may look at."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.name_validation import label_problem
from paceline.effects import Effects
from paceline.node.host_info import ADDRESS, Folders
from paceline.node.lifecycle.view import Ended, Problem, Seen, Try
from paceline.node.logs.termination_message import with_log
from paceline.node.runtime.state_files import read_ended, read_try


def look(world: Effects, folders: Folders, pod: Object, *, address: str, problems: Mapping[str, Problem]) -> Seen:
    """Read the latest try of each of a pod's containers, and how the one before ended."""
    uid = uid_of(pod)
    specs = {str(each["name"]): each for each in containers_of(pod)}
    tries, before = tries_of(world, folders, uid, specs), _before(world, folders, uid, specs)
    for name, each in tries.items():
        if each.ended is not None:
            folder = folders.attempt(uid, name, each.restarts)
            tries[name] = replace(each, ended=with_log(specs[name], each.ended, world.files, folder))
        if name in before:
            folder = folders.attempt(uid, name, each.restarts - 1)
            before[name] = with_log(specs[name], before[name], world.files, folder)
    return Seen(
        pod=pod,
        tries=tries,
        before=before,
        problems=problems,
        boot_id=world.processes.boot_id(),
        address=address,
        host_address=ADDRESS,
    )


def containers_of(pod: Object) -> tuple[Object, ...]:
    """Give all containers of a pod in the order in which they may start."""
    spec = pod["spec"]
    return (*(spec.get("initContainers") or ()), *spec["containers"])


def tries_of(world: Effects, folders: Folders, uid: str, names: Iterable[str]) -> dict[str, Try]:
    """Read the latest try of each container that has one."""
    latest = ((name, latest_folder(world, folders, uid, name)) for name in names)
    return {name: read_try(world.files, world.processes, folder) for name, folder in latest if folder}


def latest_folder(world: Effects, folders: Folders, uid: str, name: str) -> Path | None:
    """Find the folder of a container's latest try."""
    numbers = numbers_of(world, folders, uid, name)
    return folders.attempt(uid, name, numbers[-1]) if numbers else None


def numbers_of(world: Effects, folders: Folders, uid: str, name: str) -> list[int]:
    """List the tries of a container that have a folder, the oldest first."""
    if label_problem(name):
        return []  # Such a name is never made a path; nothing can have been started under it.
    return sorted(int(each) for each in world.files.names(folders.container(uid, name)) if each.isdecimal())


def _before(world: Effects, folders: Folders, uid: str, names: Iterable[str]) -> dict[str, Ended]:
    found = {}
    for name in names:
        numbers = numbers_of(world, folders, uid, name)
        if len(numbers) > 1 and (ended := read_ended(world.files, folders.attempt(uid, name, numbers[-2]))):
            found[name] = ended
    return found
