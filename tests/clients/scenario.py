"""What every client does once: a pod and a job that run a real process, from making to removing."""

from typing import Any

GROUP, VERSION, PLURAL = "batch.tensorstack.dev", "v1beta1", "genericjobs"
LINES = [f"line {number}" for number in range(5)]
# It ends when it is told to, so that a test sees it running.
COUNTING = "import time\nfor n in range(5): print('line', n, flush=True)\ntime.sleep(1000)"


def pod(name: str) -> dict[str, Any]:
    """A pod whose process prints five lines and then waits."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "python:3.11", "command": ["python", "-c", COUNTING]}],
        },
    }


def job(name: str) -> dict[str, Any]:
    """A job of one worker that prints and succeeds."""
    main = {"name": "main", "image": "python:3.11", "command": ["python", "-c", "print('done')"]}
    worker = {"type": "worker", "replicas": 1, "template": {"spec": {"containers": [main]}}}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {"successRules": [{"worker": [0]}], "failureRules": [{"worker": [0]}], "replicaSpecs": [worker]},
    }
