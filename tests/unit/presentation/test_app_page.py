"""The page of an application: services, containers, logs, routes, revisions and values."""

from datetime import UTC, datetime

import pytest

from paceline.kinds.registry import stem_of
from paceline.presentation.apps.app_page import app_page
from paceline.presentation.apps.app_parts import AppObjects

NOW = datetime(2030, 1, 31, 13, tzinfo=UTC)
VALUES = {
    "git": {"url": "https://example.org/team/code.git", "secret": "mnist-git"},
    "command": "python3 train.py",
    "framework": "python",
    "distributed": True,
    "ps": 1,
    "workers": 2,
    "logDir": "/output/logs",
}
HOSTILE = "<img src=x onerror=alert(1)>"


def at(minute, second=0):
    return f"2030-01-31T12:{minute:02}:{second:02}Z"


def owned(owner, name, uid, **labels):
    reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return {
        "name": name,
        "namespace": "default",
        "uid": uid,
        "creationTimestamp": at(0),
        "labels": labels,
        "ownerReferences": [{**reference, "controller": True}],
    }


def app(phase="Running", revision=1, *, spec=None, **status):
    return {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": "mnist", "namespace": "default", "uid": "a-1", "creationTimestamp": at(0)},
        "spec": spec or {"template": {"name": "model-training", "version": "0.1.0"}, "values": VALUES},
        "status": {
            "phase": phase,
            "revision": revision,
            "updated": at(0),
            "job": {"kind": "TensorFlowTrainingJob", "name": f"mnist-{revision}"},
            **status,
        },
    }


APP = app()


def job(revision=1, phase="Running"):
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "python:3.11", "command": ["true"]}]}}
    roles = [("worker", 2), ("ps", 1)]
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "TensorFlowTrainingJob",
        "metadata": owned(APP, f"mnist-{revision}", f"j-{revision}"),
        "spec": {
            "replicaSpecs": [
                {"type": role, "replicas": count, "restartPolicy": "Never", "template": template}
                for role, count in roles
            ]
        },
        "status": {"phase": phase, "startTime": at(0)},
    }


def pod(owner, role, index, state, phase="Running"):
    name = f"{stem_of(owner)}-{role}-{index}"
    labels = {"replica-type": role, "replica-index": str(index), "paceline.dev/attempt": "0"}
    return {
        "metadata": owned(owner, name, f"p-{owner['metadata']['uid']}-{role}-{index}", **labels),
        "spec": {
            "nodeName": "vm",
            "initContainers": [{"name": "paceline-clone", "image": "paceline/podtools"}],
            "containers": [{"name": "tensorflow", "image": "python:3.11", "ports": [{"containerPort": 2222}]}],
        },
        "status": {
            "phase": phase,
            "podIP": "10.0.0.1",
            "containerStatuses": [{"name": "tensorflow", "restartCount": 0, "state": state}],
        },
    }


RUNNING = {"running": {"startedAt": at(1)}}
DONE = {"terminated": {"exitCode": 0, "startedAt": at(1), "finishedAt": at(2), "reason": "Completed"}}


def board(name, uid, folder, **status):
    return {
        "kind": "TensorBoard",
        "metadata": owned(APP, name, uid),
        "spec": {"logDir": {"pvc": [{"name": "mnist-data", "subPath": [folder]}]}},
        "status": {"phase": "Running", **status},
    }


def board_pod(owner):
    status = {"containerStatuses": [{"name": "tensorboard", "restartCount": 1, "state": RUNNING}]}
    return {
        "metadata": owned(owner, f"{owner['metadata']['name']}-abcde-0", f"p-{owner['metadata']['uid']}"),
        "spec": {"containers": [{"name": "tensorboard", "image": "tb:2"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.9", **status},
    }


def record(revision, values, **status):
    spec = {"name": f"mnist-{revision}", "kind": "TensorFlowTrainingJob", "spec": {}}
    return {
        "metadata": owned(APP, f"mnist-{revision}", f"r-{revision}"),
        "spec": {
            "app": "mnist",
            "revision": revision,
            "digest": str(revision),
            "job": spec,
            "template": "model-training-0.1.0",
            "values": values,
        },
        "status": {"phase": "Succeeded", **status},
    }


BOARDS = (
    board("mnist-tensorboard1", "b-1", "mnist-1/worker-1/logs"),
    board("mnist", "b-all", "mnist-1"),
    board("mnist-tensorboard0", "b-0", "mnist-1/worker-0/logs", phase="Paused"),
)


@pytest.fixture
def objects():
    current = job()
    stranger = {**board("mnist-tensorboard7", "b-7", "x"), "metadata": {"name": "mnist-tensorboard7", "uid": "b-7"}}
    service = {"metadata": owned(BOARDS[1], "tb-mnist", "s-1"), "spec": {"ports": [{"port": 80}]}}
    return AppObjects(
        app=APP,
        records=(record(1, VALUES),),
        jobs=(current,),
        pods=(
            pod(current, "worker", 0, RUNNING),
            pod(current, "worker", 1, DONE, "Succeeded"),
            board_pod(BOARDS[1]),
        ),
        services=(service,),
        tensorboards=(*BOARDS, stranger),
    )


def test_there_is_a_service_for_every_replica_and_every_tensorboard(objects):
    rows = app_page(objects, NOW)["services"]

    assert [(row["name"], row["role"], row["state"], row["desired"], row["running"]) for row in rows] == [
        ("worker-0", "worker", "Running", 1, 1),
        ("worker-1", "worker", "Succeeded", 1, 0),
        ("ps-0", "ps", "Pending", 1, 0),
        ("tensorboard", "tensorboard", "Running", 1, 1),
        ("tensorboard0", "tensorboard", "Stopped", 0, 0),
        ("tensorboard1", "tensorboard", "Running", 1, 1),
    ]
    assert (rows[3]["service"], rows[3]["ports"], rows[3]["restarts"]) == ("tb-mnist", [80], 1)


def test_replicas_without_a_pod_are_stopped_when_the_training_has_ended(objects):
    ended = AppObjects(app=app("Succeeded"), jobs=(job(phase="Succeeded"),), pods=objects.pods[:2])

    rows = {row["name"]: row for row in app_page(ended, NOW)["services"]}

    assert (rows["ps-0"]["state"], rows["ps-0"]["desired"]) == ("Stopped", 0)


def test_containers_have_their_pod_place_and_state(objects):
    rows = app_page(objects, NOW)["containers"]

    first = next(row for row in rows if (row["service"], row["container"]) == ("worker-1", "tensorflow"))
    assert (first["state"], first["exitCode"], first["node"], first["address"]) == ("Succeeded", 0, "vm", "10.0.0.1")
    assert (first["image"], first["ports"], first["ended"]) == ("python:3.11", [2222], at(2))
    stages = [row for row in rows if row["isStage"]]
    assert {row["container"] for row in stages} == {"paceline-clone"}
    assert {row["service"]: row["state"] for row in stages} == {"worker-0": "Pending", "worker-1": "Stopped"}
    assert [row["service"] for row in rows if row["group"] == "tensorboard"] == ["tensorboard"]


def test_route_n_is_that_of_worker_n_and_the_one_of_all_workers_is_first(objects):
    routes = app_page(objects, NOW)["routes"]

    assert [(route["name"], route["worker"], route["tensorboard"]) for route in routes] == [
        ("tensorboard", None, "mnist"),
        ("tensorboard0", 0, "mnist-tensorboard0"),
        ("tensorboard1", 1, "mnist-tensorboard1"),
    ]
    assert routes[1]["folders"] == ["mnist-data/mnist-1/worker-0/logs"]


def test_logs_are_those_of_all_kept_revisions_and_of_the_tensorboards():
    older, newer = job(1, "Succeeded"), job(2)
    records = (record(1, VALUES), record(2, VALUES))
    pods = (pod(older, "worker", 0, DONE, "Succeeded"), pod(newer, "worker", 0, RUNNING), board_pod(BOARDS[1]))
    objects = AppObjects(app=app(revision=2), records=records, jobs=(older, newer), pods=pods, tensorboards=BOARDS[1:2])

    logs = [log for log in app_page(objects, NOW)["logs"] if not log["isStage"]]

    assert [(log["revision"], log["replica"], log["isRunning"]) for log in logs] == [
        (2, "worker-0", True),
        (1, "worker-0", False),
        (None, "tensorboard", True),
    ]


def test_a_revision_says_what_it_changed():
    changed = {**VALUES, "hyperparameters": {"lr": "0.5"}, "workers": 3}
    records = (record(2, changed, metrics={"loss": "0.2"}), record(1, VALUES), record(3, changed, phase="Failed"))
    objects = AppObjects(app=app(revision=3), records=records, jobs=(job(3),))

    rows = app_page(objects, NOW)["revisions"]

    assert [(row["revision"], row["phase"], row["exists"]) for row in rows] == [
        (3, "Failed", True),
        (2, "Succeeded", False),
        (1, "Succeeded", False),
    ]
    assert {change["path"]: (change["old"], change["new"]) for change in rows[1]["changes"]} == {
        "values.workers": (2, 3),
        "values.hyperparameters.lr": (None, "0.5"),
    }
    assert (rows[0]["changes"], rows[2]["isFirst"], rows[1]["metrics"]) == ([], True, {"loss": "0.2"})


def test_values_are_shown_as_written_and_as_they_hold(objects):
    values = app_page(objects, NOW)["values"]

    assert values["written"] == VALUES
    assert (values["effective"]["workers"], values["effective"]["memory"]) == (2, "1Gi")
    assert values["defaults"]["workers"] == 1


def test_an_application_without_status_template_or_job_has_a_page():
    plain = app(spec={"job": {"kind": "GenericJob", "spec": {}}})
    del plain["status"]

    view = app_page(AppObjects(app=plain), NOW)

    assert (view["phase"], view["revision"], view["job"], view["jobKind"]) == ("Pending", 0, None, "GenericJob")
    assert (view["services"], view["containers"], view["routes"], view["revisions"]) == ([], [], [], [])


def test_what_is_malformed_is_shown_as_text():
    record_of_nobody = record(1, {"command": HOSTILE}, phase=HOSTILE, startTime="yesterday", message=HOSTILE)
    unknown = app(spec={"template": {"name": HOSTILE}, "values": {"command": HOSTILE}}, waiting=HOSTILE)

    view = app_page(AppObjects(app=unknown, records=(record_of_nobody,)), NOW)

    assert (view["waiting"], view["template"], view["values"]["defaults"]) == (HOSTILE, HOSTILE, {})
    assert view["values"]["written"] == {"command": HOSTILE}
    assert view["revisions"][0]["phase"] == "Pending"


def test_events_are_those_of_the_application_its_current_job_and_its_tensorboards(objects):
    def event(uid, kind, name, minute):
        return {
            "metadata": {"uid": f"e-{uid}", "resourceVersion": "1"},
            "involvedObject": {"kind": kind, "name": name, "uid": uid},
            "reason": "Some",
            "message": HOSTILE,
            "lastTimestamp": at(minute),
        }

    events = (
        event("b-1", "TensorBoard", "mnist-tensorboard1", 4),
        event("a-1", "TrainingApp", "mnist", 1),
        event("j-1", "TensorFlowTrainingJob", "mnist-1", 3),
        event("other", "TrainingApp", "mnist-big", 2),
    )
    seen = AppObjects(app=APP, jobs=objects.jobs, tensorboards=BOARDS, events=events)

    view = app_page(seen, NOW)

    assert [row["uid"] for row in view["events"]] == ["e-a-1", "e-j-1", "e-b-1"]
    assert (view["eventCount"], view["events"][0]["message"]) == (3, HOSTILE)


def test_the_actions_fit_the_phase():
    def possible(application):
        view = app_page(AppObjects(app=application), NOW)
        return {entry["action"] for entry in view["actions"] if entry["possible"]}

    stopped = app("Stopped")
    stopped["spec"] = {**stopped["spec"], "suspend": True}
    assert possible(APP) == {"stop", "rerun", "uninstall"}
    assert possible(stopped) == {"resume", "rerun", "uninstall"}
    assert possible(app("Succeeded")) == {"rerun", "uninstall"}
