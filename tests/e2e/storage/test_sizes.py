"""Volumes with a size keep to it, volumes of other machines are mounted or the reason is said, and use is told."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from paceline.testing.embedded import wait_until
from tests.e2e.support.containers import HOST
from tests.e2e.support.shell_pods import create, ended, make_pod, run_pod, shell, show

needs_mounts = pytest.mark.skipif(not HOST.may_mount, reason="needs the right to mount")


def mounting(script, *, name="main", **fields):
    return {**shell(script, name=name), "volumeMounts": [{"name": "data", "mountPath": "/data"}], **fields}


def empty_dir(**wire):
    return [{"name": "data", "emptyDir": wire}]


def events_of(cluster, name, reason):
    found = cluster.kubectl("get", "events", "-o", "json", f"--field-selector=involvedObject.name={name}")
    return [each["message"] for each in json.loads(found.out)["items"] if each["reason"] == reason]


@pytest.mark.slow
def test_a_pod_whose_scratch_outgrows_its_limit_is_evicted_even_if_the_agent_is_killed(cluster):
    fill = "head -c 3000000 /dev/zero > /data/big; trap '' TERM; while :; do sleep 0.1; done"
    make_pod(cluster, "big", mounting(fill), volumes=empty_dir(sizeLimit="1Mi"), terminationGracePeriodSeconds=300)
    record = cluster.settings.agent / "pods" / show(cluster, "pod", "big")["metadata"]["uid"] / "evicted"
    wait_until("it is on record", record.exists)
    os.kill(cluster.agent_pid, signal.SIGKILL)

    assert ended(cluster, "big") == "Failed"
    status = show(cluster, "pod", "big")["status"]
    assert status["reason"] == "Evicted"
    assert status["message"] == 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". '
    # As with a kubelet: that its own files grew is the pod's own doing.
    assert "DisruptionTarget" not in {each["type"] for each in status["conditions"]}
    wait_until("it is told", lambda: events_of(cluster, "big", "Evicted"))


@pytest.mark.slow
def test_scratch_within_its_limit_is_nobodys_business(cluster):
    fill = "head -c 500000 /dev/zero > /data/small; sleep 12; echo done"

    assert run_pod(cluster, "small", mounting(fill), volumes=empty_dir(sizeLimit="1Mi")) == ["done"]


@needs_mounts
def test_memory_that_containers_share_is_as_large_as_it_says(cluster):
    # Silent: which of a program's two outputs is read first is open, here as on Kubernetes.
    fill = "head -c 3000000 /dev/zero > /data/big 2>/dev/null || df -k /data | tail -1 | tr -s ' ' | cut -d' ' -f2"
    see = "while ! [ -s /data/big ]; do sleep 0.1; done; echo seen"
    volumes = empty_dir(medium="Memory", sizeLimit="1Mi")
    lines = run_pod(cluster, "memory", mounting(fill), mounting(see, name="other"), volumes=volumes)

    assert lines[-1] == "1024"
    mounts = cluster.settings.agent / "mounts"
    wait_until("nothing of it is left", lambda: not list(mounts.iterdir()))
    assert str(mounts) not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.skipif(bool(shutil.which("mount.nfs", path="/sbin:/usr/sbin")), reason="there is a mount.nfs")
def test_a_disk_of_another_machine_says_what_it_takes(cluster):
    make_pod(
        cluster, "far", mounting("true"), volumes=[{"name": "data", "nfs": {"server": "127.0.0.1", "path": "/export"}}]
    )
    (said, *_) = wait_until("it says why it waits", lambda: events_of(cluster, "far", "FailedMount"))

    if HOST.may_mount:
        assert "mount.nfs is not installed, and nfs cannot be mounted without it; install it with: " in said
    else:
        assert "nfs can only be mounted if the node agent runs as root" in said
    cluster.kubectl("delete", "pod", "far", "--now")


def test_a_claim_tells_how_much_of_it_is_used(cluster):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Mi"}}}
    create(cluster, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": spec})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}]
    make_pod(cluster, "writes", mounting("head -c 1048576 /dev/zero > /data/some; sleep 300"), volumes=volumes)

    def told():
        rows = cluster.paceline("top", "claims").out.splitlines()
        return next((row.split() for row in rows if row.startswith("disk") and "1.0 MiB" in row), None)

    row = wait_until("its use is told", told)
    assert row == ["disk", "1.0", "MiB", "4.0", "MiB", "25%"]
    assert "1.0 MiB of 4.0 MiB (25%)" in cluster.paceline("describe", "pvc/disk").out
    cluster.kubectl("delete", "pod", "writes", "--now")
