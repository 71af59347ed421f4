"""PyTorchTrainingJob: ranks, master, torchrun, and what may not be written."""

import pytest

from paceline.kinds import registry
from paceline.model.gang import CleanUp, ReplicaId, RestartPolicy, RestartScope
from tests.unit.kinds.manifests import container_of, env_of, gang_of, one_fault, pytorch, replica, template

STEM = "demo-666ff"
HOST = f"{STEM}-worker-0.{STEM}"
TORCHRUN = {"torchrunConfig": {"enabled": True, "procPerNode": "2"}}


def test_every_member_is_told_who_the_master_is():
    for place, rank in (("worker-0", "0"), ("worker-1", "1")):
        assert env_of(container_of(pytorch(), place)) == {
            "MASTER_ADDR": HOST,
            "MASTER_PORT": "29500",
            "RANK": rank,
            "WORLD_SIZE": "2",
            "PET_MASTER_ADDR": HOST,
            "PET_MASTER_PORT": "29500",
            "PET_NODE_RANK": rank,
            "PET_NNODES": "2",
            "PET_NPROC_PER_NODE": "1",
            "PYTHONUNBUFFERED": "1",
        }


def test_ranks_go_through_the_types_in_the_order_they_are_written():
    """Vector 3: ps-0 is rank 0 and the master, workers are 1 to 4, the world has 5."""
    job = pytorch(replica("ps", 1), replica("worker", 4))
    ranks = {place: env_of(container_of(job, place))["RANK"] for place in ("ps-0", "worker-0", "worker-3")}

    assert ranks == {"ps-0": "0", "worker-0": "1", "worker-3": "4"}
    assert env_of(container_of(job, "worker-3"))["WORLD_SIZE"] == "5"
    assert gang_of(job).leader == ReplicaId("ps", 0)


def test_our_variables_come_before_the_users_so_that_theirs_can_name_them():
    job = pytorch(replica(template=template(env=[{"name": "URL", "value": "tcp://$(MASTER_ADDR):$(MASTER_PORT)"}])))
    names = [each["name"] for each in container_of(job)["env"]]

    assert names.index("MASTER_ADDR") < names.index("URL")


def test_a_variable_the_user_set_wins_and_is_there_once():
    job = pytorch(replica(template=template(env=[{"name": "MASTER_PORT", "value": "1234"}])))
    env = container_of(job)["env"]

    assert [each["value"] for each in env if each["name"] == "MASTER_PORT"] == ["1234"]


def test_every_container_is_told_init_containers_too():
    written = template()
    written["spec"]["initContainers"] = [{"name": "wait", "image": "busybox"}]
    written["spec"]["containers"].append({"name": "log", "image": "busybox"})
    spec = gang_of(pytorch(replica(template=written))).members[1].template["spec"]

    assert {env_of(each)["RANK"] for each in (*spec["initContainers"], *spec["containers"])} == {"1"}


def test_without_torchrun_command_and_args_stay_as_written():
    container = container_of(pytorch(torchrunConfig={"enabled": False}))

    assert (container["command"], container["args"]) == (["python"], ["train.py"])


def test_torchrun_takes_the_place_of_the_command_and_keeps_the_args():
    """Vector 4: python is dropped, the script and its arguments come last. T-03"""
    job = pytorch(replica(template=template(args=["main.py", "--lr", "1"])), **TORCHRUN)
    container = container_of(job, "worker-1")

    assert container["command"] == ["torchrun"]
    assert container["args"] == [
        "--nnodes=2",
        "--nproc_per_node=2",
        "--rdzv_backend=c10d",
        f"--rdzv_id={STEM}",
        "--role=worker",
        f"--rdzv_endpoint={HOST}:29500",
        "--rdzv_conf=is_host=0",
        "main.py",
        "--lr",
        "1",
    ]


def test_torchrun_keeps_its_store_in_the_first_replica():
    hosts = [
        word
        for place in ("ps-0", "worker-0")
        for word in container_of(pytorch(replica("ps", 1), replica("worker", 1), **TORCHRUN), place)["args"]
        if "is_host" in word
    ]

    assert hosts == ["--rdzv_conf=is_host=1", "--rdzv_conf=is_host=0"]


def test_torchrun_options_of_the_user_come_after_ours_and_before_the_script():
    config = {"enabled": True, "maxRestarts": 3, "extraOptions": ["--log_dir=/tmp"]}
    args = container_of(pytorch(torchrunConfig=config))["args"]

    assert args[-3:] == ["--max_restarts=3", "--log_dir=/tmp", "train.py"]
    assert "--nproc_per_node=1" in args


WRITTEN = {
    "one word": ["--rdzv_conf=last_call_timeout=5", "--log_dir=/tmp"],
    "two words": ["--rdzv_conf", "last_call_timeout=5", "--log_dir=/tmp"],
    "dashes": ["--log_dir=/tmp", "--rdzv-conf=last_call_timeout=5"],
}


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN)
def test_what_the_user_says_of_the_meeting_is_added_to_what_we_say(options):
    """Torchrun heeds only the last --rdzv_conf: without ours nobody would know who holds the store."""
    args = container_of(pytorch(torchrunConfig={"enabled": True, "extraOptions": options}))["args"]

    assert args[-3:] == ["--rdzv_conf=is_host=1,last_call_timeout=5", "--log_dir=/tmp", "train.py"]
    assert len([word for word in args if "rdzv" in word and "conf" in word]) == 1


def test_the_last_word_on_the_meeting_may_be_left_out():
    args = container_of(pytorch(torchrunConfig={"enabled": True, "extraOptions": ["--rdzv_conf"]}))["args"]

    assert "--rdzv_conf=is_host=1" in args


RESTARTS = {
    "none of a fixed size": ({}, []),
    "ten of an elastic job": ({"elastic": {"enabled": True}}, ["--max_restarts=10"]),
    "as many as the user says": ({"elastic": {"enabled": True}, "restarts": 0}, ["--max_restarts=0"]),
}


@pytest.mark.parametrize(("spec", "words"), RESTARTS.values(), ids=RESTARTS)
def test_torchrun_restarts_by_itself(spec, words):
    """Whoever leaves an elastic job breaks the others' connections, which torchrun takes for a failure of theirs."""
    spec = dict(spec)
    limit = {"maxRestarts": spec.pop("restarts")} if "restarts" in spec else {}
    args = container_of(pytorch(torchrunConfig={"enabled": True, **limit}, **spec))["args"]

    assert [word for word in args if "max_restarts" in word] == words


def test_torchrun_is_not_told_a_rank_that_it_would_warn_of():
    """It gives ranks by itself, and says in every log that it heeds none."""
    assert "PET_NODE_RANK" not in env_of(container_of(pytorch(**TORCHRUN), "worker-1"))


STORES = {
    "two pods": (pytorch(**TORCHRUN), "1"),
    "one pod that may become more": (
        pytorch(replica(replicas=1), elastic={"enabled": True, "maxReplicas": 2}, **TORCHRUN),
        "1",
    ),
    "one pod for ever": (pytorch(replica(replicas=1), **TORCHRUN), None),
    "no torchrun": (pytorch(), None),
}


@pytest.mark.parametrize(("job", "value"), STORES.values(), ids=STORES)
def test_every_round_has_a_store_of_its_own_with(job, value):
    """PyTorch 2.13 tells who joins later the address of no store, or one with keys of the dead."""
    assert env_of(container_of(job)).get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == value


def test_an_etcd_server_is_the_users_to_name():
    args = container_of(pytorch(torchrunConfig={"enabled": True, "rdzvBackend": "etcd-v2"}))["args"]

    assert "--rdzv_backend=etcd-v2" in args
    assert not [word for word in args if "endpoint" in word]


@pytest.mark.parametrize(
    ("names", "index"),
    [(["log", "pytorch"], 1), (["log", "python"], 1), (["python", "pytorch"], 1), (["first", "second"], 0)],
)
def test_torchrun_runs_in_the_training_container(names, index):
    """It is called pytorch, as in T9k's examples, or python, as in its text, or it is the first."""
    written = template()
    written["spec"]["containers"] = [{"name": name, "image": "python", "args": ["x.py"]} for name in names]
    containers = gang_of(pytorch(replica(template=written), **TORCHRUN)).members[0].template["spec"]["containers"]

    assert [each.get("command") == ["torchrun"] for each in containers].index(True) == index


SCOPES = {
    "a gang unless said otherwise": ({}, RestartScope.GANG, 2),
    "a gang with torchrun too": (TORCHRUN, RestartScope.GANG, 2),
    "one replica when the author says so": ({"restartScope": "Replica"}, RestartScope.REPLICA, 1),
    "one replica when agents can re-join": ({**TORCHRUN, "elastic": {"enabled": True}}, RestartScope.REPLICA, 1),
    "a gang when elastic means nothing": ({"elastic": {"enabled": True}}, RestartScope.GANG, 2),
}


@pytest.mark.parametrize(("spec", "scope", "deciding"), SCOPES.values(), ids=SCOPES)
def test_who_is_tried_again_is(spec, scope, deciding):
    gang = gang_of(pytorch(**spec))

    assert gang.scope is scope
    assert gang.success == ((ReplicaId("worker", 0),),)
    assert len(gang.failure) == deciding


def test_defaults_are_t9ks():
    gang = gang_of(pytorch())

    assert (gang.backoff_limit, gang.clean_up, gang.active_deadline_seconds) == (3, CleanUp.UNFINISHED, None)
    assert {member.restart for member in gang.members} == {RestartPolicy.ON_FAILURE}
    assert len(gang_of(pytorch({"type": "worker", "template": template()})).members) == 1


@pytest.mark.parametrize("policy", ["none", "None", "all", "All", "unfinished", "Unfinished"])
def test_clean_up_policy_is_read_in_either_case(policy):
    job = pytorch(runPolicy={"cleanUpPolicy": policy, "backoffLimit": 0, "activeDeadlineSeconds": 5})

    assert gang_of(job).clean_up.value == policy.capitalize()
    assert (gang_of(job).backoff_limit, gang_of(job).active_deadline_seconds) == (0, 5)


def test_in_debug_mode_nothing_is_started():
    """Vector 11: `sleep inf` in all, and the environment is there."""
    container = container_of(pytorch(runMode={"debug": {"enabled": True}}, **TORCHRUN))

    assert container["command"] == ["sleep", "inf"]
    assert "args" not in container
    assert env_of(container)["RANK"] == "0"


def test_debug_mode_of_one_type_is_what_its_entry_says():
    written = template()
    written["spec"]["initContainers"] = [{"name": "wait", "image": "busybox"}]
    entry = {"type": "worker", "command": ["sshd", "-D"], "skipInitContainer": True}
    job = pytorch(replica(template=written), runMode={"debug": {"enabled": True, "replicaSpecs": [entry]}})

    assert container_of(job)["command"] == ["sshd", "-D"]
    assert "initContainers" not in gang_of(job).members[0].template["spec"]


def test_after_a_pause_the_resume_command_runs():
    """Vector 10, the kind's half."""
    entry = {"type": "worker", "args": ["train.py", "--resume"], "skipInitContainer": True}
    written = template()
    written["spec"]["initContainers"] = [{"name": "fetch", "image": "busybox"}]
    job = pytorch(replica(template=written), runMode={"pause": {"resumeSpecs": [entry]}})

    assert container_of(job)["args"] == ["train.py"]
    assert container_of(job, resumes=1)["args"] == ["train.py", "--resume"]
    assert container_of(job, resumes=1)["command"] == ["python"]
    assert "initContainers" not in gang_of(job, resumes=1).members[0].template["spec"]


def test_after_a_pause_a_type_without_entry_runs_as_before():
    job = pytorch(runMode={"pause": {"resumeSpecs": [{"type": "worker"}]}})

    assert container_of(job, resumes=1) == container_of(job)
    assert container_of(pytorch(), resumes=1) == container_of(pytorch())


def test_the_manifest_is_not_changed():
    job, same = pytorch(**TORCHRUN), pytorch(**TORCHRUN)
    gang_of(job, resumes=1)

    assert job == same


FAULTS = {
    "no replicas": (
        pytorch(replica(replicas=0)),
        "spec.replicaSpecs[0].replicas: 0 is not allowed; must be at least 1",
    ),
    "no replica types": (pytorch() | {"spec": {"replicaSpecs": []}}, "spec.replicaSpecs: [] is not allowed"),
    "the same type twice": (pytorch(replica(), replica()), "spec.replicaSpecs[1]: {'type': 'worker'} is not allowed"),
    "a type that cannot be in a name": (
        pytorch(replica("Worker_1")),
        "spec.replicaSpecs[0].type: 'Worker_1' is not allowed; use lower-case letters",
    ),
    "a restart policy nobody knows": (
        pytorch(replica(restartPolicy="OnFail")),
        (
            'spec.replicaSpecs[0].restartPolicy: \'OnFail\' is not allowed; supported values: "Always", "OnFailure", '
            '"Never", "ExitCode", did you mean "OnFailure"?'
        ),
    ),
    "no processes": (
        pytorch(torchrunConfig={"procPerNode": "0"}),
        "spec.torchrunConfig.procPerNode: '0' is not allowed; must be at least 1, or one of gpu, cpu, auto",
    ),
    "a word for the processes that torchrun does not know": (
        pytorch(torchrunConfig={"procPerNode": "gpus"}),
        "spec.torchrunConfig.procPerNode: 'gpus' is not allowed",
    ),
    "torchrun without a script": (
        pytorch(replica(template=template(args=[])), **TORCHRUN),
        (
            "spec.replicaSpecs[0].template.spec.containers[0].args: None is not allowed; "
            "set the script for torchrun in args"
        ),
    ),
    "bounds that cross": (
        pytorch(elastic={"minReplicas": 4, "maxReplicas": 2}),
        "spec.elastic.minReplicas: 4 is not allowed; must be at most maxReplicas, 2",
    ),
    "more than the bounds": (
        pytorch(elastic={"minReplicas": 4, "maxReplicas": 10, "expectedReplicas": 11}),
        "spec.elastic.expectedReplicas: 11 is not allowed; must be between 4 and 10",
    ),
    "a debug entry for no type": (
        pytorch(runMode={"debug": {"replicaSpecs": [{"type": "wroker"}]}}),
        (
            "spec.runMode.debug.replicaSpecs[0].type: 'wroker' is not allowed; "
            'supported values: "worker", did you mean "worker"?'
        ),
    ),
    "a resume entry for no type": (
        pytorch(runMode={"pause": {"resumeSpecs": [{"type": "ps"}]}}),
        "spec.runMode.pause.resumeSpecs[0].type: 'ps' is not allowed",
    ),
    "a misspelled field": (
        pytorch(torchRunConfig={}),
        'spec.torchRunConfig: {} is not allowed; unknown field, did you mean "torchrunConfig"?',
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)


FINE = {
    "processes per GPU": pytorch(torchrunConfig={"procPerNode": "gpu"}),
    "processes as a number": pytorch(torchrunConfig={"procPerNode": 4}),
    "torchrun without a script in debug mode": pytorch(
        replica(template=template(args=[])), runMode={"debug": {"enabled": True}}, **TORCHRUN
    ),
    "elastic bounds": pytorch(elastic={"minReplicas": 1, "maxReplicas": 4, "expectedReplicas": 4}),
    "elastic without bounds": pytorch(elastic={"enabled": True, "expectedReplicas": 4}),
    "a TensorBoard of any shape": pytorch(tensorboardSpec={"image": "tb", "logDir": {"pvc": [{"name": "x"}]}}),
    "a queue": pytorch(scheduler={"t9kScheduler": {"queue": "default", "priority": 100}}),
    "entries for types that are there": pytorch(runMode={"debug": {"replicaSpecs": [{"type": "worker"}]}}),
}


@pytest.mark.parametrize("job", FINE.values(), ids=FINE)
def test_a_job_may_have(job):
    assert registry.faults(job) == ()


EFFECTS = {
    "with torchrun": ({"enabled": True}, {"enabled": True}, False),
    "with torchrun, as it was written in 2023": ({"enabled": True}, {"enable": True}, False),
    "while torchrun is off": ({"enabled": True}, {"enabled": False}, True),
    "while neither is on": ({"enabled": False}, {}, False),
}


@pytest.mark.parametrize(("elastic", "torchrun", "is_told"), EFFECTS.values(), ids=EFFECTS)
def test_that_elastic_has_no_effect_is_told(elastic, torchrun, is_told):
    said = [each for each in registry.warnings(pytorch(elastic=elastic, torchrunConfig=torchrun)) if "effect" in each]

    assert said == (["spec.elastic has no effect without torchrun: set spec.torchrunConfig.enabled"] if is_told else [])
