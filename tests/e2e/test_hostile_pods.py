"""Pods that do not want to go: once they are deleted, nothing of them is left on the machine."""

import logging
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paceline.assembly.namespaces import RUN, cables
from paceline.assembly.netlink import Line
from paceline.assembly.network import bridge_name
from paceline.node.shim import start_ticks
from paceline.testing.embedded import Embedded, leftovers, wait_until
from tests.e2e.boxes import HOST
from tests.e2e.running import create

log = logging.getLogger(__name__)

# Pods in `make test` and in `make soak`; three in ten of them are hostile.
FEW, MANY = 40, 200
GRACE_SECONDS = 2
SCRIPT = (Path(__file__).parent / "jobs" / "hostile.py").read_text()
TRICKS = (
    "deaf",
    "session",
    "daemon",
    "storm",
    "keeper_of_pipes",
    "closer_of_pipes",
    "stopped",
    "adopter",
    "leaver",
    "nested",
    "dead",
    "shouter",
)
# A tenth of a CPU each, so that storms leave something to the others.
LIMITS = {"limits": {"cpu": "100m", "memory": "128Mi"}}
# control, agent and nursery
OURS = 3


def trick_of(number: int) -> str:
    """Three in ten are hostile, one trick after the other."""
    hostile = number // 10 * 3 + number % 10
    return TRICKS[hostile % len(TRICKS)] if number % 10 < 3 else "tame"


def pod(mark: str, number: int) -> dict[str, Any]:
    trick = trick_of(number)
    main: dict[str, Any] = {
        "name": "main",
        "image": "python:3.11",
        "command": ["python", "-c", SCRIPT, mark, trick],
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}, {"name": "memory", "mountPath": "/memory"}],
        **({} if trick == "tame" else {"resources": LIMITS}),
    }
    if trick == "deaf":
        # Its last hook does not end either.
        main["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "1000"]}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{mark}-{number}", "labels": {"mark": mark}},
        "spec": {
            # Not Never: memory that may outlive a try lies on the machine.
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [main],
            "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}],
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """By what pods can be found on a machine."""

    cluster: Embedded
    uids: frozenset[str]
    # The process namespaces of their containers, also those that they made themselves.
    spaces: frozenset[str]
    # Their keepers: pid and start time.
    keepers: frozenset[tuple[int, int]]

    def left(self) -> dict[str, list[str]]:
        """What is still there, by sort."""
        home, network = self.cluster.home, RUN / bridge_name(self.cluster.home)
        return {
            "processes": [str(pid) for pid, space in spaces_of_all() if space in self.spaces],
            "keepers": [str(pid) for pid, ticks in self.keepers if start_ticks(pid) == ticks],
            "folders": self._with_uid(self.cluster.settings.agent / "pods"),
            "memory": self._with_uid(Path("/dev/shm")),
            "networks": self._with_uid(network) + (links(bridge_name(home)) if network.exists() else []),
            "cgroups": [found for folder in cgroup_folders() for found in self._with_uid(folder)],
            "mounts": [line for line in Path("/proc/self/mounts").read_text().splitlines() if self._names_us(line)],
        }

    def _with_uid(self, folder: Path) -> list[str]:
        """The names in a folder that are a pod's uid, or have it before a dot."""
        return [name for name in names(folder) if name.removeprefix("paceline-").partition(".")[0] in self.uids]

    def _names_us(self, line: str) -> bool:
        return f"/{self.cluster.home.name}/agent/pods/" in line or bridge_name(self.cluster.home) in line


def names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []  # noqa: PTH208 - of the names alone, and often


def links(bridge: str) -> list[str]:
    with Line() as line:
        return [each.name for each in cables(line, bridge)]


def cgroup_folders() -> tuple[Path, ...]:
    return tuple({HOST.cgroups.cpu, HOST.cgroups.memory, HOST.cgroups.pids}) if HOST.cgroups else ()


def spaces_of_all() -> Iterator[tuple[int, str]]:
    """Every process of the machine and its process namespace."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdigit():
            try:
                yield int(name), os.readlink(f"/proc/{name}/ns/pid")  # noqa: PTH115 - as above
            except OSError:
                continue


def traces(cluster: Embedded, uids: frozenset[str]) -> Traces:
    here, ours = os.readlink("/proc/self/ns/pid"), set(leftovers(cluster.home))  # noqa: PTH115
    spaces = {space for pid, space in spaces_of_all() if pid in ours} - {here}
    started = ((pid, start_ticks(pid)) for pid, space in spaces_of_all() if pid in ours and space == here)
    staff = {cluster.control_pid, cluster.agent_pid}
    keepers = {(pid, ticks) for pid, ticks in started if ticks and pid not in staff and is_keeper(pid)}
    return Traces(cluster=cluster, uids=uids, spaces=frozenset(spaces), keepers=frozenset(keepers))


def is_keeper(pid: int) -> bool:
    return Path(f"/proc/{pid}/comm").read_text().strip() in {"paceline-shim", "bwrap"}


def folders_of(cluster: Embedded) -> dict[str, Path]:
    return {each.name: each for each in (cluster.settings.agent / "pods").iterdir()}


def up(folder: Path) -> bool:
    """Tell whether a pod has done its trick."""
    try:
        return b" up\n" in (folder / "containers/main/0/log").read_bytes()
    except FileNotFoundError:
        return False


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.soak)])
def test_of_pods_that_do_not_want_to_go_nothing_is_left(cluster: Embedded, count: int) -> None:
    mark = f"hostile-{uuid.uuid4().hex[:6]}"
    create(cluster, *(pod(mark, number) for number in range(count)))
    wait_until("all are up", lambda: sum(up(each) for each in folders_of(cluster).values()) == count, seconds=300)
    found = traces(cluster, frozenset(folders_of(cluster)))
    assert len(found.spaces) >= count - count // 10
    before = found.left()
    assert all(len(before[sort]) >= count for sort in ("folders", "memory"))

    begun = time.monotonic()
    gone = cluster.kubectl("delete", "--raw", f"/api/v1/namespaces/default/pods?labelSelector=mark={mark}")
    assert gone.code == 0, gone.err
    asked = time.monotonic()
    ends = watch_them_go(found)

    for sort, end in ends.items():
        late = (end - begun - GRACE_SECONDS, end - asked - GRACE_SECONDS)
        log.info("%s of %d pods: gone %.2f s after their grace, or %.2f s after the answer and it", sort, count, *late)
    wait_until("the API has forgotten them", lambda: mark not in cluster.kubectl("get", "pods").out)
    assert len(leftovers(cluster.home)) == OURS


def watch_them_go(found: Traces) -> dict[str, float]:
    """Look until nothing is left; the moments at which the last of each sort went."""
    ends: dict[str, float] = {}

    def is_over() -> bool:
        left = found.left()
        for sort, there in left.items():
            if there:
                ends.pop(sort, None)
            else:
                ends.setdefault(sort, time.monotonic())
        return not any(left.values())

    try:
        wait_until("nothing is left", is_over, seconds=60)
    except AssertionError as error:
        left = {sort: there[:5] for sort, there in found.left().items() if there}
        raise AssertionError(f"{error}: {left}") from error
    return ends
