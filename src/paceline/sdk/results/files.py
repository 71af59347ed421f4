"""The output files of a job, while it runs and after its pods are deleted.

Uploads to a bucket are read from the logs of the uploading containers, so that users need no key of the bucket.
Files on a claim or in a folder are not copied, and are listed where they are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from paceline.apimachinery.meta import Object, controller_of, labels_of, name_of
from paceline.client.interface import PODS, Select
from paceline.errors import BadRequest, MethodNotAllowed, NotFound
from paceline.model import well_known_labels
from paceline.model.gang import FLUSH, KEEPER, ReplicaId
from paceline.sdk.client import Session
from paceline.sdk.job import JobRef
from paceline.sdk.job_summary import status_of
from paceline.sdk.logs.archived import History, PastPod
from paceline.sdk.logs.pod import pod_log
from paceline.sdk.logs.sources import LogOptions
from paceline.sdk.results.mounted import files_below, locate_results
from paceline.sdk.results.upload_log import ResultFile, UploadLog, in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The known files, and messages about one replica's files, or (replica is empty) about all."""

    files: tuple[ResultFile, ...] = ()
    said: tuple[tuple[str, str], ...] = ()


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
    history = History(cluster=session.cluster, namespace=session.namespace)
    try:
        ref = session.job(name)
    except NotFound:
        pods = history.pods(job=name.rpartition("/")[2])
        # If several jobs had the name, use the last one.
        logs = hear(_past(history, (pod for pod in pods if pod.owner == pods[0].owner)), {})
        if not logs:
            raise
        return _results(logs, f"{name} is gone, and kept no results in a bucket")
    job = ref.read()
    output = (job.get("spec") or {}).get("output")
    if not output:
        hint = "name a bucket, a claim or a directory there, and write to /output"
        raise MethodNotAllowed(f"{ref} keeps no results, because it has no spec.output; {hint}")
    if not output.get("bucket"):
        return _mounted_results(session, ref, output, is_here=is_here)
    logs = hear(_present(session, ref), {})
    if not _is_enough(logs, job):
        past = history.pods(job=ref.name)
        logs = hear(_past(history, (pod for pod in past if pod.owner == ref.uid)), logs)
    return _results(logs)


def hear(uploaders: Iterable[Uploader], later: Mapping[ReplicaId, UploadLog]) -> dict[ReplicaId, UploadLog]:
    """Return the upload logs with older ones added, newest first, until each is complete; `later` holds newer logs."""
    logs = dict(later)
    for uploader in sorted(uploaders, key=lambda uploader: uploader.turn, reverse=True):
        log = logs.setdefault(uploader.place, UploadLog(member=str(uploader.place)))
        if log.is_whole:
            continue
        try:
            data = b"".join(uploader.read())
        except (NotFound, BadRequest) as error:
            log.unread.append(error)
        else:
            log.hear(data)
    return logs


def _is_enough(logs: Mapping[ReplicaId, UploadLog], job: Object) -> bool:
    """Return True if the upload logs of all replicas are complete."""
    rows = sum(len(task.get("replicas") or ()) for task in status_of(job).tasks)
    return sum(log.is_whole for log in logs.values()) >= rows


def _results(logs: Mapping[ReplicaId, UploadLog], silence: str = "") -> Results:
    """Return the combined results; raise NotFound if there are none, with `silence` as the message."""
    ordered = [logs[place] for place in sorted(logs)]
    messages = tuple((log.member, sentence) for log in ordered if (sentence := log.sentence()))
    lost = [error for log in ordered for error in log.unread if isinstance(error, NotFound)]
    if not any(log.message or log.files for log in ordered):
        if lost:
            raise NotFound(f"{lost[0]}; which files were kept is in .paceline/manifest.json beside them")
        if silence:
            raise NotFound(silence)
    return Results(files=in_order(ordered), said=messages)


def _present(session: Session, ref: JobRef) -> Iterator[Uploader]:
    select = Select(namespace=ref.namespace, labels=f"{well_known_labels.OWNER_NAME}={ref.name}")
    for pod in session.cluster.list(PODS, select).items:
        if (controller_of(pod) or {}).get("uid") == ref.uid and (copy := _copies(labels_of(pod))) is not None:
            place, turn, ask = copy
            yield Uploader(place=place, turn=turn, read=partial(pod_log, session, name_of(pod), ask))


def _past(history: History, pods: Iterable[PastPod]) -> Iterator[Uploader]:
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
    message = f"results lie in {location.where}"
    if location.folder is None:
        return Results(said=(("", f"{message}; they are listed only where that is a folder of this machine"),))
    return Results(files=tuple(files_below(location.folder)), said=(("", message),))
