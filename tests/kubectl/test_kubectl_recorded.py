"""Each recorded command prints the same, and ends the same, on the embedded cluster; error sentences may differ."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.testing.embedded import embedded
from paceline.testing.real.kube import find_assets
from tests.kubectl.recordings import recordings
from tests.kubectl.side import Side
from tests.kubectl.table import Case, all_cases, difference_of, differences

pytestmark = pytest.mark.timeout(120)
CASES = all_cases()


@pytest.fixture(scope="session")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """One embedded cluster for all cases of a worker."""
    assets = find_assets()
    kubectl = assets / "kubectl" if assets and (assets / "kubectl").exists() else shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl; type: make kube")
    with embedded("--image", "busybox*=host") as cluster:
        side = Side(kubectl=Path(kubectl), kubeconfig=cluster.kubeconfig, home=tmp_path_factory.mktemp("kubectl"))
        side.prepare(CASES)
        yield side


@pytest.mark.parametrize("case", CASES, ids=[f"{case.file}:{case.slug}" for case in CASES])
def test_kubectl_says_the_same_as_on_a_real_cluster(side: Side, case: Case) -> None:
    recorded, ours = recordings(case.file)[case.name].compared, side.say(case).compared
    known = difference_of(case)
    if known is not None:
        assert ours != recorded, f"no difference any more: take {case.name!r} off differences.yaml"
        ours, recorded = known.without(ours), known.without(recorded)
    assert ours == recorded


def test_every_recording_has_its_case() -> None:
    files = {case.file for case in CASES}
    assert {(file, name) for file in files for name in recordings(file)} == {(case.file, case.name) for case in CASES}


def test_every_difference_names_cases_and_says_why() -> None:
    names = {case.name for case in CASES}
    assert {name for each in differences() for name in each.cases} <= names
    assert all(len(each.reason.split()) >= 5 and each.replace for each in differences())
