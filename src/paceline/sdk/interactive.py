"""A handle to a TensorBoard or notebook."""

from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.meta import Object
from paceline.client.interface import PODS, Select
from paceline.client.sync import DirectCluster
from paceline.model.well_known_labels import OWNER_KIND, OWNER_NAME
from paceline.presentation.actions import ActionPlan, resume_service, suspend_service
from paceline.sdk import actions
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

    def read(self) -> Object:
        """Return the object; raise NotFound if it was deleted."""
        return self.cluster.get(self.kind.where, self.namespace, self.name)

    def pause(self) -> None:
        """Stop its pod and keep the object; `resume` starts it again."""
        self._act(suspend_service(self.read()))

    def resume(self, now: datetime) -> None:
        """Resume it, whether it was suspended by a user or because it was idle."""
        self._act(resume_service(self.read(), now))

    def _act(self, plan: ActionPlan) -> None:
        actions.patch(self.cluster, self.kind.where, (self.namespace, self.name), plan, subject=str(self))
