"""Pods of one shell script each: made with kubectl, waited for, and read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paceline.client.interface import Collection
from paceline.client.kubeconfig import load
from paceline.client.sync import DirectCluster
from paceline.errors import PacelineError
from paceline.testing.embedded import Embedded, wait_until
from tests.e2e.support.manifests import text


def shell(script: str, *, name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "python:3.11", "command": ["sh", "-c", script], **fields}


def create(cluster: Embedded, *objects: dict[str, Any]) -> None:
    made = cluster.kubectl("create", "-f", "-", stdin=text(*objects))
    assert made.code == 0, made.err


def make_pod(cluster: Embedded, name: str, *containers: dict[str, Any], **spec: Any) -> None:
    metadata = {"name": name, **spec.pop("metadata", {})}
    body = {"restartPolicy": "Never", "containers": list(containers), "terminationGracePeriodSeconds": 1, **spec}
    create(cluster, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body})


# Where the objects of a kind lie, by any of the names that kubectl knows it by; of each cluster that was asked.
PLACES: dict[Path, dict[str, Collection]] = {}


def show(cluster: Embedded, kind: str, name: str) -> dict[str, Any]:
    """Give what `kubectl get` would: who waits looks all the time, and a kubectl each time is dear."""
    try:
        with DirectCluster(load(cluster.kubeconfig, Path.read_bytes)) as api:
            if kind not in PLACES.get(cluster.home, {}):
                PLACES[cluster.home] = dict(places_in(api))
            found = api.get(PLACES[cluster.home][kind], "default", name)
    except PacelineError as error:
        raise AssertionError(f"{kind} {name}: {error}") from error
    found["metadata"].pop("managedFields", None)
    return found


def assert_no_bugs(cluster: Embedded) -> None:
    """Nothing that clients did was told of as a bug; asked in the end, when they have come, gone and broken off."""
    told = cluster.settings.log.read_text()
    assert "Traceback" not in told
    assert " ERROR " not in told


def places_in(api: DirectCluster) -> Iterator[tuple[str, Collection]]:
    """Ask for all kinds and their names; of two with one name the first that kubectl would find comes last."""
    groups = json.loads(b"".join(api.stream("/apis", {})))["groups"]
    for version in (*(each["preferredVersion"]["groupVersion"] for each in reversed(groups)), "v1"):
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for entry in json.loads(b"".join(api.stream(path, {})))["resources"]:
            if "/" not in entry["name"]:
                group, _, number = version.rpartition("/")
                where = Collection(group=group, version=number, plural=entry["name"], namespaced=entry["namespaced"])
                for name in (entry["name"], entry["singularName"], entry["kind"].lower(), *entry.get("shortNames", ())):
                    yield name, where


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
