"""Which claims keep a pod from a node: it gets one when all that it claims has volumes."""

from collections.abc import Mapping

from paceline.apimachinery.builtin.storage_annotations import WAITING
from paceline.apimachinery.meta import Key, Object, annotations_of, is_deleting, namespace_of
from paceline.apimachinery.pods import claims_of

# The words of Kubernetes' own scheduler, by which people search.
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def lack_of(pod: Object, claims: Mapping[Key, Object]) -> str:
    """Return which claim of a pod has no volume, and why; empty when all are bound."""
    for reference in claims_of(pod):
        name = reference.name
        claim = claims.get((namespace_of(pod), name))
        if claim is None and reference.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if is_deleting(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        phase = (claim.get("status") or {}).get("phase")
        if phase == "Lost":
            volume = claim["spec"].get("volumeName") or ""
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if phase != "Bound":
            reason = annotations_of(claim).get(WAITING, "")
            return f"{UNBOUND} ({name}: {reason})" if reason else UNBOUND
    return ""
