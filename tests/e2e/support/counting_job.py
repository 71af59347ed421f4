"""A job of two members that count, as the tests of crashes see it: from the API, from its folders, from the machine."""

import json
import uuid
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.testing.embedded import Embedded, processes_with, wait_until
from tests.e2e.support.frameworks import folder_of
from tests.e2e.support.manifests import claim, generic, text

SCRIPT = (Path(__file__).parents[1] / "jobs" / "count.py").read_text()
MEMBERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """One counting job. Its name is also the mark in the arguments of its processes."""

    cluster: Embedded
    lines: int = 100
    code: int = 0
    # Whether the members wait for `let_go` before they end.
    is_held: bool = False
    restart: str = "Never"
    name: str = field(default_factory=lambda: f"count-{uuid.uuid4().hex[:8]}")

    def submit(self) -> None:
        """Create the claim and the job; what is there already is fine."""
        created = self.cluster.kubectl("create", "-f", "-", stdin=self.manifest())
        assert created.code == 0 or "AlreadyExists" in created.err, created.err

    def manifest(self) -> str:
        return text(claim(self.name), self.job())

    def job(self) -> dict[str, Any]:
        """The job is done when every member is, and fails when every member has."""
        fields = {
            "POD_UID": "metadata.uid",
            "ATTEMPT": "metadata.labels['paceline.dev/attempt']",
            "RANK": "metadata.labels['replica-index']",
        }
        words = [self.name, str(self.lines), str(self.code), *(["hold"] if self.is_held else [])]
        job = generic(self.name, command=["python", "-c", SCRIPT, *words], replicas=MEMBERS)
        spec = job["spec"]
        spec["failureRules"] = spec["successRules"]
        (replicas,) = spec["replicaSpecs"]
        replicas["restartPolicy"] = {"policy": self.restart, "limit": 3}
        replicas["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": self.name}}]
        replicas["template"]["spec"]["containers"][0] |= {
            "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()],
            "volumeMounts": [{"name": "data", "mountPath": "/mnt"}],
        }
        return job

    def let_go(self) -> None:
        (self.volume() / "go").touch()

    # What the API says.

    def read(self, *what: str) -> dict[str, Any]:
        found = self.cluster.kubectl("get", *what, "-o", "json")
        assert found.code == 0, found.err
        return json.loads(found.out)

    def status(self) -> dict[str, Any]:
        return self.read("gj", self.name).get("status", {})

    def wait(self, phase: str) -> dict[str, Any]:
        """Wait until the job is in a phase, and give its status."""
        waited = self.cluster.kubectl(
            "wait", f"--for=jsonpath={{.status.phase}}={phase}", f"gj/{self.name}", "--timeout=60s"
        )
        status = self.status()
        assert waited.code == 0, f"{waited.err}{json.dumps(status, indent=1)}"
        return status

    def pods(self) -> dict[str, dict[str, Any]]:
        """The job's pods by name."""
        items = self.read("pods", "-l", f"tensorstack.dev/owner-name={self.name}")["items"]
        return {pod["metadata"]["name"]: pod for pod in items}

    def logs(self) -> dict[str, str]:
        """The whole log of each pod."""
        found = {pod: self.cluster.kubectl("logs", pod) for pod in self.pods()}
        assert all(each.code == 0 for each in found.values()), found
        return {pod: each.out for pod, each in found.items()}

    def printed(self) -> list[str]:
        """What the members print in all, one text per member."""
        return [printed_by(rank, self.lines) for rank in range(MEMBERS)]

    # What the machine says.

    def processes(self) -> frozenset[tuple[int, int]]:
        """The members' own processes (not bubblewrap's, which have the same arguments): pid and start time."""
        marked = processes_with(self.name)
        return frozenset(process for process in marked if is_program(process[0]))

    def wait_running(self) -> frozenset[tuple[int, int]]:
        """Wait until every member has begun to print, and give their processes."""
        self.wait("Running")
        wait_until("every member counts", lambda: len(self.ledger()) == MEMBERS)
        return wait_until(
            "both members have a process", lambda: self.processes() if len(self.processes()) == MEMBERS else None
        )

    def wait_printed(self) -> None:
        """Wait until every member that is held has printed all of its lines, and they are in the logs."""
        last = f"line {self.lines - 1}\n"
        wait_until("all lines are in the logs", lambda: all(last in said for said in self.logs().values()))

    def volume(self) -> Path:
        """The folder behind the job's claim."""
        return folder_of(self.cluster, self.name)

    def ledger(self) -> list[tuple[str, str, str]]:
        """Who entered: uid of the pod, attempt, start time of the process."""
        path = self.volume() / "ledger"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(uid, attempt, started) for uid, attempt, started in (line.split() for line in lines)]


def told_about(cluster: Embedded, job: str) -> Counter[tuple[str, str, str]]:
    """How often each event of a job and its pods was told: about whom, why, and in which words."""
    listed = cluster.kubectl("get", "events", "-o", "json")
    assert listed.code == 0, listed.err
    counted: Counter[tuple[str, str, str]] = Counter()
    for each in json.loads(listed.out)["items"]:
        about = each["involvedObject"]["name"]
        if about == job or about.startswith(f"{job}-"):
            counted[about, each["reason"], each["message"]] += each["count"]
    return counted


def printed_by(rank: int, lines: int) -> str:
    said = [f"rank {rank} line {number}" for number in range(lines)]
    total = 0
    for line in said:
        total = zlib.crc32(line.encode(), total)
    return "".join(f"{line}\n" for line in [*said, f"rank {rank} crc {total:08x}"])


def is_program(pid: int) -> bool:
    """Return whether a process is neither bubblewrap's nor has ended since it was listed."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() != "bwrap"
    except OSError:
        return False
