"""ColossalAIJob: workers that wait, a launcher that starts torchrun on each, and what may not be written."""

import pytest

from paceline.kinds import registry
from paceline.model.gang import ReplicaId
from tests.unit.kinds.manifests import colossalai, container_of, gang_of, one_fault, template, trainer

STEM = "demo-666ff"
HOSTS = [f"{STEM}-worker-{index}.{STEM}" for index in range(2)]
LAUNCH = "/t9k/launch"
TORCHRUN = (
    f"torchrun --nproc_per_node=2 --nnodes=2 --node_rank=%n --master_addr={HOSTS[0]} --master_port=29500 "
    "train.py --lr 1"
)


def launcher(**container):
    return {"type": "launcher", "template": {"spec": {"containers": [{"name": "launcher", **container}]}}}


def test_the_launcher_starts_torchrun_on_every_worker():
    """As `colossalai run` does; %n becomes the number of the worker."""
    assert container_of(colossalai(), "launcher-0")["command"][3:] == ["pdsh", "-S", "-w", ",".join(HOSTS), TORCHRUN]


def test_workers_go_to_the_launchers_folder_first():
    job = colossalai(trainer("worker"), launcher(workingDir="/mnt/my code"))

    assert container_of(job, "launcher-0")["command"][-1] == f"cd '/mnt/my code' && {TORCHRUN}"


def test_variables_of_the_launcher_reach_the_training_as_colossalai_run_has_it():
    """Not those that the workers have anyway, nor secrets: they would be shown in every list of processes."""
    shared = {"name": "LR", "value": "1"}
    secret = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    own = [shared, {"name": "SAID", "value": "two words at 5%"}, {"name": "NONE"}, secret]
    workers = trainer("worker", template=template(name="worker", env=[shared]))
    job = colossalai(workers, launcher(env=own, workingDir="/mnt"))

    assert container_of(job, "launcher-0")["command"][-1] == f"cd /mnt && env 'SAID=two words at 5%%' NONE= {TORCHRUN}"


def test_words_of_the_author_stay_words():
    job = colossalai(torchConfig={"script": ["a.py", "two words; rm", "%name"], "extraArgs": ["--role=x"]})

    # pdsh makes one % of two, and the number of the host of %n.
    assert container_of(job, "launcher-0")["command"][-1].endswith("--role=x a.py 'two words; rm' %%name")


def test_workers_wait_to_be_reached():
    assert container_of(colossalai())["command"] == [
        "python3",
        f"{LAUNCH}/agent",
        "serve",
        "--port=2222",
        f"--bind={STEM}-worker-0",
    ]
    assert gang_of(colossalai()).launch.files["hostfile"] == f"{HOSTS[0]} slots=2\n{HOSTS[1]} slots=2\n"
    assert registry.ports_of(colossalai()) == {"master": 29500, "worker-0": 2222, "worker-1": 2222}


def test_the_launcher_decides():
    assert gang_of(colossalai()).success == ((ReplicaId("launcher", 0),),)


def test_in_debug_mode_all_sleep():
    job = colossalai(runMode={"debug": {"enabled": True}}, torchConfig={})

    assert container_of(job)["command"] == container_of(job, "launcher-0")["command"] == ["sleep", "inf"]


FAULTS = {
    "no script": (colossalai(torchConfig={}), "spec.torchConfig.script: None is not allowed; set the training script"),
    "no processes": (
        colossalai(torchConfig={"script": ["a"], "procPerWorker": 0}),
        "spec.torchConfig.procPerWorker: 0 is not allowed; must be at least 1",
    ),
    "no container named worker": (
        colossalai(trainer("main")),
        "spec.replicaSpecs[0].template.spec.containers: None is not allowed; one container must be named worker",
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)
