"""MPIJob: workers that wait, a launcher that runs mpirun, and what may not be written."""

import json

import pytest

from paceline.kinds import registry
from paceline.model.gang import CleanUp, ReplicaId, RestartPolicy, RestartScope
from tests.unit.kinds.manifests import container_of, env_of, gang_of, mpi, one_fault, template, trainer

STEM = "demo-666ff"
HOSTS = [f"{STEM}-worker-{index}.{STEM}" for index in range(2)]
LAUNCH = "/t9k/launch"
MPIRUN = ["--hostfile", f"{LAUNCH}/hostfile", "--mca", "plm_rsh_agent", f"{LAUNCH}/ssh"]
STAND_INS = ["sh", "-c", f'PATH={LAUNCH}:$PATH; export PATH; exec "$0" "$@"']


def mpirun(job):
    """What the launcher becomes, after our stand-ins for ssh are in its PATH."""
    command = container_of(job, "launcher-0")["command"]
    assert command[:3] == STAND_INS
    return command[3:]


def test_the_launcher_runs_mpirun_over_the_workers():
    assert mpirun(mpi()) == ["mpirun", *MPIRUN, "python3", "train.py"]


def test_mpirun_is_called_as_the_author_says():
    config = {"mca": {"btl": "self,tcp"}, "home": "/opt/mpi/", "extraArgs": ["-x", "LR=1"], "script": ["./a.out", "x"]}

    assert mpirun(mpi(mpiConfig=config)) == [
        "/opt/mpi/bin/mpirun",
        *MPIRUN,
        *("--prefix", "/opt/mpi/"),
        *("--mca", "btl", "self,tcp"),
        *("-x", "LR=1"),
        *("./a.out", "x"),
    ]


def test_workers_wait_to_be_reached_whatever_their_command_says():
    container = container_of(mpi(), "worker-1", ports={"worker-0": 24000, "worker-1": 24001})

    assert container["command"] == ["python3", f"{LAUNCH}/agent", "serve", "--port=24001", f"--bind={STEM}-worker-1"]
    assert "args" not in container


def test_the_files_say_who_the_workers_are_and_where_they_listen():
    files = gang_of(mpi(), ports={"worker-0": 24000, "worker-1": 24001}).launch.files

    assert files["hostfile"] == f"{HOSTS[0]} slots=1\n{HOSTS[1]} slots=1\n"
    assert json.loads(files["hosts.json"]) == {HOSTS[0]: 24000, HOSTS[1]: 24001}


SLOTS = {
    "one": ([], {}, 1),
    "as many as -N says": (["-N", "2"], {}, 2),
    "as many as -npernode says": (["-bind-to", "none", "-npernode", "3"], {}, 3),
    "enough for all processes of -np": (["-np", "5"], {}, 3),
    "one per GPU": ([], {"nvidia.com/gpu": 4}, 4),
}


@pytest.mark.parametrize(("args", "limits", "slots"), SLOTS.values(), ids=SLOTS)
def test_a_worker_has_slots(args, limits, slots):
    workers = trainer("worker", template=template(name="worker", resources={"limits": limits}))
    job = mpi(workers, mpiConfig={"script": ["a"], "extraArgs": args})

    assert gang_of(job).launch.files["hostfile"].splitlines()[0] == f"{HOSTS[0]} slots={slots}"


def test_every_member_mounts_the_secret_of_the_job():
    for member in gang_of(mpi()).members:
        spec = member.template["spec"]
        assert spec["volumes"][-1]["secret"]["secretName"] == f"{STEM}-launch"
        assert spec["containers"][0]["volumeMounts"][-1]["mountPath"] == LAUNCH
        assert member.template["metadata"]["labels"] == {"app": "demo", "mpi-job": "demo"}


def test_a_launcher_that_is_not_written_is_made_from_the_workers():
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}}
    mount = {"name": "data", "mountPath": "/mnt"}
    written = template(name="worker", workingDir="/mnt", volumeMounts=[mount], volumes=[data])
    container = container_of(mpi(trainer("worker", template=written)), "launcher-0")

    assert (container["name"], container["image"], container["workingDir"]) == ("launcher", "python:3.11", "/mnt")
    assert container["volumeMounts"][0] == mount
    assert container["resources"]["limits"] == {"cpu": "200m", "memory": "200Mi"}


def test_a_launcher_can_pull_the_workers_image_and_goes_where_it_runs():
    """Their image may be a private one, or for another architecture."""
    written = template(name="worker")
    shared = {
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "trainer",
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    written["spec"] |= shared
    spec = gang_of(mpi(trainer("worker", template=written))).member(ReplicaId("launcher", 0)).template["spec"]

    assert {key: spec.get(key) for key in shared} == shared


def test_mpirun_finds_the_workers_also_when_somebody_calls_it_by_hand():
    """In debug mode nobody puts arguments to it; the names are those of Open MPI 4 and 5."""
    told = env_of(container_of(mpi(**DEBUG), "launcher-0"))

    assert told["OMPI_MCA_plm_rsh_agent"] == told["PRTE_MCA_plm_ssh_agent"] == f"{LAUNCH}/ssh"
    assert told["OMPI_MCA_orte_default_hostfile"] == f"{LAUNCH}/hostfile"
    assert told["PRTE_MCA_prte_default_hostfile"] == f"{LAUNCH}/hostfile"


def test_a_launcher_has_what_its_author_says_and_the_rest_of_the_workers():
    own = {"name": "launcher", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "A", "value": "1"}]}
    launcher = {"type": "launcher", "template": {"spec": {"containers": [{"name": "log", "image": "x"}, own]}}}
    containers = (
        gang_of(mpi(trainer("worker"), launcher)).member(ReplicaId("launcher", 0)).template["spec"]["containers"]
    )

    assert containers[1]["image"] == "python:3.11"
    assert containers[1]["resources"] == {"limits": {"cpu": "1"}}
    assert containers[1]["command"][3] == "mpirun"
    assert env_of(containers[1])["A"] == "1"
    assert "command" not in containers[0]


def test_the_launcher_decides_and_its_exit_status_is_the_jobs():
    gang = gang_of(mpi())

    assert gang.leader == ReplicaId("launcher", 0)
    assert gang.success == ((ReplicaId("launcher", 0),),)
    assert len(gang.failure) == 3
    assert (gang.scope, gang.backoff_limit) == (RestartScope.GANG, None)
    assert gang.role_limits == {"worker": 0, "launcher": 0}


def test_restarts_are_limited_by_type():
    job = mpi(
        trainer("worker", restartPolicy={"policy": "Never"}),
        {"type": "launcher", "restartPolicy": {"policy": "Always", "limit": 2}},
    )

    assert gang_of(job).role_limits == {"worker": 0, "launcher": 2}
    assert gang_of(job).member(ReplicaId("worker", 0)).restart is RestartPolicy.NEVER


CLEAN_UPS = {
    "those that still run": ({}, CleanUp.UNFINISHED),
    "all workers": ({"runPolicy": {"cleanUpWorkers": True}}, CleanUp.UNFINISHED),
    "none": ({"runPolicy": {"cleanUpWorkers": False}}, CleanUp.NONE),
}


@pytest.mark.parametrize(("spec", "clean_up"), CLEAN_UPS.values(), ids=CLEAN_UPS)
def test_when_the_job_ends_there_go(spec, clean_up):
    """The launcher has ended by then, and stays."""
    assert gang_of(mpi(**spec)).clean_up is clean_up


DEBUG = {"runMode": {"debug": {"enabled": True}}}


def test_in_debug_mode_the_launcher_sleeps_and_workers_can_be_reached():
    """Vector 11: what stands in for sshd, or the image's own when its author names it."""
    assert container_of(mpi(**DEBUG), "launcher-0")["command"] == ["sleep", "inf"]
    assert container_of(mpi(**DEBUG))["command"] == [
        "python3",
        f"{LAUNCH}/agent",
        "serve",
        "--port=2222",
        f"--bind={STEM}-worker-0",
    ]
    job = mpi(ssh={"sshdPath": "/usr/sbin/sshd"}, **DEBUG)
    assert container_of(job)["command"] == ["/usr/sbin/sshd", "-D"]


def test_after_a_pause_only_the_launcher_runs_something_else():
    entries = [{"type": "launcher", "command": ["again"]}, {"type": "worker", "command": ["again"]}]
    job = mpi(runMode={"pause": {"resumeSpecs": entries}})

    # It finds what stands in for ssh, as mpirun did.
    assert container_of(job, "launcher-0", resumes=1)["command"] == [*STAND_INS, "again"]
    assert container_of(job, resumes=1) == container_of(job)


FAULTS = {
    "no worker": (
        mpi({"type": "launcher"}),
        "spec.replicaSpecs: None is not allowed; add an entry of type worker",
    ),
    "a worker without template": (
        mpi({"type": "worker"}),
        "spec.replicaSpecs[0].template: None is not allowed; set the pod template of the workers",
    ),
    "no container named worker": (
        mpi(trainer("main")),
        "spec.replicaSpecs[0].template.spec.containers: None is not allowed; one container must be named worker",
    ),
    "two launchers": (
        mpi(trainer("worker"), {"type": "launcher", "replicas": 2}),
        "spec.replicaSpecs[1].replicas: 2 is not allowed; a job has exactly one launcher",
    ),
    "nothing to run": (
        mpi(mpiConfig={}),
        "spec.mpiConfig.script: None is not allowed; set the program that mpirun starts",
    ),
    "a launcher with a container that has no name": (
        mpi(trainer("worker"), {"type": "launcher", "template": {"spec": {"containers": [{}]}}}),
        "spec.replicaSpecs[1].template.spec.containers[0].name: None is not allowed; the field is required",
    ),
    "a launcher that mounts what is not there": (
        mpi(
            trainer("worker"),
            {
                "type": "launcher",
                "template": {
                    "spec": {
                        "volumes": [],
                        "containers": [{"name": "launcher", "volumeMounts": [{"name": "a", "mountPath": "/a"}]}],
                    }
                },
            },
        ),
        (
            "spec.replicaSpecs[1].template.spec.containers[0].volumeMounts[0].name: 'a' is not allowed; "
            "the pod has no volume of this name"
        ),
    ),
    "the same type twice": (
        mpi(trainer("worker"), trainer("worker")),
        "spec.replicaSpecs[1]: {'type': 'worker'} is not allowed; must be unique",
    ),
}


@pytest.mark.parametrize(("job", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_job_is_refused_for(job, fault):
    assert one_fault(job).startswith(fault)


def test_nothing_to_run_is_fine_in_debug_mode():
    assert registry.faults(mpi(mpiConfig={}, **DEBUG)) == ()


def test_a_claim_that_both_mount_is_asked_for_once():
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "digits"}}
    job = mpi(trainer("worker", template=template(name="worker", volumes=[data])))

    assert [name for _, name in registry.claims_of(job)] == ["digits"]
