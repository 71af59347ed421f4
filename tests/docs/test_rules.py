"""docs/concepts/rules.md names every field of a status, every condition, every file of a rule and every event."""

import ast
import re
from pathlib import Path

from tests.unit.apimachinery.test_status import FULL

from paceline.model.job_status import ConditionType
from paceline.plan.job.cleanup import EXCEEDED, NOT_STARTED
from paceline.plan.job.diagnosis import OUT_OF_MEMORY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "concepts" / "rules.md").read_text()
PLAN = ROOT / "src" / "paceline" / "plan"
WORDS = set(re.findall(r"`([A-Za-z_.]+)`", PAGE))


def test_every_field_of_a_status_is_explained():
    wire = FULL.to_wire()

    assert [name for name in (*wire, *wire["failure"], *wire["elastic"]) if name not in WORDS] == []


def test_every_condition_is_named():
    assert [kind.value for kind in ConditionType if kind.value not in PAGE] == []


def test_every_event_is_named():
    told = {
        each.value
        for path in ("reporting.py", "suspend.py", "completion.py", "cleanup.py", "auxiliary_pods.py")
        for node in ast.walk(ast.parse((PLAN / "job" / path).read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "EventDraft"
        for key in node.keywords
        if key.arg == "reason" and isinstance(each := key.value, ast.Constant)
    }

    assert len(told) > 5
    assert sorted({*told, EXCEEDED, NOT_STARTED, OUT_OF_MEMORY} - WORDS) == []


def test_every_file_of_a_rule_is_there():
    named = re.findall(r"`([a-z_]+\.py)` \|", PAGE)

    assert len(named) > 10
    assert [name for name in named if not any(PLAN.rglob(name))] == []
