"""Volumes become folders, mounts become places."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.apimachinery.builtin.storage_annotations import FOLDERS as FOLDERS_NAME
from paceline.apimachinery.builtin.storage_annotations import PROVISIONED_BY, WAITING
from paceline.node.host_info import CannotStart, Folders
from paceline.node.volumes.references import Sources
from paceline.node.volumes.volumes import MountSpec, PodVolume, VolumeLookup, mounted_volumes, mounts_of
from tests.unit.node.pods import HOST, UID, container, pod

FOLDERS = Folders(root=Path("/agent"))
SOURCES = Sources(entries={("configmap", "settings"): {"lr": b"0.1", "b": b"2"}, ("secret", "keys"): {"t": b"0"}})


def claim(phase="Bound", volume="pv", *, waiting="", going=False):
    metadata = {"namespace": "team", "name": "data", "annotations": {WAITING: waiting} if waiting else {}}
    metadata |= {"deletionTimestamp": "2030-01-01T00:00:00Z"} if going else {}
    return {("team", "data"): {"metadata": metadata, "spec": {"volumeName": volume}, "status": {"phase": phase}}}


def volume(**spec):
    return {("", "pv"): {"metadata": {"name": "pv"}, "spec": spec}}


def shelf(claims=None, volumes=None, sources=SOURCES):
    return VolumeLookup(claims=claims or {}, volumes=volumes or {}, sources=sources, folders=FOLDERS)


def mounts(volumes, *wires, found=None):
    subject = pod(container(volumeMounts=list(wires)), volumes=volumes)
    return mounts_of(subject, subject["spec"]["containers"][0], found or shelf())


DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
AT = {"name": "data", "mountPath": "/data"}


@pytest.mark.parametrize(
    ("place", "make", "must_exist"),
    [
        ({"local": {"path": "/disk/a"}}, None, True),
        ({"hostPath": {"path": "/disk/a"}}, 0o755, False),
        ({"hostPath": {"path": "/disk/a", "type": "Directory"}}, None, False),
    ],
)
def test_a_claim_is_the_folder_of_its_volume(place, make, must_exist):
    (mount,) = mounts([DATA], AT, found=shelf(claim(), volume(**place)))

    assert (mount.target, mount.source, mount.read_only) == ("/data", Path("/disk/a"), False)
    assert (mount.volume.name, mount.volume.make, mount.volume.must_exist) == ("pv", make, must_exist)


def test_a_folder_of_our_own_is_open_to_whoever_the_pod_runs_as():
    found = volume(hostPath={"path": "/disk/a", "type": "DirectoryOrCreate"})
    found[("", "pv")]["metadata"]["annotations"] = {PROVISIONED_BY: FOLDERS_NAME}
    (mount,) = mounts([DATA], AT, found=shelf(claim(), found))

    assert (mount.volume.make, mount.volume.is_shared) == (0o777, True)


def test_access_modes_do_not_keep_anybody_from_writing():
    found = volume(hostPath={"path": "/x"}, accessModes=["ReadOnlyMany"])
    (mount,) = mounts([DATA], AT, found=shelf(claim(), found))

    assert not mount.read_only


WAITS = {
    "no claim": (shelf(), 'persistentvolumeclaim "data" not found'),
    "a claim without a volume": (shelf(claim("Pending")), "is not bound to a volume yet"),
    "a claim that says why it waits": (shelf(claim("Pending", waiting="too small")), "to a volume: too small"),
    "a claim that lost its volume": (shelf(claim("Lost")), "its volume is gone"),
    "a claim that goes": (shelf(claim(going=True)), "can't start pod because PVC team/data is being deleted"),
    "a volume that is gone": (shelf(claim()), "does not exist"),
    "a volume elsewhere": (shelf(claim(), volume(iscsi={"iqn": "x"})), "is not a folder of this machine"),
}


@pytest.mark.parametrize(("found", "said"), WAITS.values(), ids=WAITS)
def test_a_claim_that_is_not_ready_keeps_the_container_waiting(found, said):
    with pytest.raises(CannotStart, match=said) as caught:
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
        (
            {"configMap": {"name": "settings", "items": [{"key": "no", "path": "x"}]}},
            "references non-existent config key: no",
        ),
        ({"configMap": {"name": "settings", "items": [{"key": "lr", "path": "../x"}]}}, "is not a valid file name"),
        ({"configMap": {"name": "settings", "items": [{"key": "lr", "path": "/x"}]}}, "is not a valid file name"),
        ({"iscsi": {"lun": 0}}, 'volume "v" : volumes of type iscsi are not supported; use a claim'),
        ({"csi": {"driver": "far"}}, "driver name far not found in the list of registered CSI drivers"),
        ({"nfs": {"server": "x"}}, "nfs can only be mounted if the node agent runs as root"),
    ],
)
def test_what_cannot_be_mounted_is_said(spec, said):
    with pytest.raises(CannotStart, match=said):
        mounts([{"name": "v", **spec}], {"name": "v", "mountPath": "/v"})


def mounting(claims=None, volumes=None):
    return replace(shelf(claims, volumes), host=replace(HOST, may_mount=True))


def test_a_disk_of_another_machine_is_mounted_away_from_what_is_removed():
    volumes = [{"name": "v", "nfs": {"server": "nas", "path": "/export", "readOnly": True}}]
    (mount,) = mounts(volumes, {"name": "v", "mountPath": "/v"}, found=mounting())

    assert mount.volume.mounted == MountSpec(kind="nfs", source="nas:/export", options=("ro",))
    assert mount.source == Path(f"/agent/mounts/{UID}/0")
    assert mount.read_only


def test_a_claim_may_be_a_disk_of_another_machine():
    found = mounting(claim(), volume(nfs={"server": "nas", "path": "/export"}, mountOptions=["vers=4.1"]))
    (mount,) = mounts([DATA], AT, found=found)

    assert mount.volume.mounted == MountSpec(kind="nfs", source="nas:/export", options=("vers=4.1",))


def test_memory_that_containers_share_is_mounted_with_its_size():
    volumes = [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    subject = pod(container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), container("other"), volumes=volumes)
    (mount,) = mounts_of(subject, subject["spec"]["containers"][0], mounting())

    assert mount.volume.mounted == MountSpec(kind="tmpfs", source="tmpfs", options=("size=1048576", "mode=1777"))


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


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../x", "unable to provision SubPath `../x`: must not contain '..'"),
        ("/etc", "error SubPath `/etc` must not be an absolute path"),
        ("a/../../b", "must not contain '..'"),
    ],
)
def test_a_sub_path_cannot_lead_out_of_its_volume(path, said):
    with pytest.raises(CannotStart, match=re.escape(said)):
        mounts([{"name": "v", "emptyDir": {}}], {"name": "v", "mountPath": "/v", "subPath": path})


def test_a_mount_of_no_volume_is_said():
    with pytest.raises(CannotStart, match="'w' is not among the pod's volumes: v"):
        mounts([{"name": "v", "emptyDir": {}}], {"name": "w", "mountPath": "/w"})


def test_a_claim_that_goes_stays_with_a_pod_that_runs():
    status = {"containerStatuses": [{"name": "main", "containerID": "paceline://1"}]}
    subject = pod(container(volumeMounts=[AT]), volumes=[DATA], status=status)
    found = shelf(claim(going=True), volume(local={"path": "/disk/a"}))
    (mount,) = mounts_of(subject, subject["spec"]["containers"][0], found)

    assert mount.source == Path("/disk/a")


@pytest.mark.parametrize(
    ("kind", "make"),
    [("", 0o755), ("Directory", None), ("DirectoryOrCreate", 0o755), ("File", None), ("FileOrCreate", 0o644)],
)
def test_what_a_folder_of_the_machine_must_be_is_passed_on(kind, make):
    (mount,) = mounts([{"name": "a", "hostPath": {"path": "/x", "type": kind}}], {"name": "a", "mountPath": "/a"})

    assert mount.volume == PodVolume(source=Path("/x"), name="a", make=make, host_type=kind)


def test_memory_is_shared_by_all_containers_of_a_pod():
    volumes = [{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]
    wire = {"volumeMounts": [{"name": "m", "mountPath": "/m"}]}
    subject = pod(container("one", **wire), container("two", **wire), volumes=volumes)
    first, second = (mounts_of(subject, each, shelf())[0] for each in subject["spec"]["containers"])

    assert first.source == second.source == Path(f"/dev/shm/paceline-{UID}/0")


def test_a_secret_lies_in_memory_and_a_config_map_does_not():
    volumes = [{"name": "s", "secret": {"secretName": "keys"}}, {"name": "c", "configMap": {"name": "settings"}}]
    secret, words = mounts(volumes, {"name": "s", "mountPath": "/a"}, {"name": "c", "mountPath": "/b"})

    assert (secret.source, secret.volume.is_memory) == (Path(f"/dev/shm/paceline-{UID}/0"), True)
    assert (words.source, words.volume.is_memory) == (Path(f"/agent/pods/{UID}/volumes/1"), False)


def test_a_pod_that_runs_keeps_the_files_it_was_given_when_their_source_is_gone():
    status = {"containerStatuses": [{"name": "main", "containerID": "paceline://1"}]}
    subject = pod(
        container(volumeMounts=[{"name": "c", "mountPath": "/c"}]),
        volumes=[{"name": "c", "configMap": {"name": "gone"}}],
        status=status,
    )
    (mount,) = mounts_of(subject, subject["spec"]["containers"][0], shelf())

    assert (mount.volume.files, mount.read_only) == (None, True)


def test_all_that_a_projected_volume_lacks_is_said():
    sources = [{"secret": {"name": "no"}}, {"configMap": {"name": "settings"}}, {"configMap": {"name": "no"}}]
    said = 'MountVolume.SetUp failed for volume "p" : [secret "no" not found, configmap "no" not found]'
    with pytest.raises(CannotStart) as caught:
        mounts([{"name": "p", "projected": {"sources": sources}}], {**AT, "name": "p"})
    assert (str(caught.value), caught.value.messages) == (said, (said,))


def test_only_volumes_that_are_mounted_count():
    first = container("first", volumeMounts=[{"name": "b", "mountPath": "/b"}])
    names = [{"name": name, "emptyDir": {}} for name in "abc"]
    subject = pod(container(volumeMounts=[{"name": "c", "mountPath": "/c"}]), volumes=names, initContainers=[first])

    assert [(index, spec["name"]) for index, spec in mounted_volumes(subject)] == [(1, "b"), (2, "c")]


def test_a_projected_volume_holds_what_all_its_sources_do():
    sources = [
        {"configMap": {"name": "settings", "items": [{"key": "lr", "path": "conf/lr"}]}},
        {"secret": {"name": "keys"}},
        {"configMap": {"name": "no", "optional": True}},
        {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    (mount,) = mounts([{"name": "p", "projected": {"sources": sources, "defaultMode": 0o440}}], {**AT, "name": "p"})

    assert mount.volume.files == (("conf/lr", b"0.1", 0o440), ("t", b"0", 0o440), ("name", b"demo", 0o440))


def test_a_pod_is_told_about_itself_in_files():
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "mem", "resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}},
        {"path": "cpu", "mode": 0o400, "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu"}},
    ]
    main = container(volumeMounts=[AT], resources={"limits": {"memory": "1Gi"}, "requests": {"cpu": "1500m"}})
    told = [{"name": "data", "downwardAPI": {"items": items}}]
    subject = pod(main, meta={"labels": {"b": 'x"y', "a": "1"}}, volumes=told)
    (mount,) = mounts_of(subject, main, shelf())

    assert mount.volume.files == (
        ("labels", b'a="1"\nb="x\\"y"', 0o644),
        ("mem", b"1024", 0o644),
        ("cpu", b"2", 0o400),
    )


def test_a_token_lies_where_it_is_asked_for():
    source = {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}}
    found = shelf(sources=Sources(tokens={("vault", 600): "secret"}))
    (mount,) = mounts([{"name": "p", "projected": {"sources": [source]}}], {**AT, "name": "p"}, found=found)

    assert mount.volume.files == (("token", b"secret", 0o644),)


def test_a_token_that_was_not_given_is_waited_for():
    source = {"serviceAccountToken": {"path": "token"}}
    with pytest.raises(CannotStart, match='failed to fetch token: serviceaccounts "team/default" not found'):
        mounts([{"name": "p", "projected": {"sources": [source]}}], {**AT, "name": "p"})


def test_a_sub_path_may_be_made_of_variables():
    wire = {"name": "v", "mountPath": "/v", "subPathExpr": "logs/$(POD)"}
    subject = pod(container(volumeMounts=[wire]), volumes=[{"name": "v", "emptyDir": {}}])
    main = subject["spec"]["containers"][0]

    assert mounts_of(subject, main, shelf(), {"POD": "demo"})[0].sub_path == "logs/demo"
    with pytest.raises(
        CannotStart, match=re.escape("unable to provision SubPath `logs/../../x`: must not contain '..'")
    ):
        mounts_of(subject, main, shelf(), {"POD": "../../x"})
    with pytest.raises(CannotStart, match="missing value for POD"):
        mounts_of(subject, main, shelf(), {})


def test_a_claim_that_comes_with_a_pod_must_have_come_with_it():
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    mine = {"uid": UID, "controller": True}
    named = {("team", "demo-data"): claim()["team", "data"]}
    named["team", "demo-data"]["metadata"]["ownerReferences"] = [mine]
    (mount,) = mounts(volumes, AT, found=shelf(named, volume(local={"path": "/disk/a"})))
    assert mount.source == Path("/disk/a")

    named["team", "demo-data"]["metadata"]["ownerReferences"] = []
    with pytest.raises(CannotStart, match="pod is not owner"):
        mounts(volumes, AT, found=shelf(named, volume(local={"path": "/disk/a"})))
