"""Objects as rows, as the server's own tables, and as text for programs."""

import json
from datetime import UTC, datetime

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paceline.cli.commands.cluster.down import ask
from paceline.cli.output import formats
from paceline.cli.output.console import ODD
from paceline.cli.output.describe import events_table, replicas_table, summary_rows
from paceline.model.gang import ReplicaId
from paceline.model.scheduling_queue import QueueEntry, SchedulingQueue
from paceline.presentation.events import in_order
from paceline.presentation.job_summary import status_of
from paceline.presentation.replica_pods import ReplicaPod

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def job(phase="Running", **status):
    return {
        "kind": "PyTorchTrainingJob",
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "metadata": {"name": "digits", "namespace": "default", "creationTimestamp": "2030-01-01T11:59:00Z"},
        "spec": {"replicaSpecs": [{"replicas": 2}]},
        "status": {"phase": phase, "aggregate": {"running": 1, "pending": 1}, **status},
    }


def test_a_job_in_a_row():
    assert formats.job_row(job(waiting="for worker-1"), NOON) == (
        "digits",
        "PyTorchTrainingJob",
        "Running",
        "1/2",
        "60s",
        "for worker-1",
    )


def test_a_job_that_waits_for_room_tells_its_place_instead():
    waiting = job(
        "Pending", waiting="pod x: 0/1 nodes are available: 1 Insufficient memory (4Gi asked, 1Gi of 8Gi free)"
    )
    waiting["metadata"]["uid"] = "u"
    queue = SchedulingQueue.of((QueueEntry(uid="u", namespace="default", name="digits"),))
    sentence = "1st of 1 in the queue: needs 4Gi memory, 1Gi of 8Gi free"

    assert formats.job_row(waiting, NOON, queue=queue)[-1] == sentence
    assert formats.job_row(waiting, NOON)[-1] == waiting["status"]["waiting"]
    assert ("Queue", sentence) in summary_rows(waiting, status_of(waiting), NOON, queue)


def test_a_wide_row_tells_restarts_and_duration():
    row = formats.job_row(job(startTime="2030-01-01T11:59:30Z", attempt=2), NOON, is_wide=True)

    assert len(row) == len(formats.WIDE_JOB_HEADER)
    assert row[4:6] == ("2", "30s")


def test_a_job_that_goes_says_so():
    going = job()
    going["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"

    assert formats.job_row(going, NOON)[2] == "Deleting"


TABLE = {
    "kind": "Table",
    "columnDefinitions": [{"name": "Name"}, {"name": "Ready", "priority": 0}, {"name": "Node", "priority": 1}],
    "rows": [{"cells": ["a", True, None], "object": {"metadata": {"namespace": "team"}}}],
}
TABLES = {
    "the server's columns are shown": ((False, False), ("NAME", "READY"), [("a", "true")]),
    "more of them when asked": ((True, False), ("NAME", "READY", "NODE"), [("a", "true", "<none>")]),
    "with namespaces when they differ": ((False, True), ("NAMESPACE", "NAME", "READY"), [("team", "a", "true")]),
}


@pytest.mark.parametrize(("asked", "header", "rows"), TABLES.values(), ids=TABLES)
def test_tables_of_the_server(asked, header, rows):
    is_wide, has_namespace = asked

    assert formats.table_rows(TABLE, NOON, is_wide=is_wide, has_namespace=has_namespace) == (header, rows)


def test_a_server_without_tables_gives_names_and_ages():
    thing = {"metadata": {"name": "a", "creationTimestamp": "2030-01-01T11:00:00Z"}}

    for answer in ({"items": [thing]}, thing):
        assert formats.table_rows(answer, NOON, is_wide=False, has_namespace=False) == (("NAME", "AGE"), [("a", "60m")])


def test_one_object_is_shown_bare_and_several_as_a_list():
    assert formats.listed([{"a": 1}], is_one=True) == {"a": 1}
    assert formats.listed([{"a": 1}], is_one=False)["items"] == [{"a": 1}]


def test_yaml_keeps_order_and_writes_scripts_as_blocks():
    text = formats.as_yaml({"z": 1, "a": "one\ntwo\n", "list": [{"b": "训练"}]})

    assert text == "z: 1\na: |\n  one\n  two\nlist:\n- b: 训练\n"


HOSTILE = {
    "escape": "\x1b[2J",
    "C1 sequence": "\x9b2J\x9d0;title\x9c",
    "delete and bell": "\x7f\x07\x08",
    "next line": "a\x85b",
    "right to left": "\u202egpj.exe",
    "isolates": "\u2066x\u2069",
    "marks": "\u200e\u200f\u061c",
    "line separators": "a\u2028b\u2029c",
    "in a text of several lines": "one\ntwo\u202ethree\n",
    "in a word that is no word": "yes\u200e",
    "tags": "a\U000e0041b",
    "quotes beside it": "'\"\\\u202e'",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("write", [formats.as_json, formats.as_yaml])
def test_documents_cannot_order_a_terminal_about_and_mean_the_same(write, text):
    objects = {"a": text, text: ["训练", {"b": text}]}
    written = write(objects)

    assert not ODD.search(written)
    assert "训练" in written
    assert (json.loads if write is formats.as_json else yaml.safe_load)(written) == objects


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_whatever_a_document_holds_it_means_the_same(text):
    for written, read in ((formats.as_json({"a": text}), json.loads), (formats.as_yaml({"a": text}), yaml.safe_load)):
        assert not ODD.search(written)
        assert read(written) == {"a": text}


def test_facts_of_a_job_leave_out_what_is_not_there():
    facts = dict(summary_rows(job(), status_of(job()), NOON))

    assert facts["Replicas"] == "1 of 2 (1 running, 1 pending)"
    assert facts["Created"] == "2030-01-01 11:59:00 UTC (60s ago)"
    assert facts["Ended"] == facts["Attempt"] == ""


def test_facts_of_a_job_say_who_asked_for_it():
    annotated = job()
    annotated["metadata"]["annotations"] = {"paceline.dev/asked-by": "ada"}

    assert dict(summary_rows(annotated, status_of(annotated), NOON))["Asked by"] == "ada"
    assert dict(summary_rows(job(), status_of(job()), NOON))["Asked by"] == ""


def test_facts_of_a_job_name_its_tensorboard():
    told = {"dependent": {"name": "digits-12345"}, "note": "it is opened at /t9k/x/"}
    facts = dict(summary_rows(job(), status_of(job()).but(tensorboard=told), NOON))

    assert facts["TensorBoard"] == "digits-12345: it is opened at /t9k/x/"
    assert dict(summary_rows(job(), status_of(job()), NOON))["TensorBoard"] == ""


def test_replicas_name_the_leader_and_how_each_ended():
    pods = [
        ReplicaPod(name="d-w-0", place=ReplicaId("worker", 0), attempt=0, phase="Running", is_leader=True),
        ReplicaPod(
            name="d-w-1", place=ReplicaId("worker", 1), attempt=0, phase="Failed", exit_code=0, reason="OOMKilled"
        ),
    ]
    lines = replicas_table(pods, NOON)

    assert lines[1].split() == ["worker-0", "*", "d-w-0", "Running", "0"]
    assert lines[2].split() == ["worker-1", "d-w-1", "Failed", "0", "0", "OOMKilled"]


def test_events_come_in_their_order_and_are_counted():
    def event(reason, when, revision, count=1):
        meta = {"resourceVersion": revision}
        return {"reason": reason, "lastTimestamp": when, "count": count, "metadata": meta, "message": "m\n"}

    events = [
        event("Third", "2030-01-01T11:59:59Z", "2"),
        event("Second", "2030-01-01T11:59:58Z", "10", count=3),
        event("First", "2030-01-01T11:59:58Z", "9"),
    ]
    lines = events_table(in_order(events), NOON)

    assert [line.split()[-3] for line in lines[1:]] == ["First", "Second", "Third"]
    assert "2s (x3)" in lines[2]


def test_down_names_the_jobs_and_the_flags_when_nobody_can_be_asked(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    class Ref:
        name = "digits"

    assert ask([Ref()] * 7) is None
    told = capsys.readouterr().err
    assert "7 jobs are still running: digits, digits, digits, digits, digits and 2 more" in told
    assert "--keep-jobs" in told
    assert "--stop-jobs" in told
