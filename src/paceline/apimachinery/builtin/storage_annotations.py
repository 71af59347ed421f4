"""What storage classes say to claims, and the words by which volumes and claims remember what was done with them."""

from pathlib import PurePosixPath

from paceline.apimachinery.meta import Object, annotations_of, name_of

# Holds a claim that is to go until no pod uses it any more, and a volume until no claim has it.
PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_OLD_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
# What makes a folder of a claim: the name by which classes ask for it.
FOLDERS = "paceline.dev/folder"
# On a claim: the binding was written whole. On both: the controller chose, not a person.
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
# On a volume: who made it. On a claim: who is to make one.
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONERS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
# On a claim: why it has no volume yet; Kubernetes says it in events only, which no program reads.
WAITING = "paceline.dev/waiting"


# What the names of our volumes begin with; the uid of the claim that each was made for follows.
VOLUME_PREFIX = "pvc-"
UID_LETTERS = 8


def removal_fault(volume: Object, root: PurePosixPath) -> str:
    """Say why the folder of a volume is not ours to remove; nothing when our class made it for this very volume.

    An annotation alone is no proof: a manifest may be a copy of another volume's, or come from a cluster whose folders
    lie elsewhere. The folder lies directly below our root, and carries the uid that the volume's name carries.
    """
    path = str((volume["spec"].get("hostPath") or {}).get("path") or "")
    folder, uid = PurePosixPath(path), name_of(volume).removeprefix(VOLUME_PREFIX)
    if annotations_of(volume).get(PROVISIONED_BY) != FOLDERS or not path:
        return f'error getting deleter volume plugin for volume "{name_of(volume)}": no deletable volume plugin matched'
    if folder.parent != root or folder.name in ("", ".", ".."):
        return f"{path} is kept: it is not a folder directly below {root}, where this cluster makes those of claims"
    if not name_of(volume).startswith(VOLUME_PREFIX) or not uid or not folder.name.endswith(f"-{uid[:UID_LETTERS]}"):
        return f"{path} is kept: this cluster did not make it for the volume {name_of(volume)}"
    return ""


def is_default_class(storage_class: Object) -> bool:
    """Tell whether claims that name no class get this one."""
    said = annotations_of(storage_class)
    return "true" in {said.get(DEFAULT_CLASS), said.get(_OLD_DEFAULT_CLASS)}
