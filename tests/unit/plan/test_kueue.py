"""A job in a queue of Kueue: when it may run, where, and what its Workload says."""

from dataclasses import replace

import pytest

from paceline.errors import BadRequest
from paceline.model.gang import RestartPolicy
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ReplicaPhase, ReplicaRecord
from paceline.plan.job.decide import decide
from paceline.plan.queueing.kueue import (
    NOTHING,
    QueueState,
    WorkloadPlan,
    WorkloadPriority,
    WorkloadView,
    decide_workload,
    placed,
    pod_sets,
    queue_state,
    workload_manifest,
)
from tests.unit.plan.worlds import GANG, NOW, REPLICA, SITE, after, gang, places, seen, then

OWNER = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "GenericJob", "name": "demo", "uid": "u"}
FLAVORS = {
    "a100": {"spec": {"nodeLabels": {"gpu": "a100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}},
    "spot": {"spec": {"nodeLabels": {"pool": "spot"}}},
}


def condition(kind, status="True", reason="Because", message=""):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "before"}


def workload(*conditions, queue="team", workers=2, active=True, **status):
    spec = {"queueName": queue, "active": active, "podSets": [{"name": "worker", "count": workers}]}
    return {"metadata": {"generation": 3}, "spec": spec, "status": {"conditions": list(conditions), **status}}


def view(of=None, *, phase=Phase.RUNNING, records=(), scope=GANG, **fields):
    status = JobStatus(phase=phase, replicas=tuple(records))
    return WorkloadView(queue="team", gang=gang(2, scope=scope), status=status, workload=of, **fields)


def conditions(status):
    return {row["type"]: row["status"] for row in status["conditions"]}


RESERVED, ADMITTED = condition("QuotaReserved"), condition("Admitted")
EVICTED = condition("Evicted", reason="Preempted", message="for a more important one")
WAITING = {
    "no Workload yet": (None, "queue team: its Workload is being created"),
    "no word of Kueue yet": (workload(), "queue team: waits for quota"),
    "no quota": (
        workload(condition("QuotaReserved", "False", "Pending", "LocalQueue team doesn't exist")),
        "queue team: LocalQueue team doesn't exist",
    ),
    "a check that is pending": (
        workload(RESERVED, admissionChecks=[{"name": "dws", "state": "Pending"}, {"name": "ok", "state": "Ready"}]),
        "queue team: has quota and waits for the admission checks dws",
    ),
    "an eviction": (workload(RESERVED, ADMITTED, EVICTED), "queue team: evicted: for a more important one"),
    "an unknown flavor": (
        workload(RESERVED, ADMITTED, admission={"podSetAssignments": [{"name": "worker", "flavors": {"cpu": "x"}}]}),
        "queue team: admitted, but ResourceFlavor 'x' does not exist",
    ),
}


@pytest.mark.parametrize(("of", "message"), WAITING.values(), ids=WAITING)
def test_a_job_waits_because_of(of, message):
    state = queue_state("team", of, FLAVORS)

    assert (state.is_admitted, state.message) == (False, message)


def test_the_flavors_of_an_admission_become_node_selectors_and_tolerations():
    assignment = {"name": "worker", "flavors": {"cpu": "spot", "nvidia.com/gpu": "a100"}}
    update = {"name": "worker", "labels": {"reservation": "7"}, "nodeSelector": {"zone": "b"}}
    of = workload(
        RESERVED,
        ADMITTED,
        admission={"podSetAssignments": [assignment]},
        admissionChecks=[{"name": "dws", "state": "Ready", "podSetUpdates": [update, {"name": "other"}]}],
    )
    state = queue_state("team", of, FLAVORS)
    member = placed(gang(2), state.placements).members[1]

    assert state.is_admitted
    assert member.template["spec"]["nodeSelector"] == {"pool": "spot", "gpu": "a100", "zone": "b"}
    assert member.template["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert member.template["metadata"]["labels"] == {"reservation": "7"}


def test_no_pod_is_created_before_admission_and_all_of_them_after():
    queued = QueueState(queue="team", message="queue team: waits for quota")
    world = replace(seen("", ""), is_suspended=True, queueing=queued)
    plan = decide(world, NOW)
    assert (plan.create, plan.status.waiting) == ((), "queue team: waits for quota")
    assert [event.reason for event in plan.events] == ["Created", "Queued"]

    later = replace(then(world, plan, "", ""), is_suspended=True, queueing=replace(queued, message="queue team: full"))
    plan = decide(later, after(1))
    assert (plan.create, plan.status.waiting, plan.events) == ((), "queue team: full", ())

    free = {"is_suspended": False, "queueing": QueueState(queue="team", is_admitted=True)}
    admitted = replace(then(later, plan, "", ""), **free)
    plan = decide(admitted, after(2))
    assert "admitted by queue team" in plan.events[0].message
    plan = decide(replace(then(admitted, plan, "", ""), **free), after(2))
    assert len(plan.create) == 2


def test_a_workload_has_one_pod_set_per_role_and_goes_with_the_job():
    priority = WorkloadPriority(name="high", value=9, is_of_kueue=True)
    of = workload_manifest(SITE, view(), version="v1beta2", priority=priority, owner=OWNER)
    assert of["metadata"]["ownerReferences"] == [OWNER]
    assert of["spec"]["podSets"][0] | {"template": 0} == {"name": "worker", "count": 2, "template": 0}
    assert of["spec"]["podSets"][0]["template"]["spec"]["restartPolicy"] == "Never"
    assert of["spec"]["priorityClassRef"]["kind"] == "WorkloadPriorityClass"
    old = workload_manifest(SITE, view(), version="v1beta1", priority=priority, owner=OWNER)
    assert (old["spec"]["priority"], old["spec"]["priorityClassName"]) == (9, "high")


def test_roles_are_pod_sets_in_lower_case():
    crew = replace(
        gang(2),
        members=tuple(replace(m, place=replace(m.place, role=r)) for m, r in zip(gang(2).members, "AB", strict=True)),
    )
    assert [(pods["name"], pods["count"]) for pods in pod_sets(crew)] == [("a", 1), ("b", 1)]


STEPS = {
    "is created": (view(None, phase=Phase.PENDING), WorkloadPlan(creates=True)),
    "is not created for a job that has ended": (view(None, phase=Phase.FAILED), NOTHING),
    "of another size is replaced": (view(workload(workers=3)), WorkloadPlan(deletes=True)),
    "of another queue is replaced": (view(workload(queue="other")), WorkloadPlan(deletes=True)),
    "that finished is replaced when the job runs again": (
        view(workload(condition("Finished"))),
        WorkloadPlan(deletes=True),
    ),
    "is inactive while the job is on hold": (view(workload(), is_on_hold=True), WorkloadPlan(is_active=False)),
    "is active again after that": (view(workload(active=False)), WorkloadPlan(is_active=True)),
    "keeps its quota while an evicted pod ends": (
        view(workload(RESERVED, ADMITTED, EVICTED), has_live_pods=True),
        NOTHING,
    ),
    "without an admission is left alone": (view(workload(), phase=Phase.PENDING), NOTHING),
    "that is being deleted is left alone": (
        view({**workload(workers=9), "metadata": {"deletionTimestamp": "now"}}),
        NOTHING,
    ),
}


@pytest.mark.parametrize(("of", "plan"), STEPS.values(), ids=STEPS)
def test_a_workload(of, plan):
    assert decide_workload(of, NOW) == plan


@pytest.mark.parametrize(("reason", "requeued"), [("Preempted", "True"), ("PodsReadyTimeout", "False")])
def test_an_evicted_workload_gives_its_quota_back_when_no_pod_runs(reason, requeued):
    of = workload(RESERVED, ADMITTED, {**EVICTED, "reason": reason}, admission={}, reclaimablePods=[])
    status = decide_workload(view(of), NOW).status

    assert conditions(status) == {
        "QuotaReserved": "False",
        "Admitted": "False",
        "Evicted": "True",
        "Requeued": requeued,
    }
    assert not {"admission", "reclaimablePods"} & status.keys()


def test_an_evicted_workload_is_not_ready_until_its_pods_run_again():
    of = workload(RESERVED, ADMITTED, EVICTED, condition("PodsReady"))
    ready = next(row for row in decide_workload(view(of), NOW).status["conditions"] if row["type"] == "PodsReady")

    assert (ready["status"], ready["reason"]) == ("False", "WaitForStart")


def test_a_workload_is_not_ready_while_its_pods_are_replaced():
    def ready_after(of, phase):
        return next(
            row
            for row in decide_workload(view(of, phase=phase), NOW).status["conditions"]
            if row["type"] == "PodsReady"
        )

    lost = ready_after(workload(RESERVED, ADMITTED, condition("PodsReady")), Phase.PENDING)
    assert (lost["status"], lost["reason"]) == ("False", "WaitForRecovery")
    back = ready_after(workload(RESERVED, ADMITTED, lost), Phase.RUNNING)
    assert (back["status"], back["reason"]) == ("True", "Recovered")
    first = ready_after(workload(RESERVED, ADMITTED), Phase.RUNNING)
    assert (first["status"], first["reason"]) == ("True", "Started")


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED])
def test_a_workload_is_finished_once_with_its_job(phase):
    status = decide_workload(view(workload(RESERVED, ADMITTED), phase=phase), NOW).status
    assert conditions(status)["Finished"] == "True"
    assert decide_workload(view(workload(*status["conditions"]), phase=phase), after(5)) == NOTHING


DONE = [ReplicaRecord(place=place, phase=ReplicaPhase.SUCCEEDED) for place in places(1)]


def test_pods_that_are_done_for_good_give_their_quota_back():
    admitted = workload(RESERVED, ADMITTED, condition("PodsReady"))
    status = decide_workload(view(admitted, records=DONE, scope=REPLICA), NOW).status
    assert status["reclaimablePods"] == [{"name": "worker", "count": 1}]
    assert decide_workload(view(admitted, records=DONE, scope=GANG), NOW) == NOTHING, "a failure starts them again"
    always = replace(
        view(admitted, records=DONE, scope=REPLICA), gang=gang(2, restart=RestartPolicy.ALWAYS.value, scope=REPLICA)
    )
    assert decide_workload(always, NOW) == NOTHING


def test_a_workload_that_cannot_be_read_is_the_fault_of_whoever_wrote_it():
    with pytest.raises(BadRequest):
        queue_state("team", {"metadata": {}, "status": {"conditions": [3]}}, FLAVORS)
