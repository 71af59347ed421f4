"""Pods, tries and moments for the tests of the node."""

from datetime import UTC, datetime, timedelta

from paceline.effects import ProcessHandle
from paceline.node.host_info import Host
from paceline.node.lifecycle.view import ContainerAttempt, ExitRecord, PodView, StartRecord

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
BOOT = "boot-1"
UID = "8d3f2a6e-1c1b-4b57-9c67-2f6f6d3f3b11"

HOST = Host(
    name="box",
    is_root=True,
    uid=0,
    gid=0,
    cpus=2,
    memory_bytes=8 * 2**30,
    links=(("/bin", "usr/bin"),),
    folders=("/usr",),
    python_bin="/venv/bin",
    prefixes=("/venv", "/python"),
)


def container(name="main", **fields):
    return {"name": name, "image": "python:3.11", "command": ["true"], **fields}


def pod(*containers, policy="Never", meta=None, status=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "team", "name": "demo", "uid": UID, "resourceVersion": "7", **(meta or {})},
        "spec": {"nodeName": "box", "restartPolicy": policy, "containers": list(containers) or [container()], **spec},
        "status": status or {},
    }


def deleted(*containers, grace=30, **fields):
    meta = {"deletionTimestamp": "2030-01-01T12:00:30Z", "deletionGracePeriodSeconds": grace}
    return pod(*containers, meta=meta, **fields)


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def started(seconds=60, boot=BOOT):
    return StartRecord(identity=ProcessHandle(pid=42, start_ticks=1, boot_id=boot), at=ago(seconds), environment="host")


def ended(code=0, seconds=0, *, ran=30, reason=""):
    return ExitRecord(
        exit_code=code,
        reason=reason or ("Completed" if code == 0 else "Error"),
        started_at=ago(seconds + ran),
        finished_at=ago(seconds),
    )


def running(restarts=0, asked=None):
    return ContainerAttempt(
        restarts=restarts, started=started(), has_shim=True, stop_requested_at=None if asked is None else ago(asked)
    )


def done(code=0, seconds=0, *, restarts=0, ran=30):
    return ContainerAttempt(restarts=restarts, started=started(), ended=ended(code, seconds, ran=ran))


def lost(boot=BOOT):
    return ContainerAttempt(restarts=0, started=started(boot=boot))


def view(pod, attempts=None, *, previous=None, problems=None, health=None):
    return PodView(
        pod=pod,
        attempts=attempts or {},
        previous=previous or {},
        problems=problems or {},
        health=health or {},
        boot_id=BOOT,
        address="127.200.0.1",
        host_address="127.0.0.1",
    )
