"""Folders of claims go with their volumes: those that this cluster made, and no others."""

import pytest

from paceline.apimachinery.builtin.storage_annotations import FOLDERS, PROVISIONED_BY
from paceline.client.event_recorder import Recorder
from paceline.errors import ServiceUnavailable
from paceline.node.host_info import Folders
from paceline.node.volumes.reclaim import VolumeReclaimer, is_removable
from paceline.testing.sim.effects import SimBlocking, SimChance, SimClock, SimFiles

UID = "0b2c3d4e-1111-4222-8333-444455556666"
NAME = f"pvc-{UID}"


class Cluster:
    """A cluster that remembers what it is asked."""

    def __init__(self):
        self.deleted, self.events = [], []

    async def delete(self, _where, key, _options):
        self.deleted.append(key[1])

    async def create(self, _where, event):
        self.events.append((event["reason"], event["message"], event["type"]))


@pytest.fixture
def folders(tmp_path):
    return Folders(root=tmp_path / "agent")


@pytest.fixture
def cluster():
    return Cluster()


def released(path, name=NAME):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": "v-1", "resourceVersion": "7", "annotations": {PROVISIONED_BY: FOLDERS}},
        "spec": {"hostPath": {"path": str(path)}, "persistentVolumeReclaimPolicy": "Delete"},
        "status": {"phase": "Released"},
    }


def reclaim(cluster, files, folders, volume):
    return VolumeReclaimer(
        cluster=cluster,
        files=files,
        blocking=SimBlocking(),
        chance=SimChance(),
        volumes={("", volume["metadata"]["name"]): volume},
        recorder=Recorder(cluster, SimClock(), component="test"),
        root=folders.claims,
    )


async def test_a_folder_of_ours_is_removed_before_its_volume(cluster, folders):
    files, folder = SimFiles(), folders.claims / f"team-data-{UID[:8]}"
    files.make_folder(folder)

    await reclaim(cluster, files, folders, released(folder)).reconcile(("", NAME))

    assert not files.exists(folder)
    assert cluster.deleted == [NAME]


@pytest.mark.parametrize("name", [NAME, "copy"])
async def test_a_folder_elsewhere_is_kept_with_its_volume(cluster, folders, tmp_path, name):
    files, precious = SimFiles(), tmp_path / "precious" / f"team-data-{UID[:8]}"
    files.make_folder(precious)
    volume = released(precious, name)

    assert not is_removable(volume, folders.claims)
    await reclaim(cluster, files, folders, volume).reconcile(("", name))

    assert files.exists(precious)
    assert not cluster.deleted


class Stuck(SimFiles):
    """A disk that does not let go of what is in use."""

    def remove(self, path):
        raise OSError(16, "Device or resource busy", str(path))


async def test_a_folder_that_cannot_be_removed_is_told_of_and_tried_again(cluster, folders):
    folder = folders.claims / f"team-data-{UID[:8]}"
    with pytest.raises(ServiceUnavailable, match="Device or resource busy"):
        await reclaim(cluster, Stuck(), folders, released(folder)).reconcile(("", NAME))

    message = f"{folder} cannot be removed: Device or resource busy"
    assert cluster.events == [("VolumeFailedDelete", message, "Warning")]
    assert not cluster.deleted
