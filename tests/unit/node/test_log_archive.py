"""What gone pods wrote is kept whole or not at all, found by job and by name, and cleared away by policy."""

import contextlib
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from paceline.errors import BadRequest, NotFound
from paceline.host.effects import RealFiles
from paceline.model.retention import RetentionPolicy
from paceline.node.host_info import Folders
from paceline.node.logs.archive import ArchivedLogs, ArchivedPod, LogArchive
from paceline.node.logs.garbage_collection import sweep, to_prune
from paceline.node.runtime import shim
from paceline.testing.sim.effects import START, SimFiles, sim_world
from tests.unit.node.pods import container, pod

FOLDERS = Folders(root=Path("/agent"))
LINE = b"2030-01-01T00:00:00.000000000Z stdout F "


class Stopped(BaseException):
    """The process ends here."""


class Mortal(SimFiles):
    """A disk whose user is killed at a write of its choice."""

    left = None

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name in {"write", "overwrite", "make_folder", "move", "remove"} and self.left is not None:
            if self.left == 0:
                raise Stopped
            self.left -= 1
        return found


def past(policy=None, files=None):
    sim = sim_world()
    world = sim.world() if files is None else replace(sim.world(), files=files)
    return LogArchive(world=world, folders=FOLDERS, policy=policy or RetentionPolicy())


def lived(history, name, *, uid, job="", tries=1):
    """A pod that ran and is gone from the cluster, with all that it left."""
    labels = {"tensorstack.dev/owner-name": job} if job else {}
    subject = pod(container("main"))
    subject["metadata"] |= {"name": name, "uid": uid, "labels": labels}
    files = history.world.files
    for number in range(tries):
        folder = FOLDERS.attempt(uid, "main", number)
        files.make_folder(folder)
        files.write(folder / shim.STARTED, b"{}")
        files.write(folder / shim.LOG, LINE + b"hello\n")
    files.make_folder(FOLDERS.volume(uid, 0))
    files.write(FOLDERS.volume(uid, 0) / "large", b"x" * 1000)
    history.write_metadata(subject)
    return uid


def log_of(history, name, **query):
    folder = ArchivedLogs(archive=history).folder("team", name, query)
    return history.world.files.read(folder / shim.LOG).removeprefix(LINE)


def test_a_pods_log_is_kept_and_its_volumes_are_not():
    history = past()

    assert history.archive(lived(history, "p", uid="u1"))

    assert log_of(history, "p") == b"hello\n"
    assert history.world.files.names(FOLDERS.pods) == ()
    (found,) = history.find("team", pod="p")
    assert history.world.files.names(found.folder) == ("containers", "pod.json", "usage")
    assert found.folder == FOLDERS.history / "team" / "-" / "p.u1"


def test_what_was_to_be_started_is_not_kept_it_may_hold_secrets():
    history = past()
    uid = lived(history, "p", uid="u1")
    never = FOLDERS.attempt(uid, "main", 1)
    history.world.files.make_folder(never)
    history.world.files.write(never / shim.INTENT, b"secret")

    history.archive(uid)

    (found,) = history.find("team")
    assert not history.world.files.exists(found.folder / "containers/main/1/intent.json")
    assert [each["restarts"] for each in found.about["tries"]] == [0]


def test_a_pod_that_never_ran_leaves_nothing():
    history = past()
    uid = "u1"
    history.world.files.make_folder(FOLDERS.attempt(uid, "main", 0))

    assert not history.archive(uid)


def test_pods_are_found_by_job_and_by_name_the_last_first():
    sim = sim_world()
    history = LogArchive(world=sim.world(), folders=FOLDERS, policy=RetentionPolicy())
    for name, uid, job in (("a", "u1", "j"), ("b", "u2", "j"), ("a", "u3", "k"), ("lone", "u4", "")):
        sim.clock.advance(60)
        history.archive(lived(history, name, uid=uid, job=job))

    assert [each.about["uid"] for each in history.find("team", job="j")] == ["u2", "u1"]
    assert [each.about["uid"] for each in history.find("team", pod="a")] == ["u3", "u1"]
    assert len(history.find("team")) == 4
    assert history.find("other") == ()


@pytest.mark.parametrize("ask", [{"namespace": "../others"}, {"job": "../../others/job"}, {"namespace": "A"}])
def test_a_name_that_nobody_can_have_leads_nowhere(ask, tmp_path):
    folders = Folders(root=tmp_path / "agent")
    history = LogArchive(
        world=replace(sim_world().world(), files=RealFiles()), folders=folders, policy=RetentionPolicy()
    )
    outside = tmp_path / "agent" / "others" / "job" / "p.u1"
    outside.mkdir(parents=True)
    (folders.history / "team").mkdir(parents=True)
    told = {"pod": "p", "job": "job", "uid": "u1", "goneAt": "2030-01-01T00:00:00Z", "bytes": 0}
    (outside / "pod.json").write_text(json.dumps(told))

    assert history.find(**{"namespace": "team", **ask}) == ()


def test_a_name_as_long_as_names_may_be_is_kept():
    history, name = past(), "a" * 253

    history.archive(lived(history, name, uid="u" * 36))

    assert log_of(history, name) == b"hello\n"
    assert len(history.find("team", pod=name)[0].folder.name) < 255


def test_tries_and_containers_are_told_apart():
    history = past()
    history.archive(lived(history, "p", uid="u1", tries=2))

    assert log_of(history, "p", previous="true") == b"hello\n"
    with pytest.raises(BadRequest, match="it had: main"):
        log_of(history, "p", container="other")
    with pytest.raises(NotFound, match="no log of pod q is archived"):
        log_of(history, "q")


@pytest.mark.parametrize("left", range(12))
def test_a_keeper_that_is_killed_at_any_write_loses_nothing(left):
    files = Mortal()
    history = past(files=files)
    uid = lived(history, "p", uid="u1", job="j")
    files.left = left
    try:
        history.archive(uid)
    except Stopped:
        assert files.exists(FOLDERS.pod(uid)) or history.find("team", pod="p")
    files.left = None

    # The next agent finds the folder where it was, if it is still there, and goes on.
    if files.exists(FOLDERS.pod(uid)):
        assert history.archive(uid)

    assert log_of(history, "p") == b"hello\n"
    assert len(history.find("team")) == 1


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("left", range(4))
def test_who_clears_away_and_is_killed_at_any_write_is_followed_by_one_who_goes_on(left, remembers):
    files, cache = Mortal(), {} if remembers else None
    history = past(RetentionPolicy(pods=0), files=files)
    history.archive(lived(history, "p", uid="u1"))
    files.left = left
    with contextlib.suppress(Stopped):
        sweep(history, cache=cache)
    files.left = None

    sweep(history, cache=cache)

    with pytest.raises(NotFound, match=r"was removed \(2030-01-01T00:00:00Z\) to free disk space.*settings.yaml"):
        log_of(history, "p")
    assert json.loads(files.read(history.find("team")[0].folder / "pod.json"))["pod"] == "p"
    assert sweep(history).pods == 0


class Counted(SimFiles):
    """Counts what is read."""

    reads = 0

    def read(self, path):
        self.reads += 1
        return super().read(path)


def test_a_round_reads_what_is_new_and_not_all_that_was_ever_kept():
    files = Counted()
    history, cache = past(RetentionPolicy(pods=3), files=files), {}
    for number in range(3):
        history.archive(lived(history, f"p{number}", uid=f"u{number}"))
    assert sweep(history, cache=cache).pods == 0
    history.world.clock.advance(1)
    history.archive(lived(history, "p3", uid="u3"))
    files.reads = 0

    assert sweep(history, cache=cache).pods == 1

    # The new one, and the old one that goes.
    assert files.reads == 2
    shown = {each.about["pod"]: each.is_pruned for each in history.find("team")}
    assert (sum(shown.values()), shown["p3"], sorted(shown)) == (1, False, ["p0", "p1", "p2", "p3"])
    assert sweep(history, cache=cache).pods == 0
    assert cache.keys() == {each.folder for each in history.find("team")}


def gone(name, *, ago, size):
    about = {"pod": name}
    return ArchivedPod(
        folder=Path(name), about=about, gone_at=START - timedelta(hours=ago), bytes=size, is_pruned=False
    )


@pytest.mark.parametrize(
    ("policy", "goes"),
    [
        (RetentionPolicy(), []),
        (RetentionPolicy(pods=2), ["c", "d"]),
        (RetentionPolicy(bytes=30), ["c", "d"]),
        (RetentionPolicy(bytes=29), ["b", "c", "d"]),
        (RetentionPolicy(age=timedelta(hours=3)), ["d"]),
        (RetentionPolicy(pods=0), ["a", "b", "c", "d"]),
    ],
)
def test_the_oldest_goes_first(policy, goes):
    pods = [gone("a", ago=1, size=10), gone("b", ago=2, size=20), gone("c", ago=3, size=5), gone("d", ago=4, size=1)]

    assert [each.about["pod"] for each in to_prune(pods, policy, START)] == goes


def over(history, name, *, uid):
    """A pod that has ended and is still there."""
    lived(history, name, uid=uid)
    subject = pod(container("main"))
    subject["metadata"] |= {"name": name, "uid": uid}
    return subject | {"status": {"phase": "Succeeded", "startTime": "2030-01-01T00:00:00Z"}}


def own_log(history, uid):
    folder = FOLDERS.attempt(uid, "main", 0)
    return history.check_log(folder, "p") and history.world.files.read(folder / shim.LOG)


def test_pods_that_are_still_there_keep_their_logs_before_those_that_are_gone():
    history = past(RetentionPolicy(bytes=len(LINE) + 6, pods=0, age=timedelta()))
    history.archive(lived(history, "gone", uid="u1"))

    assert sweep(history, [over(history, "p", uid="u2")]).pods == 1

    assert own_log(history, "u2")
    with pytest.raises(NotFound, match="was removed"):
        log_of(history, "gone")


@pytest.mark.parametrize("left", range(4))
def test_logs_of_pods_that_are_still_there_go_when_they_alone_are_too_much_and_that_is_said(left):
    files = Mortal()
    history = past(RetentionPolicy(bytes=10), files=files)
    ended = over(history, "p", uid="u1")
    files.left = left
    with contextlib.suppress(Stopped):
        sweep(history, [ended])
    files.left = None

    sweep(history, [ended])

    with pytest.raises(NotFound, match="the log of pod p was removed"):
        own_log(history, "u1")
    assert files.exists(FOLDERS.attempt("u1", "main", 0) / shim.STARTED)
    assert sweep(history, [ended]).pods == 0


def test_of_a_pod_in_which_something_runs_nothing_is_touched(monkeypatch):
    history = past(RetentionPolicy(bytes=0))
    ended = over(history, "p", uid="u1")
    monkeypatch.setattr(history.world.processes, "holds", lambda _folder: True)

    assert sweep(history, [ended]).pods == 0
    assert own_log(history, "u1")


def test_the_volumes_of_a_pod_that_is_over_go_and_its_log_stays():
    history = past()
    uid = lived(history, "p", uid="u1")

    history.remove_volumes(uid)

    assert not history.world.files.exists(FOLDERS.volume(uid, 0))
    assert own_log(history, uid)


class Tight(SimFiles):
    """A disk that is nearly full."""

    free = 0.01

    def room(self, path):
        return self.free


def test_on_a_disk_that_is_nearly_full_nothing_of_the_past_is_kept():
    history = past(files=Tight())

    assert not history.archive(lived(history, "p", uid="u1"))


def test_a_disk_that_gets_full_gets_the_room_of_the_past():
    files = Tight()
    files.free = 0.5
    history = past(files=files)
    history.archive(lived(history, "p", uid="u1"))
    files.free = 0.01

    assert sweep(history).pods == 1
    (found,) = history.find("team", pod="p")
    assert found.is_pruned
