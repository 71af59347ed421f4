"""What storage classes say to claims, and the words by which volumes and claims remember what was done with them."""

from paceline.objects.meta import Object, annotations_of

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


def is_default_class(storage_class: Object) -> bool:
    """Tell whether claims that name no class get this one."""
    said = annotations_of(storage_class)
    return "true" in {said.get(DEFAULT_CLASS), said.get(_OLD_DEFAULT_CLASS)}
