"""What a job waits for on a cluster whose scheduler says less than ours."""

from typing import Any

from paceline.apimachinery.meta import Object, key_of, uid_of
from paceline.client.interface import CLAIMS, PODS
from tests.kube.stage import OpenTransport, Stage, live
from tests.unit.kinds.manifests import pytorch, replica, template

TEXT = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."


async def cannot_be_placed(stage: Stage, pod: Object) -> None:
    """Write what Kubernetes' scheduler writes about a pod whose claims have no volumes."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": TEXT}
    patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
    await stage.people.patch(PODS, key_of(pod), patch, subresource="status")


def test_a_claim_without_a_volume_is_named_with_its_storage_class(opens: OpenTransport) -> None:
    async def act(stage: Stage) -> None:
        stage.player.node = ""
        spec: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        slow = {
            "metadata": {"name": "slow", "namespace": stage.namespace},
            "spec": {**spec, "storageClassName": "fast"},
        }
        await stage.people.create(CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **slow})
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "slow"}}]
        job = await stage.submit(pytorch(replica(template=template(volumes=volumes))))

        async def are_two() -> bool:
            return len(stage.player.live()) == 2

        await stage.until(are_two)
        for pod in stage.player.live():
            await cannot_be_placed(stage, pod)

        async def is_named() -> bool:
            waiting = str((await stage.read(job))["status"].get("waiting"))
            return waiting.endswith("PersistentVolumeClaims; claim slow, of storage class fast, is not bound")

        await stage.until(is_named)

    live(opens, act)
