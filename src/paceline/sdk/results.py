"""The output files of a job, while it runs and after its pods are deleted.

Uploads to a bucket are read from the logs of the uploading containers, so that users need no key of the bucket.
Files on a claim or in a folder are not copied, and are listed where they are.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Object, labels_of, name_of
from paceline.apimachinery.timestamps import to_wire
from paceline.errors import BadRequest, MethodNotAllowed, NotFound, PacelineError
from paceline.filesystem.handles import FOLDER, closed, open_beneath
from paceline.model import well_known_labels
from paceline.model.gang import FLUSH, KEEPER, ReplicaId
from paceline.presentation.deleted_pods import DeletedPod
from paceline.presentation.job_summary import status_of
from paceline.sdk.client import Session
from paceline.sdk.job import JobRef
from paceline.sdk.logs.archived import LogArchiveReader, pod_log
from paceline.sdk.logs.sources import LogOptions

# The format of the uploader in podtools, which is a separate program; a test compares the two.
KEPT = re.compile(r"kept (?P<size>\d+) (?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (?P<name>.+)", re.DOTALL)
GOES_TO = "results go to "
COUNT = re.compile(r"(\d+) files?, \d+ bytes?, (?:is|are) in ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """An output file of a replica."""

    replica: str
    name: str
    size: int
    # Time of the last change, as an RFC 3339 timestamp.
    time: str


@dataclass(slots=True, kw_only=True)
class UploadLog:
    """What the upload logs report about one replica's files; logs are added newest first."""

    replica: str
    files: dict[str, ResultFile] = field(default_factory=dict)
    # The last line that is not about a file: all files are uploaded, some are on their way, or an upload failed.
    message: str = ""
    # Whether the logs are complete, so that no earlier log is needed.
    is_whole: bool = False
    # Why logs could not be read.
    unread: list[PacelineError] = field(default_factory=list)

    def add(self, log: bytes) -> None:
        """Add the log of an earlier run."""
        earlier, messages = read_log(self.replica, log)
        self.files = {**earlier, **self.files}
        self.message = self.message or (messages[-1] if messages else "")
        self.is_whole = any(line.startswith(GOES_TO) for line in messages)

    def sentence(self) -> str:
        """Return where the files are and whether the list is incomplete, or why there is no list."""
        if not self.message:
            return "; ".join(dict.fromkeys(map(str, self.unread)))
        count = COUNT.match(self.message)
        if count is None or int(count[1]) <= len(self.files):
            return self.message
        lacks = f"only {len(self.files)} of them are listed here, because the log does not reach back far enough"
        return f"{self.message}; {lacks}; .paceline/manifest.json next to them lists all"


def read_log(replica: str, log: bytes) -> tuple[dict[str, ResultFile], list[str]]:
    """Return the files in a log by name, and its other lines; the last line about a file wins."""
    files: dict[str, ResultFile] = {}
    others = []
    for line in log.decode(errors="replace").split("\n"):
        match = KEPT.fullmatch(line)
        name = _name(match["name"]) if match else ""
        if match and name:
            files[name] = ResultFile(replica=replica, name=name, size=int(match["size"]), time=match["time"])
        elif line:
            others.append(line)
    return files, others


def _name(text: str) -> str:
    """Return a file name from plain text or a JSON string; empty if it is malformed."""
    if not text.startswith('"'):
        return text
    try:
        name = json.loads(text)
    except ValueError:
        return ""
    # JSON can contain unpaired surrogates, which are not valid text.
    return name.encode(errors="replace").decode() if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountedResults:
    """The location of a job's results, as a text and, if it is on this machine, as a path."""

    where: str
    folder: Path | None = None


def locate_results(session: Session, job: str, output: Mapping[str, Any], *, is_here: bool) -> MountedResults:
    """Return where a job's output is; `is_here` is True if folders of the cluster are on this machine."""
    if directory := output.get("directory"):
        folder = f"{directory.rstrip('/')}/{job}"
        return MountedResults(where=f"{folder} of the machine that ran it", folder=Path(folder) if is_here else None)
    claim, inner = str(output.get("claim")), "/".join(part for part in (output.get("path", "").strip("/"), job) if part)
    where = f"{inner}/ on claim {claim}"
    with suppress(PacelineError):
        if is_here and (root := session.claim_folder(claim)):
            return MountedResults(where=f"{where}, which is {root}/{inner}", folder=Path(root, inner))
    return MountedResults(where=where)


def files_below(folder: Path) -> Iterator[ResultFile]:
    """Yield the files of every replica's folder, sorted by name; links are not followed."""
    for replica in sorted(entry.name for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)):
        stats: dict[str, os.stat_result] = {}
        with suppress(OSError), closed(os.open(folder / replica, FOLDER)) as root:
            folders = [""]
            while folders:
                folders += _look(root, folders.pop(), stats)
        for name in sorted(stats):
            yield _file(replica, name, stats[name])


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    """Return the entries of a folder; none if it does not exist or is not readable."""
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _look(root: int, inner: str, stats: dict[str, os.stat_result]) -> list[str]:
    """Add the files of one folder to `stats`, using directory handles, and return its subfolders."""
    folders = []
    with (
        suppress(OSError),
        closed(open_beneath(root, inner)) as place,
        closed(os.open(".", FOLDER, dir_fd=place)) as here,
        os.scandir(here) as entries,
    ):
        for entry in entries:
            name = f"{inner}/{entry.name}" if inner else entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_file(follow_symlinks=False):
                # A file may be deleted while the others are read.
                with suppress(FileNotFoundError):
                    stats[name] = entry.stat(follow_symlinks=False)
    return folders


def _file(replica: str, name: str, stat: os.stat_result) -> ResultFile:
    shown = name.encode(errors="surrogateescape").decode(errors="replace")
    when = to_wire(datetime.fromtimestamp(int(stat.st_mtime), UTC))
    return ResultFile(replica=replica, name=shown, size=stat.st_size, time=when)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The known files, and messages about one replica's files, or (replica is empty) about all."""

    files: tuple[ResultFile, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploader:
    """A pod with a container that uploads the output of one replica."""

    place: ReplicaId
    # Later uploads are larger: flush pods run after all attempts of a replica.
    turn: tuple[bool, int]
    read: Callable[[], Iterable[bytes]]


def results_of(session: Session, name: str, *, is_here: bool = False) -> Results:
    """Return the output files of a job; NotFound if there is no such job, or no upload log of it is left.

    `is_here` is True if folders of the cluster are on this machine.
    """
    history = LogArchiveReader(cluster=session.cluster, namespace=session.namespace)
    try:
        ref = session.job(name)
    except NotFound:
        pods = history.pods(job=name.rpartition("/")[2])
        # If several jobs had the name, use the last one.
        logs = read_upload_logs(_past(history, (pod for pod in pods if pod.owner == pods[0].owner)), {})
        if not logs:
            raise
        return _results(logs, f"{name} was deleted and did not upload results to a bucket")
    job = ref.read()
    output = (job.get("spec") or {}).get("output")
    if not output:
        hint = "set it to a bucket, a claim or a directory, and write to /output"
        raise MethodNotAllowed(f"{ref} has no results, because spec.output is not set; {hint}")
    if not output.get("bucket"):
        return _mounted_results(session, ref, output, is_here=is_here)
    logs = read_upload_logs(_present(session, ref), {})
    if not _is_enough(logs, job):
        past = history.pods(job=ref.name)
        logs = read_upload_logs(_past(history, (pod for pod in past if pod.owner == ref.uid)), logs)
    return _results(logs)


def read_upload_logs(uploaders: Iterable[Uploader], later: Mapping[ReplicaId, UploadLog]) -> dict[ReplicaId, UploadLog]:
    """Return the upload logs with older ones added, newest first, until each is complete; `later` holds newer logs."""
    logs = dict(later)
    for uploader in sorted(uploaders, key=lambda uploader: uploader.turn, reverse=True):
        log = logs.setdefault(uploader.place, UploadLog(replica=str(uploader.place)))
        if log.is_whole:
            continue
        try:
            data = b"".join(uploader.read())
        except (NotFound, BadRequest) as error:
            log.unread.append(error)
        else:
            log.add(data)
    return logs


def _is_enough(logs: Mapping[ReplicaId, UploadLog], job: Object) -> bool:
    """Return True if the upload logs of all replicas are complete."""
    rows = sum(len(task.get("replicas") or ()) for task in status_of(job).tasks)
    return sum(log.is_whole for log in logs.values()) >= rows


def _results(logs: Mapping[ReplicaId, UploadLog], silence: str = "") -> Results:
    """Return the combined results; raise NotFound if there are none, with `silence` as the message."""
    ordered = [logs[place] for place in sorted(logs)]
    messages = tuple((log.replica, sentence) for log in ordered if (sentence := log.sentence()))
    lost = [error for log in ordered for error in log.unread if isinstance(error, NotFound)]
    if not any(log.message or log.files for log in ordered):
        if lost:
            raise NotFound(f"{lost[0]}; the uploaded files are listed in .paceline/manifest.json next to them")
        if silence:
            raise NotFound(silence)
    files = tuple(log.files[name] for log in ordered for name in sorted(log.files))
    return Results(files=files, messages=messages)


def _present(session: Session, ref: JobRef) -> Iterator[Uploader]:
    for pod in ref.owned_pods():
        if (copy := _copies(labels_of(pod))) is not None:
            place, turn, ask = copy
            yield Uploader(place=place, turn=turn, read=partial(pod_log, session, name_of(pod), ask))


def _past(history: LogArchiveReader, pods: Iterable[DeletedPod]) -> Iterator[Uploader]:
    for pod in pods:
        if (copy := _copies(pod.labels)) is not None:
            place, turn, ask = copy
            yield Uploader(place=place, turn=turn, read=partial(history.pod_log, pod, ask))


def _copies(labels: Mapping[str, str]) -> tuple[ReplicaId, tuple[bool, int], LogOptions] | None:
    """Return from a pod's labels whose output it uploads, its order, and its log options; None for other pods."""
    errand, attempt = labels.get(well_known_labels.ERRAND, ""), labels.get(well_known_labels.ATTEMPT, "0")
    role, index = labels.get(well_known_labels.REPLICA_TYPE, ""), labels.get(well_known_labels.REPLICA_INDEX, "")
    if errand.startswith(FLUSH):
        role, _, index = errand.removeprefix(FLUSH).rpartition("-")
    if not role or not index.isdigit() or not attempt.isdigit():
        return None
    ask = LogOptions(is_followed=False, container="" if errand else KEEPER)
    return ReplicaId(role, int(index)), (bool(errand), int(attempt)), ask


def _mounted_results(session: Session, ref: JobRef, output: Mapping[str, Any], *, is_here: bool) -> Results:
    location = locate_results(session, ref.name, output, is_here=is_here)
    message = f"results are in {location.where}"
    if location.folder is None:
        return Results(messages=(("", f"{message}; they can be listed only if that is a folder of this machine"),))
    return Results(files=tuple(files_below(location.folder)), messages=(("", message),))
