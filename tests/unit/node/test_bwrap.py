"""The options of bubblewrap as the shim writes them."""

import pytest

from paceline.node.runtime.bwrap import BwrapOptions
from paceline.node.runtime.subpath_mounts import SubpathMounts


def words(*options):
    return BwrapOptions(first=5, mounts=SubpathMounts("", may_mount=False)).encode(list(options))


def test_options_end_with_a_nul_character():
    assert words("--chdir", "/data") == b"--chdir\0/data\0"


@pytest.mark.parametrize("option", ["/data\0--bind\0/\0/host", {"place": "/x\0--bind", "text": "y"}])
def test_a_nul_character_in_a_path_adds_no_option(option):
    with pytest.raises(OSError, match="NUL"):
        words("--dir", option)


@pytest.fixture
def volume(tmp_path):
    (tmp_path / "volume" / "sub" / "folder").mkdir(parents=True)
    (tmp_path / "volume" / "oldroot").mkdir()
    return tmp_path / "volume"


def place(volume, inside, sub_path="sub"):
    return {"inside": inside, "place": f"/data/{inside}", "root": str(volume), "subPath": sub_path, "volume": "v"}


@pytest.mark.parametrize("target", ["/oldroot/etc", "../oldroot", "folder/../../../oldroot"])
@pytest.mark.parametrize("inside", ["link", "link/new", "link/new/file"])
def test_a_link_that_leads_out_of_its_volume_keeps_a_container_from_starting(volume, target, inside):
    (volume / "sub" / "link").symlink_to(target)

    with pytest.raises(OSError, match="leads out of the volume"):
        words(place(volume, inside))


def test_a_place_in_a_volume_may_be_missing_or_lie_behind_a_link_that_stays_in_it(volume):
    (volume / "sub" / "link").symlink_to("folder")

    assert words(place(volume, "new/folder"), place(volume, "link/new"), place(volume, "sub/folder", "")) == b""
