"""Whoever is killed, and whenever: every file that was closed is in the bucket, byte by byte, once."""

import contextlib
import hashlib
import os
import random
import signal
from pathlib import Path

import pytest

from paceline.errors import HostError
from paceline.podtools.object_store import BucketConfig, open_bucket
from paceline.testing.embedded import Embedded, processes_with, wait_until
from paceline.testing.s3_server import KEY, KEY_ID, Front, in_front_of, s3_server
from tests.e2e.support.data_jobs import beside_pods, ended, job, secret, submit

pytestmark = pytest.mark.slow

SCRIPT = (Path(__file__).parents[1] / "jobs" / "closing.py").read_text()
KEYS = {"accessKeyId": KEY_ID, "accessKeySecret": KEY}
JOBS = 3


@pytest.fixture(scope="module")
def front(cluster: Embedded):
    try:
        with s3_server(host=beside_pods(cluster)) as server, in_front_of(server) as running:
            server.make_bucket("results")
            yield running
    except HostError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def ready(cluster: Embedded, front: Front):
    """A secret, and the script that the jobs run."""
    script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "closing"}, "data": {"closing.py": SCRIPT}}
    submit(cluster, secret("keys", **KEYS), script)
    return front


def closing(name: str, front: Front, seconds: float):
    made = job(
        name,
        "unused",
        restart={"policy": "OnFailure", "limit": 20},
        output={"bucket": {"url": "s3://results/faults", "endpoint": front.address, "secret": "keys"}},
    )
    template = made["spec"]["replicaSpecs"][0]["template"]["spec"]
    template["volumes"] = [{"name": "script", "configMap": {"name": "closing"}}]
    main = template["containers"][0]
    main["volumeMounts"] = [{"name": "script", "mountPath": "/script"}]
    main["command"] = ["python3", "/script/closing.py", str(seconds), f"{name}-trainer"]
    return made


def written(cluster: Embedded, names: list[str]) -> int:
    """Count the files that the jobs' commands have written so far."""
    folders = [each for name in names for each in cluster.settings.volumes.glob(f"default-{name}-*-output-*")]
    return sum(path.is_file() for folder in folders for path in folder.rglob("*"))


def wait_for(cluster: Embedded, names: list[str], more: int) -> None:
    """Wait until the jobs have written so many more files, or until none of their commands runs any more."""
    wanted = written(cluster, names) + more

    def has_come() -> bool:
        runs = any(processes_with(f"{name}-trainer") for name in names)
        return not runs or written(cluster, names) >= wanted

    wait_until("the jobs go on", has_come)


def kill(cluster: Embedded, front: Front, victim: str, names: list[str]) -> bool:
    """Kill one sort of process of the first job; say whether there was one."""
    if victim == "store":
        front.kill()
        wait_for(cluster, names, 20)
        front.start()
        return True
    if victim == "agent":
        found = {pid for pid in (cluster.agent_pid,) if pid is not None}
    else:
        word = f"{names[0]}-trainer" if victim == "trainer" else f"{names[0]}/worker-0"
        found = {pid for pid, _ in processes_with(word)}
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


def ledger(cluster: Embedded, name: str) -> dict[str, str]:
    """Read from the logs of all tries which files were closed, with their digests."""
    pods = cluster.kubectl("get", "pods", "-l", f"tensorstack.dev/owner-name={name},replica-type=worker", "-o", "name")
    found = {}
    for pod in pods.out.split():
        for line in cluster.kubectl("logs", pod, "-c", "main").out.splitlines():
            words = line.split()
            if words[:1] == ["closed"] and len(words) == 3:
                found[words[1]] = words[2]
    return found


def kept(front: Front, name: str) -> dict[str, str]:
    where = BucketConfig(url=f"s3://results/faults/{name}/worker-0", endpoint=front.server.address, secret=KEYS)
    there = open_bucket(where)
    names = [each for each, _ in there.objects() if not each.startswith(".paceline/")]
    assert len(names) == len(set(names))
    return {each: hashlib.sha256(there.get(each) or b"").hexdigest() for each in names}


def one_round(cluster: Embedded, front: Front, seed: int, kills: int) -> int:
    """Run a few jobs, kill at chance moments, and see what is in the bucket; give how many kills met somebody."""
    chance = random.Random(seed)
    names = [f"closing-{seed}-{index}" for index in range(JOBS)]
    submit(cluster, *(closing(name, front, seconds=3.0) for name in names))
    wait_until("files are written", lambda: written(cluster, names))
    met = 0
    for _ in range(kills):
        wait_for(cluster, names, chance.randint(0, 300 // kills))
        chosen = chance.sample(names, len(names))
        met += kill(cluster, front, chance.choice(["trainer", "sidecar", "agent", "store"]), chosen)
    for name in names:
        found = ended(cluster, name, seconds=240.0)
        assert found["phase"] == "Succeeded", (seed, found)
        closed, there = ledger(cluster, name), kept(front, name)
        assert closed, name
        assert {file: there.get(file) for file in closed} == closed, (seed, name)
    cluster.kubectl("delete", "genericjob", *names, "--wait=false")
    return met


def test_z2_closed_files_are_in_the_bucket_whoever_was_killed(cluster, ready):
    assert one_round(cluster, ready, seed=1, kills=4)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_z2_closed_files_are_in_the_bucket_after_fifty_kills(cluster, ready):
    met, seed = 0, 100
    while met < 50:
        seed += 1
        met += one_round(cluster, ready, seed=seed, kills=6)
