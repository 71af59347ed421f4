"""Claims get volumes, and keep them for as long as they need them."""

import pytest

from paceline.apimachinery.builtin.storage_annotations import BIND_COMPLETED, PROTECTION, VOLUME_PROTECTION, WAITING
from paceline.apimachinery.meta import annotations_of, name_of, uid_of
from paceline.client.interface import CLAIMS, PODS, VOLUMES
from paceline.errors import Forbidden
from tests.unit.controllers.claiming import play


def test_a_claim_gets_a_folder_of_its_own_by_its_class():
    async def story(place):
        await place.storage_class("fast", reclaimPolicy="Delete")
        await place.claim(storageClassName="fast", size="3Gi")
        claim = await place.phase(CLAIMS, "data", "Bound")
        volume = await place.phase(VOLUMES, claim["spec"]["volumeName"], "Bound")
        said = await place.told("data", "ProvisioningSucceeded")

        assert name_of(volume) == f"pvc-{uid_of(claim)}"
        assert said == f"Successfully provisioned volume {name_of(volume)}"
        assert claim["status"]["capacity"] == {"storage": "3Gi"}
        assert volume["spec"]["hostPath"]["path"] == f"/volumes/default-data-{uid_of(claim)[:8]}"
        assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert annotations_of(claim)[BIND_COMPLETED] == "yes"

    play(story)


def test_a_claim_gets_the_volume_that_its_selector_finds():
    async def story(place):
        await place.volume("gold", labels={"tier": "gold"})
        await place.volume("lead", labels={"tier": "lead"})
        for name in ("gold", "lead"):
            await place.phase(VOLUMES, name, "Available")
        await place.claim(storageClassName="", selector={"matchLabels": {"tier": "lead"}})
        claim = await place.phase(CLAIMS, "data", "Bound")
        volume = await place.phase(VOLUMES, "lead", "Bound")

        assert claim["spec"]["volumeName"] == "lead"
        assert volume["spec"]["claimRef"]["uid"] == uid_of(claim)
        assert (await place.cluster.get(VOLUMES, "", "gold"))["status"]["phase"] == "Available"

    play(story)


def test_a_claim_that_does_not_fit_waits_says_why_and_is_bound_when_a_volume_comes():
    async def story(place):
        await place.volume("small", size="1Gi")
        await place.claim(storageClassName="", size="5Gi")
        said = await place.told("data", "FailedBinding")
        claim = await place.until(CLAIMS, "data", lambda claim: "small" in annotations_of(claim).get(WAITING, ""))
        assert said == "no persistent volumes available for this claim and no storage class is set"
        assert annotations_of(claim)[WAITING] == f"{said}; small: requested PV is too small"
        assert claim["status"]["phase"] == "Pending"

        await place.volume("large", size="9Gi")
        claim = await place.phase(CLAIMS, "data", "Bound")
        assert claim["spec"]["volumeName"] == "large"
        assert claim["status"]["capacity"] == {"storage": "9Gi"}
        assert WAITING not in annotations_of(claim)

    play(story)


def test_two_claims_do_not_get_one_volume():
    async def story(place):
        await place.volume("only")
        await place.claim("one", storageClassName="")
        await place.claim("two", storageClassName="")
        await place.phase(VOLUMES, "only", "Bound")
        await place.phase(CLAIMS, "one", "Bound")
        await place.told("two", "FailedBinding")

        assert (await place.cluster.get(CLAIMS, "default", "two"))["status"]["phase"] == "Pending"

    play(story)


def test_a_late_class_binds_when_a_pod_comes():
    async def story(place):
        await place.storage_class("late", volumeBindingMode="WaitForFirstConsumer")
        await place.claim(storageClassName="late")
        said = await place.told("data", "WaitForFirstConsumer")
        assert said == "waiting for first consumer to be created before binding"
        await place.pod()
        await place.phase(CLAIMS, "data", "Bound")

    play(story)


def test_a_volume_whose_claim_went_is_released_and_stays():
    async def story(place):
        await place.volume("kept")
        await place.claim(storageClassName="")
        await place.phase(CLAIMS, "data", "Bound")
        await place.delete(CLAIMS, "data")
        await place.gone(CLAIMS, "data")
        await place.phase(VOLUMES, "kept", "Released")
        await place.claim("next", storageClassName="")
        await place.told("next", "FailedBinding")

    play(story)


def test_a_volume_that_is_to_be_recycled_has_failed_and_says_so():
    async def story(place):
        await place.volume("old", persistentVolumeReclaimPolicy="Recycle")
        await place.claim(storageClassName="")
        await place.phase(CLAIMS, "data", "Bound")
        await place.delete(CLAIMS, "data")
        volume = await place.phase(VOLUMES, "old", "Failed")
        assert volume["status"]["reason"] == "VolumeFailedRecycle"
        assert "recycling is not offered" in await place.told("old", "VolumeFailedRecycle")

    play(story)


def test_a_claim_in_use_stays_until_its_last_pod_has_ended():
    async def story(place):
        await place.storage_class("fast")
        await place.claim(storageClassName="fast")
        await place.phase(CLAIMS, "data", "Bound")
        await place.pod("first", nodeName="box")
        await place.pod("second", nodeName="box")
        await place.delete(CLAIMS, "data")
        claim = await place.until(CLAIMS, "data", lambda claim: claim["metadata"].get("deletionTimestamp"))
        assert claim["metadata"]["finalizers"] == [PROTECTION]
        await place.cluster.delete(PODS, ("default", "first"), {"gracePeriodSeconds": 0})
        ended = {"status": {"phase": "Succeeded"}}
        claim = await place.cluster.get(CLAIMS, "default", "data")
        assert claim["status"]["phase"] == "Bound"
        await place.cluster.patch(PODS, ("default", "second"), ended, subresource="status")
        await place.gone(CLAIMS, "data")

    play(story)


def test_a_pod_without_a_node_does_not_hold_a_claim():
    async def story(place):
        await place.storage_class("fast")
        await place.claim(storageClassName="fast")
        await place.phase(CLAIMS, "data", "Bound")
        await place.pod()
        await place.delete(CLAIMS, "data")
        await place.gone(CLAIMS, "data")

    play(story)


def test_a_volume_with_a_claim_is_not_removed_under_it():
    async def story(place):
        made = await place.volume("kept")
        assert made["metadata"]["finalizers"] == [VOLUME_PROTECTION]
        await place.claim(storageClassName="")
        await place.phase(CLAIMS, "data", "Bound")
        await place.delete(VOLUMES, "kept")
        # One thing is done after the other: once this is said, the volume was looked at.
        await place.claim("other", storageClassName="")
        await place.told("other", "FailedBinding")
        await place.phase(VOLUMES, "kept", "Bound")
        await place.delete(CLAIMS, "data")
        await place.gone(VOLUMES, "kept")

    play(story)


def test_a_claim_without_its_volume_is_lost():
    async def story(place):
        await place.volume("kept")
        await place.claim(storageClassName="")
        await place.phase(CLAIMS, "data", "Bound")
        await place.delete(VOLUMES, "kept")
        await place.cluster.patch(VOLUMES, ("", "kept"), {"metadata": {"finalizers": []}})
        claim = await place.phase(CLAIMS, "data", "Lost")
        assert "capacity" not in claim["status"]
        assert await place.told("data", "ClaimLost")

    play(story)


def test_a_claim_grows_where_its_class_allows_it():
    async def story(place):
        await place.storage_class("fast", allowVolumeExpansion=True)
        await place.claim(storageClassName="fast")
        claim = await place.phase(CLAIMS, "data", "Bound")
        bigger = {"spec": {"resources": {"requests": {"storage": "7Gi"}}}}
        await place.cluster.patch(CLAIMS, ("default", "data"), bigger)
        await place.until(CLAIMS, "data", lambda claim: claim["status"]["capacity"] == {"storage": "7Gi"})
        volume = await place.cluster.get(VOLUMES, "", claim["spec"]["volumeName"])
        assert volume["spec"]["capacity"] == {"storage": "7Gi"}
        assert await place.told("data", "VolumeResizeSuccessful")

    play(story)


def test_a_claim_does_not_grow_where_its_class_does_not_allow_it():
    async def story(place):
        await place.storage_class("fast")
        await place.claim(storageClassName="fast")
        await place.phase(CLAIMS, "data", "Bound")
        bigger = {"spec": {"resources": {"requests": {"storage": "7Gi"}}}}
        with pytest.raises(Forbidden, match="StorageClass does not allow volume expansion"):
            await place.cluster.patch(CLAIMS, ("default", "data"), bigger)

    play(story)


def test_a_pod_brings_its_own_claim_along():
    async def story(place):
        await place.storage_class("fast")
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
        pod = await place.pod("demo", volumes=volumes)
        claim = await place.phase(CLAIMS, "demo-scratch", "Bound")

        assert claim["metadata"]["labels"] == {"a": "b"}
        assert claim["metadata"]["ownerReferences"][0]["uid"] == uid_of(pod)

    play(story)
