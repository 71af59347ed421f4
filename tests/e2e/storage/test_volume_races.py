"""A container that exchanges a folder for a link sees its neighbour start on a part of their volume, or not at all."""

from pathlib import Path

import pytest

from paceline.host.mounts import mount_points
from paceline.node.volumes.volumes import PodVolume, VolumeMount
from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.shell_pods import create, make_pod, run_pod, shell, show
from tests.racing import LOOP, SECONDS, exchanging, rounds

pytestmark = pytest.mark.slow

INSIDE, OUTSIDE = "a part of the volume", "a folder of the machine"


@pytest.fixture
def volume(tmp_path):
    """A volume with a folder and, beside it, a link to a folder of the machine."""
    root = tmp_path / "volume"
    for folder, text in ((root / "sub", INSIDE), (tmp_path / "outside", OUTSIDE)):
        folder.mkdir(parents=True)
        (folder / "text").write_text(text)
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "file").write_text(INSIDE)
    (root / "inner").symlink_to("sub")
    return root


def at(volume: Path, sub_path: str, **words) -> VolumeMount:
    return VolumeMount(target="/data", volume=PodVolume(source=volume), name="v", sub_path=sub_path, **words)


def mounts_of_ours(tmp_path) -> list[str]:
    return [place for place in mount_points() if place.startswith(f"{tmp_path}/")]


@pytest.mark.parametrize("seconds", SECONDS)
async def test_a_sub_path_shows_its_volume_and_nothing_else(container, volume, tmp_path, seconds):
    script = "cat /data/text; touch /data/mark"
    refused = shown = 0
    with exchanging(volume / "sub", volume / "link"):
        for number in rounds(seconds):
            box = container("sh", "-c", script, name=str(number), mounts=(at(volume, "sub"),))
            ended = await (await box.start()).end()
            if ended.exit_code == 0:
                assert (await box.output()).decode() == INSIDE
                shown += 1
            else:
                assert ended.reason == "StartError"
                refused += 1
            assert not (tmp_path / "outside" / "mark").exists()
    # Both happen under a racer; how often each does is up to the machine.
    assert shown + refused >= 2
    assert not mounts_of_ours(tmp_path)


@pytest.mark.parametrize(("path", "place"), [("sub", "/data/text"), ("file", "/data"), ("inner", "/data/text")])
async def test_a_folder_a_file_and_a_link_that_stays_inside_can_be_mounted(container, volume, tmp_path, path, place):
    box = container("sh", "-c", f"cat {place}; ls /proc/1 > /dev/null", mounts=(at(volume, path),))
    ended = await (await box.start()).end()

    assert (ended.exit_code, (await box.output()).decode()) == (0, INSIDE), ended
    assert not mounts_of_ours(tmp_path)
    assert not (tmp_path / "mounts").exists()


async def test_a_part_that_is_read_only_stays_so(container, volume):
    box = container("sh", "-c", "touch /data/x", mounts=(at(volume, "sub", read_only=True),))

    assert (await (await box.start()).end()).exit_code == 1
    assert not (volume / "sub" / "x").exists()


async def test_a_part_that_leads_out_is_a_start_error_that_names_it(container, volume, tmp_path):
    box = await container("true", mounts=(at(volume, "link"),)).start()

    assert (box.ended.exit_code, box.ended.reason) == (128, "StartError")
    assert box.ended.message == 'failed to prepare subPath "link" of volumeMount "v": it leads out of its volume'
    assert not mounts_of_ours(tmp_path)


async def test_while_a_container_runs_its_part_is_mounted_nowhere_but_in_it(container, volume, tmp_path):
    box = await container("sh", "-c", "cat /data/text; sleep 600", mounts=(at(volume, "sub"),)).start()
    await box.says(INSIDE.encode())

    assert box.ended is None
    assert not mounts_of_ours(tmp_path)
    assert not (tmp_path / "mounts").exists()


CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
STARTS = [pytest.param(6, id="6"), pytest.param(200, id="200", marks=[pytest.mark.soak, pytest.mark.timeout(900)])]


def outcome(cluster: Embedded, name: str) -> str:
    """Give how a pod ended, or why its container waits."""
    status = show(cluster, "pod", name)["status"]
    waiting = [each["state"].get("waiting") or {} for each in status.get("containerStatuses") or ()]
    why = " ".join(str(each.get("message")) for each in waiting if "subPath" in str(each.get("message")))
    return status["phase"] if status.get("phase") in {"Succeeded", "Failed"} else why


@pytest.mark.parametrize("starts", STARTS)
def test_a_pod_that_races_for_its_neighbours_sub_path_gets_nothing(cluster: Embedded, starts: int) -> None:
    """C-2: the way out that was tried on a running cluster."""
    home = cluster.settings.home
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": f"raced-{starts}"}}]
    whole = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    create(cluster, {**CLAIM, "metadata": {"name": f"raced-{starts}"}})
    plant = f"mkdir -p /data/sub && touch /data/sub/inside && ln -s {home} /data/link"
    run_pod(cluster, f"plant-{starts}", shell(plant, **whole), volumes=volumes)
    racer = {"name": "main", "image": "python:3.11", "command": ["python", "-c", LOOP, "/data/sub", "/data/link"]}
    make_pod(cluster, f"racer-{starts}", {**racer, **whole}, volumes=volumes)
    wait_until("the racer runs", lambda: show(cluster, "pod", f"racer-{starts}")["status"].get("phase") == "Running")

    part = {"volumeMounts": [{"name": "v", "mountPath": "/part", "subPath": "sub"}]}
    for number in range(starts):
        make_pod(cluster, f"victim-{starts}-{number}", shell("ls /part; touch /part/mark", **part), volumes=volumes)
    for number in range(starts):
        name = f"victim-{starts}-{number}"
        if wait_until(f"{name} has ended or waits", lambda name=name: outcome(cluster, name)) == "Succeeded":
            assert set(cluster.kubectl("logs", name).out.split()) <= {"inside", "mark"}
    assert show(cluster, "pod", f"racer-{starts}")["status"]["phase"] == "Running"
    cluster.kubectl("delete", "pod", f"racer-{starts}", "--wait=false")
    assert not (home / "mark").exists()
