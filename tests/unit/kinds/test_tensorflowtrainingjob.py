"""TensorFlowTrainingJob: the cluster every member is told of, who decides, and what may not be written."""

import ast
import json

import pytest

from paceline.kinds import registry
from paceline.model.gang import CleanUp, ReplicaId, RestartPolicy, RestartScope
from tests.unit.kinds.manifests import container_of, env_of, gang_of, one_fault, template, tensorflow, trainer

STEM = "demo-666ff"
TF = "tensorflow"


def address(place, port=2222):
    return f"{STEM}-{place}.{STEM}:{port}"


def full():
    roles = {"chief": 1, "worker": 2, "ps": 2, "evaluator": 1}
    return tensorflow(*(trainer(TF, role, count) for role, count in roles.items()))


CLUSTER = {
    "chief": [address("chief-0")],
    "worker": [address("worker-0"), address("worker-1")],
    "ps": [address("ps-0"), address("ps-1")],
}


@pytest.mark.parametrize("place", ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0"])
def test_every_member_is_told_the_cluster_and_its_task(place):
    """Vector 2. The evaluator knows the cluster and is not in it. X-01, X-04"""
    role, _, index = place.rpartition("-")
    env = env_of(container_of(full(), place))

    assert json.loads(env.pop("TF_CONFIG")) == {"cluster": CLUSTER, "task": {"type": role, "index": int(index)}}
    assert ast.literal_eval(env.pop("CLUSTER_CONFIG")) == CLUSTER
    assert env == {
        "POD_NAME": place,
        "JOB_NAME": role,
        "JOB_INDEX": index,
        "PS_HOSTS": ",".join(CLUSTER["ps"]),
        "WORKER_HOSTS": ",".join(CLUSTER["worker"]),
        "PYTHONUNBUFFERED": "1",
    }


def test_on_one_network_every_member_has_a_port_of_its_own():
    """TensorFlow listens on all addresses, whatever TF_CONFIG says."""
    job = tensorflow(trainer(TF, "worker", 2))
    assert registry.ports_of(job) == {"worker-0": 2222, "worker-1": 2222}

    env = env_of(container_of(job, "worker-1", ports={"worker-0": 24000, "worker-1": 24001}))

    assert json.loads(env["TF_CONFIG"])["cluster"]["worker"] == [address("worker-0", 24000), address("worker-1", 24001)]


LEADERS = {
    "the chief": (("worker", "chief"), "chief"),
    "the first worker where there is no chief": (("ps", "worker"), "worker"),
}


@pytest.mark.parametrize(("roles", "leader"), LEADERS.values(), ids=LEADERS)
def test_the_job_is_decided_by(roles, leader):
    gang = gang_of(tensorflow(*(trainer(TF, role, 1) for role in roles)))

    assert gang.leader == ReplicaId(leader, 0)
    assert gang.success == ((ReplicaId(leader, 0),),)


SCOPES = {
    "all of them when they reduce among themselves": ({"chief": 1, "worker": 2}, {}, RestartScope.GANG, 3),
    "the failed one when there are parameter servers": ({"worker": 2, "ps": 1}, {}, RestartScope.REPLICA, 1),
    "as the author says": ({"worker": 2}, {"restartScope": "Replica"}, RestartScope.REPLICA, 1),
    "without regard to an evaluator's failure": ({"worker": 2, "evaluator": 1}, {}, RestartScope.GANG, 2),
}


@pytest.mark.parametrize(("roles", "spec", "scope", "deciding"), SCOPES.values(), ids=SCOPES)
def test_tried_again_are(roles, spec, scope, deciding):
    """X-04"""
    gang = gang_of(tensorflow(*(trainer(TF, role, count) for role, count in roles.items()), **spec))

    assert gang.scope is scope
    assert len(gang.failure) == deciding


def test_defaults_are_t9ks_but_stray_parameter_servers_go():
    gang = gang_of(full())

    assert (gang.backoff_limit, gang.clean_up, gang.active_deadline_seconds) == (3, CleanUp.UNFINISHED, None)
    assert {member.restart for member in gang.members} == {RestartPolicy.ON_FAILURE}


def test_a_type_may_have_a_limit_of_its_own():
    job = tensorflow(trainer(TF, restartPolicy={"policy": "ExitCode", "limit": 1}))

    assert gang_of(job).role_limits == {"worker": 1}
    assert gang_of(job).members[0].restart is RestartPolicy.EXIT_CODE


def test_in_debug_mode_nothing_is_started():
    """Vector 11. T-18, X-11"""
    container = container_of(tensorflow(runMode={"debug": {"enabled": True}}))

    assert container["command"] == ["sleep", "inf"]
    assert "TF_CONFIG" in env_of(container)


def test_debug_mode_leaves_other_containers_alone():
    written = template(name="log")
    written["spec"]["containers"].append({"name": TF, "image": "tf", "command": ["train"]})
    gang = gang_of(tensorflow({"type": "worker", "template": written}, runMode={"debug": {"enabled": True}}))

    assert [each["command"] for each in gang.members[0].template["spec"]["containers"]] == [
        ["python"],
        ["sleep", "inf"],
    ]


def test_after_a_pause_the_resume_command_runs():
    job = tensorflow(runMode={"pause": {"resumeSpecs": [{"type": "worker", "args": ["train.py", "--resume"]}]}})

    assert container_of(job, resumes=1)["args"] == ["train.py", "--resume"]


FAULTS = {
    "a type TensorFlow does not have": (
        tensorflow(trainer(TF, "wroker")),
        (
            'spec.replicaSpecs[0].type: \'wroker\' is not allowed; supported values: "chief", "evaluator", "ps", '
            '"worker", did you mean "worker"?'
        ),
    ),
    "two chiefs": (
        tensorflow(trainer(TF, "chief", 2)),
        "spec.replicaSpecs[0].replicas: 2 is not allowed; a job has at most one chief; must be 1",
    ),
    "nobody who trains": (
        tensorflow(trainer(TF, "ps")),
        "spec.replicaSpecs: None is not allowed; add replicas of type worker or chief",
    ),
    "no container named tensorflow": (
        tensorflow(trainer("tensorfow")),
        (
            "spec.replicaSpecs[0].template.spec.containers: None is not allowed; "
            "one container must be named tensorflow (there is one with a similar name)"
        ),
    ),
    "a log folder in the wrong case": (
        tensorflow(tensorboardSpec={"logDir": {"pvc": [{"name": "mnist", "subpath": ["log"]}]}}),
        (
            "spec.tensorboardSpec.logDir.pvc[0].subpath: ['log'] is not allowed; "
            'unknown field, did you mean "subPath"?'
        ),
    ),
    "logs that lie nowhere": (
        tensorflow(tensorboardSpec={"trainingLogFilesets": ["pvc/mnist"]}),
        "spec.tensorboardSpec.trainingLogFilesets[0]: 'pvc/mnist' is not allowed; must be t9k://pvc/CLAIM/FOLDER",
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)


def test_the_claims_of_its_tensorboard_are_wanted_too():
    job = tensorflow(tensorboardSpec={"trainingLogFilesets": ["t9k://pvc/mnist/log"]})

    assert registry.claims_of(job) == (("spec.tensorboardSpec.trainingLogFilesets[0]", "mnist"),)
