"""All attempts of a job's replicas: from pods that exist, and from the events of pods that are gone."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.apimachinery.event_manifest import last_seen
from paceline.apimachinery.meta import Object, uid_of
from paceline.apimachinery.pods import container_statuses_of
from paceline.apimachinery.timestamps import from_wire
from paceline.kinds.registry import stem_of
from paceline.model.gang import ReplicaId
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ReplicaPhase, ReplicaRecord
from paceline.presentation.events import in_order
from paceline.presentation.job_summary import created_of, replica_specs
from paceline.presentation.replica_pods import replica_pod

# How a pod that was stopped from outside ends: its exit code was never read.
STOPPED = "Stopped"
ASSIGNED = re.compile(r"Successfully assigned \S+ to (\S+)")
CONTAINER = re.compile(r"spec\.containers\{([^}]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpan:
    """A period of an attempt in one state: Waiting, Running, or the state in which it ended."""

    state: str
    start: datetime
    # None while the state lasts.
    end: datetime | None
    exit_code: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a replica."""

    place: ReplicaId
    number: int
    pod: str
    uid: str = ""
    # Whether its pod still exists, so that the API has its log.
    exists: bool = True
    is_leader: bool = False
    # A pod's phase, or Stopped if it is gone and its end is not known.
    phase: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    restarts: int = 0
    node: str = ""
    address: str = ""
    # Names of its containers, in the order in which they start; init containers first.
    init_containers: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    created: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    # The exit before the last restart inside the same pod.
    previous: Mapping[str, Any] | None = None


def is_about(event: Object, job: Object) -> bool:
    """Return whether an event is about a job or one of its pods, also one that is gone."""
    about = event.get("involvedObject") or {}
    if about.get("uid") == uid_of(job):
        return True
    return about.get("kind") == "Pod" and str(about.get("name") or "").startswith(f"{stem_of(job)}-")


def attempts_of(job: Object, status: JobStatus, pods: Iterable[Object], events: Iterable[Object]) -> list[Attempt]:
    """Return every known attempt of a job's replicas, ordered by replica and number."""
    present = {attempt.pod: attempt for pod in pods if (attempt := _from_pod(pod)) is not None}
    gone = _from_events(job, status, events, skip=present)
    records = {record.place: record for record in status.replicas}
    attempts = [*present.values(), *(_with_record(attempt, records.get(attempt.place)) for attempt in gone)]
    attempts.sort(key=lambda attempt: (attempt.place, attempt.number))
    return [
        _with_end(attempt, attempts[index + 1 : index + 2], status.completion_time)
        for index, attempt in enumerate(attempts)
    ]


def spans_of(attempt: Attempt) -> list[AttemptSpan]:
    """Return the periods of an attempt: waiting, then running until it ended or still."""
    spans: list[AttemptSpan] = []
    previous = attempt.previous or {}
    first_start = _moment(previous.get("startedAt")) or attempt.started
    if attempt.created is not None and first_start != attempt.created:
        spans.append(AttemptSpan(state="Waiting", start=attempt.created, end=first_start or attempt.ended))
    if previous and (start := _moment(previous.get("startedAt"))) is not None:
        end = _moment(previous.get("finishedAt")) or attempt.started
        code = previous.get("exitCode")
        spans.append(AttemptSpan(state="Failed" if code else "Succeeded", start=start, end=end, exit_code=code))
    if attempt.started is not None:
        state = "Running" if attempt.ended is None else attempt.phase
        spans.append(
            AttemptSpan(
                state=state,
                start=attempt.started,
                end=attempt.ended,
                exit_code=attempt.exit_code,
                reason=attempt.reason,
            )
        )
    return spans


def _from_pod(pod: Object) -> Attempt | None:
    member = replica_pod(pod)
    if member is None:
        return None
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    last = [(container.get("lastState") or {}).get("terminated") for container in container_statuses_of(pod)]
    return Attempt(
        place=member.place,
        number=member.attempt,
        pod=member.name,
        uid=uid_of(pod),
        is_leader=member.is_leader,
        phase="Terminating" if member.is_deleting and not member.is_final else member.phase,
        exit_code=member.exit_code,
        reason=member.reason,
        message=member.message,
        restarts=member.restarts,
        node=member.node,
        address=str(status.get("podIP") or ""),
        init_containers=_names(spec.get("initContainers")),
        containers=_names(spec.get("containers")),
        created=created_of(pod),
        started=member.started,
        ended=member.ended,
        previous=next((end for end in last if end), None),
    )


def _from_events(
    job: Object, status: JobStatus, events: Iterable[Object], *, skip: Mapping[str, Attempt]
) -> Iterator[Attempt]:
    """Yield the attempts whose pods are gone and whose events are left."""
    by_pod: dict[str, list[Object]] = {}
    for event in in_order(events):
        about = event.get("involvedObject") or {}
        if about.get("kind") == "Pod" and about.get("name") not in skip:
            by_pod.setdefault(str(about.get("name")), []).append(event)
    roles = {str(replica.get("type")) for replica in replica_specs(job)}
    roles |= {record.place.role for record in status.replicas}
    pattern = re.compile(rf"{re.escape(stem_of(job))}-(?P<role>.+?)-(?P<index>\d+)(?:-r(?P<number>\d+))?")
    for name, pod_events in by_pod.items():
        match = pattern.fullmatch(name)
        if match and match["role"] in roles:
            place = ReplicaId(match["role"], int(match["index"]))
            yield _gone(place, int(match["number"] or 0), pod_events)


def _gone(place: ReplicaId, number: int, events: list[Object]) -> Attempt:
    attempt = Attempt(place=place, number=number, pod=str(events[0]["involvedObject"]["name"]), phase=STOPPED)
    attempt = replace(attempt, exists=False, created=_first(events[0]), uid=_uid(events[0]))
    containers: dict[str, None] = {}
    for event in events:
        match event.get("reason"):
            case "Scheduled" if assigned := ASSIGNED.search(str(event.get("message"))):
                attempt = replace(attempt, node=assigned[1])
            case "Started" if name := CONTAINER.fullmatch(str(event["involvedObject"].get("fieldPath"))):
                containers[name[1]] = None
                attempt = replace(attempt, started=attempt.started or _first(event))
            case "Killing":
                attempt = replace(attempt, ended=_moment(last_seen(event)))
    return replace(attempt, containers=tuple(containers))


def _with_record(attempt: Attempt, record: ReplicaRecord | None) -> Attempt:
    """Return a gone attempt with what the job's status remembers of it."""
    if record is None or record.attempt != attempt.number:
        return attempt
    code = next((container.exit_code for container in record.containers if container.exit_code is not None), None)
    phase = record.phase.value if record.phase.is_final else attempt.phase
    reason = "" if record.phase is ReplicaPhase.DELETED else record.reason
    return replace(attempt, phase=phase, exit_code=code, reason=reason, message=record.message)


def _with_end(attempt: Attempt, following: list[Attempt], completed: datetime | None) -> Attempt:
    """Return an attempt of a pod that is gone with an end: at the latest when the next one began."""
    if attempt.exists or attempt.ended is not None:
        return attempt
    latest_end = following[0].created if following and following[0].place == attempt.place else completed
    return replace(attempt, ended=latest_end)


def _names(containers: Any) -> tuple[str, ...]:
    return tuple(str(container.get("name")) for container in containers or ())


def _uid(event: Object) -> str:
    return str(event["involvedObject"].get("uid") or "")


def _first(event: Object) -> datetime | None:
    return _moment(event.get("firstTimestamp") or last_seen(event))


def _moment(text: object) -> datetime | None:
    try:
        return from_wire(str(text)) if text else None
    except ValueError:
        return None
