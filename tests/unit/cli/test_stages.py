"""Stages as people see them: one line each, with its state and the beginning of what it said."""

from paceline.cli.output.job_outcome import stages_table, values_of
from paceline.model.job_status import JobStatus


def told(*stages):
    return JobStatus(tasks=({"type": "worker", "replicas": [{"name": "demo-worker-0", "stages": list(stages)}]},))


def test_every_stage_has_a_line():
    done = {"name": "paceline-clone", "state": "Terminated", "exitCode": 0, "message": "main at abc"}
    failed = {"name": "paceline-install", "state": "Terminated", "exitCode": 1, "message": "uv:\n  no such package"}
    waits = {"name": "paceline-output", "state": "Waiting"}

    lines = [line.split() for line in stages_table(told(done, failed, waits))]

    assert lines[0] == ["REPLICA", "STAGE", "STATE", "MESSAGE"]
    assert lines[1] == ["demo-worker-0", "clone", "Done", "main", "at", "abc"]
    assert lines[2] == ["demo-worker-0", "install", "Failed", "uv:", "no", "such", "package"]
    assert lines[3] == ["demo-worker-0", "output", "Waiting"]


def test_a_long_message_is_cut():
    (_, line) = stages_table(
        told({"name": "paceline-clone", "state": "Terminated", "exitCode": 1, "message": "x" * 500})
    )

    assert line.endswith("x…")
    assert len(line) < 200


def test_a_job_without_stages_has_no_table():
    assert stages_table(told()) == []


def test_values_are_shown_in_the_order_of_their_names():
    assert values_of({"spec": {"hyperparameters": {"values": {"lr": 0.001, "epochs": 3}}}}) == "epochs=3, lr=0.001"
    assert values_of({"spec": {}}) == ""
