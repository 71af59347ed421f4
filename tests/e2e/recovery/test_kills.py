"""kill -9 of the control process, of the node agent and of the whole control plane, at random moments.

The job does not notice. A control process and an agent come back by themselves; after a kill of all of them, which
includes the supervisor, a person starts the cluster.
"""

import contextlib
import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from paceline.host.lockfile import is_ready
from paceline.testing.embedded import Embedded, embedded, paceline_command, processes_with, wait_until
from tests.e2e.support.counting_job import MEMBERS, Counting, is_program, told_about
from tests.e2e.support.frameworks import folder_of

log = logging.getLogger(__name__)

TARGETS = ("control", "agent", "all")
# Moments at which each of them is killed, in `make test` and in `make soak`.
FEW, MANY = 5, 20
EXAMPLE = Path(__file__).parents[3] / "examples" / "01-digits"


def rounds(few: int, many: int) -> list:
    """Every target once in `make test`, so many times in `make test-all`; a soak has more rounds of its own."""
    tiers = ([], [pytest.mark.slow], [pytest.mark.soak])
    return [
        pytest.param(target, number, marks=tiers[(number > 0) + (number >= few)])
        for target in TARGETS
        for number in range(few + many)
    ]


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """Chance of this very test; the same seed draws the same again."""
    seed = request.config.getoption("randomly_seed")
    log.info("to draw the same again: pytest --randomly-seed=%s '%s'", seed, request.node.nodeid)
    return random.Random(f"{seed} {request.node.name}")


# What lies in the folder of a pod that runs: folders of its container and its try, log, lock, records, message.
FILES = 8


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of a job's life that can be seen from outside: so many files of its pods, or so many lines printed."""

    what: str
    number: int

    def has_come(self, folders: set[Path]) -> bool:
        if self.what == "files":
            return sum(1 for folder in folders for _ in folder.rglob("*")) >= self.number
        return sum(each.read_bytes().count(b"\n") for folder in folders for each in logs_in(folder)) >= self.number


def draw_moment(dice: random.Random, lines: int) -> Moment:
    """Draw a point: one in three while the pods are being made, the others while they print."""
    if dice.random() < 1 / 3:
        return Moment("files", dice.randrange(MEMBERS * FILES + 1))
    return Moment("lines", dice.randrange(1, MEMBERS * (lines + 1)))


def logs_in(folder: Path) -> tuple[Path, ...]:
    return tuple(folder.glob("containers/*/*/log"))


def pod_folders(cluster: Embedded) -> set[Path]:
    return set((cluster.settings.agent / "pods").iterdir())


def kill(cluster: Embedded, target: str) -> None:
    """End a process as a crash does, or all of them at once."""
    if target == "all":
        cluster.kill_control_plane()
        return
    pid = {"control": cluster.control_pid, "agent": cluster.agent_pid}[target]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def bring_back(cluster: Embedded) -> None:
    """Start the cluster as a person does, after all of it was killed."""
    up = cluster.paceline("up", "-d")
    assert up.code == 0, up.out + up.err


def kill_and_bring_back(cluster: Embedded, target: str) -> None:
    control, agent = cluster.control_pid, cluster.agent_pid
    kill(cluster, target)
    if target == "all":
        bring_back(cluster)
        return
    wait_until("the agent is back", lambda: cluster.agent_pid not in (None, agent))
    if target == "control":
        wait_until("the control process is back", lambda: is_back(cluster, control))


def is_back(cluster: Embedded, control: int | None) -> bool:
    """Tell whether another control process is there and ready, without anybody having started it."""
    return cluster.control_pid not in (None, control) and is_ready(cluster.settings.lock)


@pytest.mark.parametrize(("target", "number"), rounds(FEW, MANY))
def test_a_job_does_not_notice_a_kill_at_any_moment(
    cluster: Embedded, dice: random.Random, target: str, number: int
) -> None:
    """X-32"""
    job = Counting(cluster=cluster)
    moment = draw_moment(dice, job.lines)
    log.info("round %d: %s is killed at %s", number, target, moment)
    before = pod_folders(cluster)

    with subprocess.Popen(
        ["kubectl", "create", "-f", "-"], stdin=subprocess.PIPE, env=cluster.environment(), text=True
    ) as submitting:
        with submitting.stdin as stdin:
            stdin.write(job.manifest())
        wait_until(f"{moment} has come", lambda: moment.has_come(pod_folders(cluster) - before))
        running = job.processes()
        kill_and_bring_back(cluster, target)
        # What had begun goes on as the very same process; there is no second one beside it.
        assert job.processes() <= running or len(running) < MEMBERS
    if submitting.returncode != 0:
        # The answer that it is stored was lost, so the user submits it again.
        job.submit()

    status = job.wait("Succeeded")
    assert (status["attempt"], status["backoffCount"]) == (0, 0)
    assert_ran_once(job, running)
    assert sorted(job.logs().values()) == job.printed()
    assert_told_once(cluster, job.name, at_least={"Created", "Succeeded"} - at_stake(moment, job.lines, target))


def at_stake(moment: Moment, lines: int, target: str) -> set[str]:
    """What the control process may just have been about to tell."""
    if target == "agent":
        return set()
    if moment.what == "files":
        return {"Created"}
    return {"Succeeded"} if moment.number > MEMBERS * lines / 2 else set()


def assert_ran_once(job: Counting, running: frozenset[tuple[int, int]]) -> None:
    """Every pod was begun once, and what ran before the kill is what ran to the end."""
    ledger = job.ledger()
    assert sorted(uid for uid, _, _ in ledger) == sorted(pod["metadata"]["uid"] for pod in job.pods().values())
    assert [attempt for _, attempt, _ in ledger] == ["0"] * MEMBERS
    assert {str(ticks) for _, ticks in running} <= {started for _, _, started in ledger}


def assert_told_once(cluster: Embedded, job: str, *, at_least: set[str]) -> None:
    """Nothing is told twice. What happens at the moment of a kill may go untold; the caller says what may not."""
    told = wait_until(
        f"{at_least} are told", lambda: found if at_least <= reasons(found := told_about(cluster, job)) else None
    )
    assert {story: count for story, count in told.items() if count != 1} == {}


def reasons(told: Counter[tuple[str, str, str]]) -> set[str]:
    return {reason for _, reason, _ in told}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (7, "Failed")])
def test_how_members_ended_while_nobody_watched_is_collected(cluster: Embedded, code: int, phase: str) -> None:
    job = Counting(cluster=cluster, code=code, is_held=True)
    job.submit()
    job.wait_running()
    volume = job.volume()
    folders = {uid: cluster.settings.agent / "pods" / uid for uid, _, _ in job.ledger()}
    kill(cluster, "all")
    (volume / "go").touch()
    ends = {uid: wait_until("a shim records the end", lambda f=folder: end_in(f)) for uid, folder in folders.items()}
    wait_until("no process is left", lambda: not job.processes())

    bring_back(cluster)

    status = job.wait(phase)
    assert (status["attempt"], status["backoffCount"]) == (0, 0)
    for pod in job.pods().values():
        (container,) = pod["status"]["containerStatuses"]
        end = container["state"]["terminated"]
        assert end["exitCode"] == code
        assert end["finishedAt"][:19] == ends[pod["metadata"]["uid"]]["finishedAt"][:19]
    assert sorted(job.logs().values()) == job.printed()
    if code:
        assert status["failure"]["exitCode"] == code
        assert status["failure"]["pod"] in job.pods()


def end_in(folder: Path) -> dict | None:
    found = tuple(folder.glob("containers/*/0/exit.json"))
    return json.loads(found[0].read_text()) if found else None


@pytest.mark.slow
def test_kills_in_the_midst_of_coming_back_do_no_harm(cluster: Embedded, dice: random.Random) -> None:
    job = Counting(cluster=cluster, lines=20, is_held=True)
    job.submit()
    running = job.wait_running()
    for target in dice.choices(("control", "agent"), k=2 * FEW):
        starting = subprocess.Popen(
            [paceline_command(), "up", "-d"], env=cluster.environment(), stderr=subprocess.PIPE, text=True
        )
        # As soon as it is there: that is long before it is ready.
        pid = wait_until(f"a {target} is there", lambda t=target: getattr(cluster, f"{t}_pid"))
        with contextlib.suppress(ProcessLookupError):  # The next start may have ended it first.
            os.kill(pid, signal.SIGKILL)
        _, said = starting.communicate(timeout=60)
        assert "Traceback" not in said
        assert job.processes() == running

    up = cluster.paceline("up", "-d")
    assert up.code == 0, up.err
    assert job.processes() == running
    job.let_go()
    status = job.wait("Succeeded")
    assert (status["attempt"], status["backoffCount"]) == (0, 0)
    assert_ran_once(job, running)
    assert sorted(job.logs().values()) == job.printed()
    assert_told_once(cluster, job.name, at_least={"Created", "Running", "Succeeded"})


@pytest.mark.slow
def test_an_agent_that_hangs_is_ended_by_the_next_start(cluster: Embedded) -> None:
    job = Counting(cluster=cluster, lines=3, is_held=True)
    job.submit()
    running = job.wait_running()
    control, hung = cluster.control_pid, cluster.agent_pid
    os.kill(hung, signal.SIGSTOP)
    kill(cluster, "control")

    wait_until("the control process is back", lambda: is_back(cluster, control))

    assert cluster.agent_pid not in (None, hung)
    assert job.processes() == running
    job.let_go()
    assert job.wait("Succeeded")["attempt"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_a_follower_of_the_log_sees_every_line_once(cluster: Embedded, target: str) -> None:
    job = Counting(cluster=cluster, lines=150)
    job.submit()
    job.wait_running()
    with subprocess.Popen(
        [paceline_command(), "logs", "-f", job.name], env=cluster.environment(), stdout=subprocess.PIPE, text=True
    ) as following:
        begun = following.stdout.readline()
        kill_and_bring_back(cluster, target)
        rest = following.stdout.read()

    assert following.returncode == 0
    assert begun + rest == job.printed()[0]


# The demo job itself, with the real PyTorch.


@pytest.fixture(scope="module")
def torch_cluster() -> Iterator[Embedded]:
    environment = os.environ.get("PACELINE_PYTORCH")
    if not environment:
        pytest.skip("no PyTorch: type `make test`, or PACELINE_PYTORCH=$(tools/setup torch) pytest …")
    with embedded("--image", f"pytorch/pytorch*={environment}") as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The job of `make demo`, with a name and an output folder of its own, and longer."""

    cluster: Embedded
    name: str
    epochs: int

    def submit(self) -> None:
        created = self.cluster.paceline("submit", str(EXAMPLE / "claim.yaml"))
        assert created.code == 0 or "exists" in created.err, created.err
        folder = folder_of(self.cluster, "digits")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(EXAMPLE / "train.py", folder)
        job = yaml.safe_load((EXAMPLE / "job.yaml").read_text())
        job["metadata"]["name"] = self.name
        (container,) = job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"]
        container["args"] = ["train.py", "--data-dir", f"/mnt/{self.name}", "--epochs", str(self.epochs)]
        created = self.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))
        assert created.code == 0, created.err

    def processes(self) -> frozenset[tuple[int, int]]:
        return frozenset(each for each in processes_with(f"/mnt/{self.name}") if is_program(each[0]))

    def status(self) -> dict:
        return json.loads(self.cluster.kubectl("get", "pj", self.name, "-o", "json").out)["status"]

    def epochs_in(self, folders: set[Path]) -> int:
        return sum(each.read_bytes().count(b" F epoch ") for folder in folders for each in logs_in(folder))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "number"), rounds(1, MANY // FEW))
def test_training_does_not_notice_kills_at_random_moments(
    torch_cluster: Embedded, dice: random.Random, target: str, number: int
) -> None:
    job = Demo(cluster=torch_cluster, name=f"demo-{target}-{number}", epochs=30)
    before = pod_folders(torch_cluster)
    moments = sorted(dice.randrange(job.epochs) for _ in range(FEW))
    log.info("round %d: %s is killed after these epochs: %s", number, target, moments)
    job.submit()
    running = wait_until("both workers run", lambda: found if len(found := job.processes()) == 2 else None)

    for moment in moments:
        wait_until(f"epoch {moment}", lambda m=moment: job.epochs_in(pod_folders(torch_cluster) - before) >= m)
        kill_and_bring_back(torch_cluster, target)
        # Nothing new ever runs; what ran may be done by now.
        assert job.processes() <= running
        assert job.processes() == running or job.epochs_in(pod_folders(torch_cluster) - before) == job.epochs

    waited = torch_cluster.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Succeeded", f"pj/{job.name}", "--timeout=120s"
    )
    status = job.status()
    assert waited.code == 0, json.dumps(status, indent=1)
    assert (status["attempt"], status["backoffCount"]) == (0, 0)
    said = torch_cluster.paceline("logs", job.name).out
    assert re.findall(r"^epoch (\d+)/", said, re.MULTILINE) == [str(epoch + 1) for epoch in range(job.epochs)]
    assert len(re.findall(rf"^accuracy 0\.9\d+  model /mnt/{job.name}/model.pt$", said, re.MULTILINE)) == 1
    assert len(said.splitlines()) == job.epochs + 1
    is_certain = target == "agent" or moments[-1] < job.epochs / 2
    assert_told_once(torch_cluster, job.name, at_least={"Created", "Succeeded"} if is_certain else {"Created"})
