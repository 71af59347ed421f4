"""Pods that keep a ledger of their own starts, and what it is compared with: the API, folders, processes."""

import json
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.testing.embedded import Embedded, arguments, processes_with
from tests.e2e.support.counting_job import is_program
from tests.e2e.support.manifests import text

SCRIPT = (Path(__file__).parents[1] / "jobs" / "ledger.py").read_text()
# Until the file `go` is there.
ON = "on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One start, as the process that was started tells it."""

    uid: str
    container: str
    pod: str
    ticks: str
    code: int
    # Whether another process of the same container ran at that moment.
    is_beside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """All pods of one ledger."""

    cluster: Embedded
    folder: Path
    mark: str = field(default_factory=lambda: f"crowd-{uuid.uuid4().hex[:8]}")

    def container(self, pod: str, name: str, lines: int | str, *codes: int) -> dict[str, Any]:
        words = [self.mark, pod, name, str(lines), *(str(code) for code in codes)]
        return {
            "name": name,
            "image": "python:3.11",
            "command": ["python", "-c", SCRIPT, *words],
            "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
            "volumeMounts": [{"name": "ledger", "mountPath": "/ledger"}],
        }

    def pod(self, name: str, *containers: dict[str, Any], policy: str, **spec: Any) -> dict[str, Any]:
        body = {
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": 1,
            "containers": list(containers),
            "volumes": [{"name": "ledger", "hostPath": {"path": str(self.folder)}}],
            **spec,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"crowd": self.mark}},
            "spec": body,
        }

    def create(self, *pods: dict[str, Any]) -> None:
        made = self.cluster.kubectl("create", "-f", "-", stdin=text(*pods))
        assert made.code == 0, made.err

    def delete(self, *names: str, **options: str) -> None:
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        gone = self.cluster.kubectl("delete", "pod", *names, *words)
        assert gone.code == 0, gone.err

    def pods(self) -> dict[str, dict[str, Any]]:
        """What the API says, by name."""
        found = self.cluster.kubectl("get", "pods", "-l", f"crowd={self.mark}", "-o", "json")
        assert found.code == 0, found.err
        return {each["metadata"]["name"]: each for each in json.loads(found.out)["items"]}

    def entries(self) -> list[Entry]:
        """What the ledger says, in the order of the starts."""
        path = self.folder / "ledger"
        rows = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [
            Entry(uid=uid, container=name, pod=pod, ticks=ticks, code=int(code), is_beside=company != "alone")
            for uid, name, pod, ticks, code, company in rows
        ]

    def starts(self, uid: str, container: str) -> list[Entry]:
        return [each for each in self.entries() if (each.uid, each.container) == (uid, container)]

    def alive(self) -> dict[tuple[str, str], set[tuple[int, int]]]:
        """The processes of each container on this machine, bubblewrap's aside: pid and start time."""
        found: dict[tuple[str, str], set[tuple[int, int]]] = {}
        for pid, ticks in processes_with(self.mark):
            words = arguments(pid)
            if self.mark in words and is_program(pid):
                at = words.index(self.mark)
                found.setdefault((words[at + 1], words[at + 2]), set()).add((pid, ticks))
        return found

    def tries(self, uid: str, container: str) -> dict[int, Path]:
        """The folders of a container's tries that are still kept."""
        found = (self.cluster.settings.agent / "pods" / uid / "containers" / container).glob("*")
        return {int(each.name): each for each in found}


def statuses(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    status = pod.get("status") or {}
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def said_in(folder: Path) -> str:
    """What a try has printed, from its log file."""
    entries = (folder / "log").read_text().splitlines()
    assert all(each[30:40] == " stdout F " for each in entries), entries[:3]
    return "".join(f"{each[40:]}\n" for each in entries)


def assert_counted(said: str, ticks: str, *, is_over: bool) -> None:
    """The lines are all there, once and in order; one that is over ends with the checksum of the others."""
    lines = said.splitlines()
    counted = lines[:-1] if is_over else lines
    expected = [f"{ticks} {number}" for number in range(len(counted))]
    assert counted == expected, first_difference(counted, expected)
    if is_over:
        assert lines, "the log is empty"
        assert lines[-1] == f"{ticks} crc {checksum(counted):08x}"


def checksum(lines: list[str]) -> int:
    total = 0
    for line in lines:
        total = zlib.crc32(line.encode(), total)
    return total


def first_difference(ours: list[str], theirs: list[str]) -> str:
    at = next((at for at, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other), 0)
    return f"line {at}: {ours[at - 2 : at + 3]} instead of {theirs[at - 2 : at + 3]}"


def twice(entries: list[Entry]) -> dict[tuple[str, str, str], int]:
    """Starts that are entered more than once."""
    counted = Counter((each.uid, each.container, each.ticks) for each in entries)
    return {who: count for who, count in counted.items() if count != 1}
