"""What a mount needs is made before the sandbox, on the real disk."""

import pytest

from paceline.assembly.machine import RealFiles
from paceline.node.host import Blocked
from paceline.node.start import _make_ready
from paceline.node.volumes import Mount, Volume


def make_ready(volume, sub_path=""):
    _make_ready(RealFiles(), Mount(target="/x", volume=volume, sub_path=sub_path))


def test_the_folder_of_a_claim_is_made_for_whoever_the_container_runs_as(tmp_path):
    make_ready(Volume(source=tmp_path / "a" / "b", make=0o777))

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o777


def test_a_folder_that_the_user_must_bring_is_not_made(tmp_path):
    with pytest.raises(Blocked, match="is not there; make it, or say type: DirectoryOrCreate") as caught:
        make_ready(Volume(source=tmp_path / "no"))
    assert caught.value.reason == "FailedMount"
    assert not (tmp_path / "no").exists()


def test_files_lie_where_they_are_asked_for(tmp_path):
    make_ready(Volume(source=tmp_path / "v", make=0o755, files=(("sub/lr", b"0.1", 0o400),)))

    assert (tmp_path / "v" / "sub" / "lr").read_bytes() == b"0.1"
    assert (tmp_path / "v" / "sub" / "lr").stat().st_mode & 0o777 == 0o400


def test_a_sub_path_is_made(tmp_path):
    make_ready(Volume(source=tmp_path, make=0o777), "runs/1")

    assert (tmp_path / "runs" / "1").is_dir()


@pytest.mark.parametrize("target", ["/etc", "..", "../outside"])
def test_a_link_in_a_volume_does_not_show_what_lies_outside(tmp_path, target):
    volume = tmp_path / "volume"
    volume.mkdir()
    (tmp_path / "outside").mkdir()
    (volume / "link").symlink_to(target)

    with pytest.raises(Blocked, match="leads out of its volume"):
        make_ready(Volume(source=volume, make=0o777), "link")


def test_a_link_within_a_volume_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    make_ready(Volume(source=tmp_path, make=0o777), "link")
