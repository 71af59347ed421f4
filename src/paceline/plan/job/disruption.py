"""Pods that the cluster takes away: preempted, evicted, deleted with their node. No restart is counted for them.

A pod that was to end long ago, on a node that is not ready or gone, is lost: its end will never be reported. It is
deleted by force, so that its replica can run elsewhere; see decision record 0035 for what that guarantees.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.model import reasons, well_known_labels
from paceline.model.gang import RestartScope
from paceline.model.job_status import Failure, JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import begin_all, begin_together, current_attempts, unfinished
from paceline.plan.job.conditions import REPLICA_FAILURE, SUSPENDED, disruption_reason
from paceline.plan.job.plan import EventDraft, Plan
from paceline.plan.job.reporting import with_tasks
from paceline.plan.job.restart_policy import restarts_whole_gang
from paceline.plan.job.snapshot import OVERDUE, AuxiliaryPodSnapshot, PodSnapshot, is_overdue, pod_name
from paceline.plan.job.view import JobView

# Seconds between two checks of the node of an overdue pod.
CHECK_AGAIN = timedelta(seconds=10)
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def requeue_disrupted(view: JobView, _now: datetime) -> Plan | None:
    """Delete the pods of disrupted replicas and schedule them again, alone or with all; no restart is counted."""
    disrupted = tuple(
        replica for replica in view.replicas if replica.disruption and replica.phase is not ReplicaPhase.SUCCEEDED
    )
    if not disrupted:
        return None
    status, is_whole = view.status, restarts_whole_gang(view.gang, disrupted)
    if is_whole:
        status = begin_all(status, view.gang).but(resumes=status.resumes + 1)
    else:
        status = begin_together(status, view.replicas, disrupted)
    remaining = [
        replica for replica in view.replicas if replica not in disrupted and replica.phase is not ReplicaPhase.SUCCEEDED
    ]
    if status.phase is Phase.RUNNING and (is_whole or not remaining):
        status = status.but(phase=Phase.PENDING)
    first = disrupted[0].disruption
    reason, message = (first.reason, first.message) if first else ("", "")
    status = status.but(
        disruption={"reason": reason, "message": message}, disruptions=status.disruptions + 1, waiting=message
    )
    status = with_tasks(status, current_attempts(view, status))
    names = "all replicas" if is_whole else ", ".join(str(replica.place) for replica in disrupted)
    pod_names = {replica.name for replica in disrupted}
    delete = unfinished(tuple(pod for pod in view.pods if is_whole or pod.name in pod_names))
    event = EventDraft(
        reason=disruption_reason(reason),
        message=f"{message}; {names} are scheduled again; this does not count as a restart",
    )
    return Plan(status=status, delete=delete, events=(event,))


def give_up_lost(view: JobView, plan: Plan, now: datetime) -> Plan:
    """Delete lost pods by force, and say which node is lost; check the nodes of overdue pods again later."""
    status = plan.status
    is_held = status.phase.is_final or status.phase is Phase.PAUSED or status.is_true(SUSPENDED) or plan.deletes_job
    if view.nodes is None or is_held:
        return plan
    for pod in view.pods:
        if pod.name in view.lost:
            status = _with_node_lost(view, status, pod, now)
    ending = [pod for pod in view.ending_pods if pod_name(pod) not in view.lost]
    if explanations := [text for pod in ending if (text := _why_held(view, pod, now))]:
        status = status.but(waiting=explanations[0])
    # The rule that requeues a lost replica has recorded its own event already.
    reported = [event.message for event in plan.events if event.reason == reasons.NODE_LOST]
    events = tuple(
        EventDraft(reason=reasons.NODE_LOST, message=f"{text}; it is deleted by force", is_warning=True)
        for text in view.lost.values()
        if not any(message.startswith(text) for message in reported)
    )
    plan = replace(plan, status=status, force_delete=tuple(view.lost), events=(*plan.events, *events))
    return plan.waking(*(_check_at(pod, now) for pod in ending))


def _with_node_lost(view: JobView, status: JobStatus, pod: PodSnapshot, now: datetime) -> JobStatus:
    """Return the status with a lost pod as its failure; a restart that was charged for its consequences is refunded.

    The peers of a lost replica often fail first, before its node is known to be dead.
    """
    charged, message = view.stored.failure, view.lost[pod.name]
    is_gang = view.gang.scope is RestartScope.GANG
    if is_gang and charged is not None and charged.reason != reasons.NODE_LOST:
        records = tuple(
            replace(record, restarts=record.restarts - 1)
            if record.restarts and charged.pod == view.naming.pod(record.place, pod.attempt)
            else record
            for record in status.replicas
        )
        status = status.but(replicas=records)
    failure = Failure(pod=pod.name, reason=reasons.NODE_LOST, message=message, replica=str(pod.place))
    status = status.put(REPLICA_FAILURE, now, holds=True, reason=reasons.NODE_LOST, message=message)
    return status.but(failure=failure, disruption={"reason": reasons.NODE_LOST, "message": message})


def _why_held(view: JobView, pod: PodSnapshot | AuxiliaryPodSnapshot, now: datetime) -> str:
    """Return why an overdue pod is not given up although its node may be lost; empty if there is no doubt."""
    node = (view.nodes or {}).get(pod.node)
    if node is None or not is_overdue(pod, now):
        return ""
    if not node.is_known:
        return (
            f"pod {pod_name(pod)} has not ended on node {pod.node}, whose state the controller may not read "
            "(it needs the right to get nodes)"
        )
    if not node.is_lost:
        return ""
    return (
        f"pod {pod_name(pod)} may still run on node {pod.node}, which is not ready, and the job waits for it "
        f"(annotation {well_known_labels.NODE_LOST}); delete the node, or type: "
        f"kubectl taint node {pod.node} {OUT_OF_SERVICE}=nodeshutdown:NoExecute"
    )


def _check_at(pod: PodSnapshot | AuxiliaryPodSnapshot, now: datetime) -> datetime | None:
    """Return when to check the node of a pod that is being deleted."""
    return now + CHECK_AGAIN if is_overdue(pod, now) or pod.ends_at is None else pod.ends_at + OVERDUE
