"""Bad input: a clear message with path, value and suggestion; exit code 2; a 4xx; nothing stored, nothing started."""

import json
import ssl
import urllib.error
import urllib.request
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from paceline.testing.embedded import Embedded
from tests.e2e.support.manifests import pytorch, text

GOOD = pytorch("fine", command=["python", "-V"])
JOBS = "/apis/batch.tensorstack.dev/v1beta1/namespaces/default/pytorchtrainingjobs"


def changed(change: Any) -> dict[str, Any]:
    job = deepcopy(GOOD)
    change(job)
    return job


def container(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    return found


def replica(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["spec"]["replicaSpecs"][0]
    return found


def with_missing_claim(job: dict[str, Any]) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "digitz"}}
    replica(job)["template"]["spec"]["volumes"] = [volume]
    container(job)["volumeMounts"] = [{"name": "data", "mountPath": "/mnt"}]


# What is wrong → the object, and what the message must name.
OBJECTS = {
    "an unknown field is named with the right one": (
        changed(lambda job: container(job).update(commands=container(job).pop("command"))),
        ["spec.replicaSpecs[0].template.spec.containers[0].commands", '"command"'],
    ),
    "a wrong type is named with its path": (
        changed(lambda job: replica(job).update(replicas="two")),
        ["spec.replicaSpecs[0].replicas", "string", "integer"],
    ),
    "no replicas at all are refused": (
        changed(lambda job: replica(job).update(replicas=0)),
        ["spec.replicaSpecs[0].replicas", "0", "1"],
    ),
    "a claim that does not exist is named": (
        changed(with_missing_claim),
        ["persistentVolumeClaim.claimName", "digitz"],
    ),
    "a name that is not a DNS label is refused": (
        changed(lambda job: job["metadata"].update(name="My_Job")),
        ["metadata.name", "My_Job"],
    ),
}


def names(cluster: Embedded) -> list[str]:
    listed = json.loads(cluster.kubectl("get", "pj,gj,pods", "-A", "-o", "json").out)
    return [item["metadata"]["name"] for item in listed["items"]]


@pytest.mark.parametrize(("job", "named"), OBJECTS.values(), ids=OBJECTS)
def test_the_command_refuses_an_object(
    cluster: Embedded, tmp_path: Path, job: dict[str, Any], named: list[str]
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(text(job))

    ran = cluster.paceline("run", str(path))

    assert ran.code == 2, ran.out + ran.err
    for word in named:
        assert word in ran.err
    assert "Traceback" not in ran.err
    assert names(cluster) == []


# The API server lets a job wait for its claim; only the command, which sees all objects, refuses it.
REFUSED = {name: row for name, row in OBJECTS.items() if "claim" not in name}


@pytest.mark.parametrize(("job", "named"), REFUSED.values(), ids=REFUSED)
def test_the_api_answers_4xx(cluster: Embedded, job: dict[str, Any], named: list[str]) -> None:
    code, body = post(cluster, json.dumps(job).encode())

    assert 400 <= code < 500, body
    for word in named:
        assert word in body.replace("\\", "")
    assert names(cluster) == []


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(9)
)
DOCUMENTS = {
    "a list is not an object": ("- one\n- two\n", ["list", "mapping"]),
    "bare text is not an object": ("just words\n", ["mapping"]),
    "broken YAML names its line": ("kind: X\n  bad: [1\n", ["line"]),
    "two megabytes are too much": ("x: " + "y" * 2_000_000, ["MiB"]),
    "an alias bomb does not go off": (BOMB, ["alias"]),
    "the same key twice is named": ("kind: A\nkind: B\n", ["kind", "line 2"]),
    "an unknown kind is named": (
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchJob\nmetadata: {name: x}\n",
        ["PyTorchJob", "PyTorchTrainingJob"],
    ),
}


@pytest.mark.parametrize(("document", "named"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_command_refuses_a_document(cluster: Embedded, tmp_path: Path, document: str, named: list[str]) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(document)

    ran = cluster.paceline("run", str(path), seconds=20)

    assert ran.code == 2, ran.out + ran.err
    for word in named:
        assert word in ran.err
    assert "Traceback" not in ran.err
    assert names(cluster) == []


HOSTILE = {
    "a body that is not JSON": b"{",
    "a body that is a list": b"[]",
    "more than the server takes": b'{"x": "' + b"y" * 4_000_000 + b'"}',
    "nesting without end": b"[" * 200_000 + b"]" * 200_000,
    "not a number": b'{"apiVersion": "v1", "kind": "Pod", "x": NaN}',
    "text that is not UTF-8": b'{"kind": "\xff\xfe"}',
    "half a surrogate": b'{"kind": "\\ud800"}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_the_api_answers_hostile_bodies_with_4xx(cluster: Embedded, body: bytes) -> None:
    code, answer = post(cluster, body)

    assert 400 <= code < 500, answer
    assert json.loads(answer)["kind"] == "Status"


def post(cluster: Embedded, body: bytes) -> tuple[int, str]:
    """Send a body as a client that validates nothing."""
    config = json.loads(cluster.kubeconfig.read_text())
    context = ssl.create_default_context(cafile=str(cluster.home / "keys" / "ca.crt"))
    request = urllib.request.Request(
        config["clusters"][0]["cluster"]["server"] + JOBS + "?fieldValidation=Strict",
        data=body,
        headers={
            "Authorization": f"Bearer {config['users'][0]['user']['token']}",
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
