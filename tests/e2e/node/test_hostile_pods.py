"""Pods that do not want to go: once they are deleted, nothing of them is left on the machine."""

import json
import logging
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paceline.host.netlink import NetlinkSocket
from paceline.host.netns import RUN, veths
from paceline.host.pod_bridge import bridge_name
from paceline.node.runtime.shim import start_ticks
from paceline.testing.embedded import Embedded, leftovers, wait_until
from tests.e2e.support.containers import HOST
from tests.e2e.support.shell_pods import create

pytestmark = pytest.mark.slow

log = logging.getLogger(__name__)

# Pods in `make test` and in `make soak`; three in ten of them are hostile.
FEW, MANY = 40, 200
GRACE_SECONDS = 2
SCRIPT = (Path(__file__).parents[1] / "jobs" / "hostile.py").read_text()
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
# supervisor, control, agent and zygote
OURS = 4


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
        # Its last hook does not end either: as with a kubelet, it has two seconds more after that.
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
    # Their keepers by pid: start time, and whose they are.
    keepers: dict[int, tuple[int, str]]

    def left(self) -> dict[str, list[str]]:
        """What is still there, by sort; by uid where it can be told."""
        network = RUN / bridge_name(self.cluster.home)
        cheap = {
            "keepers": [uid for pid, (ticks, uid) in self.keepers.items() if start_ticks(pid) == ticks],
            "folders": self._with_uid(self.cluster.settings.agent / "pods"),
            "memory": self._with_uid(Path("/dev/shm")),
            "networks": self._with_uid(network),
            "cgroups": [found for folder in cgroup_folders() for found in self._with_uid(folder)],
        }
        if any(cheap.values()):
            # A look at the whole machine, again and again, would make those wait who are to take all this away.
            return cheap
        return cheap | {
            "processes": [str(pid) for pid, space in spaces_of_all() if space in self.spaces],
            "cables": links(network.name) if network.exists() else [],
            "mounts": [line for line in Path("/proc/self/mounts").read_text().splitlines() if self._names_us(line)],
        }

    def forget(self, there: set[str]) -> None:
        """Look no more for keepers that have gone."""
        for pid in [pid for pid, (_, uid) in self.keepers.items() if uid not in there]:
            del self.keepers[pid]

    def _with_uid(self, folder: Path) -> list[str]:
        """The uids of the names in a folder that are a pod's uid, or have it before a dot."""
        return [uid for name in names(folder) if (uid := name.removeprefix("paceline-").partition(".")[0]) in self.uids]

    def _names_us(self, line: str) -> bool:
        return f"/{self.cluster.home.name}/agent/pods/" in line or bridge_name(self.cluster.home) in line


def names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []  # noqa: PTH208 - of the names alone, and often


def links(bridge: str) -> list[str]:
    with NetlinkSocket() as line:
        return [each.alias for each in veths(line, bridge)]


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
    beside = (pid for pid, space in spaces_of_all() if pid in ours and space == here)
    keepers = {pid: (start_ticks(pid) or 0, uid) for pid in beside for uid in uids & works_in(pid)}
    return Traces(cluster=cluster, uids=uids, spaces=frozenset(spaces), keepers=keepers)


def works_in(pid: int) -> set[str]:
    """The parts of the folder that a process works in: a keeper's is its container's."""
    try:
        return set(Path(f"/proc/{pid}/cwd").readlink().parts)
    except OSError:
        return set()  # It has ended.


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
    # Of those that ended by themselves the memory is gone already.
    assert len(before["folders"]) == count
    assert len(before["memory"]) >= count - count // 10

    due = time.time() + GRACE_SECONDS
    gone = cluster.kubectl("delete", "--raw", f"/api/v1/namespaces/default/pods?labelSelector=mark={mark}")
    assert gone.code == 0, gone.err
    tricks = {each["metadata"]["uid"]: trick_of(number_of(each)) for each in json.loads(gone.out)["items"]}
    assert set(tricks) == found.uids
    for sort, ends in watch_them_go(found).items():
        late = sorted((end - due, tricks[uid]) for uid, end in ends.items() if uid in tricks)
        others = [moment for moment, trick in late if trick != "deaf"]
        if others:
            said = "%s of %d pods: gone %.2f s after grace in the middle, %.2f s at the latest (%s); no hook: %.2f s"
            log.info(said, sort, len(late), late[len(late) // 2][0], *late[-1], others[-1])
    wait_until("the API has forgotten them", lambda: mark not in cluster.kubectl("get", "pods").out)
    wait_until("nothing but ours runs", lambda: len(leftovers(cluster.home)) == OURS)


def number_of(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


def watch_them_go(found: Traces) -> dict[str, dict[str, float]]:
    """Look until nothing is left; when it was last seen, by sort and by whose it was."""
    seen: dict[str, dict[str, float]] = {}

    def is_over() -> bool:
        left, now = found.left(), time.time()
        for sort, there in left.items():
            seen.setdefault(sort, {}).update(dict.fromkeys(there, now))
        found.forget(set(left["keepers"]))
        return not any(left.values())

    try:
        wait_until("nothing is left", is_over, seconds=60)
    except AssertionError as error:
        left = {sort: there[:5] for sort, there in found.left().items() if there}
        raise AssertionError(f"{error}: {left}") from error
    return seen
