"""Pods and nodes are read as Kubernetes writes them."""

from decimal import Decimal

import pytest

from paceline.plan.scheduling.gang import place
from paceline.plan.scheduling.resources import asks_of, requests_of, rooms_of

GIB = Decimal(2**30)


def container(**resources):
    return {"name": "main", "resources": resources}


def pod(name, *, owner="", attempt=0, size=None, index=0, **parts):
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": parts.pop("since", "2030-01-01T00:00:00Z"),
        "labels": {"replica-type": "worker", "replica-index": str(index), "paceline.dev/attempt": str(attempt)},
        "annotations": {} if size is None else {"paceline.dev/gang-size": str(size)},
    }
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
        metadata["labels"]["tensorstack.dev/owner-name"] = owner
    if parts.pop("deleting", False):
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    spec = {"containers": [container(requests={"memory": "1Gi"})], **parts.pop("spec", {})}
    return {"metadata": metadata, "spec": spec, "status": {"phase": parts.pop("phase", "Pending")}}


def node(name="one", ready="True", **spec):
    return {
        "metadata": {"name": name, "labels": {"disk": "ssd"}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


REQUESTS = {
    "containers add up": (
        {"containers": [container(requests={"cpu": "500m"}), container(requests={"cpu": 1})]},
        {"cpu": Decimal("1.5")},
    ),
    "a limit alone is a request": (
        {"containers": [container(limits={"nvidia.com/gpu": 2})]},
        {"nvidia.com/gpu": Decimal(2)},
    ),
    "a request beside its limit counts": (
        {"containers": [container(limits={"cpu": 4}, requests={"cpu": 2})]},
        {"cpu": Decimal(2)},
    ),
    "an init container counts when it is the largest": (
        {
            "containers": [container(requests={"memory": "1Gi"})],
            "initContainers": [container(requests={"memory": "2Gi"}), container(requests={"memory": "1Gi"})],
        },
        {"memory": 2 * GIB},
    ),
    "a sidecar counts beside the containers, and beside the init containers after it": (
        {
            "containers": [container(requests={"memory": "1Gi"})],
            "initContainers": [
                container(requests={"memory": "4Gi"}),
                {**container(requests={"memory": "1Gi", "nvidia.com/gpu": 1}), "restartPolicy": "Always"},
                container(requests={"memory": "4Gi"}),
            ],
        },
        {"memory": 5 * GIB, "nvidia.com/gpu": Decimal(1)},
    ),
    "what running a pod costs is added": (
        {"containers": [container(requests={"memory": "1Gi"})], "overhead": {"memory": "1Gi"}},
        {"memory": 2 * GIB},
    ),
    "ports of the node are asked for one by one": (
        {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]}]},
        {"port 8080/TCP": Decimal(1)},
    ),
    "nothing asked is nothing needed": ({"containers": [{"name": "main"}]}, {}),
}


@pytest.mark.parametrize(("spec", "amounts"), REQUESTS.values(), ids=REQUESTS)
def test_what_a_pod_asks_for(spec, amounts):
    assert requests_of(spec) == {"pods": Decimal(1), **amounts}


def test_a_node_has_what_its_pods_leave():
    pods = (
        pod("runs", spec={"nodeName": "one"}, phase="Running"),
        pod("ended", spec={"nodeName": "one"}, phase="Failed"),
        pod("elsewhere", spec={"nodeName": "two"}, phase="Running"),
        pod("waits"),
    )
    (room,) = rooms_of((node(),), pods)

    assert room.free("memory") == 3 * GIB
    assert room.free("pods") == 109
    assert room.free("nvidia.com/gpu") == 0
    assert room.labels == {"disk": "ssd"}


def test_a_node_that_is_not_ready_or_closed_takes_nothing():
    assert rooms_of((node(ready="Unknown"), node(unschedulable=True), {"metadata": {"name": "new"}}), ()) == ()


WAITING = {
    "a pod without a node waits": (pod("a"), 1),
    "a pod with a node does not": (pod("a", spec={"nodeName": "one"}), 0),
    "a pod that ended does not": (pod("a", phase="Failed"), 0),
    "a pod that is told to end does not": (pod("a", deleting=True), 0),
}


@pytest.mark.parametrize(("waiting", "count"), WAITING.values(), ids=WAITING)
def test_who_waits(waiting, count):
    assert len(asks_of((waiting,))) == count


def test_pods_of_one_job_are_one_gang():
    gang, single = asks_of(
        (
            pod("a-0", owner="a", size=2, since="2030-01-02T00:00:00Z"),
            pod("a-1", owner="a", size=2, index=1),
            pod("other", spec={"nodeSelector": {"disk": "ssd"}}),
        )
    )

    assert (gang.name, len(gang.asks), gang.size, gang.present) == ("a", 2, 2, 2)
    assert gang.since == "2030-01-01T00:00:00Z"
    assert (single.name, single.size, single.present) == ("other", 1, 1)
    assert single.asks[0].wishes.selector == {"disk": "ssd"}


def test_pods_of_a_replica_set_are_no_gang():
    assert len(asks_of((pod("a", owner="rs"), pod("b", owner="rs")))) == 2


def test_old_tries_do_not_make_the_next_one_complete():
    (gang,) = asks_of(
        (
            pod("a-0", owner="a", size=2, phase="Failed"),
            pod("a-1", owner="a", size=2, index=1, phase="Succeeded"),
            pod("a-0-r1", owner="a", size=2, attempt=1),
        )
    )

    assert (gang.size, gang.present) == (2, 1)


def test_a_member_that_came_back_before_the_others_were_placed_completes_them():
    """A pod was deleted while its gang waited: its next try leaves nobody waiting for ever, and does not go alone."""
    gangs = asks_of(
        (
            pod("a-0", owner="a", size=2),
            pod("a-1-r1", owner="a", size=1, index=1, attempt=1),
        )
    )

    assert [(gang.size, gang.present, len(gang.asks)) for gang in gangs] == [(2, 2, 2)]
    assert len(place(gangs, rooms_of((node(),), ())).bind) == 2
    full = pod("other", spec={"nodeName": "one", "containers": [container(requests={"memory": "3Gi"})]})
    assert place(gangs, rooms_of((node(),), (full,))).bind == {}


def test_a_member_that_comes_back_to_others_which_run_is_placed_alone():
    gangs = asks_of(
        (
            pod("a-0", owner="a", size=3, spec={"nodeName": "one"}, phase="Running"),
            pod("a-1-r1", owner="a", size=1, index=1, attempt=1),
            pod("a-2-r2", owner="a", size=1, index=2, attempt=2),
        )
    )

    assert [(gang.size, len(gang.asks)) for gang in gangs] == [(1, 1), (1, 1)]


def test_labels_that_are_no_numbers_are_read_as_a_first_lonely_try():
    strange = pod("a", size="many", attempt="x")
    (gang,) = asks_of((strange,))

    assert (gang.size, gang.present) == (1, 1)


def test_a_node_that_counts_no_pods_takes_any_number():
    uncounted = node()
    del uncounted["status"]["allocatable"]["pods"]
    many = tuple(pod(f"p{index}", spec={"containers": [{"name": "main"}]}) for index in range(200))

    assert len(place(asks_of(many), rooms_of((uncounted,), ())).bind) == 200


def test_who_goes_first_is_read_from_the_pods():
    queued = pod("queued")
    queued["metadata"]["annotations"]["paceline.dev/queue-priority"] = "7"

    plain, urgent, first = asks_of((pod("plain"), pod("urgent", spec={"priority": 1}), queued))

    assert urgent.priority > first.priority > plain.priority
