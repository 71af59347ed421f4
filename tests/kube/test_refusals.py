"""Wrong manifests and forbidden changes are refused by kubectl apply, with the same field on both clusters (row 7)."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from paceline.cluster.webhook.manifests import configuration
from paceline.settings import Settings
from paceline.testing.embedded import wait_until
from paceline.testing.real.kube import RealKube
from tests.differential.servers import ours
from tests.kube.refusals import Case, Kubectl, cases, refused_fields
from tests.kube.test_command import controlled
from tests.kubes import kube_with_kinds
from tests.unit.kinds.manifests import pytorch

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(900)]

# Of these, a real API server refuses at apply at least this part with the field that ours names.
WANTED = 0.95
REPORTED_SECONDS = 2.0


@pytest.fixture(scope="module")
def real() -> Iterator[RealKube]:
    with kube_with_kinds() as kube:
        yield kube


@pytest.fixture(scope="module")
def there(real: RealKube) -> Iterator[Kubectl]:
    """A real API server with our CRDs, the controllers, and their webhook."""
    kubectl = Kubectl(kubeconfig=real.kubeconfig)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    created = kubectl("create", "-f", "-", stdin=configuration({"url": f"https://{address}/validate"}, {}))
    assert created.returncode == 0, created.stderr
    options = ("--kubeconfig", str(real.kubeconfig), "--webhook-bind-address", address)
    with controlled(*options) as controller:
        controller.says("leading as ")
        (wrong, *_) = [case for case in cases("wrong") if case.field == "spec.successRules[0]"]
        wait_until("the webhook answers", lambda: refused_fields(kubectl.apply(wrong.changed)))
        kubectl("delete", "genericjob", wrong.name, "--ignore-not-found")
        yield kubectl


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """The embedded API server."""
    home = tmp_path_factory.mktemp("home")
    with ours(home):
        yield Kubectl(kubeconfig=Settings(home=home).kubeconfig)


def tell(line: str) -> None:
    """Print a line of the summary, which `pytest -s` shows."""
    sys.stdout.write(f"{line}\n")


def both(rows: tuple[Case, ...], here: Kubectl, there: Kubectl) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Apply what is wrong to both servers, and return the refused fields."""

    def applied(case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return refused_fields(here.apply(case.changed)), refused_fields(there.apply(case.changed))

    with ThreadPoolExecutor(2) as pool:
        return {case.name: fields for case, fields in zip(rows, pool.map(applied, rows), strict=True)}


def judge(rows: tuple[Case, ...], here: Kubectl, there: Kubectl) -> None:
    fields = both(rows, here, there)
    same = [case for case in rows if all(case.field in side for side in fields[case.name])]
    for case in rows:
        if case not in same:
            ours_, theirs = fields[case.name]
            tell(f"{case}: expected {case.field}, embedded {ours_}, real {theirs}")
    refused = sum(bool(theirs) for _, theirs in fields.values())
    tell(f"{len(rows)} cases: {refused} refused by the real server, {len(same)} with the same field on both")
    assert all(ours_ for ours_, _ in fields.values())
    assert len(same) >= WANTED * len(rows)


def test_wrong_manifests_are_refused_with_the_same_field(here: Kubectl, there: Kubectl) -> None:
    rows = cases("wrong")

    assert len(rows) >= 60
    judge(rows, here, there)


def test_a_job_that_exists_changes_only_where_it_may(here: Kubectl, there: Kubectl) -> None:
    rows, allowed = cases("changes"), cases("allowed")
    assert len(rows) >= 20
    items = {"apiVersion": "v1", "kind": "List", "items": [case.base for case in (*rows, *allowed)]}
    for kubectl in (here, there):
        created = kubectl.apply(items)
        assert created.returncode == 0, created.stderr

    judge(rows, here, there)
    for case in allowed:
        for kubectl in (here, there):
            changed = kubectl.apply(case.changed)
            assert changed.returncode == 0, changed.stderr


def test_what_cannot_run_says_so_in_its_status(there: Kubectl) -> None:
    for case in cases("reported"):
        applied = there.apply(case.changed)
        assert applied.returncode == 0, applied.stderr
        began = time.monotonic()

        def status(case: Case = case) -> str:
            shown = there("get", case.base["kind"].lower(), case.name, "-o", "jsonpath={.status}").stdout
            return shown if case.field in shown else ""

        assert wait_until(f"{case} is reported", status, REPORTED_SECONDS)
        tell(f"{case} is reported after {time.monotonic() - began:.1f} s")


def test_an_elastic_job_is_scaled_and_explained(here: Kubectl, there: Kubectl) -> None:
    job = {**pytorch(elastic={"enabled": True, "minReplicas": 1, "maxReplicas": 4, "expectedReplicas": 2})}
    job["spec"]["torchrunConfig"] = {"enabled": True}
    job["metadata"] = {"name": "elastic"}
    for kubectl in (here, there):
        assert kubectl.apply(job).returncode == 0
        scaled = kubectl("scale", "--replicas=3", "pytorchtrainingjob/elastic")
        assert scaled.returncode == 0, scaled.stderr
        shown = kubectl("get", "pytorchtrainingjob", "elastic", "-o", "json")
        assert json.loads(shown.stdout)["spec"]["elastic"]["expectedReplicas"] == 3
        refused = kubectl("scale", "--replicas=9", "pytorchtrainingjob/elastic")
        assert "spec.elastic.expectedReplicas" in refused.stderr
        explained = kubectl("explain", "pytorchtrainingjob.status.replicaRecords")
        assert "Restarts that count towards the limits." in explained.stdout


def test_a_job_is_accepted_before_its_claim(here: Kubectl, there: Kubectl) -> None:
    job = {**pytorch(input={"claim": "later"}), "metadata": {"name": "early"}}

    accepted = here.apply(job)
    assert accepted.returncode == 0
    assert 'Warning: spec.input.claim: "later": namespace default has no such claim' in accepted.stderr
    assert there.apply(job).returncode == 0


def test_the_webhook_blocks_neither_deletions_nor_labels(there: Kubectl) -> None:
    """What was stored before the rules existed can still be labelled and deleted."""
    hook = ("validatingwebhookconfiguration", "paceline")
    saved = json.loads(there("get", *hook, "-o", "json").stdout)
    there("delete", *hook)
    (wrong, *_) = [case for case in cases("wrong") if case.field == "spec.successRules[0]"]
    wait_until("the webhook is not asked", lambda: not there.apply(wrong.changed).returncode)
    saved["metadata"] = {"name": "paceline"}
    assert there("create", "-f", "-", stdin=saved).returncode == 0
    labelled = there("label", "genericjob", wrong.name, "a=b")
    deleted = there("delete", "genericjob", wrong.name)

    assert (labelled.returncode, deleted.returncode) == (0, 0)
