"""What `paceline kube controller` costs beside very many pods: memory, start, idle requests, refused objects.

    .venv/bin/python -m bench.scale [--own N] [--foreign N] [--idle SECONDS] [--refused SECONDS]

The server is a real kube-apiserver. One job of four replicas is brought to run; its copies and other people's pods are
then written straight into etcd, because 40,000 requests would only heat the machine. Requests are counted by the
server's audit log. Memory and requests do not depend on other load on the machine, seconds do: CPU stands beside them.
"""

import argparse
import asyncio
import base64
import contextlib
import copy
import functools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import median

import uvloop

from bench.control import JOBS, cpu_seconds, idle, job, prepared
from paceline.apimachinery.meta import key_of, name_of
from paceline.client.http.cluster import HttpCluster
from paceline.client.interface import NAMESPACES, PODS, SERVICES, Collection, PatchType, Select
from paceline.client.kubeconfig import load
from paceline.controllers.job_records import RECORDS
from paceline.host.effects import RealChance
from paceline.kinds import registry
from paceline.plan.job_records import record_name
from paceline.testing.real.kube import ALONE, find_assets, real_kube

PACELINE = str(Path(sys.executable).with_name("paceline"))
REPLICAS = 4
TEMPLATE = "job-000000"
QUOTAS = Collection(group="", version="v1", plural="resourcequotas")
BOARDS = Collection(group="tensorstack.dev", version="v1beta1", plural="tensorboards")
NOTEBOOKS = Collection(group="tensorstack.dev", version="v1beta1", plural="notebooks")
REFUSED = "refused"
# etcd takes at most 128 operations at once.
BATCH = 100
SCRAPES = 500
START_SECONDS, SETTLE_SECONDS = 600.0, 10.0
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
WRITES = ("create", "update", "patch", "delete")
TIME = "2030-01-01T00:00:00Z"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--own", type=int, default=10_000, help="pods of our own jobs")
    parser.add_argument("--foreign", type=int, default=30_000, help="pods of others")
    parser.add_argument("--idle", type=float, default=60.0, help="how long requests are counted when nothing happens")
    parser.add_argument("--refused", type=float, default=120.0, help="and while refused objects are there")
    parser.add_argument("--starts", type=int, default=3)
    chosen = parser.parse_args()
    assets = find_assets()
    if assets is None:
        sys.exit("there is no kube-apiserver here; `make kube` builds one")
    with tempfile.TemporaryDirectory(prefix="pl-") as home:
        policy, log = Path(home) / "policy.yaml", Path(home) / "audit.log"
        policy.write_text(json.dumps(POLICY))
        flags = (*ALONE, f"--audit-policy-file={policy}", f"--audit-log-path={log}")
        with real_kube(assets, flags) as kube:
            uvloop.run(measured(kube, log, chosen))


async def measured(kube, log, chosen):
    async with HttpCluster(load(kube.kubeconfig, Path.read_bytes), RealChance()) as api:
        await prepared(api)
        with controller(kube) as one:
            await api.create(JOBS, job(TEMPLATE, REPLICAS))
            await is_running(api)
            show("nothing but one job", "memory, MB: Rss (peak)", memory(one.pid))
        await fill(kube, api, chosen)
        what = f"{chosen.own} own and {chosen.foreign} foreign pods"
        for number in range(chosen.starts):
            with controller(kube) as one:
                show(what, "start to leading, s (CPU)", f"{one.leading[0]:.1f} ({one.leading[1]:.2f})")
                show(what, "start to filled caches, s (CPU)", f"{one.synced[0]:.1f} ({one.synced[1]:.2f})")
                show(what, "memory then, MB: Rss (peak)", memory(one.pid))
                await one.has_looked()
                show(what, "memory after all was looked at, MB: Rss (peak)", memory(one.pid))
                if number == chosen.starts - 1:
                    await rest(api, log, chosen, what, one)


async def rest(api, log, chosen, what, one):
    """Count requests when nothing happens, and then while refused objects are there."""
    since, before = audited(log), cpu_seconds(one.pid)
    await asyncio.sleep(chosen.idle)
    counts = audited(log) - since
    show(what, f"idle: requests per second ({said(counts)})", f"{counts.total() / chosen.idle:.2f}")
    show(what, "idle: share of a core", f"{(cpu_seconds(one.pid) - before) / chosen.idle:.4f}")
    times, before = [], cpu_seconds(one.pid)
    for _ in range(SCRAPES):
        began = time.perf_counter()
        metrics(one.port)
        times.append((time.perf_counter() - began) * 1000)
    spent = (cpu_seconds(one.pid) - before) / SCRAPES * 1000
    show(
        what,
        "GET /metrics, ms: median, p99 (CPU of each)",
        f"{median(times):.1f}, {sorted(times)[-SCRAPES // 100]:.1f} ({spent:.1f})",
    )
    objects = await refuse(api)
    await asyncio.sleep(SETTLE_SECONDS)
    for plural, obj in objects:
        status = (await api.get(plural, *key_of(obj))).get("status") or {}
        print(f"  {name_of(obj)}: {status.get('phase')}; {json.dumps(status.get('waiting') or status)[:200]}")
    since = audited(log)
    await asyncio.sleep(chosen.refused)
    writes = Counter({key: n for key, n in (audited(log) - since).items() if key[0] in WRITES and key[1] != "leases"})
    per_half_minute = writes.total() / len(objects) / (chosen.refused / 30)
    show(what, f"refused: writes per 30 s and object ({said(writes)})", f"{per_half_minute:.2f}")
    show(what, "memory at the end, MB: Rss (peak)", memory(one.pid))


@dataclass
class Controller:
    """A running `paceline kube controller`, and how long it took, on the clock and in CPU."""

    pid: int
    port: int
    leading: tuple = ()
    synced: tuple = ()

    async def has_looked(self):
        """Wait until all jobs were looked at."""
        while 'workqueue_depth{name="jobs"} 0' not in metrics(self.port):  # noqa: ASYNC110 - only its metrics tell
            await asyncio.sleep(1.0)
        await idle(self.pid)


@contextlib.contextmanager
def controller(kube):
    """Run the command that people type, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [PACELINE, "kube", "controller", "--kubeconfig", str(kube.kubeconfig)]
    command += ["--metrics-bind-address", f"127.0.0.1:{port}"]
    with tempfile.NamedTemporaryFile(prefix="pl-") as log:
        began = time.monotonic()
        with subprocess.Popen(command, stderr=log) as process:
            try:
                one = Controller(pid=process.pid, port=port)
                one.leading = reached(
                    one, began, lambda: 'leader_election_master_status{name="paceline-controller"} 1' in metrics(port)
                )
                # It says so once all caches are filled.
                one.synced = reached(one, began, lambda: "leading as" in Path(log.name).read_text())
                yield one
            finally:
                if process.poll() is not None:
                    print(Path(log.name).read_text()[-5000:])
                process.terminate()


def reached(one, began, holds):
    """Wait until something holds; give the time since the start, and the CPU."""
    while not holds():
        if time.monotonic() - began > START_SECONDS:
            sys.exit("the controller does not lead")
        time.sleep(0.02)
    return time.monotonic() - began, cpu_seconds(one.pid)


def metrics(port):
    """Return the metrics of the controller; nothing as long as it does not answer."""
    with contextlib.suppress(OSError, HTTPException):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return text
    return ""


async def is_running(api):
    """Have the pods of the one job run, as a kubelet would say it, and wait until the job says so, too."""
    while True:
        await asyncio.sleep(1.0)
        pods = (await api.list(PODS, Select(namespace="default"))).items
        for pod in pods:
            if not (pod.get("status") or {}).get("containerStatuses"):
                await api.patch(PODS, key_of(pod), {"status": running(pod)}, kind=PatchType.MERGE, subresource="status")
        if (await api.get(JOBS, "default", TEMPLATE)).get("status", {}).get("phase") == "Running":
            return


def running(pod):
    """Return the status of a pod that runs, with all that a kubelet writes."""
    container = {
        "name": pod["spec"]["containers"][0]["name"],
        "image": "docker.io/library/python:3",
        "imageID": f"docker.io/library/python@sha256:{'0' * 64}",
        "containerID": f"containerd://{uuid.uuid4().hex * 2}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": TIME}},
    }
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "startTime": TIME,
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}],
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": TIME} for kind in kinds],
        "containerStatuses": [container],
    }


async def fill(kube, api, chosen):
    """Write copies of the one job with its service and pods, and other people's pods, straight into etcd."""
    made = await api.get(JOBS, "default", TEMPLATE)
    services = (await api.list(SERVICES, Select(namespace="default"))).items
    pods = (await api.list(PODS, Select(namespace="default"))).items
    family = [(f"/registry/{JOBS.group}/{JOBS.plural}", made)]
    family += [("/registry/services/specs", obj) for obj in services if obj["metadata"].get("ownerReferences")]
    family += [("/registry/pods", obj) for obj in pods]
    family += [(f"/registry/{RECORDS.group}/{RECORDS.plural}", obj) for obj in (await api.list(RECORDS)).items]
    foreign = copy.deepcopy(pods[0])
    foreign["metadata"] |= {"name": TEMPLATE, "labels": {"app": "web"}, "ownerReferences": []}
    values = [*copies(family, "job", chosen.own // REPLICAS)]
    values += copies([("/registry/pods", foreign)], "web", chosen.foreign)
    started = time.monotonic()
    connection = HTTPConnection(kube.etcd.removeprefix("http://"))
    for start in range(0, len(values), BATCH):
        puts = [{"requestPut": {"key": key, "value": value}} for key, value in values[start : start + BATCH]]
        connection.request("POST", "/v3/kv/txn", json.dumps({"success": puts}))
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
    print(f"{len(values)} objects in {time.monotonic() - started:.0f} s", flush=True)


def copies(family, stem, count):
    """Yield keys and values of copies of a family of objects, each with names and uids of its own, as etcd has them."""
    texts = []
    for prefix, obj in family:
        stored = copy.deepcopy(obj)
        del stored["metadata"]["resourceVersion"]
        texts.append((prefix, json.dumps(stored)))
    uids = sorted(
        {uid for _, text in texts for uid in re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text)}
    )
    for number in range(1, count + 1):
        # The names of pods have a hash of their job's uid.
        changes = {uid: str(uuid.uuid4()) for uid in uids}
        old, name = family[0][1], f"{stem}-{number:06}"
        new = {"kind": old["kind"], "metadata": {"name": name, "uid": changes[old["metadata"]["uid"]]}}
        changes |= {registry.stem_of(old): registry.stem_of(new), record_name(old): record_name(new), TEMPLATE: name}
        for prefix, text in texts:
            copied = functools.reduce(lambda so_far, change: so_far.replace(*change), changes.items(), text)
            yield encoded(f"{prefix}/{'/'.join(key_of(json.loads(copied)))}"), encoded(copied)


def encoded(text):
    return base64.b64encode(text.encode()).decode()


async def refuse(api):
    """Create a job, a TensorBoard and a notebook whose pods a quota refuses."""
    await api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": REFUSED}})
    quota = {"metadata": {"name": "none", "namespace": REFUSED}, "spec": {"hard": {"pods": "0"}}}
    await api.create(QUOTAS, {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    # What a controller that is not here would write.
    used = {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}
    await api.patch(QUOTAS, (REFUSED, "none"), used, subresource="status")
    await asyncio.sleep(SETTLE_SECONDS)
    log_dir = {"s3": {"secretRef": {"name": "keys"}, "uri": ["s3://bucket/log"]}}
    main = {"name": "notebook", "image": "python:3"}
    notebook = {"type": "jupyter", "template": {"spec": {"containers": [main]}}}
    objects = [
        (JOBS, job("rejected", REPLICAS)),
        (BOARDS, {"kind": "TensorBoard", "metadata": {"name": "board"}, "spec": {"logDir": log_dir}}),
        (NOTEBOOKS, {"kind": "Notebook", "metadata": {"name": "notebook"}, "spec": notebook}),
    ]
    made = []
    for where, obj in objects:
        full = {"apiVersion": f"{where.group}/{where.version}", **obj}
        full["metadata"]["namespace"] = REFUSED
        made.append((where, await api.create(where, full)))
    return made


def audited(log):
    """Count the requests of the controller so far by verb and resource, each once."""
    counts, known = Counter(), set()
    with log.open() as lines:
        for line in lines:
            event = json.loads(line)
            if event["auditID"] not in known and event.get("userAgent") == "paceline":
                known.add(event["auditID"])
                place = event.get("objectRef") or {}
                counts[event["verb"], place.get("resource", event["requestURI"])] += 1
    return counts


def said(counts):
    return ", ".join(f"{verb} {resource} {count}" for (verb, resource), count in counts.most_common())


def memory(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    now, peak = (int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024 for name in ("VmRSS", "VmHWM"))
    return f"{now:.0f} ({peak:.0f})"


def show(where, what, value):
    print(f"{where:40}  {what:100} {value:>12}  (load {os.getloadavg()[0]:.1f})", flush=True)


if __name__ == "__main__":
    sys.exit(main())
