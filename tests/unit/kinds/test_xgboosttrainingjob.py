"""XGBoostTrainingJob: ranks, the tracker, and what may not be written."""

import pytest

from paceline.kinds import registry
from paceline.model.gang import ReplicaId, RestartScope
from tests.unit.kinds.manifests import container_of, env_of, gang_of, one_fault, template, trainer, xgboost

STEM = "demo-666ff"
MASTER = f"{STEM}-master-0.{STEM}"


@pytest.mark.parametrize(("place", "rank"), [("master-0", "0"), ("worker-0", "1"), ("worker-1", "2")])
def test_every_member_is_told_where_the_tracker_is(place, rank):
    assert env_of(container_of(xgboost(), place)) == {
        "MASTER_ADDR": MASTER,
        "MASTER_PORT": "9991",
        "RANK": rank,
        "WORLD_SIZE": "3",
        "WORKER_ADDRS": f"{STEM}-worker-0.{STEM},{STEM}-worker-1.{STEM}",
        "WORKER_PORT": "9991",
        "DMLC_TRACKER_URI": MASTER,
        "DMLC_TRACKER_PORT": "9991",
        "DMLC_TASK_ID": rank,
        "DMLC_NUM_WORKER": "3",
        "PYTHONUNBUFFERED": "1",
    }


def test_the_master_has_rank_0_wherever_it_is_written():
    job = xgboost(trainer("xgboost", "worker", 1), trainer("xgboost", "master", 1))

    assert env_of(container_of(job, "master-0"))["RANK"] == "0"
    assert env_of(container_of(job, "worker-0"))["RANK"] == "1"


def test_the_tracker_listens_where_the_template_declares_it():
    declared = template(name="xgboost", ports=[{"name": "xgboost-port", "containerPort": 9999}])
    job = xgboost({"type": "master", "template": declared})

    assert registry.ports_of(job) == {"master": 9999}
    assert env_of(container_of(job, "master-0"))["MASTER_PORT"] == "9999"


def test_the_master_decides_and_one_lost_worker_is_a_lost_try():
    gang = gang_of(xgboost())

    assert gang.leader == ReplicaId("master", 0)
    assert gang.success == ((ReplicaId("master", 0),),)
    assert gang.scope is RestartScope.GANG
    assert len(gang.failure) == 3


def test_debug_and_resume_change_the_training_container():
    assert container_of(xgboost(runMode={"debug": {"enabled": True}}), "master-0")["command"] == ["sleep", "inf"]
    job = xgboost(runMode={"pause": {"resumeSpecs": [{"type": "worker", "command": ["again"]}]}})
    assert container_of(job, "worker-0", resumes=1)["command"] == ["again"]


FAULTS = {
    "no master": (
        xgboost(trainer("xgboost")),
        "spec.replicaSpecs: None is not allowed; add a replica of type master",
    ),
    "two masters": (
        xgboost(trainer("xgboost", "master", 2)),
        "spec.replicaSpecs[0].replicas: 2 is not allowed; a job has exactly one master",
    ),
    "a type XGBoost does not have": (
        xgboost(trainer("xgboost", "master", 1), trainer("xgboost", "ps")),
        "spec.replicaSpecs[1].type: 'ps' is not allowed",
    ),
    "no container named xgboost": (
        xgboost(trainer("main", "master", 1)),
        "spec.replicaSpecs[0].template.spec.containers: None is not allowed; one container must be named xgboost:",
    ),
    "a template without spec": (
        xgboost({"type": "master", "template": {"containers": []}}),
        "spec.replicaSpecs[0].template.spec: None is not allowed; the field is required",
    ),
    "a TensorBoard, which this kind has not": (
        xgboost(tensorboardSpec={}),
        "spec.tensorboardSpec: {} is not allowed; unknown field",
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)
