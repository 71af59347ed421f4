"""Applications by the real command: from a values file to results, and the next iteration one command away."""

import json
import re
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, Ran, wait_until
from paceline.testing.git_server import git_server
from tests.e2e.support.data_jobs import beside_pods

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
# The values of the CPU tutorial, put right, and small.
VALUES = """\
worker:
  number: 2
  gpuCount: 0
  image: python:3.11
  memory: 64Mi
ps:
  number: 2
  memory: 64Mi
tensorboard:
  image: nobody/has-this:1
hyperparams:
  epochs: 3
  batchsize: 20
  learningrate: 0.05
persistence:
  mountPath: /results
  pvc:
    storage: 1Gi
    matchLabels:
      train: mnist
"""
# The tutorial's own slips: a key one space too deep, and all indentation lost.
TOO_DEEP = "worker:\n   number: 2\n   gpuCount: 1\n ps:\n   number: 2\n"
LOST = "worker:\nnumber: 2\nimage: a\nps:\nnumber: 2\nimage: b\npersistence:\nmountPath: /data\n"


@pytest.fixture(scope="module")
def share(tmp_path_factory) -> Path:
    """The folder that stands for a network share."""
    return tmp_path_factory.mktemp("share")


@pytest.fixture(scope="module")
def values(cluster: Embedded, share: Path, tmp_path_factory) -> str:
    """A values file; the volume that its labels choose is there, and so is one that they do not."""
    for name, label, folder in (("nas", "mnist", share), ("other", "other", share / "other")):
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": {"train": label}},
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": str(folder)},
            },
        }
        made = cluster.kubectl("create", "-f", "-", stdin=json.dumps(volume))
        assert made.code == 0, made.err
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    file.write_text(VALUES)
    return str(file)


def ask(cluster: Embedded, *words: str, code: int = 0) -> Ran:
    ran = cluster.paceline(*words)
    assert ran.code == code, (words, ran)
    return ran


def shown(cluster: Embedded, *words: str):
    ran = cluster.kubectl("get", *words, "-o", "json")
    return json.loads(ran.out) if ran.code == 0 else None


def comes_to(cluster: Embedded, name: str, revision: int, phase: str):
    def look():
        status = (shown(cluster, "trainingapp", name) or {}).get("status") or {}
        return status if (status.get("revision"), status.get("phase")) == (revision, phase) else None

    return wait_until(f"revision {revision} of {name} is {phase}", look, seconds=120)


def test_a_values_file_becomes_a_training_its_results_and_the_next_revision(cluster, values, share):
    """H-01, H-09, H-14, H-17, H-18, H-22, H-50, H-51, H-55, H-56, H-57, H-61, H-68, H-70, H-72

    S-33, S-46, S-47, S-48
    """
    dry = ask(cluster, "app", "install", "mnist", "tensorflow-training", "-f", values, "--dry-run", "--debug")
    assert "kind: TensorFlowTrainingJob" in dry.out
    assert shown(cluster, "trainingapp", "mnist") is None

    installed = ask(cluster, "app", "install", "mnist", "tensorflow-training", "-f", values)
    assert installed.out == "app/mnist installed\n"
    comes_to(cluster, "mnist", 1, "Succeeded")
    reused = ask(cluster, "app", "install", "mnist", "tensorflow-training", "-f", values, code=1)
    assert "mnist already exists" in reused.err
    assert shown(cluster, "pvc", "mnist-data")["spec"]["volumeName"] == "nas"
    assert list(share.glob("logs/mnist-1/worker-1/events.out.tfevents.*")), "curves of every worker are on the share"

    check_what_was_written(cluster, share)

    listed = ask(cluster, "app", "list").out.splitlines()
    assert listed[0].split() == ["NAME", "REVISION", "UPDATED", "STATUS", "CHART", "NAMESPACE"]
    assert re.fullmatch(
        r"mnist +1 +\w{3} \w{3} +\d+ [\d:]{8} \d{4} +Succeeded +tensorflow-training-0.1.0 +default", listed[1]
    )
    status = ask(cluster, "app", "status", "mnist").out
    assert re.search(r"^worker-0 +1 +1 ", status, re.MULTILINE)
    assert re.search(r"^ps-1 +1 +0 ", status, re.MULTILINE)
    assert re.search(r"^mnist-1-tf-cluster-spec +1 ", status, re.MULTILINE)

    same = ask(cluster, "app", "upgrade", "mnist", "--set", "hyperparams.learningrate=0.05", "-f", values, code=1)
    assert "revision 1 of mnist" in same.err
    assert "nothing to change" in same.err
    changed = ask(cluster, "app", "upgrade", "mnist", "--set", "hyperparams.learningrate=0.2")
    assert changed.out.splitlines() == [
        "hyperparams.learningrate: 0.05 → 0.2",
        "app/mnist upgraded to revision 2",
    ]
    comes_to(cluster, "mnist", 2, "Succeeded")
    assert "learning rate 0.2" in ask(cluster, "logs", "mnist").out

    history = wait_until("both are known", lambda: read_history(cluster, "mnist"))
    assert [row[:1] for row in history] == [["1"], ["2"]]
    differ = ask(cluster, "app", "diff", "mnist", "1", "2").out
    assert re.search(r"^hyperparameters.learningrate +0.05 +0.2$", differ, re.MULTILINE)
    assert re.search(r"^metrics.Final Cost +0\.\d+ +0\.\d+$", differ, re.MULTILINE)

    ask(cluster, "app", "uninstall", "-y", "mnist")
    gone = ask(cluster, "app", "uninstall", "-y", "mnist")
    assert "does not exist" in gone.err
    for kind in ("tensorflowtrainingjobs", "jobrecords", "tensorboards", "pvc"):
        wait_until(f"no {kind} are left", lambda kind=kind: not of_mnist(cluster, kind))
    assert list(share.glob("logs/mnist-2/checkpoint.json")), "the files stay"


def of_mnist(cluster: Embedded, kind: str) -> list[str]:
    # The records of jobs stay, as those of all jobs do.
    objects = [obj for obj in shown(cluster, kind)["items"] if not (obj.get("spec") or {}).get("uid")]
    names = [obj["metadata"]["name"] for obj in objects]
    return [name for name in names if name.startswith("mnist")]


def check_what_was_written(cluster: Embedded, share: Path) -> None:
    said = ask(cluster, "logs", "mnist", "--all").out
    assert {f"worker-{n} trains on shard {n} of 2" in said for n in (0, 1)} == {True}, "each has a part of the data"
    assert {f"ps-0 │ Updates from worker-{n}: " in said for n in (0, 1)} == {True}, "and all meet at the servers"
    assert "\x00" not in said, "what is for TensorBoard is no log"
    kept = [path.relative_to(share) for path in share.rglob("checkpoint.json")]
    assert kept == [Path("logs/mnist-1/checkpoint.json")], "the first worker alone keeps the model"


def read_history(cluster: Embedded, name: str):
    rows = [row.split() for row in ask(cluster, "app", "history", name).out.splitlines()[1:]]
    return rows if all("Cost" in row for row in rows) else None


@pytest.mark.slow
def test_an_application_is_stopped_goes_on_is_restarted_and_runs_once_more(cluster):
    """S-09, S-51, S-52"""
    long = "worker.gpuCount=0,worker.number=1,ps.number=0,worker.memory=64Mi,hyperparams.epochs=1000000"
    ask(
        cluster,
        "app",
        "install",
        "slow",
        "tensorflow-training",
        "--set",
        long,
        "--set",
        "tensorboard.image=nobody/has:1",
    )
    comes_to(cluster, "slow", 1, "Running")

    assert ask(cluster, "stop", "slow").out == "app/slow stopped\n"
    comes_to(cluster, "slow", 1, "Stopped")
    assert ask(cluster, "restart", "slow").out == "app/slow resumed\n"
    comes_to(cluster, "slow", 1, "Running")
    assert ask(cluster, "rerun", "slow").out == "app/slow runs again as revision 2\n"
    comes_to(cluster, "slow", 2, "Running")
    assert shown(cluster, "tensorflowtrainingjob", "slow-1")["status"]["phase"] == "Paused"
    ask(cluster, "delete", "-y", "slow")
    wait_until("it is gone", lambda: shown(cluster, "trainingapp", "slow") is None)


def test_malformed_values_are_refused_with_their_lines_and_nothing_starts(cluster, tmp_path):
    """H-49"""
    deep, lost = tmp_path / "deep.yaml", tmp_path / "lost.yaml"
    deep.write_text(TOO_DEEP)
    lost.write_text(LOST)

    first = ask(cluster, "app", "install", "bad", "tensorflow-training", "-f", str(deep), code=2)
    second = ask(cluster, "app", "install", "bad", "tensorflow-training", "-f", str(lost), code=2)

    assert f"{deep}:4: line 4 is not YAML" in first.err
    assert f'{lost}:5: duplicate key "number"' in second.err
    assert "worker is empty" in second.err
    assert shown(cluster, "trainingapp", "bad") is None


def test_a_gpu_that_is_not_there_is_said_and_what_to_set(cluster):
    """H-32"""
    ask(cluster, "app", "install", "gpu", "tensorflow-training", "--set", "tensorboard.image=nobody/has:1")

    def look():
        return ((shown(cluster, "trainingapp", "gpu") or {}).get("status") or {}).get("waiting")

    waiting = wait_until("it says why it waits", look)
    assert "nvidia.com/gpu" in waiting
    assert "paceline app upgrade gpu --set worker.gpuCount=0" in waiting
    ask(cluster, "app", "uninstall", "-y", "gpu")


SCRIPT = """\
import os, sys
import beside
print("told", sys.argv[1:], "in", os.getcwd(), beside.WORD, flush=True)
print("input", sorted(os.listdir("/input")) if os.path.isdir("/input") else "none", flush=True)
with open("/output/made.txt", "w") as made:
    made.write(os.environ.get("JOB_INDEX", "alone"))
print("Final Cost: 0.25", flush=True)
"""


@pytest.fixture
def code(tmp_path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "beside.py").write_text('WORD = "found"\n')
    return folder / "train.py"


def test_a_script_is_trained_on_several_workers_with_data_in_and_results_out(cluster, code, tmp_path):
    """S-09, S-11, S-13, S-23, S-24, S-34, D-11"""
    bucket = tmp_path / "bucket"
    (bucket / "a").mkdir(parents=True)
    (bucket / "a" / "b.txt").write_text("data")
    made = ask(cluster, "volume", "create", "tfoss", "--dir", str(bucket))
    assert made.out == "volume/tfoss created\n"
    assert "already exists" in ask(cluster, "volume", "create", "tfoss", "--size", "1Gi", code=1).err
    assert re.search(rf"^tfoss +folder +{bucket} ", ask(cluster, "volume", "list").out, re.MULTILINE)

    command = ("train", str(code), "pair", "--workers", "2", "--memory", "64Mi", "--data", "tfoss")
    trained = ask(cluster, *command)
    assert "told [] in /source found" in trained.out
    assert "input ['a'" in trained.out
    assert [(bucket / "pair-1" / f"worker-{index}" / "made.txt").read_text() for index in (0, 1)] == ["0", "1"]

    assert "pair already exists" in ask(cluster, *command, code=1).err
    assert "nothing to change" in ask(cluster, *command, "--update", code=1).err
    again = ask(cluster, *command, "--update", "--param", "lr=0.001")
    assert "told ['--lr=0.001']" in again.out
    assert "hyperparameters.lr=0.001" in ask(cluster, "app", "history", "pair").out

    ask(cluster, "app", "uninstall", "-y", "pair")
    ask(cluster, "volume", "delete", "-y", "tfoss")
    assert (bucket / "pair-2" / "worker-1" / "made.txt").exists(), "the files stay"
    wait_until("the code goes too", lambda: "pair-source" not in cluster.kubectl("get", "configmaps").out)


def test_a_script_that_fails_fails_the_command(cluster, tmp_path):
    """S-29"""
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(3)\n")

    ran = ask(cluster, "train", str(script), code=1)

    assert "3" in ran.err
    comes_to(cluster, "broken", 1, "Failed")
    ask(cluster, "app", "uninstall", "-y", "broken")


REFUSED = {
    "ssh": (("--git", "git@example.org:a/b.git", "--command", "x", "n"), "ssh is not supported"),
    "a password in the address": (
        ("--git", "https://me:hunter22@example.org/a", "--command", "x", "n"),
        "must not contain user and password",
    ),
    "an option for a revision": (
        ("--git", "https://example.org/a", "--revision=--upload-pack=x", "--command", "x", "n"),
        "a branch, a tag or a full commit",
    ),
    "no command": (("--git", "https://example.org/a/b.git", "n"), "set a command"),
    "a name of 65 letters": (("--git", "https://example.org/a", "--command", "x", "a" * 65), "64"),
    "an underscore": (("--git", "https://example.org/a", "--command", "x", "a_b"), "a_b"),
    "a relative folder": (("--git", "https://example.org/a", "--command", "x", "--data", "./d", "n"), "absolute"),
    "a folder that is not there": (
        ("--git", "https://example.org/a", "--command", "x", "--data", "/no/such", "n"),
        "no such folder",
    ),
    "a volume that is not there": (
        ("--git", "https://example.org/a", "--command", "x", "--data", "nosuch", "n"),
        "no volume named 'nosuch'",
    ),
    "a log folder elsewhere": (
        ("--git", "https://example.org/a", "--command", "x", "--log-dir", "/logs", "n"),
        "below /output",
    ),
    "a script that is not there": (("nosuch.py",), "no such file"),
    "no name": (("--git", "https://example.org/a", "--command", "x"), "NAME"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_a_training_that_cannot_be_is_refused_and_nothing_starts(cluster, words, said):
    """S-17, S-24, S-27, S-32"""
    ran = cluster.paceline("train", *words)

    assert ran.code in (1, 2), ran
    assert said in ran.err
    assert "hunter22" not in ran.err
    assert shown(cluster, "trainingapp", "n") is None


@pytest.mark.slow
def test_a_private_repository_is_read_and_its_password_is_nowhere(cluster, tmp_path):
    """S-12, S-28, S-29"""
    with git_server(tmp_path / "git", host=beside_pods(cluster)) as server:
        server.commit("private/closed", {"hello.txt": "closed and well\n"})
        right, wrong = tmp_path / "right", tmp_path / "wrong"
        right.write_text(server.password)
        wrong.write_text("no-such-word")
        words = ("train", "--git", server.url("private/closed"), "--git-user", server.user, "--framework", "python")
        command = ("--command", "cat hello.txt && env && ps -ef")
        trained = ask(cluster, *words, *command, "--git-password-file", str(right), "closed")
        refused = ask(cluster, *words, *command, "--git-password-file", str(wrong), "open", code=1)

    assert "closed and well" in trained.out
    kinds = "trainingapps,jobrecords,genericjobs,pods,events,configmaps"
    kept = [cluster.kubectl("get", kinds, "-o", "yaml").out, trained.out, trained.err, refused.err]
    kept += [
        ask(cluster, *each).out for each in (("app", "status", "closed"), ("describe", "closed"), ("describe", "open"))
    ]
    assert server.password not in "".join(kept)
    assert "no-such-word" not in "".join(kept)
    assert re.search("password|authentication|denied|401|403", refused.err + kept[0], re.IGNORECASE)
    ask(cluster, "app", "uninstall", "-y", "closed", "open")
    wait_until("the secret goes too", lambda: "closed-git" not in cluster.kubectl("get", "secrets").out)


def test_the_keys_of_a_bucket_do_not_come_back_out(cluster, tmp_path):
    """D-06, S-11"""
    key = tmp_path / "key"
    key.write_text("very-secret-indeed\n")
    bucket = ("--bucket", "s3://team/data", "--endpoint", "https://store.example.org", "--access-key-id", "AK1")

    ask(cluster, "volume", "create", "far", *bucket, "--access-key-secret-file", str(key))
    listed = ask(cluster, "volume", "list").out

    assert re.search(r"^far +bucket +s3://team/data +Ready ", listed, re.MULTILINE)
    assert "very-secret" not in listed + ask(cluster, "describe", "secret/far").out
    ask(cluster, "volume", "delete", "-y", "far")
