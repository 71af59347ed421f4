"""DeepSpeedJob: workers that wait, the first of which runs deepspeed, and what may not be written."""

import pytest

from paceline.kinds import registry
from paceline.model.gang import CleanUp, ReplicaId, RestartPolicy, RestartScope
from tests.unit.kinds.manifests import container_of, deepspeed, env_of, gang_of, one_fault, template

STEM = "demo-666ff"
HOSTS = [f"{STEM}-worker-{index}.{STEM}" for index in range(2)]
LAUNCH = "/t9k/launch"
SERVE, SERVE_1 = (["python3", f"{LAUNCH}/agent", "serve", "--port=2222", f"--bind={STEM}-worker-{i}"] for i in range(2))
USUAL = [f"--hostfile={LAUNCH}/hostfile", "--launcher=pdsh", f"--master_addr={HOSTS[0]}", "--master_port=29500"]


def line(job):
    """What the first worker becomes, while its own container can be reached too."""
    command = container_of(job)["command"]
    assert command[:2] == ["sh", "-c"]
    assert command[2] == f'{" ".join(SERVE)} & PATH={LAUNCH}:$PATH; export PATH; exec "$0" "$@"'
    return command[3:]


def config(**more):
    return deepspeed(config={"run": {"python": ["train.py"]}, **more})


def test_the_first_worker_runs_deepspeed_over_all_and_the_others_wait():
    assert line(deepspeed()) == ["deepspeed", *USUAL, "train.py", "--deepspeed"]
    assert container_of(deepspeed(), "worker-1")["command"] == SERVE_1


LINES = {
    "a script": ({"run": {"python": ["a.py", "1"]}}, [*USUAL, "a.py", "1"]),
    "a module": ({"run": {"module": ["a", "1"]}}, [*USUAL, "--module", "a", "1"]),
    "a program": ({"run": {"exec": ["a", "1"]}}, [*USUAL, "--no_python", "a", "1"]),
    "no local rank": ({"run": {"exec": ["a"]}, "localRank": False}, [*USUAL, "--no_local_rank", "--no_python", "a"]),
    "a search": ({"run": {"python": ["a"]}, "autotune": "tune"}, [*USUAL, "--autotuning=tune", "a"]),
    "a port of the author's": (
        {"run": {"python": ["a"]}, "otherArgs": ["--master_port", "12346"]},
        [*USUAL[:3], "--master_port", "12346", "a"],
    ),
}


@pytest.mark.parametrize(("written", "words"), LINES.values(), ids=LINES)
def test_deepspeed_is_called_for(written, words):
    assert line(deepspeed(config=written)) == ["deepspeed", *words]


def test_a_command_of_the_authors_takes_the_place_of_all():
    job = deepspeed(config={"customCommand": "deepspeed --hostfile /t9k/hostfile x.py", "slotsPerWorker": 4})

    assert line(job) == ["sh", "-c", "deepspeed --hostfile /t9k/hostfile x.py"]
    assert gang_of(job).launch.files["hostfile"] == f"{HOSTS[0]} slots=4\n{HOSTS[1]} slots=4\n"
    mounts = {each["mountPath"]: each.get("subPath") for each in container_of(job)["volumeMounts"]}
    assert mounts == {LAUNCH: None, "/t9k/hostfile": "hostfile"}


def test_elastic_bounds_are_told_to_deepspeed_and_the_wanted_size_counts():
    job = deepspeed(elastic={"enabled": True, "minReplicas": 1, "maxReplicas": 4, "expectedReplicas": 3})

    assert "--elastic_training --min_elastic_nodes=1 --max_elastic_nodes=4" in " ".join(line(job))
    assert len(gang_of(job).members) == 3
    assert len(gang_of(job).launch.files["hostfile"].splitlines()) == 3


@pytest.mark.parametrize(
    ("spec", "slots"),
    [({}, 1), ({"resources": {"limits": {"nvidia.com/gpu": "8"}}}, 8)],
    ids=["one", "one per GPU"],
)
def test_slots_that_are_not_said_are(spec, slots):
    job = deepspeed(worker={"template": template(name="worker", **spec)}, config={"run": {"python": ["a"]}})

    assert gang_of(job).launch.files["hostfile"].startswith(f"{HOSTS[0]} slots={slots}\n")


ENV = [
    {"name": "LR", "value": "1"},
    {"name": "POEM", "value": "two\nlines"},
    {"name": "WHERE", "value": "$(HOST):80"},
    {"name": "PRICE", "value": "5$$"},
    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
]


def test_the_containers_variables_reach_every_process():
    job = deepspeed(worker={"template": template(name="worker", env=ENV)})

    assert gang_of(job).launch.files["deepspeed_env"] == "LR=1\n"
    assert env_of(container_of(job))["DS_ENV_FILE"] == f"{LAUNCH}/deepspeed_env"


def test_the_containers_variables_stay_there_when_the_author_says_so():
    job = deepspeed(worker={"template": template(name="worker", env=ENV)}, disableCustomEnv=True)

    assert "deepspeed_env" not in gang_of(job).launch.files
    assert "DS_ENV_FILE" not in env_of(container_of(job))


def test_every_worker_is_told_who_is_first():
    assert env_of(container_of(deepspeed(), "worker-1")) == {
        "DS_ENV_FILE": f"{LAUNCH}/deepspeed_env",
        "PDSH_RCMD_TYPE": "ssh",
        "DLTS_HOSTFILE": f"{LAUNCH}/hostfile",
        "MASTER_ADDR": HOSTS[0],
    }


def test_ports_are_asked_for_the_agents_and_the_store():
    assert registry.ports_of(deepspeed()) == {"master": 29500, "worker-0": 2222, "worker-1": 2222}


def test_the_first_worker_decides():
    gang = gang_of(deepspeed(worker={"restartPolicy": "ExitCode"}))

    assert gang.success == ((ReplicaId("worker", 0),),)
    assert (gang.scope, gang.backoff_limit, gang.clean_up) == (RestartScope.GANG, 3, CleanUp.UNFINISHED)
    assert {member.restart for member in gang.members} == {RestartPolicy.EXIT_CODE}


def test_in_debug_mode_all_can_be_reached_and_nothing_is_started():
    """Vector 11: what stands in for sshd."""
    job = deepspeed(config={"run": {"python": []}}, runMode={"debug": {"enabled": True}})

    assert registry.faults(job) == ()
    assert container_of(job)["command"] == SERVE


def test_the_training_container_is_called_worker_or_is_the_first():
    named = template(name="log")
    named["spec"]["containers"].append({"name": "worker", "image": "ds"})
    containers = gang_of(deepspeed(worker={"template": named})).members[1].template["spec"]["containers"]
    assert [each.get("command") for each in containers] == [["python"], SERVE_1]
    assert container_of(deepspeed(worker={"template": template()}), "worker-1")["command"] == SERVE_1


def test_after_a_pause_the_first_worker_runs_something_else_and_can_be_reached_as_before():
    """Whatever starts the training starts it in the first worker too."""
    job = deepspeed(runMode={"pause": {"resumeSpecs": [{"type": "worker", "command": ["again"], "args": ["now"]}]}})
    first = container_of(job, resumes=1)

    assert first["command"][:2] == ["sh", "-c"]
    assert first["command"][2].startswith(f"{' '.join(SERVE)} & ")
    assert (first["command"][3:], first["args"]) == (["again"], ["now"])
    assert container_of(job, "worker-1", resumes=1)["command"] == SERVE_1
    assert "args" not in container_of(job, "worker-1", resumes=1)


def test_after_a_pause_what_runs_first_may_be_left_out_of_every_worker():
    written = template(name="worker")
    written["spec"]["initContainers"] = [{"name": "fetch", "image": "busybox"}]
    mode = {"pause": {"resumeSpecs": [{"type": "worker", "skipInitContainer": True}]}}
    job = deepspeed(worker={"template": written}, runMode=mode)

    for member in gang_of(job, resumes=1).members:
        assert "initContainers" not in member.template["spec"]
    assert container_of(job, resumes=1)["command"] == container_of(job)["command"]


def test_an_empty_command_of_ones_own_is_none():
    """T9k: left out and empty are the same; a shell without words would end well at once."""
    assert container_of(config(customCommand=""))["command"] == container_of(config())["command"]
    assert "spec.config.run" in one_fault(deepspeed(config={"customCommand": " "}))


def test_beside_a_command_of_ones_own_the_other_settings_are_not_looked_at():
    assert registry.faults(config(customCommand="deepspeed train.py", otherArgs=["--module"])) == ()


FAULTS = {
    "nothing to run": (deepspeed(config={}), "spec.config.run: None is not allowed; set one of python"),
    "no config": (deepspeed(config=None), "spec.config.run: None is not allowed"),
    "two things to run": (
        config(run={"python": ["a"], "module": ["b"]}),
        "spec.config.run.module: None is not allowed; only one of python, module, exec may be set",
    ),
    "slots in the wrong word": (
        config(slotPerWorker=2),
        'spec.config.slotPerWorker: 2 is not allowed; unknown field, did you mean "slotsPerWorker"?',
    ),
    "an argument that a field says already": (
        config(otherArgs=["--module"]),
        "spec.config.otherArgs[0]: '--module' is not allowed; it conflicts with spec.config.run.module; use that field",
    ),
    "an argument that several machines cannot have": (
        config(otherArgs=["--x", "--bind_core_list=1"]),
        "spec.config.otherArgs[1]: '--bind_core_list=1' is not allowed; it is not supported on several workers",
    ),
    "more than the bounds": (
        deepspeed(elastic={"minReplicas": 4, "maxReplicas": 10, "expectedReplicas": 11}),
        "spec.elastic.expectedReplicas: 11 is not allowed; must be between 4 and 10",
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)
