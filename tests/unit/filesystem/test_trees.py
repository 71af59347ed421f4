"""Trees that a container left are removed, given away and measured, whatever is in them."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from paceline.cluster.host_facts import may_mount
from paceline.filesystem import trees
from paceline.filesystem.handles import FOLDER, closed
from paceline.host.effects import RealFiles

FILES = RealFiles()
DEPTH = 3000


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def nest(root, depth):
    """Make folders in folders, deeper than any path can say, with a file in the last."""
    handle = os.open(root, FOLDER)
    for _ in range(depth):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", FOLDER, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=handle))
    os.close(handle)


@pytest.fixture
def deep(tmp_path):
    """A folder for trees that pytest itself could not remove, should the test fail."""
    folder = tmp_path / "deep"
    folder.mkdir()
    yield folder
    subprocess.run(("rm", "-rf", str(folder)), check=True)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file").write_text("x")
    os.mkfifo(root / "a" / "pipe")
    (root / ("n" * 255)).write_text("x")
    (root / "bad\udcff").write_text("x")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "a" / "up").symlink_to("..")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("mine")
    return root


def test_a_tree_of_odd_things_is_removed_and_nothing_else(tree):
    FILES.remove(tree)

    assert not tree.exists()
    assert (tree.parent / "outside" / "file").read_text() == "mine"


def test_a_link_is_removed_and_not_what_it_leads_to(tree):
    FILES.remove(tree / "link")

    assert not os.path.lexists(tree / "link")
    assert (tree.parent / "outside" / "file").exists()


def test_folders_nested_deeper_than_a_path_can_say_are_removed(deep):
    nest(deep, DEPTH)
    before = open_files()

    FILES.remove(deep)

    assert not deep.exists()
    assert open_files() == before


def test_deep_and_wide_folders_are_walked_to_the_last_file(deep):
    nest(deep, DEPTH)
    (deep / "wide").mkdir()
    nest(deep / "wide", 3 * trees.MOST_OPEN)
    seen = []
    with closed(os.open(deep, FOLDER)) as folder:
        for _, _, files, _ in trees.Walk(folder).folders():
            seen += files

    assert seen == ["last", "last"]


def test_no_more_folders_are_open_at_once_than_a_branch_may_have(deep):
    nest(deep, 5 * trees.MOST_OPEN)
    most, before = 0, open_files()
    with closed(os.open(deep, FOLDER)) as folder:
        for _ in trees.Walk(folder).folders():
            most = max(most, open_files() - before)

    assert most <= trees.MOST_OPEN + 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_tree_is_given_to_a_group_without_what_its_links_lead_to(tree):
    (tree / "suid").write_text("x")
    (tree / "suid").chmod(0o6755)
    FILES.share(tree, 4321)

    everything = [tree, *tree.rglob("*")]
    assert {each.lstat().st_gid for each in everything} == {4321}
    assert (tree.parent / "outside").stat().st_gid != 4321
    assert stat.S_IMODE((tree / "suid").stat().st_mode) == 0o775
    assert stat.S_IMODE((tree / "a").stat().st_mode) & 0o2770 == 0o2770


def test_what_a_tree_takes_is_what_lies_in_it(tree):
    before = FILES.used(tree)
    (tree.parent / "outside" / "large").write_bytes(b"x" * 1_000_000)
    assert FILES.used(tree) == before
    (tree / "large").write_bytes(b"x" * 1_000_000)
    os.link(tree / "large", tree / "again")

    assert 1_000_000 <= FILES.used(tree) - before < 1_100_000
    assert FILES.used(tree / "gone") == 0


def test_what_cannot_be_removed_is_told_after_the_rest_has_gone(tmp_path, monkeypatch):
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    for name in ("a", "held", "z"):
        (root / "sub" / name).touch()
    unlink = os.unlink

    def refuse(name, **words):
        if name == "held":
            raise PermissionError(1, "Operation not permitted", name)
        unlink(name, **words)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError, match="held"):
        FILES.remove(root)
    assert [each.name for each in (root / "sub").iterdir()] == ["held"]


@pytest.mark.skipif(not may_mount(), reason="needs the right to mount")
def test_what_is_mounted_in_a_tree_is_not_removed_with_it(tree):
    place, other = tree / "a" / "b", tree.parent / "outside"
    subprocess.run(("mount", "--bind", str(other), str(place)), check=True)
    try:
        with pytest.raises(OSError, match="something is mounted there"):
            FILES.remove(tree)
        assert (other / "file").read_text() == "mine"
        assert not (tree / "a" / "pipe").exists()
    finally:
        subprocess.run(("umount", str(place)), check=True)
