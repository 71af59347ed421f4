"""Which volume a claim gets, and why it gets none."""

from pathlib import PurePosixPath

import pytest

from paceline.apimachinery.builtin.storage_annotations import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    FOLDERS,
    PROVISIONED_BY,
    removal_fault,
)
from paceline.plan.volume_binding import Stock, decide_claim, decide_volume

ROOT = PurePosixPath("/home/volumes")


def claim(*, size="1Gi", modes=("ReadWriteOnce",), class_name="", marks=None, status=None, **spec):
    return {
        "metadata": {"namespace": "team", "name": "data", "uid": "c-1", "annotations": marks or {}},
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {"storage": size}},
            "storageClassName": class_name,
            **spec,
        },
        "status": status or {"phase": "Pending"},
    }


def volume(name="pv", *, size="1Gi", phase="Available", labels=None, marks=None, **spec):
    return {
        "metadata": {"name": name, "labels": labels or {}, "annotations": marks or {}},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec},
        "status": {"phase": phase},
    }


def storage_class(name="fast", provisioner=FOLDERS, **fields):
    return {"metadata": {"name": name}, "provisioner": provisioner, **fields}


def stock(*objects):
    named = {("", each["metadata"]["name"]): each for each in objects}
    return Stock(
        volumes={key: each for key, each in named.items() if "spec" in each},
        classes={key: each for key, each in named.items() if "spec" not in each},
    )


def decided(wanted, *objects, has_consumer=False):
    return decide_claim(wanted, stock(*objects), has_consumer=has_consumer)


def test_a_claim_gets_the_smallest_volume_that_is_large_enough():
    plan = decided(claim(size="2Gi"), volume("a", size="1Gi"), volume("b", size="9Gi"), volume("c", size="3Gi"))

    assert plan.bind["metadata"]["name"] == "c"


def test_a_volume_that_was_made_for_a_claim_goes_before_a_smaller_one():
    kept = {"namespace": "team", "name": "data"}

    assert decided(claim(), volume("a"), volume("b", size="9Gi", claimRef=kept)).bind["metadata"]["name"] == "b"


DOES_NOT_FIT = {
    "too small": (volume(size="1Mi"), "pv: requested PV is too small"),
    "another class": (volume(storageClassName="slow"), "pv: storageClassName does not match"),
    "another mode": (volume(volumeMode="Block"), "pv: incompatible volumeMode"),
    "fewer access modes": (volume(accessModes=["ReadOnlyMany"]), "pv: incompatible accessMode"),
    "other labels": (volume(labels={"tier": "gold"}), "pv: labels do not match the selector"),
    "used before": (volume(phase="Released", labels={"tier": "fast"}), "pv: is Released"),
}


@pytest.mark.parametrize(("has", "said"), DOES_NOT_FIT.values(), ids=DOES_NOT_FIT)
def test_a_volume_that_does_not_fit_is_not_given_and_the_claim_says_why(has, said):
    plan = decided(claim(selector={"matchLabels": {"tier": "fast"}}), has)

    assert plan.bind is None
    assert plan.event.reason == "FailedBinding"
    assert plan.event.message == "no persistent volumes available for this claim and no storage class is set"
    assert plan.waiting == f"{plan.event.message}; {said}"


def test_a_volume_of_somebody_else_is_neither_given_nor_spoken_of():
    plan = decided(claim(), volume(claimRef={"namespace": "team", "name": "other", "uid": "c-2"}))

    assert (plan.bind, plan.waiting) == (
        None,
        "no persistent volumes available for this claim and no storage class is set",
    )


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"key": "tier", "operator": "In", "values": ["fast", "gold"]}, True),
        ({"key": "tier", "operator": "NotIn", "values": ["fast"]}, False),
        ({"key": "tier", "operator": "Exists"}, True),
        ({"key": "tier", "operator": "DoesNotExist"}, False),
    ],
)
def test_labels_are_compared_by_expressions_too(rule, fits):
    plan = decided(claim(selector={"matchExpressions": [rule]}), volume(labels={"tier": "fast"}))

    assert (plan.bind is not None) is fits


def test_a_claim_that_names_a_volume_gets_that_one():
    assert decided(claim(volumeName="b"), volume("a"), volume("b")).bind["metadata"]["name"] == "b"


NAMED = {
    "it is too small": (volume(size="1Mi"), "VolumeMismatch", 'Cannot bind to requested volume "pv": requested PV is'),
    "another has it": (
        volume(claimRef={"namespace": "team", "name": "other", "uid": "c-2"}),
        "FailedBinding",
        'volume "pv" already bound to a different claim.',
    ),
}


@pytest.mark.parametrize(("has", "reason", "said"), NAMED.values(), ids=NAMED)
def test_a_claim_that_names_a_volume_it_cannot_have_waits(has, reason, said):
    plan = decided(claim(volumeName="pv"), has)

    assert (plan.bind, plan.event.reason, plan.event.is_warning) == (None, reason, True)
    assert said in plan.waiting


def test_a_claim_that_names_a_volume_which_is_not_there_waits_for_it():
    assert decided(claim(volumeName="no")).waiting == 'volume "no" does not exist'


def test_a_class_of_ours_makes_a_volume():
    assert decided(claim(class_name="fast"), storage_class()).provision["metadata"]["name"] == "fast"


CLASSES = {
    "no such class": ((), {}, "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found'),
    "no provisioner": (
        (storage_class(provisioner="kubernetes.io/no-provisioner"),),
        {},
        "ProvisioningFailed",
        "no volume plugin matched name: kubernetes.io/no-provisioner",
    ),
    "somebody else's": (
        (storage_class(provisioner="ceph.example/rbd"),),
        {},
        "ExternalProvisioning",
        "Waiting for a volume to be created either by the external provisioner 'ceph.example/rbd' or manually",
    ),
    "a selector": (
        (storage_class(),),
        {"selector": {"matchLabels": {"a": "b"}}},
        "ProvisioningFailed",
        'failed to provision volume with StorageClass "fast": claim.Spec.Selector is not supported',
    ),
    "a block device": (
        (storage_class(),),
        {"volumeMode": "Block"},
        "ProvisioningFailed",
        'failed to provision volume with StorageClass "fast": a folder is no block device',
    ),
}


@pytest.mark.parametrize(("classes", "spec", "reason", "said"), CLASSES.values(), ids=CLASSES)
def test_a_class_that_makes_no_volume_is_said(classes, spec, reason, said):
    plan = decided(claim(class_name="fast", **spec), *classes)

    assert (plan.provision, plan.event.reason) == (None, reason)
    assert plan.waiting.startswith(said)


def test_a_late_class_waits_for_the_first_pod():
    late = storage_class(volumeBindingMode="WaitForFirstConsumer")
    free = volume(storageClassName="fast")
    early = decided(claim(class_name="fast"), late, free)

    assert (early.bind, early.event.reason) == (None, "WaitForFirstConsumer")
    assert early.waiting == "waiting for first consumer to be created before binding"
    assert decided(claim(class_name="fast"), late, free, has_consumer=True).bind is free
    assert decided(claim(class_name="fast"), late, has_consumer=True).provision is late


def bound(**fields):
    status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    return claim(class_name="fast", marks={BIND_COMPLETED: "yes"}, status=status, volumeName="pv", **fields)


MINE = {"namespace": "team", "name": "data", "uid": "c-1"}


def test_a_bound_claim_whose_volume_is_there_is_left_alone():
    plan = decided(bound(), volume(claimRef=MINE), storage_class())

    assert (plan.bind, plan.provision, plan.is_lost, plan.event) == (None, None, False, None)


def test_a_bound_claim_whose_volume_has_gone_is_lost():
    plan = decided(bound())

    assert (plan.is_lost, plan.event.reason) == (True, "ClaimLost")
    assert plan.event.message == "Bound claim has lost its PersistentVolume. Data on the volume is lost!"


def test_a_bound_claim_whose_volume_is_anothers_is_lost():
    assert decided(bound(), volume(claimRef=MINE | {"uid": "c-2"})).event.reason == "ClaimMisbound"


@pytest.mark.parametrize("may", [True, False])
def test_a_claim_grows_where_its_class_allows_it(may):
    has = volume(claimRef=MINE, marks={PROVISIONED_BY: FOLDERS})

    assert decided(bound(size="2Gi"), has, storage_class(allowVolumeExpansion=may)).grow_to == ("2Gi" if may else "")


PHASES = {
    "nobody's": (volume(), None, "Available"),
    "kept for a name": (volume(claimRef={"namespace": "team", "name": "data"}), None, "Available"),
    "its claim has it": (volume(claimRef=MINE), bound(), "Bound"),
    "its claim went": (volume(claimRef=MINE), None, "Released"),
    "its claim went and it cannot be removed": (
        volume(claimRef=MINE, persistentVolumeReclaimPolicy="Delete"),
        None,
        "Failed",
    ),
    "its claim went and it cannot be recycled": (
        volume(claimRef=MINE, persistentVolumeReclaimPolicy="Recycle"),
        None,
        "Failed",
    ),
}


@pytest.mark.parametrize(("has", "wanted", "phase"), PHASES.values(), ids=PHASES)
def test_a_volume_says_whose_it_is(has, wanted, phase):
    plan = decide_volume(has, wanted, ROOT)

    assert plan.phase == phase
    assert bool(plan.reason and plan.message) == (phase == "Failed")


def test_a_volume_is_free_again_when_its_claim_was_given_another():
    has = volume("other", claimRef=MINE, marks={BOUND_BY_CONTROLLER: "yes"})

    assert decide_volume(has, bound(), ROOT).unbind
    assert decide_volume(volume("other", claimRef=MINE), bound(), ROOT).phase == "Released"


UID = "0b2c3d4e-1111-4222-8333-444455556666"
MADE = {"name": f"pvc-{UID}", "path": f"/home/volumes/team-data-{UID[:8]}", "policy": "Delete", "by": FOLDERS}
NOT_REMOVED = {
    "is to be kept": ({"policy": "Retain"}, "Released", ""),
    "was made by somebody else": ({"by": ""}, "Failed", "this cluster did not provision it"),
    "lies elsewhere": ({"path": "/srv/imagenet"}, "Failed", "not directly below /home/volumes"),
    "lies in another cluster": (
        {"path": f"/other/volumes/team-data-{UID[:8]}"},
        "Failed",
        "not directly below /home/volumes",
    ),
    "lies deeper": ({"path": f"/home/volumes/x/team-data-{UID[:8]}"}, "Failed", "not directly below"),
    "lies above": ({"path": f"/home/volumes/../volumes/a-{UID[:8]}"}, "Failed", "not directly below"),
    "is the root": ({"path": "/home/volumes"}, "Failed", "not directly below"),
    "is the root in other words": ({"path": "/home/volumes/.."}, "Failed", "is not deleted"),
    "is a copy under another name": ({"name": "copy"}, "Failed", "did not create it for volume copy"),
    "is another claim's": (
        {"path": "/home/volumes/team-other-99999999"},
        "Failed",
        f"did not create it for volume pvc-{UID}",
    ),
}


def released(**changed):
    made = MADE | changed
    return volume(
        made["name"],
        claimRef=MINE,
        marks={PROVISIONED_BY: made["by"]},
        persistentVolumeReclaimPolicy=made["policy"],
        hostPath={"path": made["path"]},
    )


@pytest.mark.parametrize(("changed", "phase", "message"), NOT_REMOVED.values(), ids=NOT_REMOVED)
def test_a_folder_that_our_class_did_not_make_for_this_volume_is_kept(changed, phase, message):
    plan = decide_volume(released(**changed), None, ROOT)

    assert plan.phase == phase
    assert message in plan.message
    assert plan.reason == ("VolumeFailedDelete" if phase == "Failed" else "")


def test_a_folder_that_our_class_made_goes_with_its_claim():
    assert decide_volume(released(), None, ROOT).phase == "Released"
    assert removal_fault(released(), ROOT) == ""
