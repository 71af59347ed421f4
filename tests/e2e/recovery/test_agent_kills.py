"""kill -9 of the node agent, again and again, while pods run, end and are restarted: their ledger shows nothing."""

import json
import logging
import os
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paceline.host.netns import RUN
from paceline.host.pod_bridge import bridge_name
from paceline.testing.embedded import Embedded, arguments, embedded, leftovers, wait_until
from tests.e2e.support.ledger import ON, Crowd, assert_counted, said_in, statuses, twice

pytestmark = pytest.mark.slow

log = logging.getLogger(__name__)

# Kills in `make test` and in `make soak`.
FEW, MANY = 10, 100
# How many lines the pods print between two kills, drawn each time; with none, the agent is still coming up.
LINES = (0, 0, 20, 80, 200)
FINAL = ("Succeeded", "Failed")


# What `up` chooses by itself: root gives each pod a network of its own.
USUAL, OTHER = ("own", "host") if os.geteuid() == 0 else ("host", "")
ROUNDS = [
    (USUAL, FEW),
    pytest.param(USUAL, MANY, marks=pytest.mark.soak),
    *([pytest.param(OTHER, MANY, marks=pytest.mark.soak)] if OTHER else []),
]


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    seed = request.config.getoption("randomly_seed")
    log.info("to draw the same again: pytest --randomly-seed=%s '%s'", seed, request.node.nodeid)
    return random.Random(f"{seed} {request.node.name}")


@dataclass(slots=True, kw_only=True)
class Town:
    """Twenty pods: some stay, some are restarted whatever they do, some until they succeed, and some come and go."""

    crowd: Crowd
    dice: random.Random
    _born: int = field(default=0)
    # Of those that came and went: how many.
    gone: int = field(default=0)

    def settle(self) -> None:
        crowd = self.crowd
        stay = [crowd.pod(f"stay-{i}", crowd.container(f"stay-{i}", "main", ON, 0), policy="Never") for i in range(6)]
        again = [
            crowd.pod(f"again-{i}", crowd.container(f"again-{i}", "main", i, 0, 3, 0, 77), policy="Always")
            for i in range(5)
        ]
        until = [
            crowd.pod(f"until-{i}", crowd.container(f"until-{i}", "main", 3 * i, 9, 255, 0), policy="OnFailure")
            for i in range(4)
        ]
        crowd.create(*stay, *again, *until, self._in_parts("parts-0"), *(self._short_lived() for _ in range(4)))

    def _in_parts(self, name: str) -> dict[str, Any]:
        """An init container, a sidecar that ends now and then, and a main container that stays."""
        crowd = self.crowd
        beside = crowd.container(name, "beside", 10, 0, 5) | {"restartPolicy": "Always"}
        init = [crowd.container(name, "first", 2, 4, 0), beside]
        return crowd.pod(name, crowd.container(name, "main", ON, 0), policy="OnFailure", initContainers=init)

    def _short_lived(self) -> dict[str, Any]:
        self._born += 1
        name, code = f"short-{self._born}", self.dice.choice((0, 1, 42, 127, 137, 254))
        return self.crowd.pod(name, self.crowd.container(name, "main", self.dice.randrange(20), code), policy="Never")

    def renew(self) -> None:
        """Look at those that have ended, let them go, and make as many new ones."""
        done = {name: pod for name, pod in self.crowd.pods().items() if is_gone_soon(name, pod)}
        for pod in done.values():
            assert_agrees(self.crowd, pod)
            assert_logged(self.crowd, pod)
        if done:
            self.crowd.delete(*done, wait="false")
            self.crowd.create(*(self._short_lived() for _ in done))
            self.gone += len(done)


def is_gone_soon(name: str, pod: dict[str, Any]) -> bool:
    is_over = (pod.get("status") or {}).get("phase") in FINAL
    return name.startswith("short-") and is_over and "deletionTimestamp" not in pod["metadata"]


def disagreement(crowd: Crowd, pod: dict[str, Any]) -> str:
    """Where a pod's status differs from what its processes entered into the ledger; nothing when it does not."""
    uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
    for status in statuses(pod):
        starts = crowd.starts(uid, status["name"])
        if len(starts) != status["restartCount"] + ("containerID" in status):
            return f"{name}: {len(starts)} starts of {status['name']}, and the status says {status}"
        codes = [each.code for each in starts]
        ends = ends_in(status)
        if "running" in status["state"]:
            codes = codes[:-1]
        if ends != codes[len(codes) - len(ends) :] or (codes and not ends):
            return f"{name}: {status['name']} ended with {codes}, and the status says {status}"
    return ""


def ends_in(status: dict[str, Any]) -> list[int]:
    """The exit codes that a status tells of, the older one first."""
    told = [each.get("terminated") for each in (status["lastState"], status["state"])]
    assert all(end["reason"] == ("Error" if end["exitCode"] else "Completed") for end in told if end), status
    return [end["exitCode"] for end in told if end]


def assert_agrees(crowd: Crowd, pod: dict[str, Any]) -> None:
    assert disagreement(crowd, pod) == ""


def assert_logged(crowd: Crowd, pod: dict[str, Any]) -> None:
    """The latest tries' logs are complete, their records true, and each belongs to its start in the ledger."""
    uid = pod["metadata"]["uid"]
    for status in statuses(pod):
        starts, kept = crowd.starts(uid, status["name"]), crowd.tries(uid, status["name"])
        # An agent that was killed right after a start leaves an older one to whoever comes next, who may remove it now.
        latest = range(len(starts))[-2:]
        assert set(latest) <= set(kept) <= set(range(len(starts))[-3:]), kept
        for number in latest:
            folder = kept[number]
            record = folder / "exit.json"
            is_over = record.exists()
            assert_counted(said_in(folder), starts[number].ticks, is_over=is_over)
            assert not is_over or json.loads(record.read_text())["exitCode"] == starts[number].code


def assert_one_of_each(crowd: Crowd) -> None:
    """Nobody was started beside another, and nobody is there twice now."""
    entries = crowd.entries()
    assert [each for each in entries if each.is_beside] == []
    assert twice(entries) == {}
    assert {who: found for who, found in crowd.alive().items() if len(found) > 1} == {}


def kill_agent(cluster: Embedded) -> None:
    """Kill it, and wait for the next one: not until it is ready, only until it is there."""
    before = wait_until("there is an agent", lambda: cluster.agent_pid)
    os.kill(before, signal.SIGKILL)
    wait_until("the next agent is there", lambda: cluster.agent_pid not in (None, before))


def lines_printed(cluster: Embedded) -> int:
    logs = (cluster.settings.agent / "pods").glob("*/containers/main/0/log")
    return sum(map(lines_in, logs))


def lines_in(path: Path) -> int:
    """Count the lines of a log; that of a pod which goes meanwhile has none."""
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def stayers(crowd: Crowd) -> dict[tuple[str, str], set[tuple[int, int]]]:
    return {who: found for who, found in crowd.alive().items() if who[0].startswith("stay-")}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("network", "kills"), ROUNDS)
def test_pods_do_not_notice_that_their_agent_is_killed(
    dice: random.Random, tmp_path: Path, network: str, kills: int
) -> None:
    tmp_path.chmod(0o777)
    with embedded("--network", network) as cluster:
        live_through(cluster, dice, folder=tmp_path, kills=kills)


def live_through(cluster: Embedded, dice: random.Random, *, folder: Path, kills: int) -> None:
    crowd = Crowd(cluster=cluster, folder=folder)
    town = Town(crowd=crowd, dice=dice)
    town.settle()
    before = wait_until("those that stay run", lambda: found if len(found := stayers(crowd)) == 6 else None)

    for number in range(kills):
        begun, more = lines_printed(cluster), dice.choice(LINES)
        wait_until(f"{more} more lines", lambda b=begun, m=more: lines_printed(cluster) >= b + m)
        log.info("kill %d, after %d lines", number, more)
        kill_agent(cluster)
        assert stayers(crowd) == before
        assert_one_of_each(crowd)
        town.renew()

    (folder / "go").touch()
    await_rest(crowd)
    assert_one_of_each(crowd)
    pods = crowd.pods()
    for pod in pods.values():
        assert_agrees(crowd, pod)
        assert_logged(crowd, pod)
    assert_read_back(crowd, pods)
    log.info("%d kills, %d starts, %d pods came and went", kills, len(crowd.entries()), town.gone)
    assert_nothing_left(crowd)


def await_rest(crowd: Crowd) -> None:
    """Wait until every pod is over, or rests between two tries, and the API knows it; who does not is named."""
    try:
        wait_until("all agree", lambda: not restless(crowd), seconds=120)
    except AssertionError as error:
        raise AssertionError(restless(crowd)) from error


def restless(crowd: Crowd) -> list[str]:
    pods, alive = crowd.pods(), crowd.alive()
    phases = {name: pod["status"]["phase"] for name, pod in pods.items() if not name.startswith("again-")}
    going = [f"{name} is {phase}" for name, phase in phases.items() if phase not in FINAL]
    return [*going, *map(str, alive), *filter(None, (disagreement(crowd, pod) for pod in pods.values()))]


def assert_read_back(crowd: Crowd, pods: dict[str, dict[str, Any]]) -> None:
    """What kubectl shows of the last try is what the file has."""
    for name, pod in pods.items():
        if name.startswith("again-"):
            # Its next try may begin at any moment: then its log is empty until that one has ended, too.
            wait_until(f"the log of {name} is that of its last try", lambda p=pod: not log_fault(crowd, p))
        else:
            assert not (fault := log_fault(crowd, pod)), fault


def log_fault(crowd: Crowd, pod: dict[str, Any]) -> str:
    """Return in what way the log that kubectl shows differs from what the last try has written."""
    shown = crowd.cluster.kubectl("logs", pod["metadata"]["name"], "-c", "main")
    if shown.code:
        return shown.err
    try:
        assert_counted(shown.out, crowd.starts(pod["metadata"]["uid"], "main")[-1].ticks, is_over=True)
    except AssertionError as error:
        return f"{pod['metadata']['name']}: {error}"
    return ""


def strangers(cluster: Embedded) -> list[str]:
    """The processes beside our own; an agent that has started nothing yet has no zygote."""
    found = [words for pid in leftovers(cluster.home) if (words := " ".join(arguments(pid)))]
    for known in (
        "paceline.cluster.supervisor",
        "paceline.cluster.control_plane_main",
        "paceline.cluster.node_agent",
        "zygote.py",
    ):
        mine = next((words for words in found if known in words), None)
        if mine is not None:
            found.remove(mine)
    return found


def assert_nothing_left(crowd: Crowd) -> None:
    """With the pods go their processes, keepers, folders and networks; of the agents only the last has a zygote."""
    cluster = crowd.cluster
    crowd.delete("--all", wait="true")
    folder, network = cluster.settings.agent / "pods", RUN / bridge_name(cluster.home)
    wait_until("no folder is left", lambda: not list(folder.iterdir()))
    try:
        wait_until("no process is left", lambda: not strangers(cluster))
    except AssertionError as error:
        raise AssertionError(strangers(cluster)) from error
    assert not network.exists() or not list(network.iterdir())
