"""Pods of one shell script each: made with kubectl, waited for, and read."""

import json
from typing import Any

from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.manifests import text


def shell(script: str, *, name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "python:3.11", "command": ["sh", "-c", script], **fields}


def create(cluster: Embedded, *objects: dict[str, Any]) -> None:
    made = cluster.kubectl("create", "-f", "-", stdin=text(*objects))
    assert made.code == 0, made.err


def make_pod(cluster: Embedded, name: str, *containers: dict[str, Any], **spec: Any) -> None:
    metadata = {"name": name, **spec.pop("metadata", {})}
    body = {"restartPolicy": "Never", "containers": list(containers), "terminationGracePeriodSeconds": 1, **spec}
    create(cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})


def show(cluster: Embedded, kind: str, name: str) -> dict[str, Any]:
    shown = cluster.kubectl("get", kind, name, "-o", "json")
    assert shown.code == 0, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def assert_no_bugs(cluster: Embedded) -> None:
    """Nothing that clients did was told of as a bug; asked in the end, when they have come, gone and broken off."""
    told = cluster.settings.log.read_text()
    assert "Traceback" not in told
    assert " ERROR " not in told


def phase(cluster: Embedded, kind: str, name: str) -> str:
    return str((show(cluster, kind, name).get("status") or {}).get("phase"))


def ended(cluster: Embedded, name: str) -> str:
    def look() -> str:
        found = phase(cluster, "pod", name)
        return found if found in {"Succeeded", "Failed"} else ""

    return wait_until(f"pod {name} ends", look)


def run_pod(cluster: Embedded, name: str, *containers: dict[str, Any], **spec: Any) -> list[str]:
    """Run a pod to its good end, and give the lines that its first container wrote."""
    make_pod(cluster, name, *containers, **spec)
    result = ended(cluster, name)
    said = cluster.kubectl("logs", name, "-c", str(containers[0]["name"])).out
    assert result == "Succeeded", said
    return said.splitlines()


def waits_for(cluster: Embedded, name: str, reason: str) -> str:
    """Wait until a pod's first container waits with a reason; give what it says."""

    def look() -> str:
        for each in show(cluster, "pod", name).get("status", {}).get("containerStatuses") or ():
            waiting = each["state"].get("waiting") or {}
            if waiting.get("reason") == reason:
                return str(waiting.get("message"))
        return ""

    return wait_until(f"pod {name} waits with {reason}", look)


def lacks(cluster: Embedded, name: str, reason: str) -> str:
    """Wait until something keeps all containers of a pod from starting; give what it says."""

    def look() -> str:
        conditions = show(cluster, "pod", name).get("status", {}).get("conditions") or ()
        return next((str(each["message"]) for each in conditions if each.get("reason") == reason), "")

    return wait_until(f"pod {name} lacks something: {reason}", look)


def told(cluster: Embedded, name: str, reason: str) -> str:
    """Wait for an event about an object; give what it says."""

    def look() -> str:
        fields = f"involvedObject.name={name},reason={reason}"
        shown = cluster.kubectl("get", "events", "--field-selector", fields, "-o", "json")
        return next((str(each["message"]) for each in json.loads(shown.out)["items"]), "")

    return wait_until(f"{name} is told of {reason}", look)
