"""`paceline env list` says of every shipped row whether its environment is built."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from paceline.cli.main import group


def test_no_shipped_environment_is_called_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path))
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "home"))

    listed = CliRunner().invoke(group, ["env", "list"], standalone_mode=False)

    rows = dict(line.split()[:2] for line in listed.stdout.split("\n\n")[0].splitlines())
    assert rows["pytorch"] == "no"
    assert rows["host"] == rows["paceline"] == "-"
    assert "broken" not in rows.values()
