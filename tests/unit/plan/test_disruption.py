"""Pods that the cluster takes away, with or without their node: no restart is counted, and no replica runs twice."""

from dataclasses import replace

import pytest

from paceline.controllers.job.snapshot import disruption_of, node_snapshot
from paceline.model.job_status import Failure, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.snapshot import OVERDUE, AuxiliaryPodSnapshot, Disruption, NodeSnapshot
from tests.unit.plan.worlds import NOW, REPLICA, after, gang, numbers, obeyed, pod, seen

RUNNING = {"phase": Phase.RUNNING, "start_time": NOW, "running_time": NOW}
BOTH = {"worker-0": 1, "worker-1": 1}
# Every reason of DisruptionTarget that Kubernetes documents but preemption, with its usual message.
REASONS = {
    "EvictionByEvictionAPI": "Eviction API: evicting",
    "DeletionByTaintManager": "Taint manager: deleting due to NoExecute taint",
    "DeletionByPodGC": "PodGC: node no longer exists",
    "TerminationByKubelet": "Pod was terminated in response to imminent node shutdown.",
}
LOST = after(OVERDUE.total_seconds())
NOT_READY = NodeSnapshot(is_ready=False, since="2030-01-01T00:00:00Z")


def marked(reason, *, phase="Running", is_deleting=True):
    deletion = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if is_deleting else {}
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": REASONS.get(reason, "")}
    return {
        "metadata": {"name": "demo-12345-worker-1", **deletion},
        "spec": {"nodeName": "n2"},
        "status": {"phase": phase, "conditions": [condition]},
    }


def disrupted(*members, reason="EvictionByEvictionAPI", of=None, **status):
    """Members of which the second is taken away."""
    world = seen(*members, of=of, **{**RUNNING, **status})
    mark = disruption_of(marked(reason))
    return replace(
        world, pods=tuple(replace(pod, disruption=mark if pod.place.index == 1 else None) for pod in world.pods)
    )


@pytest.mark.parametrize("reason", REASONS)
def test_no_disruption_is_charged_to_the_restart_budget(reason):
    plan = decide(disrupted("Running", "Running", reason=reason, of=gang(2, backoff_limit=0)), NOW)

    assert (plan.status.backoff_count, plan.status.start_after, plan.status.failure) == (0, None, None)
    assert (numbers(plan.status), plan.status.disruptions) == (BOTH, 1)
    assert plan.status.disruption["reason"] == reason
    assert plan.status.waiting == f"pod demo-12345-worker-1 was taken from node n2 ({reason}: {REASONS[reason]})"
    (event,) = [event for event in plan.events if event.reason == "Disrupted"]
    assert event.message == f"{plan.status.waiting}; all replicas are scheduled again; this does not count as a restart"


@pytest.mark.parametrize("members", [("Failed 1", "Failed 143"), ("Failed 1", "gone")])
def test_peers_that_fail_because_of_a_drain_are_not_charged_either(members):
    world = disrupted(*members, of=gang(2, backoff_limit=0))
    mark = disruption_of(marked("EvictionByEvictionAPI"))
    plan = decide(replace(world, departed={"uid-worker-1-0": mark}), NOW)

    assert (plan.status.phase, plan.status.backoff_count, numbers(plan.status)) == (Phase.PENDING, 0, BOTH)


def test_a_pod_that_was_deleted_by_hand_is_charged():
    plan = decide(seen("Running", "gone", **RUNNING), NOW)

    assert plan.status.backoff_count == 1


def test_in_replica_scope_only_the_evicted_replica_starts_again():
    plan = decide(disrupted("Running", "Running", of=gang(2, scope=REPLICA)), NOW)

    assert (numbers(plan.status), plan.status.phase) == ({"worker-1": 1}, Phase.RUNNING)


@pytest.mark.parametrize(
    ("phase", "is_deleting", "counts"),
    [("Running", False, False), ("Running", True, True), ("Failed", False, True)],
)
def test_a_mark_counts_once_the_pod_is_deleted_or_has_ended(phase, is_deleting, counts):
    pod = marked("TerminationByKubelet", phase=phase, is_deleting=is_deleting)

    assert (disruption_of(pod) is not None) is counts


def test_a_mark_that_was_taken_back_does_not_count():
    pod = marked("EvictionByEvictionAPI")
    pod["status"]["conditions"][0]["status"] = "False"

    assert disruption_of(pod) is None


def on_dead_node(*members, node=NOT_READY, of=None, ends_at=NOW, **aside):
    """Members of which the second was deleted and is on node n2, which is as given."""
    world = seen(*members, of=of, **{**RUNNING, **aside.pop("status", {})})
    pods = tuple(
        replace(pod, node="n2", is_deleting=True, ends_at=ends_at) if pod.place.index == 1 else replace(pod, node="n1")
        for pod in world.pods
    )
    return replace(world, pods=pods, nodes={"n2": node} if node else {}, **aside)


def test_a_pod_that_does_not_end_on_a_dead_node_is_given_up_and_not_charged():
    plan = decide(on_dead_node("Running", "Running", of=gang(2, backoff_limit=0)), LOST)

    assert plan.force_delete == ("demo-12345-worker-1",)
    assert plan.delete == ("demo-12345-worker-0",)
    assert (plan.status.backoff_count, numbers(plan.status), plan.create) == (0, BOTH, ())
    failure = plan.status.failure
    assert (failure.reason, failure.pod, failure.replica) == ("NodeLost", "demo-12345-worker-1", "worker-1")
    assert failure.message == (
        "node n2 is not ready since 2030-01-01T00:00:00Z, and pod demo-12345-worker-1 has not ended there"
    )
    assert [event.reason for event in plan.events].count("NodeLost") == 1


def test_the_next_attempt_of_a_lost_replica_begins_only_when_its_pod_is_gone():
    world = on_dead_node("Running", "Running")
    plan = decide(world, LOST)
    pods = tuple(pod for pod in world.pods if pod.place.index == 1)
    still_there = decide(replace(world, status=plan.status, pods=pods), LOST)
    gone = decide(replace(world, status=plan.status, pods=()), LOST)

    assert (still_there.create, still_there.force_delete) == ((), ("demo-12345-worker-1",))
    assert [(new.place.index, new.attempt) for new in gone.create] == [(0, 1), (1, 1)]


def test_a_pod_that_only_finalizers_keep_is_not_deleted_by_force_again_and_still_waited_for():
    world = on_dead_node("Running", "Running")
    plan = decide(world, LOST)
    forced = tuple(replace(pod, is_forced=True) for pod in world.pods if pod.place.index == 1)
    again = decide(replace(world, status=plan.status, pods=forced), LOST)

    assert (again.force_delete, again.create) == ((), ())


STAYS = {
    "whose node is ready: its kubelet ends it": ({"node": NodeSnapshot()}, LOST),
    "that is not overdue yet": ({}, after(OVERDUE.total_seconds() - 1)),
    "whose node may not be read": ({"node": NodeSnapshot(is_known=False)}, LOST),
    "that the job waits for": ({"waits_for_nodes": True}, LOST),
    "of a paused job": ({"is_paused": True, "status": {"phase": Phase.PAUSED}}, LOST),
    "on a cluster that loses no nodes": ({"nodes": None}, LOST),
}


@pytest.mark.parametrize(("aside", "now"), STAYS.values(), ids=STAYS)
def test_a_pod_is_not_given_up(aside, now):
    nodes = {"nodes": aside.pop("nodes")} if "nodes" in aside else {}
    plan = decide(replace(on_dead_node("Running", "Running", **aside), **nodes), now)

    assert plan.force_delete == ()
    assert numbers(plan.status) == {}


@pytest.mark.parametrize("node", [NodeSnapshot(is_gone=True), replace(NOT_READY, is_out_of_service=True)])
def test_a_job_that_waits_for_nodes_gives_up_pods_of_nodes_that_are_gone_or_out_of_service(node):
    plan = decide(on_dead_node("Running", "Running", node=node, waits_for_nodes=True), LOST)

    assert plan.force_delete == ("demo-12345-worker-1",)


def test_a_job_that_waits_for_a_node_says_so_and_what_to_do():
    waits = decide(on_dead_node("Running", "Running", waits_for_nodes=True), LOST)
    unknown = decide(on_dead_node("Running", "Running", node=NodeSnapshot(is_known=False)), LOST)

    assert "kubectl taint node n2 node.kubernetes.io/out-of-service" in waits.status.waiting
    assert "the right to get nodes" in unknown.status.waiting


def test_a_node_is_looked_at_when_its_pod_becomes_overdue_and_again_while_it_is():
    first = decide(on_dead_node("Running", "Running", node=None), NOW)
    again = decide(on_dead_node("Running", "Running", node=NodeSnapshot()), LOST)

    assert first.wake_at == LOST
    assert (again.wake_at - LOST).total_seconds() == 10


def test_a_restart_charged_for_peers_that_failed_before_the_node_was_known_to_be_dead_is_refunded_once():
    """The peer fails, all restart, and then the old pod turns out to be lost. Its replica has failed once before."""
    world = seen("Failed 1", "Running", restarts={"worker-1": 1}, **RUNNING)
    restarted = decide(world, NOW)
    assert restarted.status.backoff_count == 2
    stuck = tuple(replace(pod, node="n2", is_deleting=True, ends_at=NOW) for pod in world.pods if pod.place.index == 1)
    lost = replace(obeyed(world, restarted), pods=stuck, nodes={"n2": NOT_READY})
    refunded = decide(lost, LOST)
    again = decide(replace(lost, status=refunded.status), LOST)

    assert (refunded.status.backoff_count, again.status.backoff_count) == (1, 1)
    assert refunded.status.failure.reason == "NodeLost"
    assert [event.reason for event in refunded.events].count("NodeLost") == 1


def test_in_replica_scope_the_failure_of_another_replica_is_its_own():
    failure = Failure(pod="demo-12345-worker-0", reason="Error", replica="worker-0")
    status = {"attempts": {"worker-0": 1}, "restarts": 1, "failure": failure}
    plan = decide(on_dead_node("Running", "Running", of=gang(2, scope=REPLICA), status=status), LOST)

    assert (plan.force_delete, plan.status.backoff_count) == (("demo-12345-worker-1",), 1)


def test_only_the_restart_of_that_attempt_is_refunded():
    failure = Failure(pod="demo-12345-worker-0-r1", reason="Error", replica="worker-0")
    world = seen("", "", attempt=2, restarts=2, failure=failure, **RUNNING)
    older = (pod(world.gang.members[1].place, "Running", node="n2", is_deleting=True, ends_at=NOW),)
    plan = decide(replace(world, pods=older, nodes={"n2": NOT_READY}), LOST)

    assert (plan.force_delete, plan.status.backoff_count) == (("demo-12345-worker-1",), 2)


def test_a_lost_auxiliary_pod_is_given_up_too():
    auxiliary = AuxiliaryPodSnapshot(
        name="resolve", pod="demo-12345-resolve", attempt=0, ends_at=NOW, node="n2", uid="u"
    )
    world = replace(seen("", "", **RUNNING), ending_auxiliary_pods=(auxiliary,), nodes={"n2": NOT_READY})

    assert decide(world, LOST).force_delete == ("demo-12345-resolve",)


def test_a_node_is_ready_only_if_it_says_so():
    def node(status, *taints):
        ready = {"type": "Ready", "status": status, "lastTransitionTime": "2030-01-01T00:00:00Z"}
        return {"spec": {"taints": list(taints)}, "status": {"conditions": [ready]}}

    assert not node_snapshot(node("True")).is_lost
    assert node_snapshot(node("Unknown")).is_lost
    assert not node_snapshot(node("Unknown")).is_certain
    assert node_snapshot(node("False", {"key": "node.kubernetes.io/out-of-service"})).is_certain
    assert node_snapshot({}).is_lost


def test_a_disruption_of_a_departed_pod_is_only_of_that_pod():
    mark = Disruption(reason="EvictionByEvictionAPI", message="x")
    plan = decide(replace(seen("Running", "gone", **RUNNING), departed={"another": mark}), NOW)

    assert plan.status.backoff_count == 1
