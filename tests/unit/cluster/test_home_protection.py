"""A cluster's folder is closed to others at every start, and what it left in memory goes when it is gone."""

import os
import stat

import pytest

from paceline.errors import HostError
from paceline.host.home_protection import close_home, private_folders, sweep_memory
from paceline.settings import Settings


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_that_was_open_to_others_is_closed(tmp_path):
    home = tmp_path / "home"
    settings = Settings(home=home)
    for folder in (home, settings.keys, settings.agent):
        folder.mkdir()
        folder.chmod(0o755)
    settings.log.touch()
    settings.log.chmod(0o644)

    close_home(settings)

    assert [mode(path) for path in (home, settings.keys, settings.agent, settings.log)] == [0o700, 0o700, 0o700, 0o600]


def test_a_folder_that_is_not_there_is_made_closed(tmp_path):
    before = os.umask(0)
    try:
        close_home(Settings(home=tmp_path / "a" / "home"))
    finally:
        os.umask(before)

    assert mode(tmp_path / "a" / "home") == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    os.chown(home, 1234, 1234)

    with pytest.raises(HostError, match=r"belongs to user 1234.*PACELINE_HOME"):
        close_home(Settings(home=home))
    assert mode(home) == 0o755


def test_private_folders_are_where_links_lead_to(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)

    found = private_folders(Settings(home=tmp_path / "link"), tmp_path / "cache")

    assert found == (str(real), str(tmp_path / "cache"))


def test_memory_of_clusters_that_are_gone_is_given_back_and_no_other(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    owners = {
        "paceline-lives": str(home),
        "paceline-gone": str(tmp_path / "gone"),
        "other-gone": str(tmp_path / "gone"),
    }
    shm = tmp_path / "shm"
    for name, owner in owners.items():
        (shm / name / "0").mkdir(parents=True)
        (shm / name / ".home").write_text(owner)
        (shm / name / "0" / "token").write_text("secret")
    (shm / "paceline-unsigned").mkdir()
    (shm / "paceline-link").symlink_to(shm / "paceline-lives")

    assert sweep_memory(shm) == ("paceline-gone",)
    assert {entry.name for entry in shm.iterdir()} == {
        *("other-gone", "paceline-lives", "paceline-link", "paceline-unsigned"),
    }
