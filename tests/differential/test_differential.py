"""The same requests, sent to a real kube-apiserver and to ours, are answered the same.

What still differs stands in differences.yaml with its reason: one that is not listed fails, and one that is gone, too.
"""

import fnmatch
import json
from pathlib import Path

import pytest
import yaml

from paceline.testing.api_diff import Step, steps_of

HERE = Path(__file__).parent
SCENARIOS = {path.stem: path for path in sorted((HERE / "cases").glob("*.yaml"))}
TRAFFIC = {path.stem: path for path in sorted((HERE / "traffic").glob("*.json"))}
LISTED = yaml.safe_load((HERE / "differences.yaml").read_text())
MOST_DIFFERENCES = 15
FEWEST_REQUESTS = 300

pytestmark = [pytest.mark.kube, pytest.mark.timeout(120)]


def scenario(name: str) -> tuple[Step, ...]:
    return steps_of(yaml.safe_load(SCENARIOS[name].read_text()))


def recorded(name: str) -> tuple[Step, ...]:
    return tuple(Step(**row) for row in json.loads(TRAFFIC[name].read_text()))


def explained(name: str, found: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Tell which differences nobody has listed, and which listed ones are not there."""
    told, used = [], set()
    for case, lines in found.items():
        for line in lines:
            entries = [index for index, entry in enumerate(LISTED) if covers(entry, f"{name}/{case}", line)]
            used.update((index, pattern) for index in entries for pattern in places(LISTED[index], f"{name}/{case}"))
            if not entries:
                told.append(f"{case}\n    {line}")
    wanted = {(i, place) for i, entry in enumerate(LISTED) for place in entry["where"] if place.startswith(f"{name}/")}
    return told, [f"{LISTED[index]['what']} ({place})" for index, place in sorted(wanted - used)]


def covers(entry, case: str, line: str) -> bool:
    field = line.partition(": ")[0]
    return bool(places(entry, case)) and any(fnmatch.fnmatchcase(field, pattern) for pattern in entry["fields"])


def places(entry, case: str) -> list[str]:
    return [place for place in entry["where"] if place == case]


def check(name: str, both, steps: tuple[Step, ...]) -> None:
    found: dict[str, list[str]] = {}
    for step, lines in both.differ(name, steps):
        if lines:
            found.setdefault(step.case, []).extend(lines)
    told, gone = explained(name, found)
    assert not told, "real | ours differ, unlisted:\n" + "\n".join(told)
    assert not gone, "these listed differences are gone; take them off differences.yaml:\n" + "\n".join(gone)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_answered_alike(name, both):
    check(name, both, scenario(name))


@pytest.mark.parametrize("name", TRAFFIC)
def test_recorded_traffic_of_a_client_is_answered_alike(name, both):
    check(f"traffic-{name}", both, recorded(name))


def test_the_list_is_short_and_says_why():
    assert len(LISTED) <= MOST_DIFFERENCES
    assert all(entry["what"] and entry["reason"] and entry["where"] and entry["fields"] for entry in LISTED)
    known = {f"{name}/{step.case}" for name in SCENARIOS for step in scenario(name)}
    assert [place for entry in LISTED for place in entry["where"] if place not in known] == []


def test_there_are_many_requests_and_no_two_cases_of_one_name():
    cases = [f"{name}/{step.case}" for name in SCENARIOS for step in scenario(name)]
    assert len(cases) >= FEWEST_REQUESTS
    assert sorted(set(cases)) == sorted(cases)
