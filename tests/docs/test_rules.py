"""docs/concepts/rules.md names every field of a status, every condition and every file of a rule."""

import re
from pathlib import Path

from tests.unit.apimachinery.test_status import FULL

from paceline.model.job_status import ConditionType

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "rules.md").read_text()
PLAN = ROOT / "src" / "paceline" / "plan"
WORDS = set(re.findall(r"`([A-Za-z_.]+)`", PAGE))


def test_every_field_of_a_status_is_explained():
    wire = FULL.to_wire()

    assert [name for name in (*wire, *wire["failure"], *wire["elastic"]) if name not in WORDS] == []


def test_every_condition_is_named():
    assert [kind.value for kind in ConditionType if kind.value not in PAGE] == []


def test_every_file_of_a_rule_is_there():
    named = re.findall(r"`([a-z_]+\.py)` \|", PAGE)

    assert len(named) > 10
    assert [name for name in named if not any(PLAN.rglob(name))] == []
