"""The reference pages say what the kinds say.

In     docs/reference/ and the catalogue of kinds.
Out    the pages that are not current, or a field without a word about it.
Never  writes a page: `make reference` does.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.kinds import registry

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
    text = (FOLDER / f"{kind.lower()}.md").read_text()
    rows = [row.split(" | ") for row in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)]

    assert len(rows) >= 5
    assert [row[0] for row in rows if not row[1].strip() or not row[-1].strip()] == []


def test_every_kind_is_listed():
    text = (FOLDER / "README.md").read_text()

    assert re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE) == KINDS
