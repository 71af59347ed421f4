"""Applications as docs/internals/features.md has them, on a cluster with two pretended GPUs and an own image."""

import json
import re
import stat
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, Ran, embedded, paceline_command, wait_until
from tests.e2e.support.terminal import terminal

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300), pytest.mark.slow]
GPUS = "nvidia.com/gpu=2"
SMALL = "worker.memory=64Mi,ps.memory=64Mi,tensorboard.image=nobody/has-this:1"
# A program that only the image of one's own has.
OWN_PROGRAM = """\
#!/bin/sh
echo "own program: $* in $(pwd), data at $DEFAULT_REMOTE_VOLUME_PATH, code of ${GIT_URL:-here}"
cp /input/a/b.txt /output/copied.txt
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Path:
    """The folder that an image of one's own is mapped to."""
    folder = tmp_path_factory.mktemp("image")
    program = folder / "bin" / "caffe"
    program.parent.mkdir()
    program.write_text(OWN_PROGRAM)
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return folder


@pytest.fixture(scope="module")
def cluster(image):
    with embedded("--device", GPUS, "--image", f"acme/caffe:*={image}") as running:
        yield running


def ask(cluster: Embedded, *words: str, code: int = 0) -> Ran:
    ran = cluster.paceline(*words)
    assert ran.code == code, (words, ran)
    return ran


def shown(cluster: Embedded, *words: str):
    ran = cluster.kubectl("get", *words, "-o", "json")
    return json.loads(ran.out) if ran.code == 0 else None


def comes_to(cluster: Embedded, name: str, phase: str, revision: int = 1):
    def look():
        status = (shown(cluster, "trainingapp", name) or {}).get("status") or {}
        return status if (status.get("revision"), status.get("phase")) == (revision, phase) else None

    return wait_until(f"revision {revision} of {name} is {phase}", look)


def pods_of(cluster: Embedded, job: str):
    found = shown(cluster, "pods", "-l", f"tensorstack.dev/owner-name={job}")["items"]
    return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "train.py"
    file.write_text(text)
    return str(file)


def test_one_template_trains_with_gpus_and_without(cluster):
    """H-11, H-46, S-22"""
    say = "command={sh,-c,echo visible=$CUDA_VISIBLE_DEVICES.}"
    for name, count in (("with", 1), ("without", 0)):
        ask(
            cluster,
            "app",
            "install",
            name,
            "tensorflow-training",
            "--set",
            f"{SMALL},ps.number=0,worker.gpuCount={count}",
            "--set",
            say,
        )
        comes_to(cluster, name, "Succeeded")

    given = ask(cluster, "logs", "with", "--all").out
    assert sorted(re.findall(r"visible=(\d)\.", given)) == ["0", "1"]
    assert ask(cluster, "logs", "without", "--all").out.count("visible=.") == 2
    ask(cluster, "app", "uninstall", "-y", "with", "without")


def test_a_dry_run_shows_the_whole_plan_and_the_values_that_hold_and_makes_nothing(cluster):
    """H-31, H-52: what was changed is in the values that hold, what was not has its default."""
    before = ask(cluster, "app", "list").out

    dry = ask(
        cluster, "app", "install", "plan", "tensorflow-training", "--set", "worker.number=3", "--dry-run", "--debug"
    ).out

    assert re.search(r"^      number: 3$", dry, re.MULTILINE), "the changed value"
    assert re.search(r"^      epochs: \d+$", dry, re.MULTILINE), "a value nobody touched"
    for part in ("kind: TensorFlowTrainingJob", "kind: PersistentVolumeClaim", "kind: TensorBoard", "type: ps"):
        assert part in dry
    assert ask(cluster, "app", "list").out == before
    assert shown(cluster, "trainingapp", "plan") is None


def test_a_dry_run_of_an_upgrade_and_a_rollback_shows_values_and_job_and_changes_nothing(cluster):
    ask(cluster, "app", "install", "rates", "tensorflow-training", "--set", SMALL)
    wait_until("its first revision is recorded", lambda: "installed" in ask(cluster, "app", "history", "rates").out)
    setting = ("--set", "hyperparams.learningrate=0.05")

    dry = ask(cluster, "app", "upgrade", "rates", *setting, "--dry-run").out

    rate = "hyperparams.learningrate: 0.001 → 0.05\njob.spec.hyperparameters.values.learningrate: 0.001 → 0.05\n"
    assert dry == rate
    assert "learningrate" not in ask(cluster, "app", "history", "rates").out
    upgraded = ask(cluster, "app", "upgrade", "rates", *setting).out
    assert upgraded.startswith("hyperparams.learningrate: 0.001 → 0.05\napp/rates upgraded to revision 2\n")
    wait_until("it has two", lambda: "learningrate=0.05" in ask(cluster, "app", "history", "rates").out)
    back = ask(cluster, "app", "rollback", "rates", "1", "--dry-run").out
    assert back == rate.replace("0.001 → 0.05", "0.05 → 0.001")
    ask(cluster, "app", "uninstall", "-y", "rates")


def test_a_volume_of_a_share_is_available_until_a_claim_wants_it(cluster, tmp_path):
    """H-16, H-26, H-28: the API half."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "nas", "labels": {"train": "later"}},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(tmp_path)},
        },
    }
    assert cluster.kubectl("create", "-f", "-", stdin=json.dumps(volume)).code == 0

    far = {**volume, "metadata": {"name": "far"}, "spec": {**volume["spec"], "nfs": {"path": "/export"}}}
    del far["spec"]["hostPath"]
    bad = cluster.kubectl("create", "-f", "-", stdin=json.dumps(far))
    assert "spec.nfs.server: Required value" in bad.err, "the field is named that a file server lacks"
    far["spec"]["nfs"] = {"path": "/export", "server": "nas", "versoin": "4"}
    assert 'unknown field "spec.nfs.versoin"' in cluster.kubectl("create", "-f", "-", stdin=json.dumps(far)).err
    wait_until("it is available", lambda: shown(cluster, "pv", "nas")["status"].get("phase") == "Available")
    assert re.search(r"^nas .*Available", ask(cluster, "get", "pv").out, re.MULTILINE)


def test_status_lists_every_part_with_its_state_and_the_image_of_tensorboard(cluster):
    """H-41, H-54, H-62: the command-line half."""
    ask(
        cluster,
        "app",
        "install",
        "parts",
        "tensorflow-training",
        "--set",
        f"{SMALL},worker.gpuCount=0,hyperparams.epochs=1000000",
    )
    comes_to(cluster, "parts", "Running")
    wait_until("TensorBoard's pod waits", lambda: "ImagePull" in ask(cluster, "app", "status", "parts").out)

    status = ask(cluster, "app", "status", "parts").out

    assert re.search(r"^parts +1 +0 +nobody/has-this:1 ", status, re.MULTILINE)
    for place in ("worker-0", "worker-1", "ps-0"):
        assert re.search(rf"^{place} +1 +0 ", status, re.MULTILINE), place
        assert re.search(rf"^parts-1-\w{{5}}-{place} +1/1 +Running +0 ", status, re.MULTILINE), place
    assert re.search(r"^parts-\w{5}-0 +0/1 +(ErrImagePull|ImagePullBackOff) +0 ", status, re.MULTILINE)
    assert re.search(r"^parts-data +Bound ", status, re.MULTILINE)
    assert ask(cluster, "describe", "parts").out.split("RESOURCES")[0] == status.split("RESOURCES")[0]
    ask(cluster, "app", "uninstall", "-y", "parts")


def test_an_image_of_ones_own_finds_data_runs_the_command_as_given_and_its_results_are_kept(cluster, tmp_path):
    """D-02, H-47, S-19"""
    data = tmp_path / "bucket"
    (data / "a").mkdir(parents=True)
    (data / "a" / "b.txt").write_text("data")
    (tmp_path / "code").mkdir()
    code = script(tmp_path / "code", "unused")
    words = ("train", code, "third", "--framework", "acme/caffe:1", "--memory", "64Mi", "--data", str(data))

    trained = ask(cluster, *words, "--command", "caffe train --solver 'a b' | tee /output/said.txt && test -d /input")

    assert "own program: train --solver a b in /source, data at /input, code of here" in trained.out
    assert (data / "third-1" / "worker-0" / "copied.txt").read_text() == "data"
    assert (data / "third-1" / "worker-0" / "said.txt").read_text() in trained.out
    ask(cluster, "app", "uninstall", "-y", "third")


def test_an_image_that_nobody_knows_is_said_and_nothing_is_called_running(cluster, tmp_path):
    """H-47"""
    code = script(tmp_path, "print('never')")
    ask(cluster, "train", code, "lost", "--framework", "nobody/knows:7", "--memory", "64Mi", "--detach")

    def look():
        status = (shown(cluster, "trainingapp", "lost") or {}).get("status") or {}
        return status if "nobody/knows:7" in status.get("waiting", "") else None

    status = wait_until("the reason is there", look)
    assert status["phase"] == "Pending"
    assert "paceline up --image 'nobody/knows:7=host'" in status["waiting"]
    told = ask(cluster, "app", "status", "lost").out
    assert re.search(r"^STATUS: +Pending$", told, re.MULTILINE)
    assert re.search(r"worker-0 +0/1 +(ErrImagePull|ImagePullBackOff) ", told)
    ask(cluster, "app", "uninstall", "-y", "lost")


def test_a_deleted_worker_comes_back_and_a_stopped_application_is_revived(cluster):
    """D-04, H-62, S-04, S-52: what is made anew is looked up anew, image and all."""
    forever = f"{SMALL},worker.gpuCount=0,worker.number=2,hyperparams.epochs=1000000"
    ask(cluster, "app", "install", "again", "tensorflow-training", "--set", forever)
    comes_to(cluster, "again", "Running")
    first = next(name for name in pods_of(cluster, "again-1") if name.endswith("worker-1"))
    wait_until("it has written", lambda: "trains on shard 1 of 2" in cluster.paceline("logs", f"pod/{first}").out)

    assert cluster.kubectl("delete", "pod", first, "--wait=false").code == 0

    def is_back():
        found = pods_of(cluster, "again-1").get(f"{first}-r1")
        return found and found["status"].get("phase") == "Running"

    wait_until("another pod has its place", is_back)
    comes_to(cluster, "again", "Running")
    worker = ("logs", "again", "--role", "worker", "--index", "1")
    wait_until("the new one has written", lambda: "Step: " in cluster.paceline(*worker).out)
    assert "trains on shard 1 of 2" in ask(cluster, "logs", f"pod/{first}").out, "what the old one wrote is kept"

    ask(cluster, "stop", "again")
    assert "Step: " in ask(cluster, *worker).out, "the log is there when it is stopped"
    assert [
        pod["status"]["phase"] for pod in pods_of(cluster, "again-1").values() if pod["status"]["phase"] == "Running"
    ] == []
    assert ask(cluster, "restart", "again").out == "app/again resumed\n"
    comes_to(cluster, "again", "Running")
    events = cluster.kubectl("get", "events", "--field-selector", "reason=Pulled", "-o", "json").out
    pulled = {each["involvedObject"]["name"] for each in json.loads(events)["items"]}
    assert {name for name in pods_of(cluster, "again-1") if "worker" in name} <= pulled
    ask(cluster, "app", "uninstall", "-y", "again")


TALK = """\
import os, time
role = os.environ["POD_NAME"]
for number in range(3):
    print(role, "line", number, flush=True)
    time.sleep(0.2)
if role.startswith("ps"):
    time.sleep(1000)
"""


def test_logs_are_read_of_all_of_a_role_and_of_one_and_all_together_by_time(cluster, tmp_path):
    """D-05, H-65, H-69, S-42, S-43, S-44, S-45: the command-line half."""
    words = ("--distributed", "--ps", "1", "--workers", "2", "--framework", "python", "--memory", "64Mi")
    ask(cluster, "train", script(tmp_path, TALK), "talk", *words, "--detach")
    comes_to(cluster, "talk", "Succeeded")

    merged = ask(cluster, "logs", "talk", "--all", "--timestamps").out.splitlines()
    sources = [line.split(" │ ")[0] for line in merged]
    stamps = [line.split(" │ ")[1].split()[0] for line in merged]
    assert set(sources) == {"worker-0", "worker-1", "ps-0"}
    assert stamps == sorted(stamps)
    assert len(merged) == 9

    followed = ask(cluster, "logs", "-f", "talk", "--role", "worker", "--index", "0").out
    assert followed == "worker-0 line 0\nworker-0 line 1\nworker-0 line 2\n", "who has ended is read to the end"
    role = ask(cluster, "logs", "talk", "--role", "worker").out
    assert (role.count("worker-0 │"), role.count("worker-1 │"), "ps-0" in role) == (3, 3, False)
    alone = ask(cluster, "logs", "talk", "--role", "worker", "--index", "1", "--tail", "2").out
    assert alone == "worker-1 line 1\nworker-1 line 2\n"

    early = ask(cluster, "logs", "talk", "--all", "--timestamps", "--until", stamps[4]).out.splitlines()
    assert early == merged[:5]
    assert ask(cluster, "logs", "talk", "--all", "--since", "2100-01-01T00:00:00Z").out == ""
    file = tmp_path / "talk.log"
    ask(cluster, "logs", "talk", "--all", "--timestamps", "-o", str(file))
    assert file.read_text().splitlines() == merged
    ask(cluster, "app", "uninstall", "-y", "talk")


def test_a_killed_parameter_server_is_noticed_tried_again_and_told(cluster):
    """H-08, X-15"""
    forever = f"{SMALL},worker.gpuCount=0,worker.number=1,ps.number=1,hyperparams.epochs=1000000"
    ask(cluster, "app", "install", "served", "tensorflow-training", "--set", forever)
    comes_to(cluster, "served", "Running")
    server = next(name for name in pods_of(cluster, "served-1") if name.endswith("ps-0"))

    cluster.kubectl("exec", server, "--", "sh", "-c", "kill -KILL -1")

    def is_back():
        found = pods_of(cluster, "served-1").get(f"{server}-r1")
        return found and found["status"].get("phase") == "Running"

    wait_until("the next try runs", is_back)
    job = ("--field-selector", "involvedObject.name=served-1,reason=Restarting")
    events = cluster.kubectl("get", "events", *job, "-o", "jsonpath={.items[*].message}").out
    assert f"pod {server}" in events
    assert "exit code 137" in events
    ask(cluster, "app", "uninstall", "-y", "served")


def test_who_deletes_at_a_terminal_is_asked_first(cluster, tmp_path):
    """S-53, T-12: the command-line half; the files of a folder stay."""
    words = (
        "train",
        script(tmp_path, "open('/output/made', 'w')"),
        "asked",
        "--memory",
        "64Mi",
        "--data",
        str(tmp_path),
    )
    ask(cluster, *words)
    env = {**cluster.environment(), "TERM": "dumb"}
    for answer, code in (("n", 1), ("y", 0)):
        with terminal(paceline_command(), "delete", "asked", env=env) as screen:
            screen.wait_for("asked")
            screen.type(f"{answer}\n")
            assert screen.ended() == code
        assert (shown(cluster, "trainingapp", "asked") is None) == (answer == "y")
    assert (tmp_path / "asked-1" / "worker-0" / "made").exists()


LEAVE = "trap 'sleep 0.5; date +%s%N > /data/$POD_NAME; exit 0' TERM; echo up; while :; do sleep 0.1; done"


def test_a_stopped_application_ends_its_workers_before_the_servers_they_talk_to(cluster, tmp_path):
    """D-07, S-51"""
    values = tmp_path / "values.yaml"
    said = json.dumps(["sh", "-c", LEAVE])
    small = "worker: {number: 2, gpuCount: 0, memory: 64Mi}\nps: {number: 1, memory: 64Mi}"
    values.write_text(f"{small}\ncommand: {said}\n")
    ask(
        cluster,
        "app",
        "install",
        "order",
        "tensorflow-training",
        "-f",
        str(values),
        "--set",
        "tensorboard.image=nobody/has:1",
    )
    comes_to(cluster, "order", "Running")
    wait_until("all listen", lambda: ask(cluster, "logs", "order", "--all").out.count("up") == 3)

    assert ask(cluster, "stop", "order").out == "app/order stopped\n"

    volume = shown(cluster, "pvc", "order-data")["spec"]["volumeName"]
    source = shown(cluster, "pv", volume)["spec"]
    folder = Path((source.get("hostPath") or source.get("local"))["path"])
    ends = {place: int((folder / place).read_text()) for place in ("worker-0", "worker-1", "ps-0")}
    assert ends["ps-0"] > max(ends["worker-0"], ends["worker-1"]) + 400_000_000, "it was told when they had ended"
    ask(cluster, "app", "uninstall", "-y", "order")


def test_a_container_is_stopped_by_the_signal_it_asks_for(cluster):
    """D-07"""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "polite"},
        "spec": {
            "os": {"name": "linux"},
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "python:3.11",
                    "command": [
                        "sh",
                        "-c",
                        "trap 'exit 3' INT; trap 'exit 4' TERM; echo up; while :; do sleep 0.1; done",
                    ],
                    "lifecycle": {"stopSignal": "SIGINT"},
                }
            ],
        },
    }
    made = cluster.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    assert made.code == 0, made.err
    wait_until("it listens", lambda: cluster.kubectl("logs", "polite").out == "up\n")
    # Ended by the node itself, so that the pod is still there to be asked how.
    late = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
    assert cluster.kubectl("patch", "pod", "polite", "-p", late).code == 0

    def look():
        status = shown(cluster, "pod", "polite")["status"]
        states = [each["state"].get("terminated") for each in status.get("containerStatuses") or ()]
        return states[0] if states else None

    assert wait_until("it has ended", look)["exitCode"] == 3


def test_a_job_lands_on_the_cluster_that_was_chosen(cluster, tmp_path):
    """S-10"""
    with embedded() as other:
        both = tmp_path / "kubeconfig"
        both.write_text(json.dumps(together(local=cluster, local2=other)))
        code = script(tmp_path, "print('here')")
        words = ("--kubeconfig", str(both), "--context")

        ask(cluster, "train", code, "chosen", "--memory", "64Mi", *words, "local2")

        assert "chosen" in ask(cluster, "app", "list", *words, "local2").out
        assert "chosen" not in ask(cluster, "app", "list", *words, "local").out
        assert shown(other, "trainingapp", "chosen") is not None
        assert shown(cluster, "trainingapp", "chosen") is None
        unknown = cluster.paceline("app", "list", *words, "locl2")
        assert unknown.code != 0
        assert "no context named 'locl2'; did you mean 'local2'? It has: local, local2" in unknown.err
        # As kubectl finds it, and by the environment alone.
        named = cluster.command(
            "env",
            f"KUBECONFIG={both}",
            "PACELINE_CONTEXT=local2",
            paceline_command(),
            "app",
            "list",
            stdin="",
            seconds=60,
        )
        assert "chosen" in named.out, named


def together(**clusters: Embedded):
    """One kubeconfig of several clusters."""
    merged = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": [], "current-context": ""}
    for name, each in clusters.items():
        config = json.loads(each.kubeconfig.read_text())
        merged["clusters"].append({**config["clusters"][0], "name": name})
        merged["users"].append({**config["users"][0], "name": name})
        merged["contexts"].append({"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}})
    return merged
