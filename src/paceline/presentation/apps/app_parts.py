"""The parts of an application: its services, its containers, and the routes to its TensorBoards.

A service is what people of the model-training service call one: a replica of the current job, or a TensorBoard.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, controller_of, labels_of, name_of, uid_of
from paceline.apimachinery.pods import container_statuses_of, containers_of, is_terminal
from paceline.kinds.apps.expand import stem_of_app
from paceline.model import well_known_labels
from paceline.model.interactive import ServicePhase, service_name
from paceline.presentation.apps.app_summary import service_status_of
from paceline.presentation.replica_pods import replica_pod

BOARD = "tensorboard"
# A TensorBoard of one worker: NAME-tensorboard0 belongs to worker 0.
OF_WORKER = re.compile(rf"{BOARD}(?P<index>\d+)")
STATES = ("running", "terminated", "waiting")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppObjects:
    """An application and everything in its namespace that may belong to it."""

    app: Object
    records: tuple[Object, ...] = ()
    jobs: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    services: tuple[Object, ...] = ()
    tensorboards: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()

    def owned_by(self, owner: Object, objects: Iterable[Object]) -> tuple[Object, ...]:
        """Return the objects that another object controls."""
        uid = uid_of(owner)
        return tuple(obj for obj in objects if (controller_of(obj) or {}).get("uid") == uid)

    @property
    def boards(self) -> tuple[Object, ...]:
        """Return the application's TensorBoards: the one of all workers first, then by worker."""
        stem = stem_of_app(name_of(self.app))
        return tuple(
            sorted(
                self.owned_by(self.app, self.tensorboards),
                key=lambda board: (name_of(board) != stem, len(name_of(board)), name_of(board)),
            )
        )


def board_title(app: Object, board: Object) -> tuple[str, int | None]:
    """Return the short name of a TensorBoard, and the worker it belongs to; None for that of all workers."""
    suffix = name_of(board).removeprefix(f"{stem_of_app(name_of(app))}-")
    match = OF_WORKER.fullmatch(suffix)
    return (suffix, int(match["index"])) if match else (BOARD, None)


def routes_of(objects: AppObjects) -> list[Row]:
    """Return one route per TensorBoard: tensorboardN shows worker N."""
    rows = []
    for board in objects.boards:
        title, worker = board_title(objects.app, board)
        status = service_status_of(board)
        rows.append(
            {
                "name": title,
                "tensorboard": name_of(board),
                "uid": uid_of(board),
                "worker": worker,
                "phase": status.phase.value,
                "waiting": status.waiting,
                "address": status.address,
                "folders": list(_folders(board)),
            }
        )
    return rows


def _folders(board: Object) -> Iterator[str]:
    """Yield where the event files of a TensorBoard are."""
    place = (board.get("spec") or {}).get("logDir") or {}
    for claim in place.get("pvc") or ():
        for folder in claim.get("subPath") or ("",):
            yield f"{claim.get('name')}/{folder}".rstrip("/")
    yield from map(str, (place.get("s3") or {}).get("uri") or ())


def services_of(objects: AppObjects, job: Mapping[str, Any] | None, job_object: Object | None) -> list[Row]:
    """Return one row per replica of the current job, and one per TensorBoard."""
    replicas = list(_replicas(objects, job, job_object)) if job and job_object else []
    return [*replicas, *(_board(objects, board) for board in objects.boards)]


def _replicas(objects: AppObjects, job: Mapping[str, Any], job_object: Object) -> Iterator[Row]:
    headless = next(iter(objects.owned_by(job_object, objects.services)), None)
    current = {(row["role"], row["index"]): row for row in job["replicas"] if row["isCurrent"]}
    is_wanted = job["phase"] not in ("Succeeded", "Failed", "Paused")
    for role in job["roles"]:
        states = {index: row for (name, index), row in current.items() if name == role["role"]}
        for index in range(max(role["replicas"], 1 + max(states, default=-1))):
            row = states.get(index)
            state = _state(job, row)
            yield {
                "name": f"{role['role']}-{index}",
                "role": role["role"],
                "kind": job["kind"],
                "object": job["name"],
                "state": state,
                "exitCode": row["exitCode"] if row else None,
                "reason": _reason(row),
                "desired": int(is_wanted),
                "running": int(state == "Running"),
                "restarts": (row["attempt"] + row["restarts"]) if row else 0,
                "service": name_of(headless) if headless else "",
                "address": row["address"] if row else "",
                "ports": [],
                "since": (row["ended"] or row["started"] or row["created"]) if row else job["facts"]["created"],
            }


def _reason(row: Mapping[str, Any] | None) -> str:
    return ": ".join(part for part in (row["reason"], row["message"]) if part) if row else ""


def _state(job: Mapping[str, Any], row: Mapping[str, Any] | None) -> str:
    """Return the state of a replica; one without a pod waits, or was stopped with its job."""
    if row is None:
        return "Stopped" if job["phase"] in ("Succeeded", "Failed", "Paused") else "Pending"
    return str(row["phase"])


def _board(objects: AppObjects, board: Object) -> Row:
    title, _ = board_title(objects.app, board)
    status, name = service_status_of(board), service_name(f"{BOARD}s", name_of(board))
    service = next((item for item in objects.owned_by(board, objects.services) if name_of(item) == name), None)
    pod = next(iter(objects.owned_by(board, objects.pods)), {})
    is_suspended = bool((board.get("spec") or {}).get("suspend")) or status.phase is ServicePhase.PAUSED
    return {
        "name": title,
        "role": BOARD,
        "kind": "TensorBoard",
        "object": name_of(board),
        "state": "Stopped" if status.phase is ServicePhase.PAUSED else status.phase.value,
        "exitCode": None,
        "reason": status.waiting,
        "desired": int(not is_suspended),
        "running": int(status.phase is ServicePhase.RUNNING),
        "restarts": sum(int(container.get("restartCount") or 0) for container in container_statuses_of(pod)),
        "service": name_of(service) if service else "",
        "address": status.address or str((pod.get("status") or {}).get("podIP") or ""),
        "ports": [int(port["port"]) for port in ((service or {}).get("spec") or {}).get("ports") or ()],
        "since": str((board.get("metadata") or {}).get("creationTimestamp") or "") or None,
    }


def containers_in(objects: AppObjects, job: Mapping[str, Any] | None, job_object: Object | None) -> list[Row]:
    """Return every container of the current job and the TensorBoards, also of pods that are gone."""
    pods = objects.owned_by(job_object, objects.pods) if job_object else ()
    rows = [row for pod in pods for row in _containers(pod, _place(pod), "job")]
    rows += [row for replica in (job or {}).get("replicas", ()) if not replica["exists"] for row in _gone(replica)]
    rows.sort(key=lambda row: (row["isStage"], row["role"], row["index"], row["attempt"]))
    for board in objects.boards:
        title, _ = board_title(objects.app, board)
        for pod in objects.owned_by(board, objects.pods):
            rows += _containers(pod, (title, BOARD, 0, 0), BOARD)
    return rows


def _place(pod: Object) -> tuple[str, str, int, int]:
    """Return the service, role, index and attempt that a pod of a job belongs to."""
    member = replica_pod(pod)
    if member is not None:
        return str(member.place), member.place.role, member.place.index, member.attempt
    errand = labels_of(pod).get(well_known_labels.ERRAND, "")
    return errand, errand, 0, 0


def _containers(pod: Object, place: tuple[str, str, int, int], group: str) -> Iterator[Row]:
    service, role, index, attempt = place
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    states = {str(container.get("name")): container for container in container_statuses_of(pod)}
    init = {str(container.get("name")) for container in spec.get("initContainers") or ()}
    for container in containers_of(pod):
        name = str(container.get("name"))
        yield {
            "id": f"{uid_of(pod)}/{name}",
            "container": name,
            "pod": name_of(pod),
            "uid": uid_of(pod),
            "service": service,
            "role": role,
            "index": index,
            "attempt": attempt,
            "group": group,
            "isStage": name in init,
            "exists": True,
            "image": str(container.get("image") or ""),
            "node": str(spec.get("nodeName") or ""),
            "address": str(status.get("podIP") or ""),
            "ports": [int(port["containerPort"]) for port in container.get("ports") or () if "containerPort" in port],
            **_container_state(states.get(name) or {}, pod),
        }


def _container_state(status: Mapping[str, Any], pod: Object) -> Row:
    states: Mapping[str, Any] = status.get("state") or {}
    kind = next((kind for kind in STATES if states.get(kind) is not None), "waiting")
    details: Mapping[str, Any] = states.get(kind) or {}
    code = details.get("exitCode")
    state_names = {"running": "Running", "waiting": "Pending", "terminated": "Failed" if code else "Succeeded"}
    # A container that has no status will never start in a pod that has ended.
    state = "Stopped" if not status and is_terminal(pod) else state_names[kind]
    return {
        "state": state,
        "exitCode": code,
        "reason": str(details.get("reason") or ""),
        "message": str(details.get("message") or ""),
        "restarts": int(status.get("restartCount") or 0),
        "started": details.get("startedAt"),
        "ended": details.get("finishedAt"),
    }


def _gone(replica: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the containers of a pod that is gone, as far as its events tell of them."""
    for name in replica["containers"]:
        yield {
            "id": f"{replica['uid']}/{name}",
            "container": name,
            "pod": replica["pod"],
            "uid": replica["uid"],
            "service": replica["replica"],
            **{field: replica[field] for field in ("role", "index", "attempt", "exists", "node", "address")},
            "group": "job",
            "isStage": False,
            "image": "",
            "ports": [],
            "state": replica["phase"],
            **{field: replica[field] for field in ("exitCode", "reason", "message", "restarts", "started", "ended")},
        }


def board_logs(objects: AppObjects) -> list[Row]:
    """Return the logs of the TensorBoards, as the page of a job has its own."""
    return [
        {
            "replica": row["service"],
            "attempt": 0,
            "pod": row["pod"],
            "uid": row["uid"],
            "node": row["node"],
            "container": row["container"],
            "isStage": row["isStage"],
            "isLeader": False,
            "isFailed": False,
            "exists": True,
            "isRunning": row["state"] == "Running",
            "restarts": row["restarts"],
            "started": row["started"],
            "ended": row["ended"],
        }
        for row in containers_in(objects, None, None)
    ]
