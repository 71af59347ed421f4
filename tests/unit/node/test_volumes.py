"""Volumes become folders, mounts become places."""

from pathlib import Path

import pytest

from paceline.node.host import Blocked, Folders
from paceline.node.sources import Sources
from paceline.node.volumes import Shelf, Volume, mounts_of
from tests.unit.node.pods import UID, container, pod

FOLDERS = Folders(root=Path("/agent"))
SOURCES = Sources(found={("configmap", "settings"): {"lr": b"0.1", "b": b"2"}, ("secret", "keys"): {"t": b"0"}})


def claim(phase="Bound", volume="pv"):
    return {("team", "data"): {"spec": {"volumeName": volume}, "status": {"phase": phase}}}


def volume(**spec):
    return {("", "pv"): {"spec": spec}}


def shelf(claims=None, volumes=None):
    return Shelf(claims=claims or {}, volumes=volumes or {}, sources=SOURCES, folders=FOLDERS)


def mounts(volumes, *wires, found=None):
    subject = pod(container(volumeMounts=list(wires)), volumes=volumes)
    return mounts_of(subject, subject["spec"]["containers"][0], found or shelf())


DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
AT = {"name": "data", "mountPath": "/data"}


@pytest.mark.parametrize("place", [{"local": {"path": "/disk/a"}}, {"hostPath": {"path": "/disk/a"}}])
def test_a_claim_is_the_folder_of_its_volume(place):
    (mount,) = mounts([DATA], AT, found=shelf(claim(), volume(**place)))

    assert (mount.target, mount.source, mount.volume.make, mount.read_only) == ("/data", Path("/disk/a"), 0o777, False)


WAITS = {
    "no claim": (shelf(), 'persistentvolumeclaim "data" not found'),
    "a claim without a volume": (shelf(claim("Pending")), "is not bound"),
    "a volume that is gone": (shelf(claim()), "is not there"),
    "a volume elsewhere": (shelf(claim(), volume(nfs={"server": "x"})), "is no folder of this machine"),
}


@pytest.mark.parametrize(("found", "said"), WAITS.values(), ids=WAITS)
def test_a_claim_that_is_not_ready_keeps_the_container_waiting(found, said):
    with pytest.raises(Blocked, match=said) as caught:
        mounts([DATA], AT, found=found)
    assert caught.value.reason == "FailedMount"


def test_scratch_space_lies_in_the_pods_own_folder_or_in_memory():
    volumes = [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
        {"name": "c"},
    ]
    wires = [{"name": name, "mountPath": f"/{name}"} for name in "abc"]
    first, second, third = mounts(volumes, *wires)

    assert first.source == Path(f"/agent/pods/{UID}/volumes/0")
    assert (second.source, second.volume.size) == (None, 64 * 2**20)
    assert third.source == Path(f"/agent/pods/{UID}/volumes/2")


def test_config_maps_and_secrets_are_files_that_cannot_be_changed():
    volumes = [
        {"name": "c", "configMap": {"name": "settings", "items": [{"key": "lr", "path": "sub/lr.txt"}]}},
        {"name": "s", "secret": {"secretName": "keys", "defaultMode": 0o400}},
    ]
    first, second = mounts(volumes, {"name": "c", "mountPath": "/c"}, {"name": "s", "mountPath": "/s"})

    assert (first.volume.files, first.read_only) == ((("sub/lr.txt", b"0.1", 0o644),), True)
    assert second.volume.files == (("t", b"0", 0o400),)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
        ({"configMap": {"name": "settings", "items": [{"key": "no", "path": "x"}]}}, "has no entry 'no'"),
        ({"configMap": {"name": "settings", "items": [{"key": "lr", "path": "../x"}]}}, "cannot be a file name"),
        ({"configMap": {"name": "settings", "items": [{"key": "lr", "path": "/x"}]}}, "cannot be a file name"),
        ({"nfs": {"server": "x"}}, "is a nfs, which is not offered here"),
    ],
)
def test_what_cannot_be_mounted_is_said(spec, said):
    with pytest.raises(Blocked, match=said):
        mounts([{"name": "v", **spec}], {"name": "v", "mountPath": "/v"})


def test_an_optional_source_may_be_absent():
    (mount,) = mounts([{"name": "v", "configMap": {"name": "no", "optional": True}}], {"name": "v", "mountPath": "/v"})

    assert mount.volume.files == ()


def test_a_mount_inside_another_comes_after_it():
    volumes = [{"name": "v", "hostPath": {"path": "/x"}}]
    wires = [{"name": "v", "mountPath": path} for path in ("/a/b/c", "/a", "/a/b/", "/a-b")]

    assert [mount.target for mount in mounts(volumes, *wires)] == ["/a", "/a/b", "/a/b/c", "/a-b"]


def test_read_only_is_kept_from_either_side():
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}, {**DATA, "name": "w"}]
    found = shelf(claim(), volume(local={"path": "/x"}))
    wires = [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w", "readOnly": True}]

    assert [mount.read_only for mount in mounts(volumes, *wires, found=found)] == [True, True]


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b"])
def test_a_sub_path_cannot_lead_out_of_its_volume(path):
    with pytest.raises(Blocked, match="leads out of volume"):
        mounts([{"name": "v", "emptyDir": {}}], {"name": "v", "mountPath": "/v", "subPath": path})


def test_a_mount_of_no_volume_is_said():
    with pytest.raises(Blocked, match="'w' is not among the pod's volumes: v"):
        mounts([{"name": "v", "emptyDir": {}}], {"name": "w", "mountPath": "/w"})


def test_a_folder_of_the_machine_is_made_only_when_asked_for():
    volumes = [
        {"name": "a", "hostPath": {"path": "/x"}},
        {"name": "b", "hostPath": {"path": "/y", "type": "DirectoryOrCreate"}},
    ]
    first, second = mounts(volumes, *({"name": name, "mountPath": f"/{name}"} for name in "ab"))

    assert first.volume == Volume(source=Path("/x"))
    assert second.volume == Volume(source=Path("/y"), make=0o755)
