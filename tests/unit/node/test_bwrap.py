"""The options of bubblewrap as the shim writes them."""

import os
import sys

import pytest

from paceline.node.runtime.bwrap import COPIED_BYTES, COPIED_FILES, BwrapOptions, memory_file, pipe, spawn
from paceline.node.runtime.subpath_mounts import SubpathMounts


def words(*options):
    return BwrapOptions(first=5, mounts=SubpathMounts("", may_mount=False)).encode(list(options))


def test_options_end_with_a_nul_character():
    assert words("--chdir", "/data") == b"--chdir\0/data\0"


@pytest.mark.parametrize("option", ["/data\0--bind\0/\0/host", {"place": "/x\0--bind", "text": "y"}])
def test_a_nul_character_in_a_path_adds_no_option(option):
    with pytest.raises(OSError, match="NUL"):
        words("--dir", option)


def shown(source):
    return words({"place": "/etc/x", "source": str(source)}).decode().split("\0")[:-1]


def test_a_small_file_of_the_machine_is_copied_and_a_large_one_mounted(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x" * COPIED_BYTES)
    large.write_bytes(b"x" * (COPIED_BYTES + 1))

    assert shown(small) == ["--perms", "0644", "--file", "5", "/etc/x"]
    assert shown(large) == ["--ro-bind", str(large), "/etc/x"]
    assert shown(tmp_path / "missing") == []


def test_a_folder_with_few_files_is_copied(tmp_path):
    (tmp_path / "empty" / "folder").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)

    options = shown(tmp_path)

    assert options[:2] == ["--dir", "/etc/x"]
    assert {option for option in options if option.startswith("/etc/x/")} == {"/etc/x/a", "/etc/x/b"}
    assert "--ro-bind" not in options


def many(folder):
    for number in range(COPIED_FILES + 1):
        (folder / str(number)).touch()


def nested(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "file").touch()


@pytest.mark.parametrize(
    "fill", [many, nested, lambda folder: (folder / "link").symlink_to("/"), lambda folder: os.mkfifo(folder / "pipe")]
)
def test_any_other_folder_is_mounted(tmp_path, fill):
    fill(tmp_path)

    assert shown(tmp_path) == ["--ro-bind", str(tmp_path), "/etc/x"]


def test_a_program_gets_every_file_at_its_number_whatever_the_shim_numbers_them():
    reading, writing = pipe()
    files = [memory_file(f"{number} ".encode()) for number in range(40)]
    # In the opposite order, and most of them with numbers that the program's files have.
    ends = [writing, os.dup(2), *reversed(files)]
    script = "import os; print(*(os.pread(fd, 9, 0).decode() for fd in range(3, 43)))"

    pid = spawn([sys.executable, "-I", "-S", "-c", script], ends, None)
    os.waitpid(pid, 0)

    assert os.read(reading, 4096).decode().split() == [str(number) for number in reversed(range(40))]
    os.close(reading)


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
