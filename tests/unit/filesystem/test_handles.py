"""A path beneath a folder is resolved once; what leads out is refused, however it is written."""

import errno
import os
import stat
from pathlib import Path

import pytest

from paceline.filesystem import handles
from paceline.filesystem.handles import PATH, closed, link_to, make_beneath, open_beneath, walk_beneath


@pytest.fixture(params=["openat2", "step by step"])
def opened(request, monkeypatch):
    """Gives the text of what a path leads to, with openat2 and as on a kernel without it."""
    if request.param == "step by step":

        def missing(*_args, **_words):
            raise OSError(errno.ENOSYS, "not there")

        monkeypatch.setattr(handles, "openat2", missing)

    def look(root, path):
        with closed(os.open(root, PATH)) as folder, closed(open_beneath(folder, path)) as handle:
            return str(link_to(handle).readlink())

    return look


@pytest.fixture
def volume(tmp_path):
    root = tmp_path / "volume"
    (root / "runs" / "one").mkdir(parents=True)
    (root / "runs" / "one" / "file").write_text("x")
    (root / "latest").symlink_to("runs/one")
    (root / "runs" / "back").symlink_to("../runs/one/file")
    (root / "absolute").symlink_to(root / "runs")
    (root / "out").symlink_to("../outside")
    (root / "loop").symlink_to("loop")
    (tmp_path / "outside").mkdir()
    return root


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


INSIDE = {
    "runs/one": "runs/one",
    "latest": "runs/one",
    "latest/file": "runs/one/file",
    "runs/back": "runs/one/file",
    "./runs//one/": "runs/one",
    "runs/../latest": "runs/one",
    "": "",
}


@pytest.mark.parametrize(("path", "target"), INSIDE.items(), ids=INSIDE)
def test_a_path_that_stays_beneath_its_folder_is_opened(opened, volume, path, target):
    assert opened(volume, path) == str(volume / target)


OUTSIDE = {
    "absolute": errno.EXDEV,
    "out": errno.EXDEV,
    "..": errno.EXDEV,
    "runs/../../outside": errno.EXDEV,
    "/etc": errno.EXDEV,
    "loop": errno.ELOOP,
    "runs/one/file/x": errno.ENOTDIR,
    "nothing": errno.ENOENT,
}


@pytest.mark.parametrize(("path", "number"), OUTSIDE.items(), ids=OUTSIDE)
def test_a_path_that_leads_out_is_refused(opened, volume, path, number):
    with pytest.raises(OSError, match="Errno") as caught:
        opened(volume, path)

    assert caught.value.errno == number


def test_every_handle_is_closed_again(volume):
    before = open_files()
    with closed(os.open(volume, PATH)) as root:
        for path in (*INSIDE, *OUTSIDE):
            try:
                os.close(walk_beneath(root, path))
            except OSError:
                continue
        os.close(make_beneath(root, "a/b/c", 0o755))

    assert open_files() == before


def test_missing_folders_are_made_and_only_the_last_is_open_to_all(volume):
    with closed(os.open(volume, PATH)) as root:
        os.close(make_beneath(root, "latest/new/deep", 0o777))

    made = volume / "runs" / "one" / "new"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (made, made / "deep")] == [0o755, 0o777]


@pytest.mark.parametrize(
    "path", ["out/new", "absolute/new", "../new", "a/../../new", "/tmp/new", "dangling", "dangling/new"]
)
def test_nothing_is_made_outside(volume, path):
    (volume / "dangling").symlink_to("../outside/new")
    with closed(os.open(volume, PATH)) as root, pytest.raises(OSError, match="Errno"):
        make_beneath(root, path, 0o777)

    assert not list((volume.parent / "outside").iterdir())
    assert {each.name for each in volume.parent.iterdir()} == {"volume", "outside"}


def test_a_file_is_opened_as_it_is(volume):
    with closed(os.open(volume, PATH)) as root, closed(make_beneath(root, "latest/file", 0o777)) as handle:
        assert stat.S_ISREG(os.fstat(handle).st_mode)
