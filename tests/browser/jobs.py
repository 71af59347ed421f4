"""Small real jobs for the pages: they need nothing but Python."""

import json

SUCCEED = "for step in range(3): print(f'step {step + 1}/3 loss={1 / (step + 1):.3f}', flush=True)"
FAIL = "print('loading the data', flush=True)\nraise ModuleNotFoundError(\"No module named 'torchvision'\")"
RUN = (
    "import time\n"
    "for step in range(100000): "
    "print(f'epoch {step % 12 + 1}/12 loss={1 / (step + 1):.4f}', flush=True); time.sleep(0.5)"
)


def job(name, program, replicas=1, *, labels=None, resources=None):
    """Return the manifest of a job whose replicas run a Python program, once."""
    container = {"name": "pytorch", "image": "python:3", "command": ["python3", "-c", program]}
    if resources:
        container["resources"] = resources
    worker = {"type": "worker", "replicas": replicas, "restartPolicy": "Never"}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"replicaSpecs": [{**worker, "template": {"spec": {"containers": [container]}}}]},
    }


def application(name, template, values, *, is_suspended):
    """Return the manifest of an application from a template of version 0.1.0."""
    return {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"name": template, "version": "0.1.0"}, "values": values, "suspend": is_suspended},
    }


def create(cluster, *objects):
    """Create objects with kubectl."""
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    created = cluster.kubectl("create", "-f", "-", stdin=json.dumps(items))
    assert created.code == 0, created.err


def submit(cluster, *manifests):
    for manifest in manifests:
        ran = cluster.paceline("submit", "-", stdin=json.dumps(manifest))
        assert ran.code == 0, ran.err


def wait_for_end(cluster, *names):
    for name in names:
        cluster.paceline("wait", name)
