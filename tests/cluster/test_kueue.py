"""Jobs in the queues of a real Kueue: quota, flavors, preemption, cohorts, and a Kueue that is killed.

What happened is replayed from two watches in the order of the API server's revisions, so that every moment counts.
"""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, has_condition
from paceline.testing.embedded import wait_until
from paceline.testing.real.kueue import RealKueue, real_kueue
from tests.cluster.lab import ENDED, WAIT_SECONDS, Lab
from tests.cluster.manifests import claim, generic, on_claim

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
VERSION = "kueue.x-k8s.io/v1beta2"
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
KIND = "GenericJob"
FOLLOWED = {"pods": "api/v1", "workloads": f"apis/{VERSION}"}
COVERED = ("cpu", "memory", "pods")
SOAK_SECONDS = 3000.0
# The first try stays for ever; the next one ends at once.
STAYING_ONCE = """
import os, time
if not os.path.exists("/shared/tried"):
    open("/shared/tried", "w").close()
    time.sleep(3600)
"""


@pytest.fixture(scope="module")
def kueue(lab: Lab) -> Iterator[RealKueue]:
    built = subprocess.run((ROOT / "tools" / "setup", "kueue"), stdout=subprocess.PIPE, text=True, check=True)
    with real_kueue(lab.cluster, Path(built.stdout.splitlines()[-1])) as running:
        flavor = {"apiVersion": VERSION, "kind": "ResourceFlavor", "metadata": {"name": "anywhere"}}
        lab.apply({**flavor, "spec": {}})
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A namespace with a queue of its own."""

    lab: Lab
    name: str

    def submit(self, *jobs: Object, **labels: str) -> None:
        marked = [{**job, "metadata": {**job["metadata"], "labels": {QUEUE: "team", **labels}}} for job in jobs]
        self.lab.apply(*marked, namespace=self.name)

    def ends(self, job: str) -> Object:
        return self.lab.await_phase(KIND, job, "Succeeded", self.name)

    def waits(self, job: str, *words: str) -> str:
        return self.lab.await_reason(KIND, job, *words, namespace=self.name)

    def workloads(self) -> list[Object]:
        return json.loads(self.lab.cluster.run("get", "workloads", "-n", self.name, "-o", "json"))["items"]


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count(1)


@pytest.fixture
def make_team(lab: Lab, kueue: RealKueue, numbers: Iterator[int]) -> Iterator[Any]:
    teams: list[Team] = []

    def make(pods: int, flavor: str = "anywhere", **spec: Any) -> Team:
        name = f"team-{next(numbers)}"
        quota = {"cpu": "100", "memory": "100Gi", "pods": str(pods)}
        resources = [{"name": covered, "nominalQuota": quota[covered]} for covered in COVERED]
        group = {"coveredResources": list(COVERED), "flavors": [{"name": flavor, "resources": resources}]}
        cluster_queue = {
            "apiVersion": VERSION,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group], **spec},
        }
        queue = {"apiVersion": VERSION, "kind": "LocalQueue", "metadata": {"name": "team", "namespace": name}}
        lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, namespace="")
        lab.apply(cluster_queue, {**queue, "spec": {"clusterQueue": name}}, namespace=name)
        teams.append(Team(lab=lab, name=name))
        return teams[-1]

    yield make
    del kueue
    for team in teams:
        lab.cluster.run("delete", "genericjobs", "--all", "-n", team.name, "--wait")


@dataclass(slots=True)
class History:
    """What a namespace has gone through, by the revisions of its objects."""

    events: list[tuple[int, str, Object]] = field(default_factory=list)

    def pods(self, job: str) -> list[Object]:
        """Return the pods that a job had, as they were created."""
        pods: dict[str, Object] = {}
        for _, _, obj in sorted(self.events, key=lambda event: event[0]):
            if obj["kind"] == "Pod" and _owner(obj)["name"] == job:
                pods.setdefault(obj["metadata"]["uid"], obj)
        return list(pods.values())

    def most_live_pods(self) -> int:
        """Return how many pods were not over at the moment when they were most; each of an admitted job."""
        live: set[str] = set()
        admitted: dict[str, bool] = {}
        most = 0
        for _, change, obj in sorted(self.events, key=lambda event: event[0]):
            owner, uid = _owner(obj)["uid"], obj["metadata"]["uid"]
            if obj["kind"] == "Workload":
                admitted[owner] = has_condition(obj, "Admitted") and not has_condition(obj, "Evicted")
                continue
            name = obj["metadata"]["name"]
            if uid not in live and change == "ADDED":
                assert admitted.get(owner), f"{name} was created before its job was admitted"
            is_over = change == "DELETED" or obj.get("status", {}).get("phase") in ENDED
            live = live - {uid} if is_over else live | {uid}
            most = max(most, len(live))
        return most


def _owner(obj: Object) -> Object:
    return obj["metadata"]["ownerReferences"][0]


@contextmanager
def followed(team: Team) -> Iterator[History]:
    """Record the pods and Workloads of a namespace until the block ends, and what was written until then."""
    run, history = team.lab.cluster.run, History()
    lists = {kind: f"/{api}/namespaces/{team.name}/{kind}" for kind, api in FOLLOWED.items()}
    with ExitStack() as stack:
        for path in lists.values():
            since = json.loads(run("get", "--raw", path))["metadata"]["resourceVersion"]
            _follow(stack, team.lab, f"{path}?watch=true&resourceVersion={since}", history)
        yield history

        written = [
            _revision(item) for path in lists.values() for item in json.loads(run("get", "--raw", path))["items"]
        ]

        def has_arrived() -> bool:
            return {event[0] for event in history.events}.issuperset(written)

        wait_until("all that was written has arrived", has_arrived)


def _follow(stack: ExitStack, lab: Lab, path: str, history: History) -> None:
    command = (str(lab.cluster.kubectl), f"--kubeconfig={lab.cluster.kube.kubeconfig}", "get", "--raw", path)
    process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    thread = threading.Thread(target=_read, args=(process, history))
    thread.start()
    stack.callback(thread.join)
    stack.callback(process.terminate)


def _read(process: subprocess.Popen[str], history: History) -> None:
    """Read one event per line."""
    for line in process.stdout or ():
        event = json.loads(line)
        history.events.append((_revision(event["object"]), event["type"], event["object"]))


def _revision(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def crowd(team: Team, jobs: int, kueue: RealKueue, *, kills: int, seconds: float) -> None:
    """Send many small jobs through a quota of ten pods, while Kueue is killed again and again."""
    names = [f"small-{number}" for number in range(jobs)]
    with followed(team) as history:
        team.submit(*(generic(name, "import time; time.sleep(0.5)") for name in names))

        def ended() -> int:
            phases = team.lab.cluster.run(
                "get", "genericjobs", "-n", team.name, "-o", "jsonpath={.items[*].status.phase}"
            ).split()
            assert "Failed" not in phases
            return phases.count("Succeeded")

        for kill in range(1, kills + 1):
            share = kill * jobs // (kills + 1)
            wait_until(f"{share} jobs have ended", lambda share=share: ended() >= share, seconds=seconds)
            kueue.kill()
            kueue.start()
        try:
            wait_until("all jobs have ended", lambda: ended() == jobs, seconds=seconds)
        except AssertionError as error:
            left = team.lab.cluster.run("get", "genericjobs,workloads,pods", "-n", team.name, "-o", "wide")
            raise AssertionError(f"{error}\n{left}") from None

        def finished() -> int:
            return sum(has_condition(workload, "Finished") for workload in team.workloads())

        wait_until("all Workloads are finished", lambda: finished() == jobs)

    assert all(len(history.pods(name)) == 2 for name in names), "no pod was created twice"
    assert 0 < history.most_live_pods() <= 10


def test_many_jobs_go_through_a_small_quota_while_kueue_is_killed(kueue: RealKueue, make_team: Any) -> None:
    crowd(make_team(10), 20, kueue, kills=2, seconds=WAIT_SECONDS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_jobs_go_through_a_small_quota(kueue: RealKueue, make_team: Any) -> None:
    crowd(make_team(10), 200, kueue, kills=5, seconds=SOAK_SECONDS)


def test_a_flavor_brings_the_pods_to_its_nodes(lab: Lab, make_team: Any) -> None:
    labels = {"kubernetes.io/hostname": "node-2"}
    lab.apply(
        {
            "apiVersion": VERSION,
            "kind": "ResourceFlavor",
            "metadata": {"name": "second-node"},
            "spec": {"nodeLabels": labels},
        }
    )
    team = make_team(4, "second-node")
    with followed(team) as history:
        team.submit(generic("placed", "print('here')", replicas=4))
        team.ends("placed")

    pods = history.pods("placed")
    assert [pod["spec"]["nodeSelector"] for pod in pods] == [labels] * 4


def test_a_preempted_job_comes_back_and_ends(lab: Lab, make_team: Any) -> None:
    team = make_team(2, preemption={"withinClusterQueue": "LowerPriority"})
    lab.apply({"apiVersion": VERSION, "kind": "WorkloadPriorityClass", "metadata": {"name": "high"}, "value": 100})
    with followed(team) as history:
        lab.apply(claim("once"), namespace=team.name)
        patient = generic("patient", STAYING_ONCE, replicas=2, pod=on_claim("once"))
        team.submit(patient)
        lab.await_phase(KIND, "patient", "Running", team.name)
        team.submit(generic("urgent", "import time; time.sleep(5)"), **{PRIORITY: "high"})
        team.waits("patient", "evicted", "reempted")
        team.ends("urgent")
        status = team.ends("patient")["status"]

    assert status.get("backoffCount", 0) == 0
    assert len(history.pods("patient")) == 4
    assert history.most_live_pods() == 2


def test_a_team_borrows_what_its_cohort_does_not_use(make_team: Any) -> None:
    borrower = make_team(1, cohortName="lab")
    make_team(3, cohortName="lab")

    borrower.submit(generic("large", "print('borrowed')", replicas=4))
    borrower.ends("large")
    borrower.submit(generic("larger", "print('never')", replicas=5))

    borrower.waits("larger", "queue team", "quota")


def test_none_of_five_members_starts_where_four_have_room(make_team: Any) -> None:
    team = make_team(4)
    with followed(team) as history:
        team.submit(generic("five", "print('never')", replicas=5))
        team.waits("five", "queue team", "quota")
        team.submit(generic("four", "print('now')", replicas=4))
        team.ends("four")

    assert history.pods("five") == []


def test_a_queue_that_does_not_exist_is_named_until_it_does(lab: Lab, make_team: Any) -> None:
    team = make_team(2)
    team.submit(generic("early", "print('now')"), **{QUEUE: "later"})
    team.waits("early", "LocalQueue later doesn't exist")
    queue = {"apiVersion": VERSION, "kind": "LocalQueue", "metadata": {"name": "later"}}
    lab.apply({**queue, "spec": {"clusterQueue": team.name}}, namespace=team.name)

    team.ends("early")


def test_a_job_that_is_submitted_while_kueue_is_down_starts_when_it_is_back(kueue: RealKueue, make_team: Any) -> None:
    team = make_team(2)
    kueue.kill()
    try:
        team.submit(generic("orphan", "print('now')"))
        team.waits("orphan", "queue team")
        assert team.lab.pods("orphan", team.name) == []
    finally:
        kueue.start()

    team.ends("orphan")
