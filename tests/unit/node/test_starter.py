"""What a mount needs is made before the sandbox, on the real disk."""

import os
import socket
import stat
from pathlib import Path

import pytest

from paceline.host.effects import RealFiles
from paceline.node.host_info import CannotStart
from paceline.node.volumes import setup
from paceline.node.volumes.volumes import PodVolume, VolumeMount


def make_ready(volume, sub_path="", group=None):
    setup.make_volume(RealFiles(), volume, group)
    setup.make_sub_path(RealFiles(), VolumeMount(target="/x", volume=volume, name="v", sub_path=sub_path), "main")


def test_the_folder_of_a_claim_is_made_for_whoever_the_container_runs_as(tmp_path):
    make_ready(PodVolume(source=tmp_path / "a" / "b", make=0o777))

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o777


NOT_THERE = {
    "Directory": "directory",
    "File": "file",
    "Socket": "socket file",
    "CharDevice": "character device",
    "BlockDevice": "block device",
}


@pytest.mark.parametrize(("kind", "word"), NOT_THERE.items(), ids=NOT_THERE)
def test_what_the_user_must_bring_is_not_made(tmp_path, kind, word):
    with pytest.raises(CannotStart) as caught:
        make_ready(PodVolume(source=tmp_path / "no", name="v", host_type=kind))
    assert caught.value.reason == "FailedMount"
    why = f"hostPath type check failed: {tmp_path / 'no'} is not a {word}"
    assert str(caught.value) == f'MountVolume.SetUp failed for volume "v" : {why}'
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("kind", "word"), [("DirectoryOrCreate", "directory"), ("Directory", "directory")])
def test_a_file_is_no_folder(tmp_path, kind, word):
    (tmp_path / "it").touch()

    with pytest.raises(CannotStart, match=f"is not a {word}"):
        make_ready(PodVolume(source=tmp_path / "it", make=0o755, host_type=kind))


@pytest.mark.parametrize("kind", ["Socket", "File", "CharDevice"])
def test_what_the_user_brings_is_taken_for_what_it_is(tmp_path, kind):
    place = {"Socket": tmp_path / "s", "File": tmp_path / "f", "CharDevice": Path("/dev/null")}[kind]
    (tmp_path / "f").touch()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "s"))
        make_ready(PodVolume(source=place, host_type=kind))


def test_a_file_is_made_but_not_the_folders_above_it(tmp_path):
    make_ready(PodVolume(source=tmp_path / "new", make=0o644, host_type="FileOrCreate"))
    assert (tmp_path / "new").read_bytes() == b""

    with pytest.raises(CannotStart, match="no such file or directory"):
        make_ready(PodVolume(source=tmp_path / "deep" / "new", make=0o644, host_type="FileOrCreate"))


def test_a_file_that_is_there_is_left_as_it_is(tmp_path):
    (tmp_path / "old").write_bytes(b"mine")
    make_ready(PodVolume(source=tmp_path / "old", make=0o644, host_type="FileOrCreate"))

    assert (tmp_path / "old").read_bytes() == b"mine"


def test_files_change_all_at_once_and_whoever_has_one_open_keeps_it(tmp_path):
    def fill(**data):
        files = tuple((name, value, 0o644) for name, value in data.items())
        make_ready(PodVolume(source=tmp_path, make=0o755, files=files))

    fill(a=b"1", b=b"2")
    with (tmp_path / "a").open("rb") as held:
        fill(a=b"one", c=b"3")
        assert held.read() == b"1"
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()} == {"a": b"one", "c": b"3"}
    assert str((tmp_path / "a").readlink()) == "..data/a"
    assert len([each for each in tmp_path.iterdir() if each.is_dir()]) == 2


def test_the_same_files_again_change_nothing(tmp_path):
    files = (("a", b"1", 0o644),)
    assert setup.fill(RealFiles(), tmp_path, files) is not None
    assert setup.fill(RealFiles(), tmp_path, files) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_shared_volume_belongs_to_the_pods_group_with_all_that_is_in_it(tmp_path):
    folder = tmp_path / "v"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").touch(mode=0o600)
    make_ready(PodVolume(source=folder, make=0o777, is_shared=True), group=4321)

    assert {each.stat().st_gid for each in (folder, folder / "deep", folder / "deep" / "file")} == {4321}
    assert (folder / "deep" / "file").stat().st_mode & 0o777 == 0o660
    assert folder.stat().st_mode & stat.S_ISGID


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_folder_of_the_machine_is_given_to_nobody(tmp_path):
    before = tmp_path.stat().st_gid
    make_ready(PodVolume(source=tmp_path, make=0o777), group=4321)

    assert tmp_path.stat().st_gid == before


def test_files_lie_where_they_are_asked_for(tmp_path):
    make_ready(PodVolume(source=tmp_path / "v", make=0o755, files=(("sub/lr", b"0.1", 0o400),)))

    assert (tmp_path / "v" / "sub" / "lr").read_bytes() == b"0.1"
    assert (tmp_path / "v" / "sub" / "lr").stat().st_mode & 0o777 == 0o400


def test_a_sub_path_is_made(tmp_path):
    make_ready(PodVolume(source=tmp_path, make=0o777), "runs/1")

    assert (tmp_path / "runs" / "1").is_dir()


def test_a_sub_path_has_the_rights_of_its_volume(tmp_path):
    make_ready(PodVolume(source=tmp_path, make=0o755), "own")
    make_ready(PodVolume(source=tmp_path, make=0o777), "shared")

    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("own", "shared")] == [0o755, 0o777]


def test_a_local_volume_must_be_there(tmp_path):
    said = f'NewMounter initialization failed for volume "pv" : path "{tmp_path}/no" does not exist'
    with pytest.raises(CannotStart, match=said) as caught:
        make_ready(PodVolume(source=tmp_path / "no", name="pv", must_exist=True))
    assert caught.value.reason == "FailedMount"
    make_ready(PodVolume(source=tmp_path, name="pv", must_exist=True))


@pytest.mark.parametrize("target", ["/etc", "..", "../outside"])
def test_a_link_in_a_volume_does_not_show_what_lies_outside(tmp_path, target):
    volume = tmp_path / "volume"
    volume.mkdir()
    (tmp_path / "outside").mkdir()
    (volume / "link").symlink_to(target)

    with pytest.raises(CannotStart, match='failed to prepare subPath for volumeMount "v" of container "main"'):
        make_ready(PodVolume(source=volume, make=0o777), "link")


def test_a_link_within_a_volume_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    make_ready(PodVolume(source=tmp_path, make=0o777), "link")
