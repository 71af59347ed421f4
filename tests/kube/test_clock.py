"""`paceline kube controller` with a wrong machine clock, beside a real kube-apiserver: it uses the server's time."""

import json
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from paceline.apimachinery.timestamps import from_wire
from paceline.testing.embedded import wait_until
from paceline.testing.real.kube import RealKube
from tests.e2e.support.clock_shim import build_shift
from tests.e2e.support.manifests import generic, text
from tests.kube.test_command import controlled, kubectl
from tests.kubes import kube_with_kinds

pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]

HOUR = 3600


@pytest.fixture(scope="module")
def kube() -> Iterator[RealKube]:
    with kube_with_kinds() as running:
        yield running


def job(kube: RealKube) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kubectl(kube, "get", "genericjob", "waiting", "-o", "json"))
    return found


def look_again(kube: RealKube, ttl: int) -> dict[str, Any]:
    """Change the job, and give it as it is once the controller has looked at it."""
    kubectl(kube, "patch", "genericjob", "waiting", "--type=merge", "-p", json.dumps({"spec": spec(ttl)}))

    def looked() -> dict[str, Any] | None:
        found = job(kube)
        seen = (found.get("status") or {}).get("observedGeneration")
        return found if seen == found["metadata"]["generation"] else None

    return wait_until("the controller has looked", looked)


def spec(ttl: int) -> dict[str, Any]:
    return {"runPolicy": {"startingDeadlineSeconds": HOUR, "ttlSecondsAfterFinished": ttl}}


def test_no_job_is_late_because_the_clock_of_the_controllers_machine_is_set(kube: RealKube, tmp_path: Path) -> None:
    shift = build_shift(tmp_path)
    shift.set(2 * HOUR)
    made = generic("waiting", command=["true"])
    made["spec"] |= spec(1)
    with controlled("--kubeconfig", str(kube.kubeconfig), env=shift.env) as controller:
        controller.says("leading as ")
        kubectl(kube, "create", "-f", "-", stdin=text(made))
        for ttl, hours in ((2, 2), (3, 26), (4, 0)):
            shift.set(hours * HOUR)
            found = look_again(kube, ttl)
            assert found["status"]["phase"] == "Pending"
            begun = from_wire(found["metadata"]["creationTimestamp"])
            for condition in found["status"]["conditions"]:
                assert abs(from_wire(condition["lastTransitionTime"]) - begun) < timedelta(minutes=10)
        assert controller.end(signal.SIGTERM) == 0
