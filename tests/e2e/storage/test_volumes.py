"""What a pod finds at the places where its volumes are mounted, with real processes."""

import os
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import generic
from tests.e2e.support.shell_pods import create, lacks, make_pod, phase, run_pod, shell, show, told

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
ROOM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def at(path: str, **fields: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "v", "mountPath": path, **fields}]}


def vol(**source: Any) -> list[dict[str, Any]]:
    return [{"name": "v", **source}]


def claim(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**ROOM, **spec},
    }


def volume(name: str, path: Path, *, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    has = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(path)}}
    metadata = {"name": name, "labels": labels}
    body = {**has, "storageClassName": "", **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": body}


def storage_class(name: str, **fields: Any) -> dict[str, Any]:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    return {**kind, "provisioner": "paceline.dev/folder", **fields}


def words(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_what_one_pod_writes_to_a_claim_another_reads(cluster: Embedded) -> None:
    """H-18, H-24"""
    create(cluster, claim("shared"))
    volumes = vol(persistentVolumeClaim={"claimName": "shared"})
    run_pod(cluster, "writer", shell("echo hello > /data/x", **at("/data")), volumes=volumes)

    assert run_pod(cluster, "reader", shell("cat /data/x", **at("/data")), volumes=volumes) == ["hello"]


def test_a_claim_gets_the_volume_that_its_labels_ask_for(cluster: Embedded, tmp_path: Path) -> None:
    """H-22"""
    tmp_path.chmod(0o755)
    for name in ("red", "blue"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "color").write_text(name)
        create(cluster, volume(f"pv-{name}", tmp_path / name, labels={"color": name}))
    create(cluster, claim("blue", storageClassName="", selector={"matchLabels": {"color": "blue"}}))
    volumes = vol(persistentVolumeClaim={"claimName": "blue"})

    assert run_pod(cluster, "colored", shell("cat /data/color", **at("/data")), volumes=volumes) == ["blue"]
    assert show(cluster, "pvc", "blue")["spec"]["volumeName"] == "pv-blue"
    assert phase(cluster, "pv", "pv-red") == "Available"


def test_a_claim_that_does_not_fit_is_said_on_the_claim_and_on_the_job(cluster: Embedded) -> None:
    """H-22, H-25"""
    huge = {"requests": {"storage": "900Gi"}}
    create(cluster, claim("never", storageClassName="", resources=huge))
    job = generic("stuck", command=["true"])
    spec = job["spec"]["replicaSpecs"][0]["template"]["spec"]
    spec["volumes"] = vol(persistentVolumeClaim={"claimName": "never"})
    spec["containers"][0] |= at("/data")
    create(cluster, job)

    why = "no persistent volumes available for this claim and no storage class is set"
    assert told(cluster, "never", "FailedBinding") == why
    assert phase(cluster, "pvc", "never") == "Pending"
    waiting = wait_until("the job says why", lambda: show(cluster, "genericjob", "stuck")["status"].get("waiting"))
    assert why in waiting
    cluster.kubectl("delete", "genericjob", "stuck", "--wait=false")


def test_a_late_class_waits_for_a_pod(cluster: Embedded) -> None:
    create(cluster, storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
    create(cluster, claim("late", storageClassName="late"))
    assert told(cluster, "late", "WaitForFirstConsumer")
    assert phase(cluster, "pvc", "late") == "Pending"
    volumes = vol(persistentVolumeClaim={"claimName": "late"})

    assert run_pod(cluster, "late", shell("echo in", **at("/data")), volumes=volumes) == ["in"]


def test_the_folder_of_a_claim_goes_with_it_where_the_class_says_so(cluster: Embedded) -> None:
    create(cluster, storage_class("brief", reclaimPolicy="Delete"))
    create(cluster, claim("brief", storageClassName="brief"))
    volumes = vol(persistentVolumeClaim={"claimName": "brief"})
    run_pod(cluster, "brief", shell("touch /data/x", **at("/data")), volumes=volumes)
    name = show(cluster, "pvc", "brief")["spec"]["volumeName"]
    folder = Path(show(cluster, "pv", name)["spec"]["hostPath"]["path"])
    assert (folder / "x").exists()

    cluster.kubectl("delete", "pvc", "brief")
    wait_until("the volume is gone", lambda: cluster.kubectl("get", "pv", name).code == 1)
    assert not folder.exists()


def test_a_folder_that_only_claims_to_be_ours_is_kept_and_its_volume_says_so(cluster: Embedded, tmp_path: Path) -> None:
    """H-9: a copied manifest, or a backup from another cluster, names a folder that others need."""
    (tmp_path / "precious").mkdir()
    made = volume("copied", tmp_path / "precious", labels={"copied": "yes"}, persistentVolumeReclaimPolicy="Delete")
    made["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "paceline.dev/folder"}
    create(cluster, made, claim("copied", storageClassName="", volumeName="copied"))
    wait_until("the claim is bound", lambda: phase(cluster, "pvc", "copied") == "Bound")

    cluster.kubectl("delete", "pvc", "copied")
    wait_until("the volume has failed", lambda: phase(cluster, "pv", "copied") == "Failed")
    status = show(cluster, "pv", "copied")["status"]
    assert status["reason"] == "VolumeFailedDelete"
    where = cluster.settings.volumes
    assert f"{tmp_path}/precious is not deleted: it is not directly below {where}" in status["message"]
    assert told(cluster, "copied", "VolumeFailedDelete") == status["message"]
    assert (tmp_path / "precious").is_dir()


def test_the_folder_of_a_claim_stays_by_default(cluster: Embedded) -> None:
    """H-23"""
    create(cluster, claim("lasting"))
    volumes = vol(persistentVolumeClaim={"claimName": "lasting"})
    run_pod(cluster, "lasting", shell("touch /data/x", **at("/data")), volumes=volumes)
    name = show(cluster, "pvc", "lasting")["spec"]["volumeName"]
    folder = Path(show(cluster, "pv", name)["spec"]["hostPath"]["path"])

    cluster.kubectl("delete", "pvc", "lasting")
    wait_until("the volume is released", lambda: phase(cluster, "pv", name) == "Released")
    assert (folder / "x").exists()


def test_a_claim_stays_while_a_pod_uses_it(cluster: Embedded) -> None:
    create(cluster, claim("busy"))
    make_pod(
        cluster, "user", shell("sleep 100", **at("/data")), volumes=vol(persistentVolumeClaim={"claimName": "busy"})
    )
    wait_until("it runs", lambda: phase(cluster, "pod", "user") == "Running")
    cluster.kubectl("delete", "pvc", "busy", "--wait=false")

    assert "Terminating" in cluster.kubectl("get", "pvc", "busy").out
    cluster.kubectl("delete", "pod", "user", "--grace-period=0", "--force")
    wait_until("the claim is gone", lambda: cluster.kubectl("get", "pvc", "busy").code == 1)


def test_a_pods_own_claim_comes_and_goes_with_it(cluster: Embedded) -> None:
    volumes = vol(ephemeral={"volumeClaimTemplate": {"spec": ROOM}})

    assert run_pod(cluster, "owner", shell("echo x > /d/x; cat /d/x", **at("/d")), volumes=volumes) == ["x"]
    assert phase(cluster, "pvc", "owner-v") == "Bound"
    cluster.kubectl("delete", "pod", "owner")
    wait_until("its claim is gone", lambda: cluster.kubectl("get", "pvc", "owner-v").code == 1)


HOST_TYPES = {
    "Directory": ("folder", "ls /h"),
    "File": ("file", "cat /h"),
    "Socket": ("socket", "test -S /h && echo there"),
    "": ("folder", "ls /h"),
}


@pytest.mark.parametrize(("kind", "made", "script"), [(k, *v) for k, v in HOST_TYPES.items()], ids=HOST_TYPES)
def test_a_place_of_the_machine_is_seen(cluster: Embedded, tmp_path: Path, kind: str, made: str, script: str) -> None:
    place = tmp_path / "it"
    if made == "folder":
        (place / "there").mkdir(parents=True)
    elif made == "file":
        place.write_text("there\n")
    else:
        os.mknod(place, 0o140666)
    volumes = vol(hostPath={"path": str(place), "type": kind})

    assert run_pod(cluster, f"host-{made}-{len(kind)}", shell(script, **at("/h")), volumes=volumes) == ["there"]


def test_memory_is_shared_by_all_containers_of_a_pod(cluster: Embedded) -> None:
    writer = shell("echo 1 > /m/x; sleep 1", name="writer", **at("/m"))
    reader = shell("until cat /m/x 2>/dev/null; do sleep 0.05; done; stat -f -c %T /m", **at("/m"))
    said = run_pod(cluster, "memory", reader, writer, volumes=vol(emptyDir={"medium": "Memory"}))
    uid = show(cluster, "pod", "memory")["metadata"]["uid"]

    assert said == ["1", "tmpfs"]
    cluster.kubectl("delete", "pod", "memory")
    wait_until("nothing of it is left", lambda: not Path(f"/dev/shm/paceline-{uid}").exists())


def test_memory_is_as_large_as_asked_for_and_shared_memory_too(cluster: Embedded) -> None:
    """T-06, X-24"""
    volumes = vol(emptyDir={"medium": "Memory", "sizeLimit": "3Mi"})
    script = "df --output=size -k /dev/shm | tail -1; head -c 4M /dev/zero 2>&1 > /dev/shm/x || echo full"
    size, *_, last = run_pod(cluster, "sized", shell(script, **at("/dev/shm")), volumes=volumes)

    assert (size.strip(), last) == ("3072", "full")


@pytest.mark.parametrize(
    "path", ["/usr/share/no-such-thing/deep", "/opt/data", "/usr/bin/data", "/etc/ssl/mine", "/a/b/c", "/home/me"]
)
def test_a_volume_can_be_mounted_anywhere(cluster: Embedded, path: str) -> None:
    script = f"echo 1 > {path}/x && cat {path}/x && ls /usr/bin/env"
    said = run_pod(cluster, f"at{path.replace('/', '-')}", shell(script, **at(path)), volumes=vol(emptyDir={}))

    assert said == ["1", "/usr/bin/env"]


@needs_root
def test_a_command_in_a_container_has_the_containers_groups(cluster: Embedded) -> None:
    make_pod(cluster, "entered", shell("sleep 100"), securityContext={"fsGroup": 4321, "runAsUser": 1234})
    wait_until("it runs", lambda: phase(cluster, "pod", "entered") == "Running")

    assert cluster.kubectl("exec", "entered", "--", "id", "-G").out.split() == ["0", "4321"]
    cluster.kubectl("delete", "pod", "entered", "--grace-period=0", "--force")


def test_a_file_server_is_said_to_be_missing(cluster: Embedded) -> None:
    make_pod(cluster, "far", shell("true", **at("/n")), volumes=vol(nfs={"server": "far.example", "path": "/x"}))

    assert 'MountVolume.SetUp failed for volume "v" : ' in lacks(cluster, "far", "FailedMount")
    cluster.kubectl("delete", "pod", "far", "--wait=false")
