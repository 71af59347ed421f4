"""Every behaviour of the list is the same on the embedded cluster as with a real kubelet."""

import fcntl
import json
import os
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import embedded
from tests.conformance.answers import alike, differences, recorded
from tests.conformance.drive import run_cases
from tests.conformance.page import PAGE, page
from tests.conformance.table import Case, all_cases

pytestmark = pytest.mark.timeout(300)
CASES = all_cases()
WIDTH = 30


@pytest.fixture(scope="session")
def answers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the embedded cluster says to all cases of this run, which one worker asks for all."""
    shared = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        shared = shared.parent
    with (shared / "conformance.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = shared / "conformance.json"
        if not file.exists():
            file.write_text(json.dumps(_ask(request)))
        return dict(json.loads(file.read_text()))


def _ask(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen = {item.callspec.params["case"].name for item in request.session.items if "case" in _params(item)}
    cases = [case for case in CASES if case.name in chosen and (case.needs != "root" or os.geteuid() == 0)]
    with embedded("--image", "busybox*=host") as cluster:
        return run_cases(
            cluster.kubeconfig, cases, width=WIDTH, expected=lambda case: recorded(case.topic).get(case.name)
        )


def _params(item: Any) -> dict[str, Any]:
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    return params if isinstance(params.get("case"), Case) else {}


def _asked(case: Case) -> Any:
    needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
    return pytest.param(case, id=f"{case.topic}:{case.slug}", marks=[needs_root] if case.needs == "root" else ())


@pytest.mark.parametrize("case", [_asked(case) for case in CASES])
def test_a_pod_does_the_same_as_with_a_real_kubelet(answers: dict[str, Any], case: Case) -> None:
    ours, theirs = alike(case, answers[case.name]), alike(case, recorded(case.topic)[case.name])
    lines = unified_diff(theirs.splitlines(), ours.splitlines(), "a real kubelet", "the embedded cluster", lineterm="")
    assert ours == theirs, "\n".join(lines)


def test_every_answer_has_its_case() -> None:
    topics = {case.topic for case in CASES}
    known = {(topic, name) for topic in topics for name in recorded(topic)}
    assert known == {(case.topic, case.name) for case in CASES}
    assert {path.stem for path in (Path(__file__).parent / "recorded").glob("*.yaml")} == topics


def test_the_list_is_long_and_the_page_about_it_current() -> None:
    assert len(CASES) >= 120
    assert PAGE.read_text() == page(), "type: python -m tests.conformance.page"


def test_a_real_kubelet_brought_every_case_to_its_end() -> None:
    assert not [case.name for case in CASES if "failure" in recorded(case.topic)[case.name]]


@pytest.mark.parametrize("each", differences(), ids=[each.reason[:40] for each in differences()])
def test_what_may_differ_names_cases_says_why_and_is_needed(each: Any, answers: dict[str, Any]) -> None:
    assert len(each.reason.split()) >= 5
    assert each.cases == ("all",) or set(each.cases) <= {case.name for case in CASES}
    concerned = [case for case in CASES if each.concerns(case)]
    if any(case.name not in answers for case in concerned):
        # Some were not asked: whether it is needed cannot be told.
        return
    asked = [(case, answers[case.name], recorded(case.topic)[case.name]) for case in concerned]
    assert any(alike(case, ours, but=each) != alike(case, theirs, but=each) for case, ours, theirs in asked), (
        "nothing differs so any more: take it off the list"
    )
