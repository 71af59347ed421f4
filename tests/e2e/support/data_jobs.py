"""Jobs whose code, data and results are elsewhere, and the servers where they are."""

import json
from pathlib import Path
from typing import Any

from paceline.host.pod_bridge import stored_choice
from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import text


def beside_pods(cluster: Embedded) -> str:
    """Give the address of this machine at which its pods reach it, and nobody else does."""
    network = stored_choice(cluster.settings)
    return (network and network.gateway) or "127.0.0.1"


def job(name: str, command: str, **spec: Any) -> dict[str, Any]:
    """Write a job whose workers run one shell command each."""
    workers = spec.pop("workers", 1)
    container = {"name": "main", "image": spec.pop("image", "python:3.11"), "command": ["sh", "-c", command]}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 5}}
    never = {"policy": "Never", "limit": 0}
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": {"name": name},
        "spec": {
            "successRules": [{"worker": list(range(workers))}],
            "failureRules": [{"worker": [index]} for index in range(workers)],
            "cleanUpPolicy": "Unfinished",
            "replicaSpecs": [
                {
                    "type": "worker",
                    "replicas": workers,
                    "template": template,
                    "restartPolicy": spec.pop("restart", never),
                }
            ],
            **spec,
        },
    }


def secret(name: str, **values: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def submit(cluster: Embedded, *objects: dict[str, Any]) -> None:
    made = cluster.kubectl("create", "-f", "-", stdin=text(*objects))
    assert made.code == 0, made.err


def status(cluster: Embedded, name: str) -> dict[str, Any]:
    shown = cluster.kubectl("get", "genericjob", name, "-o", "json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out).get("status") or {}
    return found


def ended(cluster: Embedded, name: str, seconds: float = 120.0) -> dict[str, Any]:
    """Wait for the end of a job, and give its status."""

    def look() -> dict[str, Any]:
        found = status(cluster, name)
        return found if found.get("phase") in {"Succeeded", "Failed"} else {}

    return wait_until(f"job {name} ends", look, seconds)


def stages(found: dict[str, Any], index: int = 0) -> dict[str, dict[str, Any]]:
    """Give the stages of a replica by their names."""
    row = found["tasks"][0]["replicas"][index]
    return {each["name"].removeprefix("paceline-"): each for each in row.get("stages") or ()}


def log(cluster: Embedded, found: dict[str, Any], container: str = "main", index: int = 0) -> str:
    return cluster.kubectl("logs", found["tasks"][0]["replicas"][index]["name"], "-c", container).out


def processes_that_show(word: str) -> list[str]:
    """Find processes of the whole machine that have a text in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        for file in ("cmdline", "environ"):
            try:
                if entry.name.isdigit() and word.encode() in (entry / file).read_bytes():
                    found.append(f"{entry.name}/{file}")
            except OSError:
                continue
    return found
