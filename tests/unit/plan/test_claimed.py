"""A pod gets a node when all that it claims has volumes."""

import pytest

from paceline.apimachinery.builtin.storage_annotations import WAITING
from paceline.plan.scheduling.gang import lack_of

BOUND = {"phase": "Bound"}


def pod(*volumes):
    return {"metadata": {"namespace": "team", "name": "p"}, "spec": {"volumes": list(volumes)}}


def claim(status, **metadata):
    return {
        "metadata": {"namespace": "team", "name": "data", **metadata},
        "spec": {"volumeName": "v"},
        "status": status,
    }


DATA = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
OWN = {"name": "own", "ephemeral": {}}
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (claim(BOUND), ""),
        (None, 'persistentvolumeclaim "data" not found'),
        (claim({}), UNBOUND),
        (claim({"phase": "Pending"}, annotations={WAITING: "too small"}), f"{UNBOUND} (data: too small)"),
        (claim(BOUND, deletionTimestamp="2030-01-01T00:00:00Z"), 'persistentvolumeclaim "data" is being deleted'),
        (claim({"phase": "Lost"}), 'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"'),
    ],
)
def test_a_claim_without_a_volume_keeps_its_pod_from_a_node(found, said):
    claims = {("team", "data"): found} if found else {}

    assert lack_of(pod({"name": "x", "emptyDir": {}}, DATA), claims) == said


def test_a_claim_that_a_pod_brings_along_is_waited_for():
    said = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-own"'
    made = {("team", "p-own"): claim(BOUND)}

    assert lack_of(pod(OWN), {}) == said
    assert lack_of(pod(OWN), made) == ""
