"""The enumeration misses nothing: every write of store/, node/ and control/ is one at which somebody is killed.

In     the source of the three packages, and the lives of tests/crash/lives.py.
Out    file:line of each write, and the name of each coroutine, that no life goes through.
Never  a write left out because it is hard to reach: a life can be written for it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from paceline.testing.sim.crash_points import PACKAGES, SOURCE, Site
from paceline.testing.sim.scenario import COMPONENTS
from tests.crash.choices import alone, every_await, every_state, writes_of
from tests.crash.lives import LIVES

TESTS = Path(__file__).parents[1]

# The first test lives all lives.
pytestmark = pytest.mark.timeout(900)

# What a write is asked of, in the words of the code, and the calls that write; each with what the seam sees of it.
WRITES = {
    "cluster": {"create": ["POST"], "post": ["POST"], "replace": ["PUT"], "patch": ["PATCH"], "delete": ["DELETE"]},
    "recorder": {"record": ["POST", "PATCH"]},
    "files": {
        name: [f"files.{name}"]
        for name in ("write", "overwrite", "write_at", "make_folder", "make_beneath", "link", "share", "move", "remove")
    },
    "processes": {name: [f"processes.{name}"] for name in ("start", "signal")},
    "log": {name: [f"log.{name}"] for name in ("append", "compact")},
}
# Doors to the machine that no seam watches, and the files that have a reason to use them: where they are killed.
DOORS = {"os", "shutil", "sqlite3", "subprocess", "tempfile", "open"}
ELSEWHERE = {
    "controllers/leader_election.py": "unit/controllers/test_leader.py",  # the embedded cluster needs no lease
    "node/runtime/process_limits.py": "e2e/node/test_escape.py",  # part of the shim
    "node/runtime/subpath_mounts.py": "e2e/storage/test_volume_races.py",  # part of the shim
    "store/high_water_mark.py": "e2e/recovery/test_disk.py",  # the real disk
    "node/logs/garbage_collection.py": "unit/node/test_log_archive.py",  # lives are too short for anything to expire
    "node/usage/recorder.py": "unit/node/test_usage_series.py",  # nothing is measured in a simulated world
    "node/usage/ring_file.py": "unit/node/test_usage_series.py",  # as above
    "node/runtime/nsenter.py": "e2e/node/test_exec.py",  # runs a command in a container, in a process of its own
    "podtools/ssh_shim.py": "e2e/frameworks/test_launch.py",  # stands in for ssh inside a job's pods
    "node/runtime/zygote.py": "e2e/node/test_shim.py",  # the real parent of all shims
    "node/runtime/cri_log.py": "e2e/node/test_shim.py",  # part of the shim
    "node/runtime/subreaper.py": "e2e/node/test_no_sandbox.py",  # a process of its own
    "node/runtime/shim.py": "e2e/node/test_shim.py",  # runs beside a container, in a process of its own
    "node/runtime/bwrap.py": "e2e/node/test_shim.py",  # part of the shim
    "store/backup.py": "e2e/recovery/test_backup.py",  # copies of the real file
    "store/sqlite_schema.py": "crash/test_sqlite_images.py",  # the real disk
    "store/sqlite.py": "crash/test_sqlite_images.py",  # the real disk
}
# What is told of a status that somebody else's hand has spoilt; it is told at every start, and nothing else is written.
SPOILT = "integration/test_apps.py: a status that nobody can read"
# Writes at which nobody is killed yet, and why.
NOT_KILLED_AT = {
    "controllers/app/reconciler.py reconcile self.recorder.record": SPOILT,
    "controllers/job/reconciler.py _say_unreadable self.recorder.record": SPOILT,
    "controllers/interactive/reconciler.py _say_unreadable self.recorder.record": SPOILT,
    "controllers/interactive/reconciler.py _hinder self.recorder.record": "no policies: kube/test_rejected_pods.py",
    "controllers/interactive/job_tensorboard.py reconcile self.recorder.record": "as above",
    "controllers/job/workloads.py _create self.cluster.create": "there is no Kueue here: kube/test_queueing.py",
    "controllers/job/workloads.py _change self.cluster.delete": "as above",
    "controllers/job/workloads.py _change self.cluster.patch": "as above",
    "controllers/job/workloads.py _change self.cluster.replace": "as above",
    "controllers/job_records.py prune self.cluster.delete": "lives are too short: integration/test_records.py",
    "controllers/event_expiry.py _delete self.cluster.delete": "lives are too short: integration/test_queue.py",
    "controllers/job/apply_plan.py _make_launch hands.cluster.patch": "of a job that comes back in another size",
    "controllers/job/apply_plan.py _make_group hands.cluster.create": "only with T9k's scheduler are there PodGroups",
    "controllers/job/apply_plan.py _make_group hands.cluster.patch": "as above: integration/test_elastic.py",
    "controllers/job/reconciler.py _hinder self.recorder.record": "no policies here: kube/test_trouble.py",
    "node/volumes/reclaim.py reconcile self.recorder.record": "unit/node/test_reclaim.py",
    "node/agent.py _start self.recorder.record": "nothing is built in a simulated world: e2e/node/test_images.py",
    "controllers/job/apply_plan.py _make_claims hands.cluster.create": "no life here has its output copied: "
    "integration/test_elastic.py, e2e/storage/test_output_faults.py",
}
# Coroutines that no life waits in, and why.
NOT_WAITED_IN = {
    "controllers/job/reconciler.py Jobs._sync_workload": "as NOT_KILLED_AT",
    "controllers/job/workloads.py": "as NOT_KILLED_AT",
    "controllers/job_records.py JobRecords.prune": "as NOT_KILLED_AT",
    "controllers/event_expiry.py EventExpiry.sweep": "as NOT_KILLED_AT",
    "controllers/event_expiry.py EventExpiry._delete": "as NOT_KILLED_AT",
    "controllers/job/apply_plan.py _make_claims": "as NOT_KILLED_AT",
    "controllers/job/apply_plan.py _make_group": "as NOT_KILLED_AT",
    "controllers/job/reconciler.py Jobs._hinder": "as NOT_KILLED_AT",
    "controllers/job/reconciler.py Jobs._say_unreadable": "as NOT_KILLED_AT",
    "controllers/job/reconciler.py Jobs._with_nodes": "the embedded cluster loses no nodes: kube/test_disruption.py",
    "controllers/job/reconciler.py Jobs._node": "as _with_nodes",
    "controllers/job/reconciler.py Jobs._with_claims": "our own scheduler names claims: kube/test_waiting.py",
    "controllers/job/reconciler.py Jobs._unbound_claim": "as _with_claims",
    "controllers/interactive/reconciler.py InteractiveController._hinder": "as NOT_KILLED_AT",
    "controllers/interactive/reconciler.py InteractiveController._say_unreadable": "as NOT_KILLED_AT",
    "controllers/leader_election.py": "as ELSEWHERE",
    "node/agent.py Agent._disconnect": "pods have no network of their own in a simulated world",
    "node/server/remotecommand.py": "a client's line to a command, which ends with it; writes nothing",
    "node/network/pod_ports.py": "passes requests on to pods; writes nothing",
    "node/network/service_proxy.py ServiceProxy.route": "nobody calls in a simulated world; writes nothing",
    "node/server/stats.py": "measures; writes nothing",
    "node/usage/series.py": "the agent's socket; reads only",
    "node/probes/prober.py Prober.probe": "as _connect",
    "node/probes/prober.py _connect": "there is no network in a simulated world; writes nothing",
    "node/probes/prober.py _get": "as _connect",
    "node/probes/prober.py ExecProbe.run": "nothing runs commands in a simulated container; writes nothing",
    "node/probes/prober.py ExecProbe._run": "as ExecProbe.run",
    "node/logs/logs.py": "follows the log of a container; reads only",
    "node/server/api.py": "the agent's socket; reads only",
    "node/server/streaming.py": "opens lines to containers; writes nothing",
    "node/lifecycle/starter.py Starter.config_of": "only for commands in containers; writes nothing",
    "node/lifecycle/starter.py Starter._mount": "nothing is mounted in a simulated world: e2e/network/test_network.py",
    "store/watch_hub.py Watch.__anext__": "the server takes all there is at once",
    "store/watch_hub.py Watch._wait": "the server takes all there is at once",
    "store/group_commit.py Writer._keep_only_urgent": "a full disk gives its reserve up: e2e/recovery/test_disk.py",
    "store/group_commit.py Writer._release_reserve": "as _keep_only_urgent",
    "store/group_commit.py Writer.failed": "waits for a failed sync: e2e/recovery/test_failed_sync.py",
    "store/store.py Store.failed": "as Writer.failed",
    "store/store.py Store.close": "an orderly end is no crash",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A write as it stands in the code: the statement's lines, and what the seam sees when it is made."""

    file: str
    function: str
    line: int
    first: int
    last: int
    text: str
    seen: list[str]

    def __str__(self):
        return f"{self.file} {self.function} {self.text}"

    def is_at(self, site: Site, call: str) -> bool:
        return site.file == self.file and self.first <= site.line <= self.last and verb_of(call) in self.seen


def verb_of(call: str) -> str:
    """What the seam sees, without the path of a request."""
    return call.partition(" ")[0]


@cache
def trees():
    paths = (path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py")))
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in paths}


@cache
def places():
    return tuple(
        place for file, tree in trees().items() if file not in ELSEWHERE for place in places_in(file, tree, (1, 1), "")
    )


def places_in(file, node, lines, function) -> Iterator[Place]:
    """Every write below a node; `lines` are those of the statement it is part of, in a function of this name."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    if isinstance(node, ast.stmt):
        body = getattr(node, "body", None)
        lines = (node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno)
    if isinstance(node, ast.Attribute):
        asked = WRITES.get(name_of(node.value).lstrip("_"), {})
        if node.attr in asked:
            yield Place(
                file=file,
                function=function,
                line=node.lineno,
                first=lines[0],
                last=lines[1],
                text=ast.unparse(node),
                seen=asked[node.attr],
            )
    for child in ast.iter_child_nodes(node):
        yield from places_in(file, child, lines, function)


def name_of(node):
    """The last word of `self.world.files`, of `files`."""
    return getattr(node, "attr", None) or getattr(node, "id", "")


@cache
def killed_at():
    """The writes before and after which a component is killed in `make test`, by where they stand."""
    found = set()
    for life in LIVES:
        for component in COMPONENTS:
            numbers = {crash.number for crash in every_state(life, component)}
            writes = (write for write in writes_of(life, component) if write.number in numbers)
            found |= {(write.site, write.call) for write in writes}
    return found


@pytest.mark.slow
def test_a_component_is_killed_at_every_write():
    assert len(places()) > 30

    missed = [
        str(place)
        for place in places()
        if str(place) not in NOT_KILLED_AT and not any(place.is_at(*killed) for killed in killed_at())
    ]

    assert not missed, "no life of tests/crash/lives.py makes these writes:\n" + "\n".join(missed)


@pytest.mark.slow
def test_every_write_that_is_made_was_counted():
    """A write that the seam sees and the count does not would hide the next one of its sort."""
    mine = {(site, verb_of(call)) for site, call in killed_at() if site.file.partition("/")[0] in PACKAGES}

    unknown = [f"{site}: {call}" for site, call in mine if not any(place.is_at(site, call) for place in places())]

    assert not unknown, "\n".join(sorted(unknown))


def test_nothing_is_written_past_the_seams():
    strays = [
        f"{file}:{node.lineno} {node.id}"
        for file, tree in trees().items()
        if file not in ELSEWHERE
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in DOORS
    ]

    assert not strays, "no crash test sees what goes through these doors:\n" + "\n".join(strays)


@pytest.mark.parametrize(("file", "test"), ELSEWHERE.items(), ids=ELSEWHERE)
def test_what_is_killed_elsewhere_is_killed_there(file, test):
    assert (SOURCE / file).exists()
    assert (TESTS / test).exists()


@cache
def waited_in():
    """The coroutines in which a task waits when its component is killed in `make test`."""
    found = set()
    for life in LIVES:
        for component in COMPONENTS:
            turns = {crash.number for crash in every_await(life, component)}
            awaits = alone(life, component).awaits
            found |= {f"{site.file} {site.function}" for site, turn in awaits.items() if turn in turns}
    return found


def coroutines():
    for file, tree in trees().items():
        for node, name in functions_in(tree, ""):
            if isinstance(node, ast.AsyncFunctionDef) and any(isinstance(each, ast.Await) for each in ast.walk(node)):
                yield f"{file} {name}"


def functions_in(node, prefix):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions_in(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child, f"{prefix}{child.name}"


def is_excused(name):
    return name in NOT_WAITED_IN or name.split()[0] in NOT_WAITED_IN


@pytest.mark.slow
def test_a_component_is_killed_while_it_waits_in_every_coroutine():
    missed = [name for name in coroutines() if name not in waited_in() and not is_excused(name)]

    assert not missed, "no life of tests/crash/lives.py waits in these:\n" + "\n".join(missed)


@pytest.mark.slow
def test_every_excuse_is_still_needed():
    missed = {name for name in coroutines() if name not in waited_in()}

    wrong = [excuse for excuse in NOT_WAITED_IN if not any(excuse in (name, name.split()[0]) for name in missed)]

    assert not wrong, "\n".join(wrong)
