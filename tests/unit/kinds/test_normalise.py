"""Old names and shapes: read as today's, told to their author, and never changed where they are kept."""

from copy import deepcopy

import jsonschema_rs
import pytest

from paceline.apimachinery.builtin.registry import builtin_components
from paceline.kinds import registry
from paceline.kinds.compat import Migration, Move, Normalized
from paceline.model.gang import CleanUp, ReplicaId, RestartPolicy
from tests.unit.kinds.manifests import container_of, gang_of, generic, mpi, pytorch, replica, template, tensorflow
from tests.unit.kinds.oldshapes import (
    OLD,
    alias_tensorflow,
    g0_mpi,
    g1_pytorch,
    g2_colossalai,
    g2_mpi,
    text_deepspeed,
    text_generic,
)

CRDS = {each["spec"]["names"]["kind"]: each for each in registry.crds(builtin_components())}


def faults(obj):
    return registry.service_faults(obj) if registry.service_of(obj) else registry.faults(obj)


@pytest.mark.parametrize("make", OLD.values(), ids=OLD)
def test_an_old_shape_has_no_faults_and_is_told_of(make):
    """T-20"""
    assert faults(make()) == ()
    assert registry.warnings(make())


@pytest.mark.parametrize("make", OLD.values(), ids=OLD)
def test_an_old_shape_passes_the_schema(make):
    """Vector 15: it can be stored as it is written, on a real cluster too."""
    schema = CRDS[make()["kind"]]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    assert [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(make())] == []
    assert unknown(make()["spec"], schema["properties"]["spec"], "spec") == []


def unknown(value, schema, path):
    """The fields that a server would take out before it stores the object."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, list):
        return [each for index, item in enumerate(value) for each in unknown(item, schema["items"], f"{path}[{index}]")]
    if not isinstance(value, dict) or "additionalProperties" in schema:
        return []
    known = schema.get("properties", {})
    here = [f"{path}.{name}" for name in value if name not in known]
    return here + [
        each for name, inner in value.items() if name in known for each in unknown(inner, known[name], f"{path}.{name}")
    ]


@pytest.mark.parametrize("make", OLD.values(), ids=OLD)
def test_an_old_shape_is_not_changed_where_it_is_kept(make):
    written = make()
    now = registry.today(written).obj

    assert written == make()
    assert now["metadata"] == written["metadata"]


@pytest.mark.parametrize("make", OLD.values(), ids=OLD)
def test_todays_shape_is_read_as_it_is(make):
    """Vector 15: turning it a second time changes nothing."""
    now = registry.today(make()).obj
    again = registry.today(now)

    assert again.obj == now
    assert not [each for each in again.warnings if "no effect" not in each]


def test_the_second_generation_of_mpi_jobs_becomes_the_third():
    now = registry.today(g2_mpi())

    assert now.obj["spec"] == {
        "replicaSpecs": [{"type": "worker", "replicas": 4, "template": template(name="worker")}],
        "mpiConfig": {
            "mca": {"btl": "^openib"},
            "home": "/usr/local",
            "script": ["python3", "train.py"],
            "extraArgs": ["-bind-to", "none"],
        },
        "ssh": {"sshAuthMountPath": "/root/.ssh"},
        "runPolicy": {"cleanUpWorkers": True},
    }
    assert now.warnings == (
        "spec.mca is the old form of spec.mpiConfig.mca",
        "spec.mpiHome is the old form of spec.mpiConfig.home",
        "spec.worker.cmd is the old form of spec.mpiConfig.script",
        "spec.worker.extraMPIArgs is the old form of spec.mpiConfig.extraArgs",
        "spec.ssh.authMountPath is the old form of spec.ssh.sshAuthMountPath",
        "spec.worker is the old form of spec.replicaSpecs with type worker",
        'spec.worker.template.spec.containers[0].name "mpi-worker" is the old name for the container "worker"',
        'spec.runPolicy.cleanUpWorkers "true" is the old form of true',
    )


def test_the_oldest_mpi_jobs_become_the_third_generation():
    now = registry.today(g0_mpi()).obj["spec"]

    assert now["mpiConfig"]["extraArgs"] == ["-N", "2", "--enable-recovery", "--max-restarts", "100"]
    assert now["replicaSpecs"] == [{"type": "worker", "replicas": 4, "template": template(name="worker")}]
    assert "slots=2" in gang_of(g0_mpi()).launch.files["hostfile"]


def test_recovery_that_was_switched_off_stays_off():
    job = g0_mpi()
    job["spec"]["worker"]["processRecovery"]["enable"] = False

    assert registry.today(job).obj["spec"]["mpiConfig"]["extraArgs"] == ["-N", "2"]


def test_the_second_generation_of_colossalai_jobs_becomes_the_third():
    launcher = g2_colossalai()["spec"]["launcher"]

    assert registry.today(g2_colossalai()).obj["spec"] == {
        "replicaSpecs": [
            {"type": "worker", "replicas": 2, "template": template(name="worker")},
            {"type": "launcher", "template": {"spec": {"containers": [{"name": "launcher", **launcher}]}}},
        ],
        "torchConfig": {
            "procPerWorker": 2,
            "script": ["train.py", "--lr", "1"],
            "extraArgs": ["--max_restarts", "1"],
        },
    }
    assert container_of(g2_colossalai(), "launcher-0")["image"] == "python:3.10"


def test_switches_of_2023_work():
    """G1: `enable` became `enabled`."""
    job = g1_pytorch()

    assert registry.is_paused(job)
    assert container_of(job, "node-0")["command"] == ["torchrun"]
    assert gang_of(job).clean_up is CleanUp.ALL
    assert len(gang_of(job).members) == 2
    assert registry.warnings(job)[:2] == (
        "spec.torchrunConfig.minNodes is an old field and has no effect; use spec.elastic.minReplicas",
        (
            "spec.replicaSpecs[0].restartPolicy is an object, which is the form of GenericJob; "
            "in a PyTorchTrainingJob write a string, such as OnFailure"
        ),
    )


@pytest.mark.parametrize("written", [{}, {"runMode": {}}, {"runMode": {"pause": {}}}, {"runMode": None}])
def test_a_job_is_not_paused_by_saying_nothing(written):
    assert not registry.is_paused(pytorch(**written))


def test_an_old_switch_beside_todays_does_not_count():
    job = pytorch(runMode={"pause": {"enable": True, "enabled": False}})

    assert not registry.is_paused(job)
    assert registry.warnings(job) == (
        "spec.runMode.pause.enable is ignored: it is the old form of spec.runMode.pause.enabled, which is also set",
    )


def test_text_where_generic_jobs_have_an_object():
    assert gang_of(text_generic()).role_limits == {"worker": 0}
    assert registry.warnings(text_generic()) == (
        (
            'spec.replicaSpecs[0].restartPolicy "OnFailure" is the form of training jobs; '
            "in a GenericJob write {policy: OnFailure, limit: 0}"
        ),
    )


def test_an_object_where_training_jobs_have_text():
    job = tensorflow({"type": "worker", "template": template(name="tensorflow"), "restartPolicy": {"limit": 1}})

    assert gang_of(job).members[0].restart is RestartPolicy.ON_FAILURE
    assert gang_of(job).role_limits == {"worker": 1}
    assert len(registry.warnings(job)) == 1


def test_text_where_deepspeed_jobs_have_a_list():
    assert container_of(text_deepspeed())["command"][-1] == "/t9k/mnt/train.py"
    assert registry.warnings(text_deepspeed()) == (
        "kind DeepspeedJob is an old name for DeepSpeedJob",
        "spec.config.run.python is a string; write the list [/t9k/mnt/train.py]",
    )


def test_an_old_name_of_a_kind_is_that_kind():
    """Vector 1, the kind's half: four workers, the first of which is the master."""
    gang = gang_of(alias_tensorflow())

    assert registry.today(alias_tensorflow()).obj["kind"] == "TensorFlowTrainingJob"
    assert [str(member.place) for member in gang.members] == [f"worker-{index}" for index in range(4)]
    assert gang.leader == ReplicaId("worker", 0)
    assert registry.warnings(alias_tensorflow()) == (
        "kind TensorFlowJob is an old name for TensorFlowTrainingJob",
        (
            "spec.replicaSpecs[0].template.spec.restartPolicy has no effect: containers are not restarted in place; "
            "the replica's own restartPolicy creates new pods"
        ),
    )


def test_a_fault_is_named_where_its_author_wrote_it():
    job = g2_mpi()
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "much"}}
    job["spec"]["worker"]["replicas"] = 0

    assert [fault.path for fault in registry.faults(job)] == ["spec.worker.replicas"]
    job["spec"]["worker"]["replicas"] = 1
    assert [fault.path for fault in registry.faults(job)] == [
        "spec.worker.template.spec.containers[0].resources.limits.cpu"
    ]


def test_a_claim_is_named_where_its_author_wrote_it():
    job = g2_mpi()
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}}
    job["spec"]["worker"]["template"]["spec"]["volumes"] = [volume]

    assert registry.claims_of(job) == (
        ("spec.worker.template.spec.volumes[0].persistentVolumeClaim.claimName", "digits"),
    )


@pytest.mark.parametrize("spec", [None, [], "x", {"worker": "x"}, {"worker": {"template": []}}, {"mpiConfig": "x"}])
def test_a_broken_old_shape_is_refused_and_never_crashes(spec):
    assert registry.faults({**mpi(), "spec": spec})
    assert registry.faults({**g2_colossalai(), "spec": spec})


NEW = {"GenericJob": generic(), "PyTorchTrainingJob": pytorch(replica(restartPolicy="ExitCode")), "MPIJob": mpi()}


@pytest.mark.parametrize("job", NEW.values(), ids=NEW)
def test_todays_shape_is_told_nothing(job):
    now = registry.today(job)

    assert now == Normalized(obj=job)
    assert now.obj is job


def test_a_draft_that_leads_nowhere_changes_nothing():
    obj = {"spec": {"a": [1], "b": "text"}}
    draft = Migration(kind="X", obj=deepcopy(obj))
    draft.put(("spec", "b", "c"), 1)
    draft.put(("spec", "a", 5), 1)
    draft.put(("spec", "a", 3, "x"), 1)
    draft.drop("spec", "zz")

    assert draft.obj == obj


def test_the_innermost_move_says_where_something_was_written():
    moves = (
        Move(old=("spec", "worker"), new=("spec", "replicaSpecs", 0)),
        Move(old=("spec", "env"), new=("spec", "replicaSpecs", 0, "env")),
    )
    now = Normalized(obj={}, moves=moves)

    assert now.as_written("spec.replicaSpecs[0].env[1]") == "spec.env[1]"
    assert now.as_written("spec.replicaSpecs[0]") == "spec.worker"
    assert now.as_written("spec.replicaSpecs[1].x") == "spec.replicaSpecs[1].x"
