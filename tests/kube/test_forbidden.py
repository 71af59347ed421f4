"""What the installed account must not do, tried with its own token by raw requests on a real kube-apiserver."""

import contextlib
import json
from base64 import b64encode
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from paceline.client.interface import NAMESPACES, PODS, SECRETS
from paceline.client.kubeconfig import load
from paceline.client.requests import Request
from paceline.client.sync import DirectCluster
from paceline.cluster.rbac import rights
from paceline.errors import AlreadyExists
from paceline.testing.real.kube import RealKube
from tests.kube.test_rights import grant

pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]

PIN = b64encode(b"4711").decode()
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "bank", "namespace": "theirs"},
    "data": {"pin": PIN},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "theirs"},
    "spec": {"containers": [{"name": "web", "image": "web"}]},
}
MERGE, STRATEGIC, APPLY = (
    f"application/{name}" for name in ("merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
)
CORE, THEIRS = "/api/v1", "/api/v1/namespaces/theirs"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BOUND = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "cluster-admin"}
# (method, path, body, content type)
FORBIDDEN = [
    ("GET", f"{THEIRS}/secrets/bank", None, ""),
    ("GET", f"{THEIRS}/secrets", None, ""),
    ("GET", f"{CORE}/secrets", None, ""),
    ("GET", f"{CORE}/secrets?watch=true&timeoutSeconds=1", None, ""),
    ("GET", f"{THEIRS}/secrets?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dbank", None, ""),
    *(("PATCH", f"{THEIRS}/secrets/bank", {}, kind) for kind in (MERGE, STRATEGIC)),
    ("PATCH", f"{THEIRS}/secrets/bank?fieldManager=x&force=true", SECRET, APPLY),
    ("PUT", f"{THEIRS}/secrets/bank", SECRET, ""),
    ("DELETE", f"{THEIRS}/secrets/bank", None, ""),
    ("DELETE", f"{THEIRS}/secrets", None, ""),
    ("GET", f"{THEIRS}/pods/web/exec?command=id&container=web", None, ""),
    ("POST", f"{THEIRS}/pods/web/exec?command=id&container=web", None, ""),
    ("POST", f"{THEIRS}/pods/web/attach?container=web", None, ""),
    ("POST", f"{THEIRS}/pods/web/portforward?ports=80", None, ""),
    ("GET", f"{THEIRS}/pods/web/proxy/", None, ""),
    ("PATCH", f"{THEIRS}/pods/web/ephemeralcontainers", {}, STRATEGIC),
    ("PATCH", f"{THEIRS}/pods/web", {}, MERGE),
    ("DELETE", f"{THEIRS}/pods", None, ""),
    ("POST", f"{THEIRS}/pods/web/eviction", {"apiVersion": "policy/v1", "kind": "Eviction"}, ""),
    ("GET", f"{CORE}/configmaps", None, ""),
    ("PATCH", f"{THEIRS}/configmaps/kube-root-ca.crt", {}, MERGE),
    ("GET", f"{THEIRS}/services/web/proxy/", None, ""),
    ("DELETE", f"{THEIRS}/services/web", None, ""),
    ("GET", f"{THEIRS}/serviceaccounts", None, ""),
    ("POST", f"{THEIRS}/serviceaccounts/default/token", {"kind": "TokenRequest", "spec": {}}, ""),
    ("GET", f"{CORE}/nodes", None, ""),
    ("GET", f"{CORE}/nodes/node-1/proxy/pods", None, ""),
    ("GET", f"{CORE}/namespaces", None, ""),
    ("DELETE", f"{CORE}/namespaces/theirs", None, ""),
    ("GET", f"{CORE}/persistentvolumes", None, ""),
    ("POST", f"{RBAC}/clusterrolebindings", {"metadata": {"name": "x"}, "roleRef": BOUND}, ""),
    ("PATCH", f"{RBAC}/clusterroles/paceline-controller", {"rules": []}, MERGE),
    ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", None, ""),
    ("GET", "/apis/apps/v1/deployments", None, ""),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", None, ""),
    ("GET", "/apis/coordination.k8s.io/v1/namespaces/paceline-system/leases/other", None, ""),
]
VERBS = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "get": "GET",
    "list": "GET",
    "watch": "GET",
}


@pytest.fixture
def objects(real: RealKube) -> None:
    """A Secret and a pod in the namespace of another person."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}}
    with DirectCluster(load(real.kubeconfig, Path.read_bytes)) as admin:
        for where, manifest in ((NAMESPACES, namespace), (SECRETS, SECRET), (PODS, POD)):
            with contextlib.suppress(AlreadyExists):
                admin.create(where, manifest)


def ask(cluster: DirectCluster, method: str, path: str, body: object, kind: str) -> tuple[int, bytes]:
    data = b"" if body is None else json.dumps(body).encode()
    headers = (("Accept", "application/json"), ("Content-Type", kind or "application/json"))
    answer = cluster.send(Request(method=method, path=path, headers=headers, body=data))
    return answer.status, answer.body


@pytest.mark.usefixtures("objects")
def test_nothing_of_others_can_be_read_or_changed(real: RealKube) -> None:
    with DirectCluster(grant(real)) as account:
        answers = {
            (method, path, kind): ask(account, method, path, body, kind) for method, path, body, kind in FORBIDDEN
        }

    assert len(answers) == len(FORBIDDEN)
    assert {case: code for case, (code, _) in answers.items() if code != HTTPStatus.FORBIDDEN} == {}
    assert not [case for case, (_, body) in answers.items() if PIN.encode() in body]


@pytest.mark.usefixtures("objects")
def test_a_secret_that_exists_is_not_shown_to_whoever_creates_it_again(real: RealKube) -> None:
    with DirectCluster(grant(real)) as account:
        code, body = ask(account, "POST", f"{THEIRS}/secrets", SECRET, "")

    assert code == HTTPStatus.CONFLICT
    assert PIN.encode() not in body


BODIES = {"POST": ({}, ""), "PUT": ({}, ""), "PATCH": ({}, MERGE)}


def everything_granted(namespace: str) -> Iterator[tuple[str, str]]:
    """Yield every granted right as a request in a namespace."""
    for right in rights():
        top = f"/apis/{right.group}/v1" if right.group.endswith("k8s.io") else f"/apis/{right.group}/v1beta1"
        for resource in right.resources:
            plural, _, subresource = resource.partition("/")
            for verb in right.verbs:
                collection = f"{top if right.group else CORE}/namespaces/{namespace}/{plural}"
                name = "" if verb in ("create", "list", "watch") else f"/some{f'/{subresource}' if subresource else ''}"
                query = "?watch=true&timeoutSeconds=1" if verb == "watch" else ""
                yield VERBS[verb], f"{collection}{name}{query}"


@pytest.mark.usefixtures("objects")
def test_with_a_list_of_namespaces_nothing_is_granted_in_others(real: RealKube) -> None:
    with DirectCluster(load(real.kubeconfig, Path.read_bytes)) as admin, contextlib.suppress(AlreadyExists):
        admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}})
    requests = tuple(everything_granted("theirs"))
    with DirectCluster(grant(real, "team-a")) as account:
        codes = {request: ask(account, *request, *BODIES.get(request[0], (None, "")))[0] for request in requests}

    assert len(codes) > 100
    assert {request: code for request, code in codes.items() if code != HTTPStatus.FORBIDDEN} == {}
