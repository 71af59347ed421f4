"""What storage classes say to claims."""

from paceline.objects.meta import Object, annotations_of

# Holds a claim that is to go until no pod uses it any more.
PROTECTION = "kubernetes.io/pvc-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_OLD_DEFAULT_CLASS = "storageclass.beta.kubernetes.io/is-default-class"


def is_default_class(storage_class: Object) -> bool:
    """Tell whether claims that name no class get this one."""
    said = annotations_of(storage_class)
    return "true" in {said.get(DEFAULT_CLASS), said.get(_OLD_DEFAULT_CLASS)}
