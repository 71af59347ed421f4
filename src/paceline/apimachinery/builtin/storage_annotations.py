"""Annotations, finalizers and names of claims, persistent volumes and storage classes."""

from pathlib import PurePosixPath

from paceline.apimachinery.meta import Object, annotations_of, name_of

# Finalizers of a claim that a pod uses, and of a volume that is bound.
PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
# The provisioner that creates a folder for a claim.
FOLDERS = "paceline.dev/folder"
# On a claim: the binding is complete. On both: the controller chose the other one, not a user.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
# On a volume: its provisioner. On a claim: the provisioner that must create a volume.
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONERS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
# On a claim: why it has no volume yet. Kubernetes reports this in events only, which no program reads.
WAITING = "paceline.dev/waiting"
# Provisioned volumes are named after the uid of their claim; folders end in its first letters.
VOLUME_PREFIX = "pvc-"
UID_LETTERS = 8


def removal_fault(volume: Object, root: PurePosixPath) -> str:
    """Return why the folder of a volume must not be deleted; "" if this cluster provisioned it for this volume.

    The annotation alone is not enough: the manifest may be a copy of another volume's, or come from another cluster.
    The folder must also be directly below `root`, and carry the uid that is in the volume's name.
    """
    path = str((volume["spec"].get("hostPath") or {}).get("path") or "")
    folder, uid = PurePosixPath(path), name_of(volume).removeprefix(VOLUME_PREFIX)
    if annotations_of(volume).get(PROVISIONED_BY) != FOLDERS or not path:
        return f"the data of volume {name_of(volume)} is not deleted: this cluster did not provision it"
    if folder.parent != root or folder.name in ("", ".", ".."):
        return f"{path} is not deleted: it is not directly below {root}, where this cluster creates folders of claims"
    if not name_of(volume).startswith(VOLUME_PREFIX) or not uid or not folder.name.endswith(f"-{uid[:UID_LETTERS]}"):
        return f"{path} is not deleted: this cluster did not create it for volume {name_of(volume)}"
    return ""


def is_default_class(storage_class: Object) -> bool:
    """Return whether claims without a class get this one."""
    annotations = annotations_of(storage_class)
    return "true" in {annotations.get(DEFAULT_CLASS), annotations.get(_BETA_DEFAULT_CLASS)}
