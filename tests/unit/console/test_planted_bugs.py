"""A bug that is planted into a page turns a test of that page red: all of them at once, each in a file of its own."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
CONSOLE = ROOT / "console"


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A change of one line, and the tests that must notice it."""

    name: str
    path: str
    line: str
    instead: str
    tests: str


PAGES = (
    Bug(
        name="the overview forgets failed jobs",
        path="pages/overview/choose.ts",
        line="row.phase === 'Failed' && now",
        instead="row.phase === 'Succeeded' && now",
        tests="pages/overview/choose.test.ts",
    ),
    Bug(
        name="a row is lost after a reset (410)",
        path="app/live.ts",
        line="if (message.more) return;",
        instead="this.items.delete([...this.items.keys()][0] ?? '');\n    if (message.more) return;",
        tests="app/live.test.ts",
    ),
    Bug(
        name="the filter of the job list shows other phases",
        path="pages/jobs/filter.ts",
        line="return rows.filter(",
        instead="return rows.slice(1).filter(",
        tests="pages/jobs/filter.test.ts",
    ),
    Bug(
        name="the colours of two replicas are swapped in the log",
        path="pages/job/logs.ts",
        line="color: colours.get(log.replica) ?? 0",
        instead="color: 1 - (colours.get(log.replica) ?? 0)",
        tests="pages/job/logs.test.ts",
    ),
    Bug(
        name="the log merges by arrival, not by time",
        path="logs/order.ts",
        line="if (next[source]! < next[best]!) best = source;",
        instead="if (next[source]! > next[best]!) best = source;",
        tests="logs/order.test.ts",
    ),
    Bug(
        name="the form writes a value to the wrong place",
        path="forms/document.ts",
        line="return [range[0], range[1]];",
        instead="return [range[0] + 1, range[1]];",
        tests="forms/document.test.ts",
    ),
    Bug(
        name="a worker that failed counts as ended well",
        path="pages/app/rows.ts",
        line="if (state === 'Failed') count.failed += 1;",
        instead="if (state === 'Failed') count.ended += 1;",
        tests="pages/app/rows.test.ts",
    ),
    Bug(
        name="the terminal takes every end for a success",
        path="terminal/channel.ts",
        line="exitCode: /^\\d+$/.test(code) ? Number(code) : null",
        instead="exitCode: 0",
        tests="terminal/channel.test.ts",
    ),
    Bug(
        name="a button is offered to a person without the right",
        path="actions/rights.ts",
        line="return rights.rules.some(",
        instead="return rights.rules.length >= 0 || rights.rules.some(",
        tests="actions/rights.test.ts",
    ),
)
BACK_END = (
    Bug(
        name="a failed job is shown as succeeded",
        path="presentation/job_summary.py",
        line="    return Phase(phase) if phase in",
        instead="    phase = Phase.SUCCEEDED if phase == Phase.FAILED else phase\n    return Phase(phase) if phase in",
        tests="tests/unit/presentation/test_job_summary.py",
    ),
    Bug(
        name="a row is lost when the list is read again (410)",
        path="console/subscriptions/feeds.py",
        line="        items = self._take(page)\n        while",
        instead="        items = self._take(page)[1:]\n        while",
        tests="tests/unit/console/test_live_rows.py",
    ),
    Bug(
        name="a paused job can be paused again",
        path="presentation/actions.py",
        line="    if is_paused is not is_pausing(job):",
        instead="    if is_paused or not is_pausing(job):",
        tests="tests/unit/presentation/test_actions.py",
    ),
)


def plant(folder: Path, bugs: tuple[Bug, ...]) -> None:
    for bug in bugs:
        path = folder / bug.path
        text = path.read_text()
        assert bug.line in text, f"{bug.name}: {bug.path} has no {bug.line!r} any more"
        path.unlink()
        path.write_text(text.replace(bug.line, bug.instead, 1))


def test_bugs_of_the_pages_turn_their_tests_red(tmp_path):
    copy, report = tmp_path / "console", tmp_path / "report.json"
    shutil.copytree(CONSOLE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (copy / "node_modules").symlink_to(CONSOLE / "node_modules")
    plant(copy / "src", PAGES)

    npx = [str(shutil.which("npx")), "vitest", "run", "--reporter=json", f"--outputFile={report}"]
    subprocess.run([*npx, *(f"src/{bug.tests}" for bug in PAGES)], cwd=copy, capture_output=True, check=False)

    results = {Path(file["name"]).as_posix(): file["status"] for file in json.loads(report.read_text())["testResults"]}
    green = [bug.name for bug in PAGES if results[str(copy / "src" / bug.tests)] != "failed"]
    assert not green


def test_bugs_of_the_back_end_turn_their_tests_red(tmp_path):
    copy = tmp_path / "src" / "paceline"
    # Links are enough: a planted file is a new one.
    shutil.copytree(ROOT / "src" / "paceline", copy, copy_function=os.link)
    plant(copy, BACK_END)

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rf"]
    ran = subprocess.run(
        [*command, *(bug.tests for bug in BACK_END)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    green = [bug.name for bug in BACK_END if f"FAILED {bug.tests}" not in ran.stdout]
    assert not green, ran.stdout[-3000:]
