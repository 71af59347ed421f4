"""What pods that are gone have left: their logs, until there is no more room or time for them.

`history/NAMESPACE/JOB/POD.UID/` is the folder that the pod had, without its volumes: `pod.json` says whose it was, and
`containers/NAME/RESTARTS/` has what each shim left. Once its logs were removed, `pod.json` alone stays for a while.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paceline.apimachinery.meta import Object, controller_of, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.effects import Effects
from paceline.errors import NotFound
from paceline.model import well_known_labels
from paceline.node.host_info import Folders
from paceline.node.lifecycle.state_files import numbers_of, read_ended
from paceline.node.logs.rotated_log import RotatedLog
from paceline.node.runtime import shim

ABOUT, CONTAINERS = "pod.json", "containers"
# In place of a try's log that was removed: when that was.
PRUNED = "pruned"
# Where pods lie that belong to no job.
NO_JOB = "-"
NOBODY = "nobody"
# As much of a pod's name as a file's may hold beside a uid.
LONGEST = 200
# Which part of the disk has to be free for anything to be kept on it.
LEAST_ROOM = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How much of the past is kept: what is older, or more, goes, the oldest first."""

    age: timedelta = timedelta(days=30)
    bytes: int = 10 * 1024**3
    pods: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPod:
    """One pod that is gone, as its `pod.json` tells."""

    folder: Path
    about: Object
    gone_at: datetime
    bytes: int
    is_pruned: bool


UNKNOWN: Mapping[Path, ArchivedPod] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Keeps and finds what pods have left."""

    world: Effects
    folders: Folders
    policy: Policy

    def describe(self, pod: Object) -> None:
        """Write down whose folder it is, for the time when the pod's object is gone."""
        owner, told = controller_of(pod) or {}, labels_of(pod)
        about = {
            "namespace": namespace_of(pod),
            "pod": name_of(pod),
            "uid": uid_of(pod),
            "job": str(told.get(well_known_labels.OWNER_NAME) or owner.get("name") or ""),
            "owner": {name: owner.get(name) for name in ("apiVersion", "kind", "name", "uid") if owner.get(name)},
            "labels": told,
            "containers": [str(each["name"]) for each in containers_of(pod)],
            "main": [str(each["name"]) for each in pod["spec"]["containers"]],
        }
        path = self.folders.pod(uid_of(pod)) / ABOUT
        if not self.world.files.exists(path):
            # Not synced: a power cut right after the start takes this, and hardly more than the start of a log.
            self.world.files.overwrite(path, json.dumps(about).encode(), 0o600)

    def release(self, uid: str) -> None:
        """Remove the own volumes of a pod that is over, as a kubelet does; its logs stay with it."""
        for folder in (self.folders.memories(uid), self.folders.volume(uid, 0).parent):
            self.world.files.remove(folder)

    def is_tight(self) -> bool:
        """Tell whether the disk is so full that room is needed more than the past."""
        return self.world.files.room(self.folders.root) < LEAST_ROOM

    def put_away(self, uid: str) -> bool:
        """Keep what a gone pod has said, and remove the rest; tell whether there was anything to keep."""
        # Its own folder last: while that is there, the rest is looked for.
        self.world.files.remove(self.folders.memories(uid))
        is_kept = self.keep(uid)
        # What had nothing to keep is still there.
        self.world.files.remove(self.folders.pod(uid))
        return is_kept

    def keep(self, uid: str) -> bool:
        """Put a gone pod's folder, in which nothing runs any more, into the past; False when it has nothing to keep."""
        files, folder = self.world.files, self.folders.pod(uid)
        about = _read(self.world, folder / ABOUT)
        target = None if about is None else self._target(about)
        tries = tuple(self._tries(uid))
        if about is None or target is None or not any(each["begun"] for each in tries) or self.is_tight():
            return False
        for each in tries:
            # What was never started may still say what was to be started, with all its secrets.
            files.remove(self.folders.attempt(uid, each["container"], each["restarts"]) / shim.INTENT)
        for name in files.names(folder):
            if name not in (ABOUT, CONTAINERS):
                files.remove(folder / name)
        kept = [each for each in tries if each["begun"]]
        told = {
            "goneAt": to_wire_micro(self.world.clock.now()),
            "tries": kept,
            "bytes": sum(each["bytes"] for each in kept),
        }
        files.write(folder / ABOUT, json.dumps(about | told).encode())
        files.make_folder(target.parent)
        # The last step, and one: until then the folder is found where it was, and all is done again.
        files.move(folder, target)
        return True

    def find(self, namespace: str, *, job: str = "", pod: str = "") -> tuple[ArchivedPod, ...]:
        """Find the pods of a namespace that are gone, the last one first: all, those of a job, or those of a name."""
        if any(subdomain_problem(part) for part in (namespace, job or NOBODY, pod or NOBODY)):
            return ()  # Such names are never made a path.
        found = (each for each in self.all(namespace, job=job, pod=pod) if pod in ("", each.about["pod"]))
        return tuple(sorted(found, key=lambda each: each.gone_at, reverse=True))

    def tries_in(self, folder: Path) -> Iterator[Path]:
        """Give the folders of all tries of all containers of a pod."""
        files = self.world.files
        for name in files.names(folder / CONTAINERS):
            yield from (folder / CONTAINERS / name / number for number in files.names(folder / CONTAINERS / name))

    def check_log(self, folder: Path, pod: str) -> Path:
        """Give the folder of a try, if it still has its log; NotFound says when that went."""
        try:
            when = self.world.files.read(folder / PRUNED).decode()
        except FileNotFoundError:
            return folder
        raise removed(pod, when)

    def _tries(self, uid: str) -> Iterator[dict[str, Any]]:
        for name in self.world.files.names(self.folders.containers(uid)):
            for number in numbers_of(self.world, self.folders, uid, name):
                yield self._tell(uid, name, number)

    def _tell(self, uid: str, name: str, number: int) -> dict[str, Any]:
        folder = self.folders.attempt(uid, name, number)
        ended = read_ended(self.world.files, folder)
        pages = RotatedLog(self.world.files, folder)
        return {
            "container": name,
            "restarts": number,
            "begun": self.world.files.exists(folder / shim.STARTED),
            "bytes": pages.kept(),
            "exitCode": ended.exit_code if ended else None,
            "reason": ended.reason if ended else "",
            "finishedAt": to_wire(ended.finished_at) if ended else None,
        }

    def _target(self, about: Object) -> Path | None:
        """Give the place of a pod in the past; None when its record cannot be right."""
        parts = (str(about.get("namespace")), str(about.get("job") or NO_JOB), str(about.get("pod")))
        if any(subdomain_problem(part) for part in parts if part != NO_JOB):
            return None
        namespace, job, pod = parts
        return self.folders.history / namespace / job / f"{pod[:LONGEST]}.{about['uid']}"

    def all(
        self, namespace: str = "", *, job: str = "", pod: str = "", known: Mapping[Path, ArchivedPod] = UNKNOWN
    ) -> Iterator[ArchivedPod]:
        """Give the pods that are gone, in no order; what is known of a folder is not read again."""
        files, root = self.world.files, self.folders.history
        spaces = (namespace,) if namespace else files.names(root)
        jobs = (root / space / name for space in spaces for name in ((job,) if job else files.names(root / space)))
        folders = (each / name for each in jobs for name in files.names(each))
        # A uid has no dot in it.
        for folder in (each for each in folders if not pod or each.name.rpartition(".")[0] == pod[:LONGEST]):
            if (past := known.get(folder) or self.past(folder)) is not None:
                yield past

    def past(self, folder: Path) -> ArchivedPod | None:
        """Read whose folder it is in the past; None when that cannot be told."""
        about = _read(self.world, folder / ABOUT)
        if about is None or "goneAt" not in about:
            return None
        return ArchivedPod(
            folder=folder,
            about=about,
            gone_at=from_wire(about["goneAt"]),
            bytes=int(about["bytes"]),
            is_pruned="prunedAt" in about,
        )


def removed(pod: str, when: str) -> NotFound:
    """Say that a log was there once."""
    said = f"the log of pod {pod} was removed ({when}) to make room"
    return NotFound(f"{said}; how much is kept is said under `history` in settings.yaml")


def _read(world: Effects, path: Path) -> Object | None:
    """Read a record; None when there is none that makes sense."""
    try:
        about = json.loads(world.files.read(path))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return about if isinstance(about, dict) else None
