"""The next revision of an application over HTTP: previewed, made, and refused after another person's change."""

import pytest

from paceline.client.interface import Collection
from paceline.console.manifests.app_changes import ROUTES
from paceline.kinds.apps.expand import digest_of, expand_app
from paceline.model import well_known_labels
from tests.unit.console.test_actions import opened

APPS = Collection(group="paceline.dev", version="v1beta1", plural="trainingapps")
RECORDS = Collection(group="paceline.dev", version="v1beta1", plural="jobrecords")
UPGRADE = "/api/apps/default/mnist/upgrade"
PREVIEW = f"{UPGRADE}/preview"
VALUES = {"git": {"url": "https://example.org/code.git"}, "command": "python3 train.py", "framework": "python"}
TEMPLATE = {"name": "model-training", "version": "0.1.0"}


@pytest.fixture
async def console():
    async with opened(ROUTES) as running:
        yield running


async def installed(console, *, revision=2, **values):
    """An application whose second revision runs; its first one had another amount of memory."""
    app = {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": "mnist", "namespace": "default"},
        "spec": {"template": TEMPLATE, "values": {**VALUES, **values}},
    }
    created = await console.cluster.create(APPS, app)
    older = {**created, "spec": {**created["spec"], "values": {**VALUES, "memory": "64Mi"}}}
    for number, recorded in enumerate((older, created), start=1):
        await record(console, recorded, number)
    job = {"kind": "GenericJob", "name": f"mnist-{revision}"}
    status = {"phase": "Running", "revision": revision, "job": job}
    return await console.cluster.replace(APPS, {**created, "status": status}, subresource="status")


async def record(console, app, number):
    parts, name = expand_app(app, number), f"mnist-{number}"
    owner = {"apiVersion": "paceline.dev/v1beta1", "kind": "TrainingApp", "name": "mnist"}
    spec = {
        "app": "mnist",
        "revision": number,
        "digest": digest_of(app),
        "template": "model-training-0.1.0",
        "values": app["spec"]["values"],
        "job": {"kind": parts.kind, "name": name, "spec": dict(parts.spec)},
    }
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": {well_known_labels.APP: "mnist"},
        "ownerReferences": [{**owner, "uid": app["metadata"]["uid"], "controller": True}],
    }
    manifest = {"apiVersion": "paceline.dev/v1beta1", "kind": "JobRecord", "metadata": metadata, "spec": spec}
    await console.cluster.create(RECORDS, manifest)


def seen(app):
    return {"uid": app["metadata"]["uid"], "generation": app["metadata"]["generation"]}


async def stored(console):
    return await console.cluster.get(APPS, "default", "mnist")


async def test_a_preview_shows_values_job_and_what_follows_and_changes_nothing(console):
    app = await installed(console)

    code, preview = await console.post(PREVIEW, values={**VALUES, "memory": "2Gi"})

    assert code == 200
    assert preview["changes"] == [{"path": "memory", "old": "1Gi", "new": "2Gi"}]
    assert {(change["old"], change["new"]) for change in preview["jobChanges"]} == {("1Gi", "2Gi")}
    assert preview["consequences"][0] == {
        "code": "ChangedRevision",
        "revision": 3,
        "job": "mnist-3",
        "stops": "mnist-2",
    }
    assert {"uid": preview["uid"], "generation": preview["generation"]} == seen(app)
    assert not preview["isSame"]
    assert await stored(console) == app


async def test_other_values_become_the_spec_with_who_asked(console):
    app = await installed(console)

    code, answer = await console.post(UPGRADE, values={**VALUES, "memory": "2Gi"}, **seen(app))

    assert (code, answer["revision"]) == (200, 3)
    written = await stored(console)
    assert written["spec"] == {"template": TEMPLATE, "values": {**VALUES, "memory": "2Gi"}}
    assert written["metadata"]["annotations"][well_known_labels.ASKED_BY] == "ada"


async def test_a_rollback_takes_the_values_of_the_record(console):
    app = await installed(console)

    _, preview = await console.post(PREVIEW, revision=1)
    code, _ = await console.post(UPGRADE, revision=1, **seen(app))

    assert preview["changes"] == [{"path": "memory", "old": "1Gi", "new": "64Mi"}]
    assert code == 200
    assert (await stored(console))["spec"]["values"] == {**VALUES, "memory": "64Mi"}


@pytest.mark.parametrize(
    "choice", [{"values": {**VALUES, "memory": "2Gi"}}, {"revision": 1}], ids=["values", "rollback"]
)
async def test_after_somebody_else_changed_the_spec_nothing_is_changed(console, choice):
    app = await installed(console)
    other = {**app, "spec": {**app["spec"], "values": {**VALUES, "cpu": "2"}}}
    changed = await console.cluster.replace(APPS, other)

    code, answer = await console.post(UPGRADE, **choice, **seen(app))

    assert (code, answer["reason"]) == (409, "Conflict")
    assert "was changed meanwhile" in answer["message"]
    assert await stored(console) == changed


async def test_a_status_that_the_controller_writes_is_no_conflict(console):
    app = await installed(console)
    await console.cluster.replace(APPS, {**app, "status": {**app["status"], "phase": "Failed"}}, subresource="status")

    code, _ = await console.post(UPGRADE, values={**VALUES, "memory": "2Gi"}, **seen(app))

    assert code == 200


async def test_another_application_of_the_same_name_is_left_alone(console):
    app = await installed(console)

    code, answer = await console.post(UPGRADE, revision=1, uid="another", generation=app["metadata"]["generation"])

    assert (code, answer["reason"]) == (409, "Conflict")
    assert await stored(console) == app


async def test_what_changes_nothing_is_refused(console):
    app = await installed(console)

    _, preview = await console.post(PREVIEW, revision=2)
    code, answer = await console.post(UPGRADE, revision=2, **seen(app))

    assert preview["isSame"]
    assert (code, answer["reason"]) == (409, "AlreadyExists")


async def test_values_with_faults_are_refused_by_their_paths(console):
    app = await installed(console)
    values = {**VALUES, "workers": "many"}

    _, preview = await console.post(PREVIEW, values=values)
    code, answer = await console.post(UPGRADE, values=values, **seen(app))

    assert [fault["path"] for fault in preview["faults"]] == ["spec.values.workers"]
    assert preview["changes"] == [{"path": "workers", "old": 1, "new": "many"}]
    assert code == 422
    assert [cause["field"] for cause in answer["details"]["causes"]] == ["spec.values.workers"]
    assert await stored(console) == app


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, 400),
        ({"values": {}, "revision": 1}, 400),
        ({"values": []}, 400),
        ({"revision": "1"}, 400),
        ({"revision": True}, 400),
        ({"revision": 7}, 404),
    ],
)
async def test_a_malformed_request_and_an_unknown_revision_are_refused(console, body, code):
    app = await installed(console)

    for path in (PREVIEW, UPGRADE):
        assert (await console.post(path, **body, **seen(app)))[0] == code
    assert (await console.post(UPGRADE, values=VALUES))[0] == 400, "without the state that was seen"
    assert await stored(console) == app
