"""The command in the hands of somebody who may look into one namespace, and no further, of a real kube-apiserver."""

import json
from pathlib import Path

import pytest

from paceline.client.interface import NAMESPACES, Collection
from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.testing.real.kube import RealKube
from tests.kube.test_command import paceline
from tests.kube.test_rights import ACCOUNTS, WHERE
from tests.unit.kinds.manifests import pytorch

pytestmark = [pytest.mark.kube, pytest.mark.timeout(180)]

TEAM = "team"
JOBS = Collection(group="batch.tensorstack.dev", version="v1beta1", plural="pytorchtrainingjobs")
LOOKS = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}


@pytest.fixture(scope="module")
def looker(real: RealKube, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of somebody who may see everything in a namespace with one job in it."""
    admin = load(real.kubeconfig, Path.read_bytes)
    head = {"name": "looker", "namespace": TEAM}
    told = {
        "ServiceAccount": {},
        "Role": {"rules": [LOOKS]},
        "RoleBinding": {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looker"},
            "subjects": [{"kind": "ServiceAccount", **head}],
        },
    }
    with DirectCluster(admin) as cluster:
        cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        for kind, more in told.items():
            where = WHERE[kind]
            version = f"{where.group}/{where.version}" if where.group else where.version
            cluster.create(where, {"apiVersion": version, "kind": kind, "metadata": head, **more})
        cluster.create(JOBS, {**pytorch(), "metadata": {"name": "digits", "namespace": TEAM}})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = cluster.post(ACCOUNTS.path(TEAM, "looker", "token"), body)["status"]["token"]
    config = json.loads(real.kubeconfig.read_text())
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    mine = tmp_path_factory.mktemp("looker") / "kubeconfig"
    mine.write_text(json.dumps(config))
    return mine


@pytest.mark.parametrize("verb", ["logs", "results"])
def test_a_job_that_is_not_there_is_said_not_to_be_there_although_nodes_may_not_be_asked(
    looker: Path, verb: str
) -> None:
    done = paceline(verb, "digist", "-n", TEAM, "--kubeconfig", str(looker))

    assert "there is no job named 'digist' in namespace 'team'; did you mean digits?" in done.stderr
    assert done.returncode == 1, done.stderr
