"""Real frameworks on real nodes: PyTorch and Open MPI over both, TensorBoard and JupyterLab through the API server."""

import os
import re
import sysconfig
from base64 import b64decode
from typing import Any

import pytest

from tests.cluster.lab import HARD, Lab
from tests.cluster.manifests import RESOURCES, RESTRICTED, claim, colossalai, mpi, pytorch, spread
from tests.cluster.programs import MPI_SUM

pytestmark = pytest.mark.timeout(900)

# Each rank begins with other weights and sees other data; what they have learned in the end is the same.
TRAIN = """
import torch
from torch import distributed
distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.randn(64, 4)
for step in range(100):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(data), data.sum(dim=1, keepdim=True)).backward()
    optimizer.step()
weights = [float(weight) for parameter in model.parameters() for weight in parameter.flatten()]
print("rank", rank, "of", distributed.get_world_size(), "learned", *(weight.hex() for weight in weights))
distributed.barrier()
distributed.destroy_process_group()
"""
LEARNED = re.compile(r"rank (\d) of 2 learned (.*)")
SUMMED = re.compile(r"rank (\d) of 4 on (\S+) has 6")
LEVELS = ("privileged", "restricted", "counted")


@pytest.fixture(scope="module", params=LEVELS)
def namespace(lab: Lab, request: pytest.FixtureRequest) -> str:
    """A namespace that admits all pods, one that admits confined pods, and one that counts what they use."""
    level = str(request.param)
    if level == "counted":
        return lab.make_namespace(level, hard=HARD)
    return lab.make_namespace(level, level=level)


def of_the_machine(environment: str) -> dict[str, Any]:
    """Return the parts of a pod that has a virtual environment of this machine, and the libraries that it needs."""
    libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    folders = {"environment": (environment, environment), "libraries": (libraries, "/so")}
    variables = {"PATH": f"{environment}/bin:/bin", "LD_LIBRARY_PATH": "/so"}
    return {
        "container": {
            "env": [{"name": name, "value": value} for name, value in variables.items()],
            "volumeMounts": [
                {"name": name, "mountPath": path, "readOnly": True} for name, (_, path) in folders.items()
            ],
            "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "20m", "memory": "32Mi"}},
        },
        "volumes": [
            {"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, (path, _) in folders.items()
        ],
    }


@pytest.fixture
def torch() -> dict[str, Any]:
    """The parts of a pod that has PyTorch."""
    environment = os.environ.get("PACELINE_PYTORCH")
    if not environment:
        pytest.skip("there is no PyTorch: PACELINE_PYTORCH is the folder that `tools/setup torch` prints")
    return of_the_machine(environment)


def nodes_of(lab: Lab, name: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in lab.pods(name)}


def check_learned(lab: Lab, name: str) -> None:
    """Check that both ranks of a job have learned the same, and what there was to learn."""
    weights = dict(LEARNED.findall(lab.logs(name)))
    assert (sorted(weights), len(set(weights.values()))) == (["0", "1"], 1)
    *factors, bias = (float.fromhex(word) for word in weights["0"].split())
    assert [round(factor, 2) for factor in factors] == [1.0] * 4
    assert round(bias, 2) == 0.0


def test_pytorch_learns_the_same_on_both_nodes(lab: Lab, torch: dict[str, Any]) -> None:
    """X-28: gloo, one rank on each node."""
    lab.apply(spread(pytorch("ddp", TRAIN, pod=torch)))

    done = lab.await_phase("PyTorchTrainingJob", "ddp", "Succeeded")

    assert nodes_of(lab, "ddp") == {"node-1", "node-2"}
    assert done["status"].get("backoffCount", 0) == 0
    check_learned(lab, "ddp")


def test_a_launcher_starts_torchrun_on_both_nodes(lab: Lab, torch: dict[str, Any]) -> None:
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": {"train.py": TRAIN}}
    mounts = [*torch["container"]["volumeMounts"], {"name": "code", "mountPath": "/code"}]
    container = {**torch["container"], "volumeMounts": mounts}
    volumes = [*torch["volumes"], {"name": "code", "configMap": {"name": "code"}}]
    lab.apply(code, spread(colossalai("torchrun", ["/code/train.py"], container=container, volumes=volumes)))

    lab.await_phase("ColossalAIJob", "torchrun", "Succeeded")

    check_learned(lab, "torchrun")


def test_mpirun_starts_processes_on_both_nodes(lab: Lab) -> None:
    """X-28: Open MPI without sshd, two processes in each of two workers."""
    image = lab.load_environment("mpi")
    lab.apply(spread(mpi("ring", ["python3", "-c", MPI_SUM], image=image, processes=2)))

    lab.await_phase("MPIJob", "ring", "Succeeded")

    hosts = dict(SUMMED.findall(lab.logs("ring")))
    assert sorted(hosts) == ["0", "1", "2", "3"]
    assert [hosts[rank][-1] for rank in sorted(hosts)] == ["0", "0", "1", "1"]


@pytest.fixture(scope="module")
def board_image(lab: Lab) -> str:
    return lab.load_environment("tensorboard")


@pytest.fixture(scope="module")
def desk_image(lab: Lab) -> str:
    return lab.load_environment("jupyter")


def service(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "tensorstack.dev/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_a_tensorboard_is_opened_at_its_url(lab: Lab, namespace: str, board_image: str) -> None:
    """Where only confined pods are admitted, it is one of them."""
    logs = {"pvc": [{"name": "curves", "subPath": ["./log"]}]}
    board = service("TensorBoard", "curves", {"image": board_image, "logDir": logs})
    lab.apply(claim("curves"), board, namespace=namespace)

    status = lab.await_phase("TensorBoard", "curves", "Running", namespace)["status"]

    assert "TensorBoard" in lab.cluster.run("get", "--raw", status["url"])


def test_a_jupyterlab_is_opened_at_its_url(lab: Lab, namespace: str, desk_image: str) -> None:
    """It shows its page to those who have the token."""
    container = {
        "name": "notebook",
        "image": desk_image,
        "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {**RESOURCES, "limits": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": RESTRICTED,
    }
    spec = {"type": "jupyter", "template": {"spec": {"containers": [container]}}}
    lab.apply(service("Notebook", "desk", spec), namespace=namespace)

    status = lab.await_phase("Notebook", "desk", "Running", namespace)["status"]

    token = b64decode(lab.get("secret", status["tokenSecret"], namespace)["data"]["token"]).decode()
    assert "JupyterLab" in lab.cluster.run("get", "--raw", f"{status['url']}?token={token}")


def test_an_explorer_answers_at_its_url(lab: Lab, namespace: str) -> None:
    lab.apply(claim("files"), service("Explorer", "files", {"storageName": "files"}), namespace=namespace)

    status = lab.await_phase("Explorer", "files", "Running", namespace)["status"]

    assert lab.cluster.run("get", "--raw", f"{status['url'].rstrip('/')}/healthz").strip() == "{}"
