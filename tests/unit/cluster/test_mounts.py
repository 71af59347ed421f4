"""Mounts for pods: made once, found again, and taken away with nothing lost of what is in them."""

import pytest

from paceline.cluster.host_facts import may_mount
from paceline.host.mounts import RealMounts, mount_points
from paceline.node.host_info import CannotStart
from paceline.node.volumes.volumes import MountSpec

pytestmark = pytest.mark.skipif(not may_mount(), reason="needs the right to mount")
MEMORY = MountSpec(kind="tmpfs", source="tmpfs", options=("size=65536",))


def opened(path):
    return path.open("wb")


@pytest.fixture
async def mounts(tmp_path):
    made = RealMounts(root=tmp_path / "mounts")
    yield made
    for uid in made.pod_uids():
        await made.unmount(uid)


async def test_memory_has_its_size_and_goes_with_its_pod(mounts):
    target = mounts.root / "pod" / "0"
    await mounts.mount(MEMORY, target)
    with pytest.raises(OSError, match="No space left"):
        (target / "big").write_bytes(bytes(100_000))
    assert mounts.pod_uids() == {"pod"}

    await mounts.unmount("pod")
    assert str(target) not in mount_points()
    assert not (mounts.root / "pod").exists()


async def test_what_is_mounted_is_not_mounted_again(mounts):
    target = mounts.root / "pod" / "0"
    await mounts.mount(MEMORY, target)
    (target / "kept").write_bytes(b"x")
    await mounts.mount(MEMORY, target)

    assert (target / "kept").read_bytes() == b"x"


async def test_what_cannot_be_mounted_is_said_and_leaves_nothing(mounts):
    with pytest.raises(CannotStart, match="mount failed: exit status"):
        await mounts.mount(MountSpec(kind="no-such-thing", source="x"), mounts.root / "pod" / "0")

    assert not (mounts.root / "pod" / "0").exists()


async def test_a_mount_in_use_is_let_go_of(mounts):
    target = mounts.root / "pod" / "0"
    await mounts.mount(MEMORY, target)
    with opened(target / "open"):
        await mounts.unmount("pod")

    assert str(target) not in mount_points()


async def test_a_pod_without_mounts_is_fine(mounts):
    await mounts.unmount("nobody")


async def test_files_where_a_mount_should_be_are_never_removed(mounts):
    folder = mounts.root / "pod" / "0"
    folder.mkdir(parents=True)
    (folder / "precious").write_bytes(b"x")
    await mounts.unmount("pod")

    assert (folder / "precious").read_bytes() == b"x"
    (folder / "precious").unlink()
