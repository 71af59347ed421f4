"""The official Python client works on the embedded cluster without special care."""

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from paceline.testing.embedded import wait_until
from tests.clients.scenario import GROUP, LINES, PLURAL, VERSION, job, pod

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("leavings"), pytest.mark.timeout(120)]
WATCH = {"timeout_seconds": 60, "_request_timeout": 90}


@pytest.fixture
def api(cluster, tmp_path):
    # Else the client leaves the server's certificate in the machine's /tmp: a worker of pytest has no end to do it at.
    settings = client.Configuration()
    config.load_kube_config(str(cluster.kubeconfig), client_configuration=settings, temp_file_path=str(tmp_path))
    with client.ApiClient(settings) as connected:
        yield connected


def test_a_pod_is_made_watched_patched_read_and_deleted(api):
    core = client.CoreV1Api(api)
    made = core.create_namespaced_pod("default", pod("official"))
    assert made.spec.containers[0].image == "python:3.11"
    with pytest.raises(ApiException) as again:
        core.create_namespaced_pod("default", pod("official"))
    assert (again.value.status, again.value.reason) == (409, "Conflict")

    seen = watch.Watch()
    for event in seen.stream(core.list_namespaced_pod, "default", label_selector="app=official", **WATCH):
        if event["object"].status.phase == "Running":
            seen.stop()

    core.patch_namespaced_pod("official", "default", {"metadata": {"labels": {"patched": "yes"}}})
    assert core.read_namespaced_pod("official", "default").metadata.labels == {"app": "official", "patched": "yes"}
    wait_until("the log is there", lambda: len(core.read_namespaced_pod_log("official", "default").splitlines()) == 5)
    followed = watch.Watch()
    lines = []
    for line in followed.stream(core.read_namespaced_pod_log, "official", "default", _request_timeout=60):
        lines.append(line)
        if len(lines) == len(LINES):
            break
    assert lines == LINES
    assert core.read_namespaced_pod_log("official", "default", tail_lines=2).splitlines() == LINES[-2:]

    core.delete_namespaced_pod("official", "default")
    wait_until("the pod is gone", lambda: not core.list_namespaced_pod("default", label_selector="app=official").items)
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("official", "default")
    assert missing.value.status == 404


def test_a_job_runs_to_its_end_and_is_deleted(api):
    jobs, core = client.CustomObjectsApi(api), client.CoreV1Api(api)
    where = {"group": GROUP, "version": VERSION, "namespace": "default", "plural": PLURAL}
    jobs.create_namespaced_custom_object(**where, body=job("official"))

    seen, phases = watch.Watch(), []
    for event in seen.stream(jobs.list_namespaced_custom_object, **where, **WATCH):
        phase = event["object"].get("status", {}).get("phase")
        phases.append(phase)
        if phase == "Succeeded":
            seen.stop()
    assert "Failed" not in phases
    patched = jobs.patch_namespaced_custom_object(
        **where, name="official", body={"metadata": {"annotations": {"note": "well done"}}}
    )
    assert patched["metadata"]["annotations"]["note"] == "well done"
    pods = core.list_namespaced_pod("default", label_selector="tensorstack.dev/owner-name=official").items
    assert core.read_namespaced_pod_log(pods[0].metadata.name, "default") == "done\n"

    jobs.delete_namespaced_custom_object(**where, name="official", propagation_policy="Foreground")
    wait_until("the job is gone", lambda: not jobs.list_namespaced_custom_object(**where)["items"])


def test_pages_selectors_and_other_groups(api):
    core, leases = client.CoreV1Api(api), client.CoordinationV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map(
            "default", {"metadata": {"name": f"page-{number}", "labels": {"page": "yes"}}}
        )
    chosen = {"label_selector": "page=yes", "limit": 2}
    page = core.list_namespaced_config_map("default", **chosen)
    names = [each.metadata.name for each in page.items]
    while page.metadata._continue:
        page = core.list_namespaced_config_map("default", **chosen, _continue=page.metadata._continue)
        names += [each.metadata.name for each in page.items]
    assert names == [f"page-{number}" for number in range(5)]

    core.delete_collection_namespaced_config_map("default", label_selector="page=yes")
    assert core.list_namespaced_config_map("default", label_selector="page=yes").items == []
    made = leases.create_namespaced_lease("default", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    made.spec.holder_identity = "you"
    assert leases.replace_namespaced_lease("l", "default", made).spec.holder_identity == "you"
    with pytest.raises(ApiException) as stale:
        leases.replace_namespaced_lease("l", "default", made)
    assert stale.value.status == 409


def test_a_command_runs_in_a_pod_and_its_exit_code_comes_back(api):
    core = client.CoreV1Api(api)
    core.create_namespaced_pod("default", pod("inside"))
    wait_until("it runs", lambda: core.read_namespaced_pod("inside", "default").status.phase == "Running")
    program = "import sys; print(sys.stdin.readline().strip().upper()); print('bad', file=sys.stderr); sys.exit(3)"

    line = stream(
        core.connect_get_namespaced_pod_exec,
        "inside",
        "default",
        command=["python", "-c", program],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    line.write_stdin("hello\n")
    line.run_forever(timeout=60)

    assert (line.read_stdout(), line.read_stderr(), line.returncode) == ("HELLO\n", "bad\n", 3)
    line.close()
    core.delete_namespaced_pod("inside", "default")
