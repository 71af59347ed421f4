"""The TensorBoard that a job asks for."""

import pytest

from paceline.model.interactive import ServicePhase, ServiceStatus
from paceline.plan.interactive.job_tensorboard import BoardSeen, board_manifest, decide

API = "tensorstack.dev/v1beta1"
OWNER = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob", "name": "demo", "uid": "1"}


def seen(phase=None, *, waiting="", is_over=False):
    status = ServiceStatus(phase=phase or ServicePhase.INITIALIZING, url="/there/", waiting=waiting)
    uid = "2" if phase else ""
    return BoardSeen(name="demo-12345", namespace="default", api_version=API, is_over=is_over, uid=uid, status=status)


# What is seen: whether one is made, and what the job says: action, reason, ready, type.
BOARDS = {
    "none yet": (seen(), True, ("Create", "DependentCreating", False, "Normal")),
    "one that starts": (seen(ServicePhase.INITIALIZING), False, ("NOP", "DependentNotReady", False, "Normal")),
    "one that waits": (
        seen(ServicePhase.INITIALIZING, waiting="no room"),
        False,
        ("NOP", "DependentNotReady", False, "Warning"),
    ),
    "one that answers": (seen(ServicePhase.RUNNING), False, ("NOP", "DependentReady", True, "Normal")),
    "one that is suspended": (seen(ServicePhase.PAUSED), False, ("NOP", "DependentSuspended", False, "Normal")),
    "one that outlives its job": (
        seen(ServicePhase.RUNNING, is_over=True),
        False,
        ("NOP", "DependentReady", True, "Normal"),
    ),
    "none of a job that is over": (seen(is_over=True), False, ("NOP", "DependentGone", False, "Normal")),
}


@pytest.mark.parametrize(("found", "makes", "said"), BOARDS.values(), ids=BOARDS)
def test_a_job_has(found, makes, said):
    plan = decide(found)

    assert plan.makes is makes
    assert tuple(plan.status[part] for part in ("action", "reason", "ready", "type")) == said
    assert plan.status["dependent"]["name"] == "demo-12345"
    assert plan.status["dependent"].get("uid") == (found.uid or None)


def test_what_keeps_it_is_noted():
    assert decide(seen(ServicePhase.INITIALIZING, waiting="no room")).status["note"] == "no room"


def test_it_belongs_to_its_job_and_is_what_the_job_asked_for():
    made = board_manifest(seen(), {"image": "tb"}, owner=OWNER)

    assert (made["metadata"]["name"], made["metadata"]["ownerReferences"]) == ("demo-12345", [OWNER])
    assert made["metadata"]["labels"]["tensorstack.dev/owner-name"] == "demo"
    assert made["spec"] == {"image": "tb"}
