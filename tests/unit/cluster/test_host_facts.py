"""What the machine is like, as a user who runs Paceline there is told."""

import os
from pathlib import Path

import pytest

from paceline.host.mounts import install_command


@pytest.mark.parametrize(
    ("uid", "tool", "command"),
    [
        (0, "apt-get", "apt-get install bubblewrap"),
        (1000, "apt-get", "sudo apt-get install bubblewrap"),
        (1000, "pacman", "sudo pacman -S bubblewrap"),
        (0, "other", "apt-get install bubblewrap"),
    ],
)
def test_the_command_that_installs_bubblewrap_can_be_typed_as_it_is(
    uid: int, tool: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / tool).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: uid)

    assert install_command("bubblewrap") == command
