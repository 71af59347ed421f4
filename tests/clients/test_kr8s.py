"""kr8s works on the embedded cluster without special care."""

import kr8s
import pytest
from kr8s.objects import Pod, new_class

from paceline.testing.embedded import wait_until
from tests.clients.scenario import GROUP, LINES, VERSION, job, pod

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("leavings"), pytest.mark.timeout(120)]
GenericJob = new_class(kind="GenericJob", version=f"{GROUP}/{VERSION}", namespaced=True, plural="genericjobs")


@pytest.fixture
def api(cluster):
    return kr8s.api(kubeconfig=str(cluster.kubeconfig))


def test_a_pod_is_made_watched_patched_read_and_deleted(api):
    made = Pod(pod("kr8s"), api=api)
    made.create()
    assert made.exists()
    made.wait("jsonpath='{.status.phase}'=Running", timeout=60)
    for event, seen in api.watch("pods", namespace="default", label_selector="app=kr8s"):
        assert (event, seen.name) == ("ADDED", "kr8s")
        break

    made.patch({"metadata": {"labels": {"patched": "yes"}}})
    made.refresh()
    assert made.labels == {"app": "kr8s", "patched": "yes"}
    made.label(later="too")
    assert [each.name for each in api.get("pods", label_selector="later=too")] == ["kr8s"]
    wait_until("the log is there", lambda: list(made.logs()) == LINES)

    made.delete()
    made.wait("delete", timeout=60)
    assert not made.exists()
    with pytest.raises(kr8s.NotFoundError):
        made.refresh()


def test_a_job_runs_to_its_end_and_is_deleted(api):
    made = GenericJob(job("kr8s"), api=api)
    made.create()
    for _, seen in api.watch("genericjobs", namespace="default", field_selector="metadata.name=kr8s"):
        if seen.raw.get("status", {}).get("phase") == "Succeeded":
            break
    made.annotate(note="done")
    pods = list(api.get("pods", label_selector="tensorstack.dev/owner-name=kr8s"))
    assert [list(each.logs()) for each in pods] == [["done"]]

    made.delete(propagation_policy="Foreground")
    made.wait("delete", timeout=60)


def test_kinds_and_version_are_discovered(api):
    assert "gj" in {name for kind in api.api_resources() for name in kind.get("shortNames", [])}
    assert api.version()["major"] == "1"
    assert list(api.get("gj")) == []
