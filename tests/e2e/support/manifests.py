"""The YAML that the e2e tests hand in, as a person would write it."""

import json
from typing import Any


def claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def pytorch(name: str, *, command: list[str], workers: int = 2, **container: Any) -> dict[str, Any]:
    main = {"name": "pytorch", "image": "python:3.11", "command": command, **container}
    volumes = main.pop("volumes", [])
    replica = {
        "type": "worker",
        "replicas": workers,
        "restartPolicy": main.pop("restartPolicy", "Never"),
        "template": {"spec": {"containers": [main], "volumes": volumes}},
    }
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": name},
        "spec": {"replicaSpecs": [replica]},
    }


def pod(name: str, *containers: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"restartPolicy": "Never", "containers": [{"image": "python:3.11", **each} for each in containers]},
    }


def generic(name: str, *, command: list[str], replicas: int = 1) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "python:3.11", "command": command}]}}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "successRules": [{"worker": list(range(replicas))}],
            "failureRules": [{"worker": [0]}],
            "replicaSpecs": [{"type": "worker", "replicas": replicas, "template": template}],
        },
    }


def text(*objects: dict[str, Any]) -> str:
    """Write objects as one YAML stream (JSON is YAML)."""
    return "".join(f"---\n{json.dumps(each)}\n" for each in objects)
