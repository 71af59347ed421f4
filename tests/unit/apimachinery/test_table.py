"""Tables as people know them."""

import pytest

from paceline.apimachinery.builtin.pod_printer import pod_cells, pod_status
from paceline.apimachinery.builtin.printers import event_cells, node_cells
from paceline.apimachinery.scheme import Column, Resource
from paceline.apimachinery.table import age, cells_of, columns_of, find_path, human_duration

NOW = "2030-01-02T00:00:00Z"

DURATIONS = {
    -5: "<invalid>",
    -1: "0s",
    0: "0s",
    119: "119s",
    120: "2m",
    125: "2m5s",
    599: "9m59s",
    600: "10m",
    10799: "179m",
    10800: "3h",
    11400: "3h10m",
    28800: "8h",
    172799: "47h",
    172800: "2d",
    180000: "2d2h",
    8 * 86400: "8d",
    400 * 86400: "400d",
    2 * 365 * 86400: "2y",
    1000 * 86400: "2y270d",
    10 * 365 * 86400: "10y",
}


@pytest.mark.parametrize(("seconds", "text"), DURATIONS.items())
def test_durations_are_written_as_kubectl_does(seconds, text):
    assert human_duration(seconds) == text


def test_an_age_needs_a_moment():
    assert age("2030-01-01T23:59:00Z", NOW) == "60s"
    assert [age(each, NOW) for each in (None, 5, "soon")] == ["<unknown>"] * 3


OBJECT = {
    "a": {"b.c": {"d": 1}, "list": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]},
}
FOUND = {
    ".a.list[0].type": ["Ready"],
    ".a.list[-1].type": ["Done"],
    ".a.list[5].type": [],
    ".a.list[*].type": ["Ready", "Done"],
    '.a.list[?(@.type=="Done")].status': ["False"],
    ".a.list[?(@.type=='None')].status": [],
    r".a.b\.c.d": [1],
    ".a['b.c'].d": [1],
    ".a.missing.deeper": [],
    ".a.list.type": [],
    "nonsense": [],
}


@pytest.mark.parametrize(("path", "found"), FOUND.items(), ids=FOUND)
def test_paths_lead_to_values(path, found):
    assert list(find_path(OBJECT, path)) == found


def kind(*columns):
    return Resource(
        group="g", version="v1", kind="K", plural="ks", schema_name="K", schema={}, columns=columns, cells=None
    )


def test_a_kind_without_columns_shows_name_and_age():
    obj = {"metadata": {"name": "x", "creationTimestamp": "2030-01-01T23:59:30Z"}}

    assert [column.name for column in columns_of(kind())] == ["Name", "Age"]
    assert cells_of(kind(), obj, NOW) == ("x", "30s")


CELLS = [
    ("string", "text", "text"),
    ("string", 5, "5"),
    ("string", ["a"], '["a"]'),
    ("string", None, None),
    ("integer", 5, 5),
    ("integer", "5", None),
    ("integer", True, None),
    ("boolean", True, True),
    ("boolean", "yes", None),
    ("date", "2030-01-01T23:59:30Z", "30s"),
    ("date", None, "<unknown>"),
]


@pytest.mark.parametrize(("sort", "value", "shown"), CELLS)
def test_a_cell_is_of_its_columns_type_or_empty(sort, value, shown):
    column = Column(name="C", path=".value", type=sort)

    assert cells_of(kind(column), {"metadata": {"name": "x"}, "value": value}, NOW) == ("x", shown)


def pod(status, *, deleted=False, **spec):
    metadata = {"name": "p", "creationTimestamp": "2030-01-01T23:59:00Z"}
    if deleted:
        metadata["deletionTimestamp"] = NOW
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}, "status": status}


def container(*, ready=False, restarts=0, last=None, **state):
    status = {"name": "c", "ready": ready, "restartCount": restarts, "state": state}
    return {**status, "lastState": {"terminated": last}} if last else status


INIT = {"initContainers": [{"name": "i"}, {"name": "j"}]}
WORDS = {
    "a new pod": (pod({"phase": "Pending"}), "Pending"),
    "a pod that was thrown out": (pod({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
    "a container that is made": (
        pod({"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}),
        "ContainerCreating",
    ),
    "a running container": (
        pod({"phase": "Running", "containerStatuses": [container(ready=True, running={})]}),
        "Running",
    ),
    "a container that crashes": (
        pod({"phase": "Running", "containerStatuses": [container(waiting={"reason": "CrashLoopBackOff"})]}),
        "CrashLoopBackOff",
    ),
    "a container that failed": (
        pod({"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 3, "reason": "Error"})]}),
        "Error",
    ),
    "a container that failed and nobody says why": (
        pod({"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 3})]}),
        "ExitCode:3",
    ),
    "a container that was killed": (
        pod({"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 137, "signal": 9})]}),
        "Signal:9",
    ),
    "a container that is done": (
        pod(
            {"phase": "Succeeded", "containerStatuses": [container(terminated={"exitCode": 0, "reason": "Completed"})]}
        ),
        "Completed",
    ),
    "a running pod that is deleted": (pod({"phase": "Running"}, deleted=True), "Terminating"),
    "a finished pod that is deleted": (pod({"phase": "Succeeded"}, deleted=True), "Succeeded"),
    "the first init container runs": (
        pod({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}, **INIT),
        "Init:0/2",
    ),
    "an init container failed": (
        pod(
            {
                "phase": "Pending",
                "initContainerStatuses": [
                    {"name": "i", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "j", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}},
                ],
            },
            **INIT,
        ),
        "Init:Error",
    ),
}


@pytest.mark.parametrize(("obj", "word"), WORDS.values(), ids=WORDS)
def test_one_word_says_where_a_pod_is(obj, word):
    assert pod_status(obj) == word


def test_a_pods_row_counts_what_is_ready_and_what_was_restarted():
    last = {"finishedAt": "2030-01-01T23:55:00Z"}
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [container(ready=True, restarts=2, last=last, running={})],
    }

    cells = pod_cells(pod(status, nodeName="n1"), NOW)

    assert cells == ("p", "1/1", "Running", "2 (5m ago)", "60s", "10.0.0.1", "n1", "<none>", "<none>")


def test_an_event_that_repeats_says_when_it_was_last_seen_and_how_often():
    event = {
        "metadata": {"name": "e"},
        "type": "Warning",
        "reason": "Failed",
        "message": "it broke ",
        "count": 3,
        "firstTimestamp": "2030-01-01T23:50:00Z",
        "lastTimestamp": "2030-01-01T23:59:00Z",
        "involvedObject": {"kind": "Pod", "name": "p"},
        "source": {"component": "agent", "host": "n1"},
    }

    cells = event_cells(event, NOW)

    assert cells[:4] == ("60s", "Warning", "Failed", "pod/p")
    assert (cells[5], cells[6]) == ("agent, n1", "it broke")


def test_a_node_says_whether_it_is_ready():
    node = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/control-plane": ""}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}},
    }

    assert node_cells(node, NOW)[:5] == ("n", "Ready,SchedulingDisabled", "control-plane", "<unknown>", "v1")
