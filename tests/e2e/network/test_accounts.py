"""Programs in pods reach the API as their account: with a token of their own, and no further than they should."""

import base64
import json
import shutil
import socket
import ssl
import urllib.request
from pathlib import Path

import pytest

from paceline.host.pod_bridge import missing_rights
from paceline.testing.embedded import embedded, open_files, wait_until
from tests.e2e.support.kubectl_folder import kubectl_folder
from tests.e2e.support.shell_pods import create, ended, make_pod, run_pod, shell, show

PLACE = "/var/run/secrets/kubernetes.io/serviceaccount"
KUBECTL = shutil.which("kubectl")
IN_CLUSTER = """
from kubernetes import client, config
config.load_incluster_config()
core = client.CoreV1Api()
print(sorted(pod.metadata.name for pod in core.list_namespaced_pod(open(PLACE + "/namespace").read()).items))
for call in (
    lambda: core.list_namespaced_secret("default"),
    lambda: core.list_node(),
    lambda: core.list_namespaced_pod("kube-system"),
    lambda: core.list_pod_for_all_namespaces(),
    lambda: core.delete_namespaced_pod("python", "default"),
    lambda: core.create_namespaced_service_account_token("default", "default", {"spec": {}}),
):
    try:
        call()
        print("allowed")
    except client.ApiException as error:
        print(error.status)
"""
NETWORKS = ["host"] if missing_rights() else ["own", "host"]


@pytest.fixture(scope="module", params=NETWORKS)
def cluster(request):
    with embedded("--network", request.param) as running:
        yield running


def python(script, **fields):
    text = f"PLACE = {PLACE!r}\n{script}"
    return {"name": "main", "image": "python:3.11", "command": ["python3", "-c", text], **fields}


def with_kubectl(script):
    """A container that sees kubectl, and its volume."""
    folder = str(kubectl_folder())
    container = shell(f"export PATH=$PATH:/kube HOME=/tmp; {script}")
    container["volumeMounts"] = [{"name": "kube", "mountPath": "/kube", "readOnly": True}]
    return container, [{"name": "kube", "hostPath": {"path": folder}}]


def account(name, **annotations):
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def token_of(cluster, pod):
    return cluster.kubectl("exec", pod, "--", "cat", f"{PLACE}/token").out.strip()


def ask(cluster, path, token):
    """Ask the API as somebody; give the code."""
    config = json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = base64.b64decode(config["certificate-authority-data"]).decode()
    wanted = urllib.request.Request(config["server"] + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(wanted, context=ssl.create_default_context(cadata=authority)) as told:
            return told.status
    except urllib.error.HTTPError as error:
        return error.code


def test_the_python_client_finds_the_cluster_it_runs_in(cluster):
    pods, *codes = run_pod(cluster, "python", python(IN_CLUSTER))

    assert "python" in pods
    assert codes == ["403"] * 6


def test_a_pod_on_the_machines_network_finds_it_too(cluster):
    pods, *_ = run_pod(cluster, "on-host", python(IN_CLUSTER), hostNetwork=True)

    assert "on-host" in pods


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_kubectl_works_in_a_pod(cluster):
    script = "kubectl get pods -o name | grep kubectl; kubectl auth whoami; kubectl auth can-i list pods; "
    container, volumes = with_kubectl(script + "kubectl auth can-i create pods; kubectl create cm no; true")
    lines = run_pod(cluster, "kubectl", container, volumes=volumes)

    assert lines[0] == "pod/kubectl"
    assert any("system:serviceaccount:default:default" in line for line in lines)
    assert any("authentication.kubernetes.io/pod-name" in line and "kubectl" in line for line in lines)
    assert lines[-3:-1] == ["yes", "no"]
    assert 'User "system:serviceaccount:default:default" cannot create resource "configmaps"' in lines[-1]


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_an_account_that_is_given_the_right_writes_in_its_namespace(cluster):
    create(cluster, account("writer", **{"paceline.dev/rights": "write"}))
    container, volumes = with_kubectl("kubectl create cm made --from-literal=a=b && kubectl get secrets; true")
    lines = run_pod(cluster, "writes", container, volumes=volumes, serviceAccountName="writer")

    assert lines[0] == "configmap/made created"
    assert 'cannot list resource "secrets"' in lines[1]
    assert show(cluster, "cm", "made")["data"] == {"a": "b"}


def test_a_token_is_good_for_as_long_as_its_pod_and_its_account(cluster):
    create(cluster, account("brief"))
    for name in ("first", "second"):
        make_pod(cluster, name, shell("sleep 300"), serviceAccountName="brief")
    tokens = [
        wait_until(f"{name} has a token", lambda name=name: token_of(cluster, name)) for name in ("first", "second")
    ]
    path = "/api/v1/namespaces/default/pods"
    assert [ask(cluster, path, token) for token in tokens] == [200, 200]

    assert cluster.kubectl("delete", "pod", "first", "--now").code == 0
    assert [ask(cluster, path, token) for token in tokens] == [401, 200]

    assert cluster.kubectl("delete", "serviceaccount", "brief").code == 0
    assert [ask(cluster, path, token) for token in tokens] == [401, 401]
    create(cluster, account("brief"))
    assert ask(cluster, path, tokens[1]) == 401
    cluster.kubectl("delete", "pod", "second", "--now")


def test_a_token_that_somebody_changed_is_none(cluster):
    token = cluster.kubectl("create", "token", "default").out.strip()
    head, claims, mark = token.split(".")
    said = json.loads(base64.urlsafe_b64decode(claims + "=="))
    said["sub"] = "system:serviceaccount:default:writer"
    said["kubernetes.io"]["serviceaccount"]["name"] = "writer"
    other = base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()

    assert ask(cluster, "/api", token) == 200
    for forged in (f"{head}.{other}.{mark}", f"{unsigned}.{claims}.", f"{head}.{claims}.", f"{head}.{claims}.AAAA"):
        assert ask(cluster, "/api", forged) == 401


def test_kubectl_asks_for_tokens(cluster):
    token = cluster.kubectl("create", "token", "default", "--duration=10m").out.strip()
    who = cluster.kubectl(f"--token={token}", "auth", "whoami", "-o", "json")
    short = cluster.kubectl("create", "token", "default", "--duration=1m")

    assert json.loads(who.out)["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    assert "may not specify a duration less than 10 minutes" in short.err


def test_a_pod_that_wants_no_token_has_none(cluster):
    lines = run_pod(cluster, "without", shell(f"test -e {PLACE} || echo none"), automountServiceAccountToken=False)

    assert lines == ["none"]
    assert "volumes" not in show(cluster, "pod", "without")["spec"]


def test_tokens_are_told_nobody_else(cluster):
    make_pod(cluster, "teller", shell("sleep 300"))
    token = wait_until("the pod has a token", lambda: token_of(cluster, "teller"))
    shown = cluster.kubectl("get", "events,pods,serviceaccounts", "-A", "-o", "yaml").out

    assert token not in shown
    assert token not in cluster.settings.log.read_text()
    cluster.kubectl("delete", "pod", "teller", "--now")


def test_the_server_listens_where_pods_and_their_machine_are_and_nowhere_else(cluster):
    mine = open_files(cluster.control_pid)
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    places = {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in mine}
    addresses = {socket.inet_ntoa(bytes.fromhex(each.partition(":")[0])[::-1]) for each in places}
    node = json.loads(cluster.kubectl("get", "nodes", "-o", "json").out)["items"][0]

    assert addresses == {"127.0.0.1", node["status"]["addresses"][0]["address"]}


def test_pods_of_an_account_that_is_not_there_are_refused(cluster):
    made = cluster.kubectl(
        "run", "stranger", "--image=python:3.11", "--overrides", json.dumps({"spec": {"serviceAccountName": "nobody"}})
    )

    assert 'service account "default/nobody" not found' in made.err


def test_a_finished_pod_ends_well(cluster):
    make_pod(cluster, "well", shell("true"))

    assert ended(cluster, "well") == "Succeeded"
