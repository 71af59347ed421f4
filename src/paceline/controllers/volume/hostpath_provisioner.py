"""The volumes that claims are given, the claims that pods bring along, and which pods use which claims."""

from pathlib import PurePosixPath

from paceline.apimachinery.builtin.storage_annotations import FOLDERS, PROVISIONED_BY, UID_LETTERS, VOLUME_PREFIX
from paceline.apimachinery.meta import Object, name_of, namespace_of, owned_by, uid_of
from paceline.apimachinery.pods import claims_of, is_terminal


def folder_of(claim: Object) -> str:
    """Return the folder of a claim: readable for people, and never that of an older claim of the same name."""
    return f"{namespace_of(claim)}-{name_of(claim)}-{uid_of(claim)[:UID_LETTERS]}"


def reference_to(claim: Object) -> Object:
    """Return how a volume names its claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "resourceVersion": str(claim["metadata"].get("resourceVersion") or ""),
    }


def volume_for(claim: Object, chosen: Object, root: PurePosixPath) -> Object:
    """Return the volume that a claim is given: a folder, kept or removed with the claim as the class says."""
    spec = claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{VOLUME_PREFIX}{uid_of(claim)}", "annotations": {PROVISIONED_BY: FOLDERS}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec.get("accessModes") or ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": chosen.get("reclaimPolicy") or "Delete",
            "storageClassName": name_of(chosen),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "hostPath": {"path": str(root / folder_of(claim)), "type": "DirectoryOrCreate"},
            "claimRef": reference_to(claim),
        },
    }


def ephemeral_claims(pod: Object) -> tuple[Object, ...]:
    """Return the claims that a pod brings along; they go with it."""
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **{
                    part: dict(value)
                    for part, value in (volume["ephemeral"]["volumeClaimTemplate"].get("metadata") or {}).items()
                    if part in ("labels", "annotations") and value
                },
                "name": f"{name_of(pod)}-{volume['name']}",
                "namespace": namespace_of(pod),
                "ownerReferences": [owned_by({"apiVersion": "v1", "kind": "Pod", **pod})],
            },
            "spec": dict(volume["ephemeral"]["volumeClaimTemplate"]["spec"]),
        }
        for volume in pod["spec"].get("volumes") or ()
        if (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    )


def claims_used(pod: Object) -> tuple[str, ...]:
    """Return the claims of a pod that has not ended."""
    return () if is_terminal(pod) else tuple(claim.name for claim in claims_of(pod))


def is_used(claim: Object, pod: Object) -> bool:
    """Return whether a pod holds a claim that is to go: only once it has a node, for no node starts it later."""
    if namespace_of(pod) != namespace_of(claim) or not pod["spec"].get("nodeName"):
        return False
    return name_of(claim) in claims_used(pod)
