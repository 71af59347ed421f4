"""Our own API server writes down who asked for something, whatever the client says."""

import json
from contextlib import asynccontextmanager

import pytest

from paceline.apimachinery.meta import annotations_of
from paceline.apiserver.auth.authentication import Authenticator, hash_token
from paceline.client.in_process import IN_PROCESS, LocalCluster
from paceline.client.interface import CONFIG_MAPS, EVENTS, NAMESPACES, Collection, PatchType, Select
from tests.contract.subjects import our_app
from tests.unit.kinds.manifests import pytorch

JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
KEY = ("default", "digits")
ASKED_BY = "paceline.dev/asked-by"
PAUSE = {"spec": {"runMode": {"pause": {"enabled": True}}}}
CALLERS = ("ada", "bob", "system:paceline-controller")


@pytest.fixture
async def callers():
    """One client per caller, on the same server."""
    async with served() as clients:
        yield clients


@asynccontextmanager
async def served():
    gate = Authenticator(tokens={hash_token(name): name for name in CALLERS}, hosts=frozenset({IN_PROCESS}))
    async with (
        our_app(gate) as app,
        LocalCluster(app, token="ada") as ada,
        LocalCluster(app, token="bob") as bob,
        LocalCluster(app, token="system:paceline-controller") as controller,
    ):
        await ada.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        yield ada, bob, controller


def job(**metadata):
    return {**pytorch(), "metadata": {"name": "digits", "namespace": "default", **metadata}}


def asked(obj):
    return annotations_of(obj).get(ASKED_BY)


def lie(change=None, name="eve"):
    return {**(change or {}), "metadata": {"annotations": {ASKED_BY: name}}}


async def test_whoever_creates_or_changes_a_job_asked_for_it(callers):
    ada, bob, _ = callers

    created = await ada.create(JOBS, job(annotations={ASKED_BY: "eve", "note": "kept"}))
    paused = await bob.patch(JOBS, KEY, PAUSE)

    assert annotations_of(created) == {ASKED_BY: "ada", "note": "kept"}
    assert (asked(paused), annotations_of(paused)["note"]) == ("bob", "kept")


@pytest.mark.parametrize(
    "change",
    [lie(PAUSE), lie({"metadata": {"labels": {"a": "b"}}}), PAUSE, {**PAUSE, "metadata": {"annotations": None}}],
)
async def test_a_client_cannot_name_somebody_else(callers, change):
    ada, bob, _ = callers
    await ada.create(JOBS, job())

    written = await bob.patch(JOBS, KEY, change)

    assert asked(written) == ("bob" if "spec" in change else "ada")


async def test_a_restart_request_is_an_action_and_a_label_is_not(callers):
    ada, bob, _ = callers
    await ada.create(JOBS, job())

    labelled = await bob.patch(JOBS, KEY, {"metadata": {"labels": {"a": "b"}}})
    restarted = await bob.patch(JOBS, KEY, {"metadata": {"annotations": {"paceline.dev/restart": "now"}}})

    assert (asked(labelled), asked(restarted)) == ("ada", "bob")


async def test_a_full_replacement_names_its_author_too(callers):
    ada, bob, _ = callers
    created = await ada.create(JOBS, job())
    without = {key: value for key, value in created["metadata"].items() if key != "annotations"}

    same = await bob.replace(JOBS, {**created, "metadata": without})
    spec = {**same["spec"], "suspend": True}
    changed = await bob.replace(JOBS, {**same, "metadata": {**same["metadata"], "annotations": {}}, "spec": spec})

    assert (asked(same), asked(changed)) == ("ada", "bob")


async def test_applied_and_json_patched_changes_are_noted(callers):
    ada, bob, _ = callers
    applied = await ada.apply(JOBS, {**job(), "spec": {**job()["spec"], "suspend": True}}, author="tool")
    operations = [{"op": "replace", "path": "/spec/suspend", "value": False}]
    patched = await bob.patch(JOBS, KEY, operations, kind=PatchType.JSON)

    assert (asked(applied), asked(patched)) == ("ada", "bob")


async def test_nobody_manages_the_name_and_applying_again_changes_nothing(callers):
    ada, bob, _ = callers
    first = await ada.apply(JOBS, job(), author="tool")
    again = await bob.apply(JOBS, job(), author="tool")

    assert ASKED_BY not in json.dumps(first["metadata"]["managedFields"])
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@pytest.mark.parametrize("caller", [0, 2])
async def test_a_name_that_is_sent_is_managed_by_nobody_either(callers, caller):
    client = callers[caller]
    await client.create(JOBS, job(annotations={ASKED_BY: "eve"}))
    written = await client.patch(JOBS, KEY, lie({**PAUSE}, "mallory"))

    assert ASKED_BY not in json.dumps(written["metadata"]["managedFields"])
    assert "f:annotations" not in json.dumps(written["metadata"]["managedFields"])


async def test_our_controllers_pass_on_a_name_and_their_status_changes_none(callers):
    ada, _, controller = callers
    created = await controller.create(JOBS, job(annotations={ASKED_BY: "ada"}))
    patched = await controller.patch(JOBS, KEY, PAUSE)
    status = await ada.replace(JOBS, {**patched, "status": {"phase": "Paused"}}, subresource="status")

    assert [asked(obj) for obj in (created, patched, status)] == ["ada", "ada", "ada"]


async def test_objects_of_other_kinds_are_left_alone(callers):
    ada, _, _ = callers
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}

    assert asked(await ada.create(CONFIG_MAPS, config)) is None


async def deletions(cluster):
    page = await cluster.list(EVENTS, Select(namespace="default"))
    return [event for event in page.items if event["reason"] == "DeleteRequested"]


async def test_a_deletion_leaves_an_event_with_the_name(callers):
    ada, bob, _ = callers
    created = await ada.create(JOBS, job())
    await bob.delete(JOBS, KEY)

    (event,) = await deletions(ada)
    assert event["message"] == "deleted by bob"
    assert event["involvedObject"]["uid"] == created["metadata"]["uid"]
    assert event["involvedObject"]["kind"] == "PyTorchTrainingJob"


async def test_a_job_that_waits_for_a_finalizer_is_noted_once(callers):
    ada, bob, _ = callers
    await ada.create(JOBS, job(finalizers=["example.com/wait"]))
    await ada.delete(JOBS, KEY)
    await bob.delete(JOBS, KEY)

    assert [event["message"] for event in await deletions(ada)] == ["deleted by ada"]


async def test_deletions_of_controllers_dry_runs_and_refused_ones_leave_no_event(callers):
    ada, _, controller = callers
    await ada.create(JOBS, job())
    await ada.delete(JOBS, KEY, {"dryRun": ["All"]})
    with pytest.raises(Exception, match="precondition"):
        await ada.delete(JOBS, KEY, {"preconditions": {"uid": "another"}})
    await controller.delete(JOBS, KEY)

    assert await deletions(ada) == []
