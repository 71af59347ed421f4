"""With JSON logs, every line is one object, whatever is logged."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
from pathlib import Path
from paceline.cluster.logs import configure_logging
configure_logging("controller", log_format="json")
log = logging.getLogger("paceline.client.workqueue")
log.warning("reconcile %s", "failed", extra={"key": ("a", "b"), "path": Path("/x"), "level": "field's own"})
log.info("two\\nlines of \\u4e2d\\u6587")
try:
    raise ValueError("a bug")
except ValueError:
    log.exception("a bug ended a task")
"""


@pytest.fixture(scope="module")
def lines():
    done = subprocess.run((sys.executable, "-c", PROGRAM), capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_record_is_one_object_with_its_fields(lines):
    first = lines[0]
    assert list(first)[:5] == ["time", "level", "process", "logger", "message"]
    assert (first["level"], first["logger"], first["message"]) == (
        "warning",
        "paceline.client.workqueue",
        "reconcile failed",
    )
    assert (first["key"], first["path"]) == (["a", "b"], "/x")
    assert first["field_level"] == "field's own", "a field does not replace the record's own"
    assert first["time"].endswith("+00:00")


def test_several_lines_and_a_traceback_stay_one_object(lines):
    assert lines[1]["message"] == "two\nlines of 中文"
    assert len(lines) == 3
    assert lines[2]["traceback"].endswith("ValueError: a bug")
