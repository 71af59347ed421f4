"""What a pod's folders say, in a kubelet's words; and which events go with it."""

from dataclasses import replace

import pytest

from paceline.node.lifecycle.events import events_of, killing_message
from paceline.node.lifecycle.pod_status import pod_status
from paceline.node.lifecycle.view import ContainerAttempt, StartProblem
from paceline.node.probes.probes import Health
from tests.unit.node.pods import NOW, UID, container, deleted, done, ended, pod, running, started, view

TWO = (container("a"), container("b"))
INIT = [container("one")]

PHASES = {
    "nothing has started": (view(pod()), "Pending"),
    "one of two has started": (view(pod(*TWO), {"a": running()}), "Pending"),
    "all have started": (view(pod(*TWO), {"a": running(), "b": running()}), "Running"),
    "one has ended and one runs": (view(pod(*TWO), {"a": done(1), "b": running()}), "Running"),
    "all ended well": (view(pod(*TWO), {"a": done(0), "b": done(0)}), "Succeeded"),
    "one of all failed": (view(pod(*TWO), {"a": done(0), "b": done(1)}), "Failed"),
    "a failure that will be tried again": (view(pod(policy="OnFailure"), {"main": done(1)}), "Running"),
    "a success that will not": (view(pod(policy="OnFailure"), {"main": done(0)}), "Succeeded"),
    "an end that is always followed by a start": (view(pod(policy="Always"), {"main": done(0)}), "Running"),
    "the init container runs": (view(pod(initContainers=INIT), {"one": running()}), "Pending"),
    "the init container failed for good": (view(pod(initContainers=INIT), {"one": done(1)}), "Failed"),
    "the init container will be tried again": (
        view(pod(initContainers=INIT, policy="Always"), {"one": done(1)}),
        "Pending",
    ),
    "stopped on request": (view(deleted(policy="Always"), {"main": done(143)}), "Failed"),
    "stopped on request and content": (view(deleted(policy="Always"), {"main": done(0)}), "Succeeded"),
    "deleted before it ran": (view(deleted()), "Failed"),
}


@pytest.mark.parametrize(("world", "phase"), PHASES.values(), ids=PHASES)
def test_phase(world, phase):
    assert pod_status(world, NOW)["phase"] == phase


def state_of(world, index=0):
    return pod_status(world, NOW)["containerStatuses"][index]


def test_a_running_container():
    status = state_of(view(pod(), {"main": running(restarts=2)}, previous={"main": ended(1, 90)}))

    assert status == {
        "name": "main",
        "image": "python:3.11",
        "imageID": "paceline://host",
        "containerID": f"paceline://{UID}/main/2",
        "ready": True,
        "started": True,
        "restartCount": 2,
        "resources": {},
        "state": {"running": {"startedAt": "2030-01-01T11:59:00Z"}},
        "lastState": {
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "startedAt": "2030-01-01T11:58:00Z",
                "finishedAt": "2030-01-01T11:58:30Z",
                "containerID": f"paceline://{UID}/main/1",
            }
        },
    }


def test_an_ended_container_says_how_and_when():
    status = state_of(view(pod(), {"main": done(42, 10, ran=20)}))

    assert status["state"] == {
        "terminated": {
            "exitCode": 42,
            "reason": "Error",
            "startedAt": "2030-01-01T11:59:30Z",
            "finishedAt": "2030-01-01T11:59:50Z",
            "containerID": f"paceline://{UID}/main/0",
        }
    }
    assert (status["ready"], status["started"]) == (False, False)


def test_a_container_that_has_not_started_says_why():
    blocked = StartProblem(reason="ErrImagePull", message="map it")

    assert state_of(view(pod()))["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert state_of(view(pod(initContainers=INIT)))["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert state_of(view(pod(), problems={"main": blocked}))["state"] == {
        "waiting": {"reason": "ErrImagePull", "message": "map it"}
    }


def test_a_container_between_two_tries_backs_off():
    status = state_of(view(pod(policy="Always"), {"main": done(1, restarts=1)}))

    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["state"]["waiting"]["message"].startswith(
        "back-off 10s restarting failed container=main pod=demo_team"
    )
    assert status["lastState"]["terminated"]["exitCode"] == 1


def test_the_status_tells_addresses_and_since_when():
    status = pod_status(view(pod(), {"main": running()}), NOW)

    assert (status["podIP"], status["podIPs"]) == ("127.200.0.1", [{"ip": "127.200.0.1"}])
    assert (status["hostIP"], status["hostIPs"]) == ("127.0.0.1", [{"ip": "127.0.0.1"}])
    # Not when it was first reported: the container had been started a minute before.
    assert status["startTime"] == "2030-01-01T11:59:00Z"
    assert pod_status(view(pod(status={"startTime": "then"})), NOW)["startTime"] == "then"


def conditions(status):
    return {each["type"]: (each["status"], each.get("reason", "")) for each in status["conditions"]}


def test_conditions_follow_the_containers():
    waiting = conditions(pod_status(view(pod()), NOW))
    ready = conditions(pod_status(view(pod(), {"main": running()}), NOW))
    over = conditions(pod_status(view(pod(), {"main": done(0)}), NOW))
    failed = conditions(pod_status(view(pod(), {"main": done(1)}), NOW))

    assert waiting["Ready"] == waiting["ContainersReady"] == ("False", "ContainersNotReady")
    assert ready["Ready"] == ready["ContainersReady"] == ready["Initialized"] == ("True", "")
    assert over["Ready"] == over["ContainersReady"] == ("False", "PodCompleted")
    assert failed["Ready"] == ("False", "PodFailed")
    assert conditions(pod_status(view(pod(initContainers=INIT)), NOW))["Initialized"] == (
        "False",
        "ContainersNotInitialized",
    )


def test_a_conditions_moment_changes_only_with_the_condition():
    then = "2030-01-01T00:00:00Z"
    old = {
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": then},
            {"type": "Ready", "status": "False", "lastTransitionTime": then},
            {"type": "Initialized", "status": "True", "lastTransitionTime": then},
        ]
    }
    status = pod_status(view(pod(status=old), {"main": running()}), NOW)
    since = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}

    assert since["PodScheduled"] == since["Initialized"] == then
    assert since["Ready"] == "2030-01-01T12:00:00Z"


def told(*worlds):
    """Report one world after the other, and give the events of the last step."""
    old = {}
    for world in worlds:
        new = pod_status(world, NOW)
        found = [(story.reason, story.is_warning) for story in events_of(old, new)]
        old = new
    return found


def test_a_start_is_told_in_three_words():
    assert told(view(pod(), {"main": running()})) == [("Pulled", False), ("Created", False), ("Started", False)]


def test_nothing_is_told_twice():
    again = view(pod(), {"main": running()})

    assert told(again, again) == []
    assert told(again, view(pod(), {"main": done(0)})) == []


def test_a_program_that_could_not_start_did_not_start():
    failed = view(
        pod(), {"main": ContainerAttempt(restarts=0, started=started(), ended=ended(128, reason="StartError"))}
    )

    assert told(failed) == [("Pulled", False), ("Created", False), ("Failed", True)]


@pytest.mark.parametrize(
    ("reason", "events"),
    [
        ("ErrImagePull", [("Failed", True), ("Failed", True)]),
        ("ImagePullBackOff", [("BackOff", False), ("Failed", True)]),
        ("ErrImageNeverPull", [("ErrImageNeverPull", True), ("Failed", True)]),
        ("InvalidImageName", [("InspectFailed", True), ("Failed", True)]),
        ("FailedMount", [("FailedMount", True)]),
        ("SandboxMissing", [("FailedCreatePodSandBox", True)]),
        ("CreateContainerConfigError", [("Failed", True)]),
    ],
)
def test_what_keeps_a_container_from_starting_is_told(reason, events):
    blocked = view(pod(), problems={"main": StartProblem(reason=reason, message="do this")})

    assert told(view(pod()), blocked) == events
    assert told(blocked, blocked) == []


def test_backing_off_is_a_warning():
    assert told(
        view(pod(policy="Always"), {"main": running(restarts=1)}),
        view(pod(policy="Always"), {"main": done(1, restarts=1)}),
    ) == [("BackOff", True)]


def test_the_environment_of_an_image_is_said():
    status = pod_status(view(pod(), {"main": running()}), NOW)

    assert events_of({}, status)[0].message == (
        'Container image "python:3.11" is the environment "host" on this machine'
    )


def test_a_program_that_could_not_start_again_did_not_start():
    failed = ContainerAttempt(restarts=1, started=started(), ended=ended(128, reason="StartError"))
    status = pod_status(view(pod(policy="Always"), {"main": failed}, previous={"main": ended(1)}), NOW)
    main = status["containerStatuses"][0]

    assert "waiting" in main["state"]
    assert (main["lastState"]["terminated"]["exitCode"], main["lastState"]["terminated"]["startedAt"]) == (
        128,
        "1970-01-01T00:00:00Z",
    )
    assert [story.reason for story in events_of({}, status)] == ["Pulled", "Created", "Failed", "BackOff"]


def test_a_final_phase_stays_whatever_the_containers_have_come_to():
    failed = deleted(status={"phase": "Failed", "reason": "DeadlineExceeded"})

    assert pod_status(view(failed, {"main": done(0)}), NOW)["phase"] == "Failed"


GREETED = container(lifecycle={"postStart": {"exec": {"command": ["true"]}}})


def test_a_container_counts_as_running_once_its_first_hook_has_run():
    before = pod_status(view(pod(GREETED), {"main": running()}), NOW)
    after = pod_status(view(pod(GREETED), {"main": replace(running(), is_post_start_done=True)}), NOW)

    assert (before["phase"], after["phase"]) == ("Pending", "Running")
    assert before["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}


GATED = {"readinessGates": [{"conditionType": "Gate"}]}


@pytest.mark.parametrize(
    ("gate", "status", "message"),
    [
        ([], "False", 'corresponding condition of pod readiness gate "Gate" does not exist.'),
        (
            [{"type": "Gate", "status": "False"}],
            "False",
            'the status of pod readiness gate "Gate" is not "True", but False',
        ),
        ([{"type": "Gate", "status": "True"}], "True", None),
    ],
)
def test_a_pod_is_ready_when_its_gates_are_open(gate, status, message):
    said = pod_status(view(pod(status={"conditions": gate}, **GATED), {"main": running()}), NOW)
    found = {each["type"]: each for each in said["conditions"]}

    assert (found["Ready"]["status"], found["Ready"].get("message")) == (status, message)
    assert found["ContainersReady"]["status"] == "True"


def test_a_keeper_that_is_about_to_go_does_not_keep_a_deleted_pod_open():
    leaving = {"good": replace(done(0), has_shim=True)}
    said = pod_status(view(deleted(container("bad"), container("good")), leaving), NOW)

    assert said["phase"] == "Failed"
    assert said["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_a_container_that_never_came_is_unknown_once_its_pod_is_deleted():
    gone = pod_status(view(deleted()), NOW)
    waiting = pod_status(view(deleted(initContainers=[container("first")]), {"first": done(3)}), NOW)

    assert gone["phase"] == waiting["phase"] == "Failed"
    assert gone["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    # Its turn had not come.
    assert waiting["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_a_pod_that_was_initialized_stays_so_while_a_sidecar_is_started_again():
    proxy = container("proxy", restartPolicy="Always")
    world = view(pod(initContainers=[proxy]), {"proxy": done(1, restarts=2), "main": running()})
    found = {each["type"]: each["status"] for each in pod_status(world, NOW)["conditions"]}

    assert (found["Initialized"], found["Ready"]) == ("True", "False")


def test_that_a_deadline_has_passed_is_told_once():
    late = pod(status={"startTime": "2030-01-01T11:00:00Z"}, activeDeadlineSeconds=5)
    status = pod_status(view(late, {"main": done(143)}), NOW)

    assert events_of({}, status)[0].reason == "DeadlineExceeded"
    assert events_of(status, status) == ()


def test_an_init_container_that_never_came_is_unknown_too_but_not_those_behind_it():
    first, second = container("first"), container("second")
    gone = pod_status(view(deleted(initContainers=[first, second])), NOW)
    words = [next(iter(each["state"])) for each in gone["initContainerStatuses"]]

    assert words == ["terminated", "waiting"]


def test_a_container_that_goes_with_its_pod_keeps_its_end_before():
    asked = replace(done(3, restarts=1), stop_requested_at=NOW)
    goes = pod_status(view(deleted(policy="Always"), {"main": asked}, previous={"main": ended(4)}), NOW)
    ends = pod_status(view(pod(policy="OnFailure"), {"main": done(0, restarts=1)}, previous={"main": ended(4)}), NOW)

    assert goes["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 4
    assert ends["containerStatuses"][0]["lastState"] == {}


SICK = Health(alive=False, failed="livenessProbe")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (pod(policy="Always"), "Container main failed liveness probe, will be restarted"),
        (pod(), "Stopping container main"),
        (pod(container(), container("b")), "Container main failed liveness probe"),
        (
            pod(container("b"), initContainers=[container(restartPolicy="Always")]),
            "Init container main failed liveness probe",
        ),
        (deleted(policy="Always"), "Stopping container main"),
    ],
)
def test_why_a_sick_container_is_stopped_is_said(spec, words):
    names = [each["name"] for each in (*spec["spec"].get("initContainers", ()), *spec["spec"]["containers"])]
    world = view(spec, {name: running() for name in names}, health={"main": SICK})

    assert killing_message(world, "main") == words
