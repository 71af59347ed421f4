"""Somebody sets the machine's clock while jobs run: nothing ends early, nothing is lost, and nobody is refused."""

import json
import os
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from paceline.node.logs.archive import ABOUT, CONTAINERS
from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.e2e.network.test_accounts import ask
from tests.e2e.support.clock_shim import Shift, build_shift
from tests.e2e.support.manifests import generic
from tests.e2e.support.shell_pods import assert_no_bugs, create, make_pod, phase, run_pod, shell, show

pytestmark = pytest.mark.slow

HOUR, DAY = 3600, 86400
JUMPS = {
    "2 hours ahead": 2 * HOUR,
    "2 hours behind": -2 * HOUR,
    "2 days ahead": 2 * DAY,
    "2 days behind": -2 * DAY,
    "40 days ahead": 40 * DAY,
    "10 years ahead": 3653 * DAY,
}
# During these the control process is killed and started again, in `make test`; in `make soak` during all of them.
KILLED = ("2 hours ahead", "2 days behind")
ROUNDS = 5
# How long everything may take to work, whatever the clock says.
SOON_SECONDS = 60.0
GONE = ("gone-0", "gone-1", "gone-2")
# Asks the API with the pod's token, again and again, and prints the answer's code.
CALLER = """
import ssl, sys, time, urllib.error, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount"
trust = ssl.create_default_context(cafile=place + "/ca.crt")
while True:
    headers = {"Authorization": "Bearer " + open(place + "/token").read()}
    try:
        path = "https://kubernetes.default.svc:PORT/api/v1/namespaces/default/pods"
        wanted = urllib.request.Request(path, headers=headers)
        print(urllib.request.urlopen(wanted, context=trust).status, flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
    except OSError as error:
        print("unreached", flush=True)
    time.sleep(0.1)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A cluster on a machine whose clock can be set, and what runs there."""

    cluster: Embedded
    shift: Shift
    # Uids of what must stay.
    uids: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    shift = build_shift(tmp_path_factory.mktemp("shift"))
    with embedded(env=shift.env) as cluster:
        site = Site(cluster=cluster, shift=shift)
        _fill(site)
        yield site
        assert_no_bugs(cluster)


def _fill(site: Site) -> None:
    """Have one of everything that time ends."""
    cluster = site.cluster
    limits = {"activeDeadlineSeconds": HOUR, "stallSeconds": HOUR, "startingDeadlineSeconds": HOUR}
    huge = _job("pending", ["true"], **limits)
    huge["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = {
        "limits": {"nvidia.com/gpu": 99}
    }
    create(
        cluster,
        _job("running", ["sleep", "1000"], **limits),
        _job("finished", ["true"], ttlSecondsAfterFinished=HOUR),
        huge,
    )
    port = json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    caller = {"name": "main", "image": "python:3.11", "command": ["python3", "-c", CALLER.replace("PORT", port)]}
    make_pod(cluster, "caller", caller, activeDeadlineSeconds=HOUR)
    for name in GONE:
        _pass_by(site, name)
    _reach(site, "running", "Running")
    _reach(site, "finished", "Succeeded")
    wait_until("the pod is answered", lambda: "200" in _log(site, "caller"))
    for kind, name in (
        ("genericjob", "running"),
        ("genericjob", "finished"),
        ("genericjob", "pending"),
        ("pod", "caller"),
    ):
        site.uids[name] = show(cluster, kind, name)["metadata"]["uid"]


def _job(name: str, command: list[str], **policy: int) -> dict[str, Any]:
    job = generic(name, command=command)
    job["spec"]["runPolicy"] = policy
    return job


def _reach(site: Site, job: str, wanted: str) -> None:
    wait_until(f"{job} is {wanted}", lambda: phase(site.cluster, "genericjob", job) == wanted, SOON_SECONDS)


def _log(site: Site, pod: str) -> list[str]:
    return site.cluster.kubectl("logs", pod).out.splitlines()


def _answers(site: Site) -> list[str]:
    """Return what the calling pod has printed; a pod that has ended shows its last lines."""
    lines = _log(site, "caller")
    assert phase(site.cluster, "pod", "caller") == "Running", lines[-20:]
    return lines


def _last_stamp(site: Site, pod: str) -> datetime:
    """Tell when a pod has written its last line; the clock of this process is right."""
    return datetime.fromisoformat(site.cluster.kubectl("logs", pod, "--tail=1", "--timestamps").out.split()[0])


def _pass_by(site: Site, name: str) -> None:
    """Run a pod and delete it; what it wrote is kept."""
    assert run_pod(site.cluster, name, shell(f"echo words of {name}")) == [f"words of {name}"]
    assert site.cluster.kubectl("delete", "pod", name).code == 0
    wait_until(f"{name} is in the past", lambda: list(_history(site).glob(f"*/{name}.*")), SOON_SECONDS)


def _history(site: Site) -> Path:
    return site.cluster.settings.agent / "history" / "default"


def _plant_ancient(site: Site) -> Path:
    """Put into the past what is older than is kept, so that it is seen when the past is cleared."""
    (pattern,) = _history(site).glob(f"*/{GONE[0]}.*")
    about = json.loads((pattern / ABOUT).read_text())
    uid = str(uuid.uuid4())
    gone = (datetime.now(UTC) - timedelta(days=100)).isoformat()
    beside, folder = site.cluster.home / uid, pattern.parent / f"ancient.{uid}"
    (beside / CONTAINERS).mkdir(parents=True)
    (beside / ABOUT).write_text(json.dumps(about | {"pod": "ancient", "uid": uid, "goneAt": gone}))
    return beside.rename(folder)


def _restart(site: Site) -> None:
    """Kill the control process, and with it the agent, and start both again by the clock as it is."""
    killed, agent = site.cluster.control_pid, site.cluster.agent_pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    wait_until("it is gone", lambda: site.cluster.control_pid != killed)
    started = site.cluster.paceline("up", "-d")
    assert started.code == 0, started.err
    assert site.cluster.agent_pid not in (None, agent)


def _check(site: Site, name: str) -> None:
    """Have everybody look at everything, and see that all is as it was, and that work goes on."""
    cluster = site.cluster
    answered = len(_log(site, "caller"))
    ancient = _plant_ancient(site)
    for what in ("genericjob/running", "genericjob/finished", "genericjob/pending", "pod/caller"):
        assert cluster.kubectl("annotate", what, f"looked={name}", "--overwrite").code == 0
    create(cluster, _job(f"late-{name}", ["sleep", "1000"], activeDeadlineSeconds=1))
    _pass_by(site, f"during-{name}")
    _reach(site, f"late-{name}", "Failed")
    shown = cluster.paceline("get", "jobs")
    assert shown.code == 0, shown.err
    assert f"late-{name}" in shown.out
    wait_until("the past is cleared", lambda: not (ancient / CONTAINERS).exists(), SOON_SECONDS)
    lines = wait_until("the pod is answered", lambda: _answers(site)[answered + 3 :], SOON_SECONDS)

    assert set(lines) == {"200"}
    assert abs(_last_stamp(site, "caller") - datetime.now(UTC)) < timedelta(minutes=30)
    assert phase(cluster, "genericjob", "running") == "Running"
    assert phase(cluster, "genericjob", "pending") == "Pending"
    assert phase(cluster, "genericjob", "finished") == "Succeeded"
    assert phase(cluster, "pod", "caller") == "Running"
    for kind, what in (("genericjob", "running"), ("genericjob", "finished"), ("pod", "caller")):
        assert show(cluster, kind, what)["metadata"]["uid"] == site.uids[what]
    for pod in (*GONE, f"during-{name}"):
        assert cluster.paceline("logs", pod).out == f"words of {pod}\n"


def _live_through(site: Site, name: str, *, is_killed: bool) -> None:
    cluster, path = site.cluster, "/api/v1/namespaces/default/pods"
    short = f"{name.replace(' ', '-')}-{uuid.uuid4().hex[:4]}"
    before = cluster.kubectl("create", "token", "default").out.strip()
    site.shift.set(JUMPS[name])
    try:
        if is_killed:
            _restart(site)
        during = cluster.kubectl("create", "token", "default").out.strip()
        assert [ask(cluster, path, token) for token in (before, during)] == [200, 200]
        _check(site, short)
        if is_killed:
            # The clock is put right while nothing of ours runs.
            killed = cluster.control_pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            wait_until("it is gone", lambda: cluster.control_pid != killed)
    finally:
        site.shift.set(0)
    if is_killed:
        assert cluster.paceline("up", "-d").code == 0
    assert [ask(cluster, path, token) for token in (before, during)] == [200, 200]
    _check(site, f"{short}-right")


@pytest.mark.parametrize("name", JUMPS)
def test_nothing_ends_early_and_nothing_is_lost_when_the_clock_is_set(site: Site, name: str) -> None:
    _live_through(site, name, is_killed=name in KILLED)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", JUMPS)
def test_nothing_ends_early_however_often_the_clock_is_set(site: Site, name: str) -> None:
    for _ in range(ROUNDS):
        _live_through(site, name, is_killed=True)
        # A new supervisor, which has seen no deaths: one that has seen many in a row slows restarts down.
        site.cluster.kill_control_plane()
        assert site.cluster.paceline("up", "-d").code == 0
