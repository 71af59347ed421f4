"""lightkube works on the embedded cluster without special care."""

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod
from lightkube.types import CascadeType, PatchType

from paceline.testing.embedded import wait_until
from tests.clients.scenario import COUNTING, GROUP, LINES, PLURAL, VERSION, job

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("leavings"), pytest.mark.timeout(120)]
GenericJob = create_namespaced_resource(GROUP, VERSION, "GenericJob", PLURAL)


@pytest.fixture
def api(cluster):
    config = KubeConfig.from_file(cluster.kubeconfig)
    connected = Client(config=config, namespace="default", field_manager="lightkube")
    yield connected
    connected._client.close()


def test_a_pod_is_made_watched_patched_read_and_deleted(api):
    container = Container(name="main", image="python:3.11", command=["python", "-c", COUNTING])
    spec = PodSpec(containers=[container], restartPolicy="Never", terminationGracePeriodSeconds=0)
    made = api.create(Pod(metadata=ObjectMeta(name="light", labels={"app": "light"}), spec=spec))
    assert made.metadata.uid
    for event, seen in api.watch(Pod, labels={"app": "light"}, server_timeout=60):
        assert event in {"ADDED", "MODIFIED"}
        if seen.status.phase == "Running":
            break

    patched = api.patch(Pod, "light", {"metadata": {"labels": {"patched": "yes"}}}, patch_type=PatchType.STRATEGIC)
    assert patched.metadata.labels == {"app": "light", "patched": "yes"}
    wait_until("the log is there", lambda: [line.strip() for line in api.log("light")] == LINES)

    api.delete(Pod, "light")
    wait_until("the pod is gone", lambda: not list(api.list(Pod, labels={"app": "light"})))
    with pytest.raises(ApiError) as missing:
        api.get(Pod, "light")
    assert missing.value.status.code == 404


def test_a_job_runs_to_its_end_and_is_deleted(api):
    api.create(GenericJob(job("light")))
    for _, seen in api.watch(GenericJob, fields={"metadata.name": "light"}, server_timeout=60):
        if (seen.status or {}).get("phase") == "Succeeded":
            break
    api.patch(GenericJob, "light", {"metadata": {"annotations": {"note": "done"}}}, patch_type=PatchType.MERGE)
    pods = list(api.list(Pod, labels={"tensorstack.dev/owner-name": "light"}))
    assert list(api.log(pods[0].metadata.name)) == ["done\n"]

    api.delete(GenericJob, "light", cascade=CascadeType.FOREGROUND)
    wait_until("the job is gone", lambda: not list(api.list(GenericJob)))


def test_apply_says_whose_field_it_is(api):
    mine = ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="applied"), data={"a": "1"})
    assert api.apply(mine).data == {"a": "1"}
    theirs = ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="applied"), data={"a": "2"})
    with pytest.raises(ApiError) as conflict:
        api.apply(theirs, field_manager="other")
    assert conflict.value.status.code == 409
    assert api.apply(theirs, field_manager="other", force=True).data == {"a": "2"}
