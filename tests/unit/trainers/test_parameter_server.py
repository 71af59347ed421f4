"""The shipped trainer: knows who it is in every dialect, learns, and writes what TensorBoard reads."""

import json
import re
import struct
import subprocess
import sys

import pytest

from paceline.trainers import parameter_server

PROGRAM = parameter_server.__file__
HOSTS = {"ps": ["127.0.0.1:0"], "worker": ["a:1", "b:2"]}
NO_ONE = {"PATH": "/usr/bin:/bin"}
DIALECTS = {
    "the chart's": {"CLUSTER_CONFIG": json.dumps(HOSTS), "POD_NAME": "worker-1"},
    "the service's": {"JOB_NAME": "worker", "JOB_INDEX": "1", "PS_HOSTS": "127.0.0.1:0", "WORKER_HOSTS": "a:1,b:2"},
    "TensorFlow's": {"TF_CONFIG": json.dumps({"cluster": HOSTS, "task": {"type": "worker", "index": 1}})},
}


@pytest.mark.parametrize("env", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_tells_who_is_who(env, monkeypatch):
    for name in ("CLUSTER_CONFIG", "POD_NAME", "JOB_NAME", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["trainer"])

    assert parameter_server.whoami(parameter_server.read_options()) == (HOSTS, "worker", 1)


def run(*flags, code=0):
    ran = subprocess.run(
        [sys.executable, PROGRAM, *flags], env=NO_ONE, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == code, ran
    return ran.stdout


def test_one_worker_learns_and_says_how_it_went(tmp_path):
    """H-38, H-39, H-66, H-70"""
    said = run(f"--logdir={tmp_path}", "--epochs=4", "--batch_size=50", "--lr=0.5")
    lines = said.splitlines()
    progress = [line for line in lines if line.startswith("Step: ")]

    assert progress[-1].startswith("Step: 80,  Epoch: 4,  Batch: 20 of 20,  Cost: 0.")
    assert [re.sub(r"[\d.]+", "N", line) for line in lines[-4:]] == [
        "Test-Accuracy: N",
        "Total Time: Ns",
        "Final Cost: N",
        "done",
    ]
    assert float(lines[-4].split()[-1]) > 0.9


def test_workers_without_parameter_servers_train_each_for_itself(tmp_path):
    said = run(f"--logdir={tmp_path}", "--epochs=1", "--job_name=worker", "--task_index=1", "--worker_hosts=a:1,b:2")

    assert "worker-1 trains on shard 1 of 2" in said
    assert said.endswith("done\n")


def test_a_second_training_goes_on_where_the_first_ended(tmp_path):
    """S-07, S-08"""
    first = run(f"--logdir={tmp_path}/one", "--epochs=1")
    second = run(f"--logdir={tmp_path}/two", "--epochs=1", f"--checkpoint={tmp_path}/one/checkpoint.json")

    assert "Restored" not in first
    assert "Restored step 10 from" in second


def test_curves_are_whole_records_with_cost_and_accuracy(tmp_path):
    run(f"--logdir={tmp_path}", "--epochs=2")
    (file,) = tmp_path.glob("worker-0/events.out.tfevents.*")
    data, events = file.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert data[8:12] == parameter_server._masked(data[:8])
        event, data = data[12 : 12 + length], data[12 + length :]
        assert data[:4] == parameter_server._masked(event)
        events.append(event)
        data = data[4:]

    assert b"brain.Event:2" in events[0]
    assert [b"cost" in each and b"accuracy" in each for each in events[1:]] == [True, True]


def test_it_fails_where_it_is_asked_to(tmp_path):
    said = run(f"--logdir={tmp_path}", "--epochs=9", "--fail_at_step=15", "--exit_code=7", "--log_mb=1", code=7)

    assert "exiting at step 15" in said
    assert len(said) > 1 << 20
