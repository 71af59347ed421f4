"""Deleted pods whose logs a node has archived."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.presentation.replica_pods import ReplicaPod, replica_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPod:
    """A deleted pod."""

    node: str
    namespace: str
    name: str
    uid: str
    job: str
    # The uid of its job; empty for a pod without a job.
    owner: str
    gone_at: str
    # When its logs were removed; empty if they still exist.
    pruned_at: str
    labels: Mapping[str, str]
    # None if its labels do not name a replica.
    member: ReplicaPod | None


def deleted_pod(node: str, entry: Mapping[str, Any]) -> DeletedPod:
    """Return a deleted pod from an entry of the history of a node."""
    owner: Mapping[str, Any] = entry.get("owner") or {}
    labels: Mapping[str, str] = entry.get("labels") or {}
    as_pod: Object = {"metadata": {"name": entry["pod"], "labels": labels}}
    return DeletedPod(
        node=node,
        namespace=str(entry["namespace"]),
        name=str(entry["pod"]),
        uid=str(entry["uid"]),
        job=str(entry.get("job") or ""),
        owner=str(owner.get("uid") or ""),
        gone_at=str(entry["goneAt"]),
        pruned_at=str(entry.get("prunedAt") or ""),
        labels=labels,
        member=replica_pod(as_pod),
    )
