"""Parts of volumes at places of the agent's own: mounted by handle, taken away again, found again after a crash."""

import os

import pytest

from paceline.cluster.host_facts import may_mount
from paceline.host.mounts import RealMounts, mount_points
from paceline.node.runtime.subpath_mounts import SubpathMounts

pytestmark = pytest.mark.skipif(not may_mount(), reason="needs the right to mount")


@pytest.fixture
def volume(tmp_path):
    (tmp_path / "volume" / "sub").mkdir(parents=True)
    (tmp_path / "volume" / "sub" / "text").write_text("x")
    (tmp_path / "volume" / "empty").touch()
    return tmp_path / "volume"


def part(volume, path):
    return {"bind": "--bind", "root": str(volume), "subPath": path, "place": "/data", "volume": "v"}


@pytest.fixture
async def mounts(tmp_path):
    made = RealMounts(root=tmp_path / "mounts")
    yield made
    for uid in made.pod_uids():
        await made.unmount(uid)


def binds(mounts):
    return SubpathMounts(str(mounts.root / "pod"), may_mount=True, name="main.0.")


def test_bubblewrap_is_given_a_place_that_only_the_agent_may_enter(mounts, volume):
    made = binds(mounts)
    how, source, target = made.add(part(volume, "sub"))

    assert (how, source, target) == ("--bind", str(mounts.root / "pod" / "main.0.0"), "/data")
    assert [each.name for each in (mounts.root / "pod" / "main.0.0").iterdir()] == ["text"]
    assert (mounts.root / "pod").stat().st_mode & 0o777 == 0o700
    made.unmount()
    assert not (mounts.root / "pod").exists()
    assert (volume / "sub" / "text").read_text() == "x"


def test_a_name_that_changes_after_it_was_opened_changes_nothing(mounts, volume):
    made = binds(mounts)
    _, source, _ = made.add(part(volume, "sub"))
    (volume / "sub").rename(volume / "elsewhere")
    (volume / "sub").symlink_to("/etc")

    assert os.listdir(source) == ["text"]  # noqa: PTH208 - names
    made.unmount()


async def test_what_a_killed_shim_left_mounted_goes_with_its_pod_and_the_volume_stays(mounts, volume):
    left = binds(mounts)
    for path in ("sub", "empty"):
        left.add(part(volume, path))
    assert len([place for place in mount_points() if place.startswith(str(mounts.root))]) == 2
    assert mounts.pod_uids() == {"pod"}

    await mounts.unmount("pod")

    assert not [place for place in mount_points() if place.startswith(str(mounts.root))]
    assert not (mounts.root / "pod").exists()
    assert (volume / "sub" / "text").read_text() == "x"
    assert (volume / "empty").exists()


async def test_places_that_a_reboot_left_without_their_mounts_go_too(mounts):
    (mounts.root / "pod" / "main.0.0").mkdir(parents=True)
    (mounts.root / "pod" / "main.0.1").touch()

    await mounts.unmount("pod")

    assert not (mounts.root / "pod").exists()


def test_the_same_part_again_is_mounted_once(mounts, volume):
    binds(mounts).add(part(volume, "sub"))
    again = binds(mounts)
    again.add(part(volume, "sub"))

    assert len([place for place in mount_points() if place.startswith(str(mounts.root))]) == 1
    again.unmount()
    assert not [place for place in mount_points() if place.startswith(str(mounts.root))]
