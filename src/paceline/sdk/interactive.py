"""A handle to a TensorBoard or notebook."""

from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.meta import Object
from paceline.apimachinery.timestamps import to_wire_micro
from paceline.client.interface import PODS, Select
from paceline.client.sync import DirectCluster
from paceline.errors import BadRequest
from paceline.model.interactive import ServicePhase, ServiceStatus
from paceline.model.well_known_labels import OPENED_AT, OWNER_KIND, OWNER_NAME
from paceline.sdk.discovery import ResourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRef:
    """A handle to one TensorBoard or notebook."""

    kind: ResourceKind
    namespace: str
    name: str
    cluster: DirectCluster

    def __str__(self) -> str:
        return f"{self.kind.singular}/{self.name}"

    def pods(self) -> tuple[Object, ...]:
        """Return its pods: one or none."""
        labels = f"{OWNER_NAME}={self.name},{OWNER_KIND}={self.kind.kind}"
        return self.cluster.list(PODS, Select(namespace=self.namespace, labels=labels)).items

    def pause(self) -> None:
        """Stop its pod and keep the object; `resume` starts it again."""
        self.cluster.patch(self.kind.where, (self.namespace, self.name), {"spec": {"suspend": True}})

    def resume(self, now: datetime) -> None:
        """Resume it, whether it was suspended by a user or because it was idle."""
        service = self.cluster.get(self.kind.where, self.namespace, self.name)
        status = ServiceStatus.from_wire(service.get("status") or {})
        # Use the cluster's clock, because ours may differ: any time since the suspension will do.
        moment = status.suspended_at or now
        patch = {"spec": {"suspend": False}, "metadata": {"annotations": {OPENED_AT: to_wire_micro(moment)}}}
        self.cluster.patch(self.kind.where, (self.namespace, self.name), patch)


def is_paused(service: Object) -> bool:
    """Return True if a TensorBoard or notebook is paused and has no pod; False if its status is malformed."""
    try:
        return ServiceStatus.from_wire(service.get("status") or {}).phase is ServicePhase.PAUSED
    except BadRequest:
        return False
