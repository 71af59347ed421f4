"""Archive the logs of deleted pods until the retention policy, or a full disk, has them removed.

`history/NAMESPACE/JOB/POD.UID/` is the pod's former folder without its volumes: `pod.json` describes the pod,
`containers/NAME/RESTARTS/` holds what each shim wrote, and `usage/` what the containers used over time. After the logs
are removed, only `pod.json` remains for a while.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from paceline.apimachinery.meta import Object, controller_of, labels_of, name_of, namespace_of, uid_of
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.timestamps import from_wire, to_wire, to_wire_micro
from paceline.effects import Effects
from paceline.errors import BadRequest, NotFound
from paceline.model import well_known_labels
from paceline.model.retention import RetentionPolicy
from paceline.node.host_info import Folders
from paceline.node.lifecycle.state_files import attempt_numbers, read_ended
from paceline.node.logs.logs import RotatedLog
from paceline.node.runtime import shim

ABOUT, CONTAINERS, USAGE = "pod.json", "containers", "usage"
# Replaces a removed log of a pod that still exists; holds the time of the removal.
PRUNED = "pruned"
# The folder of pods that belong to no job.
NO_JOB = "-"
# How much of a pod's name fits into a file name beside a uid.
LONGEST = 200
# The share of the disk that must be free for logs to be archived.
LEAST_FREE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPod:
    """A deleted pod, as its `pod.json` describes it."""

    folder: Path
    about: Object
    gone_at: datetime
    bytes: int
    is_pruned: bool


def describe_pod(pod: Object) -> Object:
    """Return what is remembered of a pod after it is deleted."""
    owner, labels = controller_of(pod) or {}, labels_of(pod)
    resources = {str(container["name"]): container.get("resources") or {} for container in containers_of(pod)}
    return {
        "namespace": namespace_of(pod),
        "pod": name_of(pod),
        "uid": uid_of(pod),
        "job": str(labels.get(well_known_labels.OWNER_NAME) or owner.get("name") or ""),
        "owner": {name: owner.get(name) for name in ("apiVersion", "kind", "name", "uid") if owner.get(name)},
        "labels": labels,
        "containers": list(resources),
        "main": [str(container["name"]) for container in pod["spec"]["containers"]],
        "resources": {name: wanted for name, wanted in resources.items() if wanted},
    }


EMPTY_CACHE: Mapping[Path, ArchivedPod] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogArchive:
    """Moves the logs of deleted pods into the archive, and finds them there."""

    world: Effects
    folders: Folders
    policy: RetentionPolicy

    def write_metadata(self, pod: Object) -> None:
        """Write `pod.json` into the pod's folder, for the time after the pod is deleted."""
        path = self.folders.pod(uid_of(pod)) / ABOUT
        if not self.world.files.exists(path):
            self.world.files.make_folder(self.folders.usage(uid_of(pod)))
            about = describe_pod(pod)
            # Not synced: a power cut right after the start loses this file and hardly more than the start of a log.
            self.world.files.overwrite(path, json.dumps(about).encode(), 0o600)

    def remove_volumes(self, uid: str) -> None:
        """Remove the pod's own volumes once it has ended, as a kubelet does; its logs stay."""
        for folder in (self.folders.memories(uid), self.folders.volume(uid, 0).parent):
            self.world.files.remove(folder)

    def is_disk_full(self) -> bool:
        """Return whether the disk has too little free space for archived logs."""
        return self.world.files.room(self.folders.root) < LEAST_FREE

    def archive_or_remove(self, uid: str) -> bool:
        """Archive the logs of a deleted pod and remove everything else; return whether it had any logs."""
        # The pod's folder goes last: as long as it exists, the other folders are cleaned up after a crash.
        self.world.files.remove(self.folders.memories(uid))
        is_archived = self.archive(uid)
        # A pod without logs still has its folder.
        self.world.files.remove(self.folders.pod(uid))
        return is_archived

    def archive(self, uid: str) -> bool:
        """Move a deleted pod's folder, in which nothing runs, into the archive; return False if it has no logs."""
        files, folder = self.world.files, self.folders.pod(uid)
        about = _read(self.world, folder / ABOUT)
        target = None if about is None else self._target(about)
        attempts = tuple(self._attempts(uid))
        if about is None or target is None or not any(item["begun"] for item in attempts) or self.is_disk_full():
            return False
        for item in attempts:
            # An attempt that never started may still have its launch file, with secrets in it.
            files.remove(self.folders.attempt(uid, item["container"], item["restarts"]) / shim.INTENT)
        for name in files.names(folder):
            if name not in (ABOUT, CONTAINERS, USAGE):
                files.remove(folder / name)
        started = [item for item in attempts if item["begun"]]
        archived = {
            "goneAt": to_wire_micro(self.world.clock.now()),
            "tries": started,
            "bytes": sum(item["bytes"] for item in started) + files.used(folder / USAGE),
        }
        files.write(folder / ABOUT, json.dumps(about | archived).encode())
        files.make_folder(target.parent)
        # One rename as the last step: after a crash before it, the folder is at its old path and all is done again.
        files.move(folder, target)
        return True

    def find(self, namespace: str, *, job: str = "", pod: str = "") -> tuple[ArchivedPod, ...]:
        """Return the archived pods of a namespace, the latest first: all, those of a job, or those of a name."""
        if any(subdomain_problem(name) for name in (namespace, job or "any", pod or "any")):
            return ()  # An invalid name must not become part of a path.
        pods = (past for past in self.pods(namespace, job=job, pod=pod) if pod in ("", past.about["pod"]))
        return tuple(sorted(pods, key=lambda past: past.gone_at, reverse=True))

    def attempts_in(self, folder: Path) -> Iterator[Path]:
        """Yield the folders of all attempts of all containers in a pod's folder."""
        files = self.world.files
        for name in files.names(folder / CONTAINERS):
            yield from (folder / CONTAINERS / name / number for number in files.names(folder / CONTAINERS / name))

    def check_log(self, folder: Path, pod: str) -> Path:
        """Return the folder of an attempt if it still has its log; NotFound says when the log was removed."""
        try:
            when = self.world.files.read(folder / PRUNED).decode()
        except FileNotFoundError:
            return folder
        raise _log_removed(pod, when)

    def _attempts(self, uid: str) -> Iterator[dict[str, Any]]:
        for name in self.world.files.names(self.folders.containers(uid)):
            for number in attempt_numbers(self.world, self.folders, uid, name):
                yield self._attempt(uid, name, number)

    def _attempt(self, uid: str, name: str, number: int) -> dict[str, Any]:
        folder = self.folders.attempt(uid, name, number)
        ended = read_ended(self.world.files, folder)
        return {
            "container": name,
            "restarts": number,
            "begun": self.world.files.exists(folder / shim.STARTED),
            "bytes": RotatedLog(self.world.files, folder).stored_bytes(),
            "exitCode": ended.exit_code if ended else None,
            "reason": ended.reason if ended else "",
            "finishedAt": to_wire(ended.finished_at) if ended else None,
        }

    def _target(self, about: Object) -> Path | None:
        """Return a pod's folder in the archive; None if its `pod.json` has invalid names."""
        parts = (str(about.get("namespace")), str(about.get("job") or NO_JOB), str(about.get("pod")))
        if any(subdomain_problem(part) for part in parts if part != NO_JOB):
            return None
        namespace, job, pod = parts
        return self.folders.history / namespace / job / f"{pod[:LONGEST]}.{about['uid']}"

    def pods(
        self, namespace: str = "", *, job: str = "", pod: str = "", cache: Mapping[Path, ArchivedPod] = EMPTY_CACHE
    ) -> Iterator[ArchivedPod]:
        """Yield archived pods in no order; folders in `cache` are not read again."""
        files, root = self.world.files, self.folders.history
        spaces = (namespace,) if namespace else files.names(root)
        jobs = (root / space / name for space in spaces for name in ((job,) if job else files.names(root / space)))
        for folder in (parent / name for parent in jobs for name in files.names(parent)):
            # A uid contains no dot.
            if pod and folder.name.rpartition(".")[0] != pod[:LONGEST]:
                continue
            if (past := cache.get(folder) or self.read(folder)) is not None:
                yield past

    def read(self, folder: Path) -> ArchivedPod | None:
        """Read an archived pod; None if its `pod.json` is missing or malformed."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedLogs:
    """The part of the agent's API that lists deleted pods and finds their logs."""

    archive: LogArchive

    def list(self, namespace: str, query: Mapping[str, str]) -> Object:
        """Return the list of a namespace's deleted pods, the latest first, filtered by job or name."""
        pods = self.archive.find(namespace, job=query.get("job", ""), pod=query.get("pod", ""))
        return {"kind": "PastPodList", "apiVersion": "paceline.dev/v1beta1", "items": [past.about for past in pods]}

    def folder(self, namespace: str, pod: str, query: Mapping[str, str]) -> Path:
        """Return the folder of the attempt that uid, container and previous in the query select."""
        pods = self.archive.find(namespace, pod=pod)
        selected = [past for past in pods if query.get("uid", "") in ("", past.about["uid"])]
        if not selected:
            raise NotFound(f"no log of pod {pod} is archived: it never ran here, or its record has expired")
        return self._folder(selected[0], query)

    def _folder(self, past: ArchivedPod, query: Mapping[str, str]) -> Path:
        about = past.about
        name = query.get("container") or _only_container(about)
        attempts = [int(item["restarts"]) for item in about["tries"] if item["container"] == name]
        if name not in about["containers"]:
            raise BadRequest(f"container {name} is not valid for pod {about['pod']}; it had: {_names(about)}")
        index = -2 if query.get("previous") in ("true", "1") else -1
        if len(attempts) < -index:
            raise BadRequest(f"container {name} of pod {about['pod']} has no such log")
        folder = past.folder / CONTAINERS / name / str(attempts[index])
        if past.is_pruned or not self.archive.world.files.exists(folder):
            raise _log_removed(str(about["pod"]), str(about.get("prunedAt", "meanwhile")))
        return self.archive.check_log(folder, str(about["pod"]))


def _only_container(about: Object) -> str:
    if len(about["main"]) != 1:
        raise BadRequest(f"a container name must be specified for pod {about['pod']}, choose one of: {_names(about)}")
    return str(about["main"][0])


def _names(about: Object) -> str:
    return ", ".join(about["containers"])


def _log_removed(pod: str, when: str) -> NotFound:
    message = f"the log of pod {pod} was removed ({when}) to free disk space"
    return NotFound(f"{message}; `history` in settings.yaml sets how many logs are kept")


def _read(world: Effects, path: Path) -> Object | None:
    """Read a JSON object; None if the file is missing or malformed."""
    try:
        about = json.loads(world.files.read(path))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return about if isinstance(about, dict) else None
