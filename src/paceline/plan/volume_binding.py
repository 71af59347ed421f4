"""Which volume a claim is bound to, why it is bound to none, and what happens to a volume without its claim.

The words are those of Kubernetes' own controller, because people search for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from paceline.apimachinery.builtin.storage_annotations import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    FOLDERS,
    PROVISIONED_BY,
    removal_fault,
)
from paceline.apimachinery.meta import Key, Object, annotations_of, is_deleting, key_of, labels_of, name_of, uid_of
from paceline.apimachinery.quantity import parse
from paceline.apimachinery.selector import matches, selector_rules
from paceline.model import reasons
from paceline.plan.job.plan import EventDraft

NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
WAITS_FOR_POD = "waiting for first consumer to be created before binding"
LOST = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
MISBOUND = "Two claims are bound to the same volume, this one is bound incorrectly"
LATE_BINDING = "WaitForFirstConsumer"
# The number of volumes that a message explains.
MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What a claim can be bound to: the existing volumes, and the storage classes."""

    volumes: Mapping[Key, Object]
    classes: Mapping[Key, Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """The next step for one claim; empty if there is nothing to do."""

    # The volume to bind it to, or the class to provision one with.
    bind: Object | None = None
    provision: Object | None = None
    is_lost: bool = False
    # The new size of its volume.
    grow_to: str = ""
    # Why it has no volume, as an event and, with what was found wrong with each volume, on the claim.
    event: EventDraft | None = None
    waiting: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumePlan:
    """The new phase of a volume, and whether its claim reference is removed."""

    phase: str
    reason: str = ""
    message: str = ""
    unbind: bool = False


def decide_claim(claim: Object, stock: Stock, *, has_consumer: bool) -> ClaimPlan:
    """Return the next step for one claim; `has_consumer` is True if a pod uses it."""
    name = str(claim["spec"].get("volumeName") or "")
    volume = stock.volumes.get(("", name))
    if BIND_COMPLETED in annotations_of(claim):
        return _bound(claim, volume, stock)
    if name:
        return _asked_for(claim, name, volume)
    matching = match(claim, stock, has_consumer=has_consumer)
    if matching is not None:
        return ClaimPlan(bind=matching)
    return _without_volume(claim, stock, has_consumer=has_consumer)


def decide_volume(volume: Object, claim: Object | None, root: PurePosixPath) -> VolumePlan:
    """Choose what becomes of a volume, given the claim that it names, if that is still the same one.

    `root` is where the folders of claims lie.
    """
    reference = volume["spec"].get("claimRef") or {}
    if not reference.get("uid"):
        return VolumePlan(phase="Available")
    if claim is None:
        return _released(volume, root)
    name = claim["spec"].get("volumeName") or ""
    if name == name_of(volume):
        return VolumePlan(phase="Bound")
    if name and BOUND_BY_CONTROLLER in annotations_of(volume):
        # The claim was bound to another volume meanwhile; this one is free again.
        return VolumePlan(phase="Available", unbind=True)
    if name:
        return _released(volume, root)
    # The other half of the binding comes with the claim.
    return VolumePlan(phase=str((volume.get("status") or {}).get("phase") or "Available"))


def match(claim: Object, stock: Stock, *, has_consumer: bool) -> Object | None:
    """Return the volume for a claim: one that was provisioned for it, else the smallest that fits."""
    fitting = [volume for volume in stock.volumes.values() if not objection(claim, volume)]
    for volume in fitting:
        if is_for(volume, claim):
            return volume
    if is_late(claim, stock) and not has_consumer:
        return None
    return min(
        fitting, key=lambda volume: (parse(volume["spec"]["capacity"]["storage"]), name_of(volume)), default=None
    )


def objection(claim: Object, volume: Object) -> str:
    """Return why a volume cannot be bound to this claim; empty when it can."""
    reference = volume["spec"].get("claimRef")
    if reference and not is_for(volume, claim):
        return f"is kept for claim {reference.get('namespace')}/{reference.get('name')}"
    if is_deleting(volume):
        return "is being deleted"
    if fault := mismatch(claim, volume):
        return fault
    if reference:
        return ""
    phase = (volume.get("status") or {}).get("phase")
    if phase != "Available":
        return f"is {phase or 'not looked at yet'}"
    if not matches(selector_rules(claim["spec"].get("selector")), labels_of(volume)):
        return "labels do not match the selector"
    return ""


def mismatch(claim: Object, volume: Object) -> str:
    """Return what a volume lacks for a claim, in Kubernetes' words."""
    request, has = claim["spec"], volume["spec"]
    if parse(has["capacity"]["storage"]) < parse(request["resources"]["requests"]["storage"]):
        return "requested PV is too small"
    if (has.get("storageClassName") or "") != (request.get("storageClassName") or ""):
        return "storageClassName does not match"
    if (has.get("volumeMode") or "Filesystem") != (request.get("volumeMode") or "Filesystem"):
        return "incompatible volumeMode"
    if not set(request.get("accessModes") or ()) <= set(has.get("accessModes") or ()):
        return "incompatible accessMode"
    return ""


def is_for(volume: Object, claim: Object) -> bool:
    """Return whether a volume references this claim; a reference without uid matches by name."""
    reference = volume["spec"].get("claimRef") or {}
    if (reference.get("namespace"), reference.get("name")) != key_of(claim):
        return False
    return reference.get("uid") in (None, "", uid_of(claim))


def is_late(claim: Object, stock: Stock) -> bool:
    """Return whether the claim's storage class binds only when a pod uses the claim."""
    return (_class_of(claim, stock) or {}).get("volumeBindingMode") == LATE_BINDING


def _class_of(claim: Object, stock: Stock) -> Object | None:
    return stock.classes.get(("", str(claim["spec"].get("storageClassName") or "")))


def _bound(claim: Object, volume: Object | None, stock: Stock) -> ClaimPlan:
    if volume is None:
        return ClaimPlan(is_lost=True, event=EventDraft(reason=reasons.CLAIM_LOST, message=LOST, is_warning=True))
    if not is_for(volume, claim) and volume["spec"].get("claimRef"):
        return ClaimPlan(
            is_lost=True, event=EventDraft(reason=reasons.CLAIM_MISBOUND, message=MISBOUND, is_warning=True)
        )
    if not is_for(volume, claim) or (claim.get("status") or {}).get("phase") != "Bound":
        return ClaimPlan(bind=volume)
    requested = claim["spec"]["resources"]["requests"]["storage"]
    has = ((claim.get("status") or {}).get("capacity") or {}).get("storage") or "0"
    can_grow = (_class_of(claim, stock) or {}).get("allowVolumeExpansion")
    if can_grow and parse(requested) > parse(has) and annotations_of(volume).get(PROVISIONED_BY) == FOLDERS:
        return ClaimPlan(grow_to=requested)
    return ClaimPlan()


def _asked_for(claim: Object, name: str, volume: Object | None) -> ClaimPlan:
    """Bind a claim to the volume it names, if that is free and fits."""
    if volume is None:
        return ClaimPlan(waiting=f'volume "{name}" does not exist')
    if is_for(volume, claim) and (volume["spec"].get("claimRef") or {}).get("uid"):
        return ClaimPlan(bind=volume)
    if volume["spec"].get("claimRef") and not is_for(volume, claim):
        message = f'volume "{name}" already bound to a different claim.'
        return _waits(EventDraft(reason=reasons.FAILED_BINDING, message=message, is_warning=True))
    if message := mismatch(claim, volume):
        message = f'Cannot bind to requested volume "{name}": {message}'
        return _waits(EventDraft(reason=reasons.VOLUME_MISMATCH, message=message, is_warning=True))
    return ClaimPlan(bind=volume)


def _without_volume(claim: Object, stock: Stock, *, has_consumer: bool) -> ClaimPlan:
    name = str(claim["spec"].get("storageClassName") or "")
    found_wrong = _all_objections(claim, stock)
    if not name:
        return _waits(EventDraft(reason=reasons.FAILED_BINDING, message=NO_CLASS), found_wrong)
    chosen = _class_of(claim, stock)
    if chosen is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return _waits(EventDraft(reason=reasons.PROVISIONING_FAILED, message=message, is_warning=True), found_wrong)
    if is_late(claim, stock) and not has_consumer:
        return _waits(EventDraft(reason=reasons.WAIT_FOR_FIRST_CONSUMER, message=WAITS_FOR_POD))
    provisioner = str(chosen.get("provisioner") or "")
    if provisioner == FOLDERS:
        return _provision(claim, chosen, found_wrong)
    if provisioner.startswith("kubernetes.io/"):
        message = f"no volume plugin matched name: {provisioner}"
        return _waits(EventDraft(reason=reasons.PROVISIONING_FAILED, message=message, is_warning=True), found_wrong)
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    return _waits(EventDraft(reason=reasons.EXTERNAL_PROVISIONING, message=message), found_wrong)


def _provision(claim: Object, chosen: Object, found_wrong: str) -> ClaimPlan:
    message = ""
    if claim["spec"].get("selector"):
        message = "claim.Spec.Selector is not supported"
    elif claim["spec"].get("volumeMode") == "Block":
        message = "a folder is no block device; leave volumeMode out"
    if not message:
        return ClaimPlan(provision=chosen)
    message = f'failed to provision volume with StorageClass "{name_of(chosen)}": {message}'
    return _waits(EventDraft(reason=reasons.PROVISIONING_FAILED, message=message, is_warning=True), found_wrong)


def _waits(event: EventDraft, found_wrong: str = "") -> ClaimPlan:
    return ClaimPlan(event=event, waiting=f"{event.message}; {found_wrong}" if found_wrong else event.message)


def _all_objections(claim: Object, stock: Stock) -> str:
    """Describe why none of the free volumes fits."""
    free = [volume for volume in stock.volumes.values() if not volume["spec"].get("claimRef")]
    objections = [f"{name_of(volume)}: {objection(claim, volume)}" for volume in sorted(free, key=name_of)]
    suffix = f" and {len(objections) - MOST_NAMED} more" if len(objections) > MOST_NAMED else ""
    return ", ".join(objections[:MOST_NAMED]) + suffix


def _released(volume: Object, root: PurePosixPath) -> VolumePlan:
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    if policy == "Recycle":
        message = "recycling is not offered here; use Retain and remove what is in the volume, or Delete"
        return VolumePlan(phase="Failed", reason=reasons.VOLUME_FAILED_RECYCLE, message=message)
    if policy == "Delete" and (fault := removal_fault(volume, root)):
        return VolumePlan(phase="Failed", reason=reasons.VOLUME_FAILED_DELETE, message=fault)
    return VolumePlan(phase="Released")
