"""Jobs as slim rows for the list: arrays in the order of COLUMNS, which console/src/app/rows.ts has too."""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.quantity import parse
from paceline.model import well_known_labels
from paceline.model.job_status import ConditionType, Phase
from paceline.presentation.failure_advice import headline_of
from paceline.presentation.job_summary import phase_of

COLUMNS = (
    *("uid", "namespace", "name", "kind", "phase", "reason", "created", "started", "ended", "replicas"),
    *("cpuRequest", "cpuLimit", "memoryRequest", "memoryLimit", "devices", "queue", "priority", "labels"),
    *("app", "revision", "tensorboard", "restarts", "progress"),
)

# Longer reasons are cut: the page of the job has all of it.
MAX_REASON = 300
# Phases of replicas that count as ready.
READY = frozenset({"Running", "Succeeded"})
# Labels that every object of ours has, or that have a column of their own.
HIDDEN_LABELS = frozenset({well_known_labels.APP, well_known_labels.REVISION})

Amounts = dict[str, Decimal]
Row = list[Any]
# Replica specs, each with its type and its number of replicas.
Sizes = list[tuple[str, int, Mapping[str, Any]]]


def row_of(job: Object) -> Row:
    """Return the row of a job of any kind; parts that are malformed are left empty."""
    metadata, spec, status = _mapping(job.get("metadata")), _mapping(job.get("spec")), _mapping(job.get("status"))
    labels = _mapping(metadata.get("labels"))
    sizes = _sizes(spec)
    replicas = _replicas(status) or {kind: (0, count) for kind, count, _ in sizes}
    requests, limits = _totals(sizes, replicas)
    scheduler = _mapping(_mapping(spec.get("scheduler")).get("t9kScheduler"))
    annotations = _mapping(metadata.get("annotations"))
    return [
        metadata.get("uid") or "",
        metadata.get("namespace") or "",
        metadata.get("name") or "",
        job.get("kind") or "",
        phase_of({"status": status}).value,
        _reason(job, status),
        metadata.get("creationTimestamp") or "",
        status.get("startTime") or "",
        status.get("completionTime") or "",
        replicas,
        _number(requests.get("cpu")),
        _number(limits.get("cpu")),
        _number(requests.get("memory")),
        _number(limits.get("memory")),
        {name: _number(amount) for name, amount in limits.items() if "/" in name},
        scheduler.get("queue") or labels.get(well_known_labels.QUEUE) or "",
        str(scheduler.get("priority") or annotations.get(well_known_labels.QUEUE_PRIORITY) or ""),
        {name: text for name, text in labels.items() if name not in HIDDEN_LABELS},
        labels.get(well_known_labels.APP, ""),
        labels.get(well_known_labels.REVISION, ""),
        _tensorboard(status),
        _count(status.get("backoffCount")),
        None,
    ]


def _replicas(status: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the ready and all replicas of each type, as the status has them."""
    counts = {}
    for task in _mappings(status.get("tasks")):
        replicas = _mappings(task.get("replicas"))
        ready = [replica for replica in replicas if replica.get("phase") in READY]
        counts[str(task.get("type") or "")] = (len(ready), len(replicas))
    return counts


def _totals(sizes: Sizes, replicas: Mapping[str, tuple[int, int]]) -> tuple[Amounts, Amounts]:
    """Return the requests and limits of all replicas together, straight from the templates of the spec.

    A request defaults to the limit. The job is not expanded, so a launcher without a template does not count.
    """
    requests: Amounts = {}
    limits: Amounts = {}
    for kind, written, replica in sizes:
        count = replicas[kind][1] if kind in replicas else written
        for container in _containers(replica):
            resources = _mapping(container.get("resources"))
            limit = _mapping(resources.get("limits"))
            _add(limits, limit, count)
            _add(requests, {**limit, **_mapping(resources.get("requests"))}, count)
    return requests, limits


def _sizes(spec: Mapping[str, Any]) -> Sizes:
    """Return every replica spec with its type and its number of replicas."""
    # A BeamJob has one template and no number of replicas.
    written = (*_mappings(spec.get("replicaSpecs")), spec.get("worker"), _mapping(spec.get("jobTemplate")).get("spec"))
    return [
        (str(replica.get("type") or "worker"), _count(replica.get("replicas", 1)), replica)
        for replica in written
        if isinstance(replica, dict)
    ]


def _containers(replica: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _mappings(_mapping(_mapping(replica.get("template")).get("spec")).get("containers"))


def _add(totals: Amounts, amounts: Mapping[str, Any], count: int) -> None:
    for name, amount in amounts.items():
        totals[name] = totals.get(name, Decimal(0)) + _quantity(str(amount)) * count


@lru_cache(maxsize=4096)
def _quantity(text: str) -> Decimal:
    """Return a quantity; nothing if it is malformed. The same few amounts are in most jobs."""
    try:
        return parse(text)
    except ValueError:
        return Decimal(0)


def _number(amount: Decimal | None) -> int | float:
    if not amount:
        return 0
    integer = int(amount)
    return integer if integer == amount else float(amount)


def _reason(job: Object, status: Mapping[str, Any]) -> str:
    """Return why the job is not running or has failed; reading the whole status is left out where nothing can be."""
    phase = status.get("phase")
    if phase == Phase.SUCCEEDED:
        return ""
    if phase != Phase.FAILED and not status.get("waiting") and not _has_failed_replica(status):
        return ""
    return headline_of({**job, "status": status})[:MAX_REASON]


def _has_failed_replica(status: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == ConditionType.REPLICA_FAILURE and condition.get("status") == "True"
        for condition in _mappings(status.get("conditions"))
    )


def _tensorboard(status: Mapping[str, Any]) -> str:
    return str(_mapping(_mapping(status.get("tensorboard")).get("dependent")).get("name") or "")


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
