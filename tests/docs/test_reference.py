"""The reference pages say what the code says.

In     docs/reference/ and what its pages are about: kinds, commands, SDK, settings, reasons.
Out    the pages that are not current, a field without a word about it, a variable that is not listed.
Never  writes a page: `make reference` does.
"""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from paceline.cli.main import group
from paceline.cluster.config import SECTIONS
from paceline.kinds import registry
from paceline.model import reasons
from paceline.settings import VARIABLES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
KINDS = [kind.kind for kind in registry.every_kind() if not kind.alias_of]


def test_every_page_is_current():
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference.py", "--check"], capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_type_and_help(kind):
    text = (FOLDER / "kinds" / f"{kind.lower()}.md").read_text()
    rows = [row.split(" | ") for row in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)]

    assert len(rows) >= 5
    assert [row[0] for row in rows if not row[1].strip() or not row[-1].strip()] == []


def test_every_kind_is_listed():
    text = (FOLDER / "kinds" / "README.md").read_text()

    assert re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE) == KINDS


def test_every_command_has_a_section_with_its_options():
    text = (FOLDER / "cli.md").read_text()
    sections = dict(re.findall(r"^### (paceline [a-z ]+)\n(.*?)(?=^##)", text + "\n## \n", re.MULTILINE | re.DOTALL))

    assert len(sections) > 40
    assert sorted(sections) == sorted(path for path, _ in commands(group, "paceline"))
    for path, command in commands(group, "paceline"):
        options = [name for param in command.params if isinstance(param, click.Option) for name in param.opts]
        assert [name for name in options if f"`{name}`" not in sections[path]] == [], path


def commands(parent, path):
    """Every command and group below a group, with its path."""
    with click.Context(parent) as ctx:
        for name in parent.list_commands(ctx):
            command = parent.get_command(ctx, name)
            yield f"{path} {name}", command
            if isinstance(command, click.Group):
                yield from commands(command, f"{path} {name}")


def test_every_variable_that_the_code_reads_is_listed():
    sources = [path for path in (ROOT / "src").rglob("*.py") if "testing" not in path.parts]
    named = {name for path in sources for name in re.findall(r"\"(PACELINE_[A-Z_]+)[\"{]", path.read_text())}
    listed = {name for name in VARIABLES if not name.endswith("_RESOURCE")} | {"PACELINE_DEVICES_"}

    assert named - {"PACELINE_DEVICES_RESOURCE"} == listed


def test_every_setting_and_reason_has_a_row():
    settings, reasons_page = (FOLDER / "settings.md").read_text(), (FOLDER / "reasons.md").read_text()

    assert [name for name in VARIABLES if f"| `{name}` |" not in settings] == []
    assert [name for name in SECTIONS if f"### {name}\n" not in settings] == []
    assert [name for name in (*reasons.ALL, *reasons.NODE) if f"| `{name}` |" not in reasons_page] == []
