"""Real frameworks on real nodes: PyTorch over both of them, and TensorBoard through the API server."""

import os
import re
import sysconfig
from typing import Any

import pytest

from tests.cluster.lab import IMAGE, Lab
from tests.cluster.manifests import claim, pytorch, spread

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


def of_the_machine(environment: str) -> dict[str, Any]:
    """Return the parts of a pod that has a virtual environment of this machine, and the libraries that it needs."""
    version = f"python{sysconfig.get_python_version()}"
    libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    folders = {"packages": (f"{environment}/lib/{version}/site-packages", "/packages"), "libraries": (libraries, "/so")}
    return {
        "container": {
            "env": [{"name": "PYTHONPATH", "value": "/packages"}, {"name": "LD_LIBRARY_PATH", "value": "/so"}],
            "volumeMounts": [
                {"name": name, "mountPath": path, "readOnly": True} for name, (_, path) in folders.items()
            ],
            "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "20m", "memory": "32Mi"}},
        },
        "volumes": [
            {"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, (path, _) in folders.items()
        ],
    }


def test_pytorch_learns_the_same_on_both_nodes(lab: Lab) -> None:
    """X-28: gloo, one rank on each node."""
    environment = os.environ.get("PACELINE_PYTORCH")
    if not environment:
        pytest.skip("there is no PyTorch: PACELINE_PYTORCH is the folder that `tools/setup torch` prints")
    lab.apply(spread(pytorch("ddp", TRAIN, pod=of_the_machine(environment))))

    done = lab.await_phase("PyTorchTrainingJob", "ddp", "Succeeded")

    assert {pod["spec"]["nodeName"] for pod in lab.pods("ddp")} == {"node-1", "node-2"}
    assert done["status"].get("backoffCount", 0) == 0
    learned = dict(LEARNED.findall(lab.logs("ddp")))
    assert (sorted(learned), len(set(learned.values()))) == (["0", "1"], 1)
    *weights, bias = (float.fromhex(word) for word in learned["0"].split())
    assert [round(weight, 2) for weight in weights] == [1.0] * 4
    assert round(bias, 2) == 0.0


@pytest.mark.parametrize("level", ["privileged", "restricted"])
def test_a_tensorboard_is_opened_at_its_url(lab: Lab, level: str) -> None:
    """Where only confined pods are admitted, it is one of them."""
    if not os.environ.get("PACELINE_TENSORBOARD"):
        pytest.skip("there is no TensorBoard: PACELINE_TENSORBOARD is the folder that `tools/setup tensorboard` prints")
    namespace = f"boards-{level}"
    labels = {"pod-security.kubernetes.io/enforce": level}
    lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}})
    lab.apply(claim("curves"), namespace=namespace)
    lab.apply(
        {
            "apiVersion": "tensorstack.dev/v1beta1",
            "kind": "TensorBoard",
            "metadata": {"name": "curves"},
            "spec": {"image": IMAGE, "logDir": {"pvc": [{"name": "curves", "subPath": ["./log"]}]}},
        },
        namespace=namespace,
    )

    lab.await_phase("TensorBoard", "curves", "Running", namespace)

    url = lab.get("TensorBoard", "curves", namespace)["status"]["url"]
    assert "TensorBoard" in lab.cluster.run("get", "--raw", url)
