"""Real PyTorch trainings of several processes: plain, by torchrun in one pod and in two, and by RPC."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from paceline.testing.embedded import Embedded, embedded
from tests.e2e.support.frameworks import environment
from tests.e2e.support.shell_pods import show
from tests.e2e.support.torch_gates import STEPS, claimed, example, losses, submitted

TELL = Path(__file__).parents[1] / "jobs" / "torch_tell.py"
SERVER = Path(__file__).parents[3] / "examples" / "08-parameter-server"
TOLD = r"rank (\d) of 4 at \S+-worker-(\d):(\S) learned (\w+)"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Pods, torchrun's processes in each (or none by torchrun), and which pod and process of it the ranks may be.
SHAPES = {
    "four pods": (4, None, [("0", "-"), ("1", "-"), ("2", "-"), ("3", "-")]),
    "one pod of four by torchrun": (1, 4, [("0", "0"), ("0", "1"), ("0", "2"), ("0", "3")]),
    "two pods of two by torchrun": (2, 2, [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"pytorch/pytorch*={environment('pytorch')}") as running:
        yield running


@pytest.mark.parametrize(("pods", "processes", "expected"), SHAPES.values(), ids=SHAPES)
def test_four_processes_learn_the_same_in(
    cluster: Embedded, pods: int, processes: int | None, expected: list[tuple[str, str]]
) -> None:
    """T-03, X-02"""
    job = example("job.yaml")
    job["metadata"]["name"] = f"four-in-{pods}"
    (replica,) = job["spec"]["replicaSpecs"]
    replica["replicas"] = pods
    replica["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] = "3Gi"
    job["spec"]["torchrunConfig"] = {"enabled": processes is not None, "procPerNode": processes or 1}
    with submitted(cluster, job, script=TELL) as training:
        over = training.ends()

    said = cluster.paceline("logs", f"four-in-{pods}", "--all").out
    told = re.findall(TOLD, said)
    assert [rank for rank, _, _, _ in sorted(told)] == ["0", "1", "2", "3"], said
    # Which pod has which ranks is torchrun's to choose.
    assert sorted((pod, process) for _, pod, process, _ in told) == expected
    assert len({learned for _, _, _, learned in told}) == 1
    curve = losses(said)
    assert list(curve) == list(range(1, STEPS + 1))
    assert curve[STEPS] < curve[1] / 4
    assert (over["attempt"], over["backoffCount"]) == (0, 0)


def test_workers_train_what_a_parameter_server_holds(cluster: Embedded) -> None:
    shutil.copy(SERVER / "train.py", claimed(cluster, yaml.safe_load((SERVER / "claim.yaml").read_text())))

    ran = cluster.paceline("run", str(SERVER / "job.yaml"), seconds=300)

    assert ran.code == 0, ran.out + ran.err
    said = cluster.paceline("logs", "parameter-server", "--all").out
    (loss,) = re.findall(r"ps-0 +│ 200 steps of 2 workers  loss ([\d.]+)", said)
    firsts = re.findall(r"worker-(\d) │ step 1/100  loss ([\d.]+)", said)
    assert sorted(worker for worker, _ in firsts) == ["0", "1"]
    # The worker that comes later begins with what the other one has learned meanwhile.
    assert float(loss) < max(float(first) for _, first in firsts) / 4
    mine = "-ltensorstack.dev/owner-name=parameter-server"
    pods = json.loads(cluster.kubectl("get", "pods", mine, "-o", "json").out)["items"]
    leads = {each["metadata"]["labels"].get("job-role"): each["metadata"]["name"] for each in pods}
    assert leads["master"].endswith("-ps-0")


LATE = """\
import os, time
import torch.distributed as dist
rank = int(os.environ["RANK"])
if rank == 0:
    time.sleep(10)
dist.init_process_group("gloo")
dist.barrier()
print("all met", flush=True)
"""


def test_workers_wait_for_a_master_that_comes_ten_seconds_late(cluster: Embedded, tmp_path: Path) -> None:
    """X-03"""
    job = example("job.yaml")
    job["metadata"]["name"] = "late"
    spec = job["spec"]["replicaSpecs"][0]
    spec["replicas"] = 2
    (container,) = spec["template"]["spec"]["containers"]
    container |= {"command": ["python3", "-c", LATE], "args": [], "volumeMounts": []}
    spec["template"]["spec"]["volumes"] = []
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))

    ran = cluster.paceline("run", str(file), seconds=300)

    assert ran.code == 0, ran.out + ran.err
    assert cluster.paceline("logs", "late", "--all").out.count("all met") == 2
    assert show(cluster, "pytorchtrainingjob", "late")["status"]["backoffCount"] == 0
