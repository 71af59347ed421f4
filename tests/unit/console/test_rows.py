"""A row says of a job of any kind what the list shows, and of a malformed one what can be read."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.console.rows import COLUMNS, row_of
from paceline.kinds.registry import expand, ports_of
from paceline.kinds.resource_totals import totals
from paceline.presentation.job_summary import replica_specs
from tests.unit.kinds import manifests


def cells(job):
    return dict(zip(COLUMNS, row_of(job), strict=True))


def container(**resources):
    return {"name": "main", "image": "busybox", "resources": resources}


def replica(kind, count, *containers):
    return {"type": kind, "replicas": count, "template": {"spec": {"containers": list(containers)}}}


def job(*replicas, kind="GenericJob", status=None, **metadata):
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": "digits", "namespace": "team", "uid": "u1", **metadata},
        "spec": {"replicaSpecs": list(replicas)},
        "status": status or {},
    }


def test_a_new_job_is_pending_with_nothing_ready():
    row = cells(job(replica("worker", 3), creationTimestamp="2030-01-01T00:00:00Z"))

    assert (row["phase"], row["replicas"], row["created"]) == ("Pending", {"worker": (0, 3)}, "2030-01-01T00:00:00Z")
    assert (row["started"], row["ended"], row["reason"]) == ("", "", "")


def test_amounts_are_those_of_all_replicas_and_a_request_defaults_to_the_limit():
    row = cells(
        job(
            replica("master", 1, container(limits={"cpu": "500m", "memory": "1Gi"})),
            replica(
                "worker", 4, container(requests={"cpu": 1}, limits={"cpu": "2", "memory": "2Gi", "a.com/gpu": "1"})
            ),
        )
    )

    assert (row["cpuRequest"], row["cpuLimit"]) == (4.5, 8.5)
    assert (row["memoryRequest"], row["memoryLimit"]) == (9 * 1024**3, 9 * 1024**3)
    assert row["devices"] == {"a.com/gpu": 4}


def test_replicas_are_those_of_the_status_once_there_is_one():
    tasks = [{"type": "worker", "replicas": [{"name": "a", "phase": "Running"}, {"name": "b", "phase": "Pending"}]}]

    row = cells(job(replica("worker", 5, container(limits={"cpu": 1})), status={"phase": "Running", "tasks": tasks}))

    assert row["replicas"] == {"worker": (1, 2)}
    assert row["cpuLimit"] == 2


def test_a_failed_job_says_why():
    status = {
        "phase": "Failed",
        "conditions": [
            {
                "type": "Failed",
                "status": "True",
                "reason": "PodFailed",
                "message": "worker-0 failed",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
                "lastUpdateTime": "2030-01-01T00:00:00Z",
            }
        ],
    }

    assert cells(job(status=status))["reason"] == "worker-0 failed"


def test_a_waiting_job_says_what_for():
    assert cells(job(status={"phase": "Pending", "waiting": "needs 2 GPUs"}))["reason"] == "needs 2 GPUs"


def test_the_application_is_a_column_and_not_a_label():
    row = cells(job(labels={"paceline.dev/app": "mnist", "paceline.dev/revision": "3", "team": "vision"}))

    assert (row["app"], row["revision"], row["labels"]) == ("mnist", "3", {"team": "vision"})


MANIFESTS = {
    "pytorch": manifests.pytorch(manifests.replica(replicas=3)),
    "generic": manifests.generic(),
    "tensorflow": manifests.tensorflow(),
    "alias": manifests.tensorflow(kind="TensorFlowJob"),
    "xgboost": manifests.xgboost(),
    "deepspeed": manifests.deepspeed(),
}
AMOUNTS = {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": "2"}}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_amounts_of_a_kind_are_those_of_its_gang(manifest):
    for spec in replica_specs(manifest):
        spec["template"]["spec"]["containers"][0]["resources"] = AMOUNTS
    _, gang = expand(manifest, ports_of(manifest))
    total, row = totals(gang), cells(manifest)

    assert (row["cpuRequest"], row["cpuLimit"]) == (total.requests["cpu"], total.limits["cpu"])
    assert (row["memoryLimit"], row["devices"]["nvidia.com/gpu"]) == (
        total.limits["memory"],
        total.limits["nvidia.com/gpu"],
    )
    assert sum(count for _, count in row["replicas"].values()) == len(gang.members)


def test_a_job_of_beam_has_its_amounts():
    manifest = manifests.beam()
    manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["resources"] = AMOUNTS

    assert cells(manifest)["cpuLimit"] == 1.5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "replicas", "template", "spec", "containers", "phase", "x"]), inner)
    ),
    max_leaves=12,
)


@given(
    st.fixed_dictionaries({"metadata": st.just({"name": "a"})}, optional={"spec": json_values, "status": json_values})
)
def test_whatever_is_stored_has_a_row(obj):
    assert len(row_of(obj)) == len(COLUMNS)


def test_the_page_has_the_same_columns():
    source = Path(__file__).parents[3] / "console" / "src" / "app" / "rows.ts"
    columns = re.search(r"COLUMNS = \[(.*?)\]", source.read_text(), re.DOTALL)

    assert tuple(re.findall(r"'(\w+)'", columns[1])) == COLUMNS
