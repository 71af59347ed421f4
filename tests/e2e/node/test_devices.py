"""Pods with devices of their own: counted by the scheduler, given out one by one, seen by nobody else."""

import json
import os
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from paceline.testing.embedded import embedded, wait_until
from tests.e2e.support.shell_pods import ended, make_pod, run_pod, shell, show

GPU, DUMMY = "nvidia.com/gpu", "example.com/dummy"
UNTIL_TOLD = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def nodes():
    """Two device nodes that behave as /dev/null does, where this user may make some."""
    with tempfile.TemporaryDirectory(prefix="pl-dev-") as folder:
        paths = [Path(folder) / f"dummy{number}" for number in range(2)]
        for path in paths if os.geteuid() == 0 else ():
            os.mknod(path, stat.S_IFCHR, os.makedev(1, 3))
            path.chmod(0o666)
        yield paths


@pytest.fixture(scope="module")
def cluster(nodes):
    dummies = ["--device", f"{DUMMY}={','.join(map(str, nodes))}"] if nodes[0].exists() else []
    with embedded("--device", f"{GPU}=3", *dummies) as running:
        yield running


def asking(script, *, name="main", **amounts):
    names = {"gpu": GPU, "dummy": DUMMY}
    limits = {names[word]: str(amount) for word, amount in amounts.items()}
    return shell(script, name=name, resources={"limits": limits})


def delete(cluster, *names):
    gone = cluster.kubectl("delete", "pod", *names)
    assert gone.code == 0, gone.err


def scheduled(cluster, name):
    conditions = show(cluster, "pod", name).get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def runs(cluster, name):
    def look():
        return show(cluster, "pod", name)["status"].get("phase") == "Running"

    wait_until(f"pod {name} runs", look)
    return said(cluster, name)


def said(cluster, name):
    return wait_until(f"pod {name} says something", lambda: cluster.kubectl("logs", name).out).splitlines()


def test_the_node_says_what_it_has(cluster):
    (node,) = json.loads(cluster.kubectl("get", "nodes", "-o", "json").out)["items"]

    assert node["status"]["capacity"][GPU] == node["status"]["allocatable"][GPU] == "3"


def test_pods_share_no_device_and_the_next_one_waits_until_one_is_free(cluster):
    """H-03, H-04, S-54, T-13"""
    tell = f"echo $CUDA_VISIBLE_DEVICES; {UNTIL_TOLD}"
    make_pod(cluster, "two", asking(tell, gpu=2))
    make_pod(cluster, "one", asking(tell, gpu=1))
    held = [runs(cluster, name) for name in ("two", "one")]
    make_pod(cluster, "late", asking("echo $CUDA_VISIBLE_DEVICES", gpu=1))
    why = wait_until("the third says why it waits", lambda: scheduled(cluster, "late").get("message"))

    assert sorted(",".join(line for lines in held for line in lines).split(",")) == ["0", "1", "2"]
    assert why == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu (1 asked, 0 of 3 free)"

    delete(cluster, "one")
    assert ended(cluster, "late") == "Succeeded"
    assert said(cluster, "late") == held[1]
    delete(cluster, "two", "late")


def test_a_container_without_gpus_is_told_that_it_has_none(cluster):
    none = 'test -n "${CUDA_VISIBLE_DEVICES+set}" && echo "<$CUDA_VISIBLE_DEVICES>"'
    lines = run_pod(cluster, "none", shell(none), asking("echo $CUDA_VISIBLE_DEVICES", name="other", gpu=1))

    assert lines == ["<>"]


def test_what_people_say_of_devices_themselves_goes_before(cluster):
    own = {**asking("echo $CUDA_VISIBLE_DEVICES", gpu=1), "env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "7"}]}

    assert run_pod(cluster, "own", own) == ["7"]


def test_a_pod_keeps_its_devices_when_the_agent_is_killed(cluster):
    make_pod(cluster, "keeper", asking(f"echo $CUDA_VISIBLE_DEVICES; {UNTIL_TOLD}", gpu=2))
    (held,) = runs(cluster, "keeper")
    before = cluster.agent_pid
    os.kill(before, signal.SIGKILL)
    wait_until("another agent is there", lambda: cluster.agent_pid not in (None, before))

    (other,) = run_pod(cluster, "other", asking("echo $CUDA_VISIBLE_DEVICES", gpu=1))

    assert other not in held.split(",")
    delete(cluster, "keeper")


def test_a_device_comes_back_from_a_pod_that_was_killed(cluster):
    for number in range(4):
        make_pod(cluster, f"killed-{number}", asking("kill -9 $$", gpu=3))
        assert ended(cluster, f"killed-{number}") == "Failed"


def test_a_container_with_a_command_run_in_it_finds_its_devices(cluster):
    make_pod(cluster, "entered", asking(f"echo $CUDA_VISIBLE_DEVICES; {UNTIL_TOLD}", gpu=1))
    held = runs(cluster, "entered")
    ran = cluster.kubectl("exec", "entered", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")

    assert ran.out.splitlines() == held
    delete(cluster, "entered")


def test_a_job_never_starts_in_part_when_devices_lack(cluster):
    """X-13"""
    pods = [f"big-{number}" for number in range(2)]
    spec = {"resources": {"limits": {GPU: "2"}}, "name": "main", "image": "python:3.11", "command": ["true"]}
    replica = {"type": "worker", "replicas": len(pods), "template": {"spec": {"containers": [spec]}}}
    job = {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": "big"},
        "spec": {"successRules": [{"worker": [0]}], "failureRules": [{"worker": [0]}], "replicaSpecs": [replica]},
    }
    made = cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
    assert made.code == 0, made.err

    why = wait_until("the job says why it waits", lambda: "Insufficient" in cluster.paceline("describe", "big").out)

    assert why
    assert "(4 asked, 3 of 3 free); it can never run here" in cluster.paceline("describe", "big").out
    cluster.kubectl("delete", "genericjob", "big")


def test_devices_are_asked_for_as_the_api_wants_it(cluster):
    fraction = cluster.kubectl("run", "half", "--image=python:3.11", f"--overrides={limited('0.5', '0.5')}")
    unequal = cluster.kubectl("run", "odd", "--image=python:3.11", f"--overrides={limited('1', '2')}")

    assert "must be an integer" in fraction.err
    assert "must be equal to nvidia.com/gpu limit of 2" in unequal.err


def limited(requests, limits):
    resources = {"requests": {GPU: requests}, "limits": {GPU: limits}}
    container = {"name": "main", "image": "python:3.11", "resources": resources}
    return json.dumps({"spec": {"containers": [container]}})


needs_nodes = pytest.mark.skipif(os.geteuid() != 0, reason="making device nodes takes root")


@needs_nodes
def test_a_container_sees_its_own_device_nodes_and_no_others(cluster, nodes):
    folder = nodes[0].parent
    own = "$PACELINE_DEVICES_EXAMPLE_COM_DUMMY"
    use = f"echo {own}; ls {folder}; echo x > {folder}/dummy{own} && echo used"
    held, *lines = run_pod(cluster, "sees", asking(use, dummy=1))

    assert lines == [f"dummy{held}", "used"]


@needs_nodes
def test_a_container_that_asks_for_none_sees_no_device_nodes(cluster, nodes):
    assert run_pod(cluster, "blind", shell(f"test -e {nodes[0].parent} || echo nothing")) == ["nothing"]


def test_a_port_of_the_machine_is_one_pods_at_a_time(cluster):
    serving = {**shell(f"echo up; {UNTIL_TOLD}"), "ports": [{"containerPort": 18080}]}
    make_pod(cluster, "first", serving, hostNetwork=True)
    runs(cluster, "first")
    make_pod(cluster, "second", serving, hostNetwork=True)
    why = wait_until("the second says why it waits", lambda: scheduled(cluster, "second").get("message"))

    assert why.startswith("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports")
    assert "18080/TCP is taken" in why

    delete(cluster, "first")
    runs(cluster, "second")
    delete(cluster, "second")
