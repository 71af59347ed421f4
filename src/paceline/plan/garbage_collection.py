"""What happens to an object whose owners are deleted: the rules of Kubernetes' garbage collector."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.apimachinery.meta import Object, is_deleting, uid_of

# An object deleted with `--cascade=foreground` or `--cascade=orphan` waits with one of these.
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


class Standing(StrEnum):
    """The state of an owner."""

    SOLID = "Solid"
    # It is being deleted in the foreground, and waits for its dependents.
    WAITING = "Waiting"
    GONE = "Gone"
    # It could not be read, so nothing may be done.
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageAction:
    """What to do with a dependent: first set these owners, then delete it with this policy."""

    owners: tuple[Object, ...] | None = None
    policy: str = ""


KEEP = GarbageAction()


def decide(obj: Object, standings: Sequence[Standing], *, has_dependents: bool, is_in_circle: bool) -> GarbageAction:
    """Return what to do with an object, given the state of its owners in the order it names them."""
    owners = owners_of(obj)
    if is_deleting(obj) or not owners or Standing.UNKNOWN in standings:
        return KEEP
    if Standing.SOLID in standings:
        solid = tuple(owner for owner, standing in zip(owners, standings, strict=True) if standing is Standing.SOLID)
        return KEEP if len(solid) == len(owners) else GarbageAction(owners=solid)
    if Standing.WAITING in standings and has_dependents:
        # In a circle each would wait for the next, so stop blocking the owners.
        return GarbageAction(owners=unblocked(owners) if is_in_circle else None, policy="Foreground")
    return GarbageAction(policy=_policy_of(obj))


def standing_of(owner: Object) -> Standing:
    """Return the state of an owner that exists."""
    return Standing.WAITING if is_draining(owner) else Standing.SOLID


def is_draining(obj: Object) -> bool:
    """Return whether an object is being deleted in the foreground, and waits for its dependents."""
    return is_deleting(obj) and FOREGROUND in _finalizers_of(obj)


def is_orphaning(obj: Object) -> bool:
    """Return whether an object is being deleted, and waits for its dependents to be orphaned."""
    return is_deleting(obj) and ORPHAN in _finalizers_of(obj)


def owners_of(obj: Object | None) -> tuple[Object, ...]:
    """Return the owners that an object names."""
    return tuple(((obj or {}).get("metadata") or {}).get("ownerReferences") or ())


def blocks(owned: Object, owner: Object) -> bool:
    """Return whether an owner that is deleted in the foreground has to wait for a dependent."""
    return any(
        reference.get("uid") == uid_of(owner) and reference.get("blockOwnerDeletion") for reference in owners_of(owned)
    )


def freed(owned: Object, owner: Object) -> tuple[Object, ...]:
    """Return the owners of an object without one of them."""
    return tuple(reference for reference in owners_of(owned) if reference.get("uid") != uid_of(owner))


def unblocked(owners: Sequence[Object]) -> tuple[Object, ...]:
    """Return the owner references without `blockOwnerDeletion`."""
    return tuple({**reference, "blockOwnerDeletion": False} for reference in owners)


def let_go(obj: Object) -> tuple[str, ...]:
    """Return the finalizers of an object that no longer waits for its dependents."""
    return tuple(finalizer for finalizer in _finalizers_of(obj) if finalizer not in (FOREGROUND, ORPHAN))


def _finalizers_of(obj: Object) -> tuple[str, ...]:
    return tuple(obj["metadata"].get("finalizers") or ())


def _policy_of(obj: Object) -> str:
    """Return the deletion policy that the finalizers of an object ask for."""
    finalizers = _finalizers_of(obj)
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
